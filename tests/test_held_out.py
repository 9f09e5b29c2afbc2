"""What held-out rows decide, and that those of several folds decide it together."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from xtrellis import TrellisClassifier, engine, fitting, held_out
from xtrellis.engine import assign_paths
from xtrellis.judging import Judged
from xtrellis.learning.rows import held_out_weights


@pytest.fixture(scope="module")
def rows():
    """Thirty classes of 2 to 39 rows: words of their own, words of a neighbour, and noise."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(30), rng.integers(2, 40, 30))
    own = 5 * y[:, np.newaxis] + rng.integers(0, 7, (len(y), 4))
    words = np.hstack([own, rng.integers(0, 200, (len(y), 5))])
    X = sparse.csr_matrix((np.ones(words.size), (np.repeat(np.arange(len(y)), 9), words.ravel())))
    return X, y


def fit_and_spy(X, y, may_hold_out=None, **settings):
    """A fitted classifier, the rows as training sees them, and the folds it was judged by."""
    seen = []

    def spy(estimator, data, folds, *rest):
        seen.append((data, list(folds)))
        return held_out.verdict_of(estimator, data, folds, *rest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fitting, "verdict_of", spy)
        clf = TrellisClassifier(random_state=0, **settings).fit(X, y, may_hold_out=may_hold_out)
    return clf, *seen[0]


@pytest.fixture(scope="module")
def judged(rows):
    return fit_and_spy(*rows)


def test_few_rows_are_held_out_in_turn(judged):
    _, data, folds = judged
    assert len(folds) == fitting.MOST_FOLDS
    assert not any((a.held_out & b.held_out).any() for a, b in combinations(folds, 2))
    for fold in folds:
        assert len(np.unique(data.y_encoded[~fold.held_out])) == 30
        numbers = np.flatnonzero(fold.held_out)
        counted = held_out_weights(data.y_encoded, fold.held_out, numbers) > 0
        sample, own = fold.sample.y_encoded, data.y_encoded[numbers[counted]]
        assert len(own) >= len(numbers) - 3
        np.testing.assert_array_equal(np.sort(sample), np.sort(own))


def test_sets_know_that_the_model_is_trained_on_more_rows_than_those_judged():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 40, 3_000)
    X = rng.normal(size=(40, 12))[y] + rng.normal(size=(3_000, 12))
    clf, data, folds = fit_and_spy(X, y, calibration=0.3)
    share = held_out.trained_share(data, folds)
    assert share == pytest.approx(1 - np.mean([fold.held_out.mean() for fold in folds]))
    assert 0.69 < share < 0.8
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(held_out, "trained_share", lambda *rest: 1.0)
        before = fit_and_spy(X, y, calibration=0.3)[0].model_.conformal
    for coverage in (0.5, 0.8, 0.9):
        allowed = 1 - (1 - coverage) / np.sqrt(share)
        assert clf.model_.conformal.threshold(coverage) == pytest.approx(
            before.threshold(allowed), abs=0.05
        )


def test_weights_by_class_size_make_up_for_the_rows_held_out(judged):
    _, data, folds = judged
    weights = held_out_weights(data.y_encoded, folds[0].held_out, np.arange(len(data.y_encoded)))
    assert np.ptp(weights) > 0
    assert held_out.trained_share(data, folds) == 1
    nothing = [folds[0]._replace(held_out=np.zeros_like(folds[0].held_out))]
    assert held_out.trained_share(data, nothing) == 1


def test_no_more_rows_are_held_out_than_needed(rows, monkeypatch):
    _, _, folds = fit_and_spy(*rows)
    n_judged = len(folds[0].sample.y_encoded)
    for times, n_folds in ((0.9, 1), (1.4, 1), (1.6, 2), (3.1, 3)):
        monkeypatch.setattr(fitting, "ENOUGH_JUDGED", times * n_judged)
        assert len(fit_and_spy(*rows)[2]) == n_folds


def test_held_out_rows_do_not_influence_the_paths_of_their_fold(rows, monkeypatch):
    """Else the fold would be more accurate on them than on new rows."""
    given = []

    def spy(estimator, trellis, data, *rest):
        given.append(data.X)
        return assign_paths(estimator, trellis, data, *rest)

    monkeypatch.setattr(engine, "assign_paths", spy)
    _, data, folds = fit_and_spy(*rows, slice_width=6)
    for fold, X in zip(folds[1:], given[1 - len(folds) :], strict=True):
        assert (data.X[~fold.held_out] != X).nnz == 0


def test_rows_that_may_not_be_held_out_are_in_no_fold(rows):
    X, y = rows
    _, data, folds = fit_and_spy(X, y, np.arange(len(y)) % 3 > 0)
    assert len(folds) > 1
    assert all(data.may_hold_out[fold.held_out].all() for fold in folds)


def test_sets_of_few_rows_contain_the_true_class_as_often_as_asked(judged, rows):
    """A tenth of these rows would be too few to calibrate sets on."""
    X, y = rows
    clf, _, folds = judged
    assert folds[0].held_out.sum() < 100
    assert clf.model_.conformal.n_rows > 200
    rng = np.random.default_rng(1)
    y_new = rng.choice(y, 2000)
    own = 5 * y_new[:, np.newaxis] + rng.integers(0, 7, (2000, 4))
    words = np.hstack([own, rng.integers(0, 200, (2000, 5))])
    new = (np.ones(words.size), (np.repeat(np.arange(2000), 9), words.ravel()))
    found = clf.predict_set(sparse.csr_matrix(new, shape=(2000, X.shape[1])), coverage=0.8)
    covered = np.mean([label in set(labels) for label, labels in zip(y_new, found, strict=True)])
    assert 0.76 < covered < 0.87


def test_two_halves_decide_as_the_whole(judged):
    clf, _, folds = judged
    model, rows = folds[0].model, folds[0].sample
    some, others = rows[: len(rows.y_encoded) // 2], rows[len(rows.y_encoded) // 2 :]
    whole, halves = [Judged(model, rows)], [Judged(model, some), Judged(model, others)]
    assert held_out.fitted_loss(clf, halves) == held_out.fitted_loss(clf, whole)
    found = [held_out.fitted_calibration(clf, each) for each in (whole, halves)]
    assert found[0].temperature == pytest.approx(found[1].temperature, rel=1e-6)
    assert found[0].rest == pytest.approx(found[1].rest, rel=1e-6)


def test_the_papers_setting_is_judged_by_one_fold_at_most(rows):
    _, _, folds = fit_and_spy(*rows, training="independent")
    assert len(folds) == 1
