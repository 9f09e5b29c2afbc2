"""Sets hold the true class as often as asked, and are found without listing all classes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from samples import topics
from xtrellis import LTLSClassifier, TrellisClassifier, load_model
from xtrellis._arrays import canonical_csr
from xtrellis.decoding import conformal as module
from xtrellis.decoding.conformal import (
    LEVELS,
    Conformal,
    conformal_of,
    sets_above,
    true_scores,
    with_ranks,
)
from xtrellis.sets import class_scores, scored

MODELS = {
    "lazy": TrellisClassifier(5, C=1.0, rerank=0, random_state=0),
    "reranked": TrellisClassifier(5, C=1.0, rerank=4.0, random_state=0),
    "hinge": TrellisClassifier(5, C=1.0, decoding="squared_hinge", random_state=0),
    "paper": TrellisClassifier.paper(4, calibration=0.2, random_state=0),
    "ltls": LTLSClassifier(calibration=0.2, random_state=0),
    "early": TrellisClassifier(5, C=1.0, early_stopping=True, epochs=3, random_state=0),
}


@pytest.fixture(scope="module")
def data():
    return topics(n_classes=40, n_rows=3_000)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, data):
    X, y = data
    return MODELS[request.param].fit(X[:1_800], y[:1_800])


# ---------------------------------------------------------------------- thresholds


@given(st.integers(100, 3_000), st.floats(0.02, 0.98), st.integers(0, 99))
def test_the_threshold_is_the_order_statistic_that_theory_asks_for(n_rows, coverage, seed):
    scores = np.random.default_rng(seed).normal(size=n_rows)
    found = conformal_of(scores, np.ones(n_rows))
    n_missed = int(np.floor((n_rows + 1) * (1 - coverage) + 1e-9))
    assert found.n_rows == n_rows
    share_below = (scores < found.threshold(coverage)).mean()
    assert abs(share_below - n_missed / n_rows) <= 0.005 / 2 + 1.5 / n_rows


def test_rows_count_by_their_weights():
    scores = np.concatenate([np.zeros(500), np.ones(500)])
    weights = np.concatenate([np.full(500, 3.0), np.ones(500)])
    found = conformal_of(scores, weights)
    assert found.threshold(0.5) < 0 < 0.9 < found.threshold(0.2)
    assert found.n_rows == 800
    assert conformal_of(np.zeros(99), np.ones(99)) is None
    assert conformal_of(np.zeros(200), np.eye(1, 200)[0] * 1e6 + 1) is None


@pytest.mark.parametrize("trained_on", [1.0, 0.9, 0.6])
def test_weights_trained_on_fewer_rows_may_miss_more_often(trained_on):
    scores = np.random.default_rng(0).normal(size=5_000)
    found = conformal_of(scores, np.ones(5_000), trained_on)
    for missed in (0.05, 0.1, 0.2, 0.5):
        share_below = (scores < found.threshold(1 - missed)).mean()
        assert share_below == pytest.approx(missed / np.sqrt(trained_on), abs=0.003)
    assert (scores < found.threshold(0.01)).mean() == pytest.approx(0.99, abs=0.004)


def test_equal_scores_are_all_covered():
    found = conformal_of(np.full(1_000, -1 / 3), np.ones(1_000))
    assert found.threshold(0.5) < -1 / 3


@pytest.mark.parametrize("n_classes", [2, 5, 8, 9, 40])
def test_few_classes_are_ranked_as_many_are(n_classes):
    rng = np.random.default_rng(0)
    table = np.log(np.sort(rng.dirichlet(np.ones(n_classes), 30), axis=1)[:, ::-1])
    order = np.array([rng.permutation(n_classes) for _ in range(30)])
    truth = rng.integers(0, n_classes, 30)

    def find(rows, k):
        return order[rows, :k], table[rows, :k]

    scores = true_scores(find, lambda rows: pytest.fail("all are listed"), truth, n_classes)
    np.testing.assert_allclose(scores, with_ranks(table)[order == truth[:, np.newaxis]])


def test_a_coverage_that_the_rows_cannot_show_is_refused():
    found = conformal_of(np.arange(200.0), np.ones(200))
    found.threshold(0.995)
    with pytest.raises(ValueError, match=r"at most 0\.9950 with 200 held-out rows, got 0\.999"):
        found.threshold(0.999)
    for wrong in (0, 1, -0.1, 1.5, "0.9", None, float("nan")):
        with pytest.raises(ValueError, match="coverage must be above 0 and below 1"):
            found.threshold(wrong)


@pytest.mark.parametrize(
    "quantiles",
    [np.zeros(3, np.float32), np.full(len(LEVELS), np.nan), -np.arange(len(LEVELS), dtype=float)],
)
def test_quantiles_that_are_none_are_refused(quantiles):
    with pytest.raises(ValueError, match="quantiles"):
        Conformal(500, quantiles)
    with pytest.raises(ValueError, match="quantiles"):
        Conformal(0, np.zeros(len(LEVELS), np.float32))


# ---------------------------------------------------------------------- enumeration


def test_sets_are_those_of_all_classes_but_few_are_listed(monkeypatch):
    rng = np.random.default_rng(0)
    n_classes, truth = 5_000, rng.integers(0, 5_000, 50)
    table = -np.sort(rng.exponential(rng.uniform(0.1, 5, (50, 1)), (50, n_classes)), axis=1)
    order = np.array([rng.permutation(n_classes) for _ in range(50)])
    listed = []

    def find(rows, k):
        listed.append(len(rows) * k)
        return order[rows, :k], table[rows, :k]

    monkeypatch.setattr(module, "_AT_ONCE", 1_000)  # several parts
    for threshold in (-0.1, -3.0, -8.0, -100.0):
        sets = sets_above(find, 50, n_classes, threshold)
        for row, own in enumerate(sets):
            assert own.tolist() == order[row][with_ranks(table[row]) >= threshold].tolist()
    listed.clear()
    assert all(len(own) < 8 for own in sets_above(find, 50, n_classes, -0.5))
    assert sum(listed) == 50 * 8

    own = np.array([table[i][order[i] == truth[i]][0] for i in range(50)])
    scores = true_scores(find, lambda rows: own[rows], truth, n_classes)
    expected = [with_ranks(table[i])[order[i] == truth[i]][0] for i in range(50)]
    np.testing.assert_allclose(scores, expected)


# ---------------------------------------------------------------------- models


def test_scores_do_not_depend_on_how_many_are_listed_and_never_rise(fitted, data):
    model, X = fitted.model_, canonical_csr(data[0][1_800:1_900])
    classes, scores = scored(model, X, 40)
    assert (np.diff(scores, axis=1) <= 1e-12).all()
    for k in (1, 3, 8, 32):
        few, few_scores = scored(model, X, k)
        np.testing.assert_array_equal(few, classes[:, :k])
        np.testing.assert_allclose(few_scores, scores[:, :k], atol=1e-9)
    best, log_p = model.top_k(X, 5)
    np.testing.assert_array_equal(best, classes[:, :5])
    np.testing.assert_allclose(log_p, scores[:, :5], atol=1e-6)
    if model.centroids is None:  # behind the re-ranked classes, costs differ
        own = class_scores(model, X, classes[:, 17].copy())
        np.testing.assert_allclose(own, scores[:, 17], atol=1e-3)


@pytest.mark.parametrize("coverage", [0.7, 0.9])
def test_coverage_is_as_asked(fitted, data, coverage):
    X, y = data[0][1_800:], data[1][1_800:]
    sets = fitted.predict_set(X, coverage)
    held = np.mean([label in own for label, own in zip(y, sets, strict=True)])
    n_rows = fitted.model_.conformal.n_rows
    noise = np.sqrt(coverage * (1 - coverage) * (1 / len(y) + 1 / n_rows))
    assert abs(held - coverage) < 4 * noise
    assert np.mean([len(own) for own in sets]) < 15


def test_all_of_thousands_of_held_out_rows_are_calibrated_on():
    X, y = topics(n_classes=12, n_features=60, n_rows=4_500)
    clf = TrellisClassifier(3, C=1.0, calibration=0.7, random_state=0).fit(X, y)
    assert 3_000 < clf.model_.conformal.n_rows < 3_300


def test_a_row_without_features_gets_a_large_set_and_a_clear_one_a_small_set(data):
    X, y = data
    clf = MODELS["lazy"].fit(X[:1_800], y[:1_800])
    nothing, clear = clf.predict_set(np.zeros((1, X.shape[1])), 0.99)[0], clf.predict_set(X, 0.99)
    assert len(nothing) > 2 * np.median([len(own) for own in clear])


def test_probabilities_of_sets_are_those_of_all_classes(fitted, data):
    X = sparse.vstack([data[0][1_800:2_000], np.zeros((1, data[0].shape[1]))]).tocsr()  # one empty
    sets, probabilities = fitted.predict_set(X, 0.99, return_proba=True)
    every = fitted.predict_proba(X)
    assert max(map(len, sets)) > 1
    for own, likely, row in zip(sets, probabilities, every, strict=True):
        assert (np.diff(likely) <= 0).all()
        np.testing.assert_allclose(likely, row[np.searchsorted(fitted.classes_, own)], atol=1e-6)
    for own, other in zip(sets, fitted.predict_set(X, 0.99), strict=True):
        assert set(own.tolist()) == set(other.tolist())
    filled = fitted.predict_set(X, 0.3, return_proba=True, allow_empty=False)[1]
    assert min(map(len, filled)) == 1


def test_sets_may_be_empty_unless_told_otherwise(data):
    X, y = data
    clf = MODELS["lazy"].fit(X[:1_800], y[:1_800])
    some = clf.predict_set(X[1_800:], 0.3)
    sizes = np.array([len(own) for own in some])
    assert (sizes == 0).any()
    filled = clf.predict_set(X[1_800:], 0.3, allow_empty=False)
    for own, other, label in zip(some, filled, clf.predict(X[1_800:]), strict=True):
        assert other.tolist() == (own.tolist() or [label])


def test_the_model_file_keeps_them_small(fitted, data, tmp_path):
    X = data[0][1_800:1_850]
    with_sets = fitted.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for a, b in zip(fitted.predict_set(X), loaded.predict_set(X), strict=True):
        assert a.tolist() == b.tolist()
    loaded.model_ = replace(loaded.model_, conformal=None)
    assert with_sets - loaded.save(tmp_path / "without") < 1_400


def test_without_held_out_rows_the_error_says_what_to_do(data):
    X, y = data
    for clf in (TrellisClassifier(5, C=1.0, calibration=0), LTLSClassifier()):
        with pytest.raises(
            ValueError, match=r"at least 100 rows that were held out .* train on more rows"
        ):
            clf.fit(X[:300], y[:300]).predict_set(X)
    few = TrellisClassifier(5, C=1.0).fit(X[:90], y[:90])  # nor are there 100 to hold out in turn
    with pytest.raises(ValueError, match="at least 100 rows that were held out"):
        few.predict_set(X)


def test_learning_on_ends_what_was_calibrated_and_pruning_calibrates_again(data):
    X, y = data
    clf = TrellisClassifier(5, learner="arow", random_state=0).fit(X[:1_800], y[:1_800])
    assert clf.model_.conformal is not None
    before = clf.model_.conformal
    clf.prune(X[1_800:2_400], y[1_800:2_400], max_drop=0.1)
    assert clf.model_.conformal.n_rows == 600
    held = [a in own for a, own in zip(y[2_400:], clf.predict_set(X[2_400:], 0.9), strict=True)]
    assert abs(np.mean(held) - 0.9) < 0.06
    clf.model_ = replace(clf.model_, conformal=before)
    clf.partial_fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="rows that were held out"):
        clf.predict_set(X)
