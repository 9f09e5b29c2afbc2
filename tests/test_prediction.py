"""Predictions: however they are asked for, they agree; tables of probabilities fit into memory."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from xtrellis import TrellisClassifier, TrellisEnsemble
from xtrellis._arrays import canonical_csr
from xtrellis._memory import available_memory
from xtrellis.decoding import best_paths


def test_predictions_agree_with_each_other(data, fitted):
    X, y = data
    labels, probabilities = fitted.predict_top_k(X, k=30)
    every = fitted.predict_proba(X)
    np.testing.assert_array_equal(labels[:, 0], fitted.predict(X))
    np.testing.assert_array_equal(fitted.classes_[every.argmax(axis=1)], fitted.predict(X))
    np.testing.assert_allclose(every.sum(axis=1), 1, rtol=1e-9)
    assert (np.diff(probabilities, axis=1) <= 1e-12).all()
    own = np.take_along_axis(every, labels, axis=1)
    np.testing.assert_allclose(own[:, :5], probabilities[:, :5], rtol=1e-6)
    np.testing.assert_allclose(own, probabilities, rtol=1e-3, atol=1e-9)  # costs are rounded
    assert (fitted.predict_top_k(X, k=5)[1].sum(axis=1) <= 1).all()
    np.testing.assert_allclose(np.exp(fitted.decision_function(X)), every)
    assert fitted.score(X, y) == np.mean(fitted.predict(X) == y)


@pytest.mark.parametrize("k", [6, 9, 11])
def test_margins_of_large_size_leave_probabilities_beyond_the_fifth_as_they_are(k):
    """Where five classes have nearly all of the softmaxes' weight, 1 less theirs is rounding."""
    rng = np.random.default_rng(18)
    y = np.arange(80) % 12
    X = rng.random((80, 20)) * (rng.random((80, 20)) < 0.3)
    X[np.arange(80), y] += 0.5
    clf = TrellisClassifier(3, learner="perceptron", random_state=0).fit(X, y)
    rows = X[:50] + rng.random((50, 20)) * 0.2
    labels, probabilities = clf.predict_top_k(rows, k)
    expected = np.take_along_axis(clf.predict_proba(rows), labels, axis=1)
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)


@pytest.mark.parametrize("n_classes", [7, 9, 12])
def test_no_class_is_likelier_than_those_listed_of_a_re_ranked_model(n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(10 * n_classes) % n_classes
    X = rng.random((len(y), 20)) * (rng.random((len(y), 20)) < 0.3)
    X[np.arange(len(y)), y] += 0.5
    clf = TrellisClassifier(3, C=1.0, rerank=2.0, random_state=0).fit(X, y)
    rows = X[:60] + rng.random((60, 20)) * 0.3
    every = clf.predict_proba(rows)
    for k in range(6, n_classes):
        labels, probabilities = clf.predict_top_k(rows, k)
        expected = np.take_along_axis(every, labels, axis=1)
        np.testing.assert_allclose(probabilities, expected, atol=1e-4)
        np.testing.assert_allclose(probabilities, -np.sort(-every, axis=1)[:, :k], atol=1e-4)


def test_sets_of_a_re_ranked_model_are_the_same_with_their_probabilities():
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 15
    X = rng.random((3000, 20)) * (rng.random((3000, 20)) < 0.3)
    X[np.arange(3000), y] += 0.6
    clf = TrellisClassifier(4, C=1.0, rerank=2.0, random_state=0).fit(X[:2000], y[:2000])
    listed, _ = clf.predict_set(X[2000:], 0.99, return_proba=True)
    for own, other in zip(clf.predict_set(X[2000:], 0.99), listed, strict=True):
        assert set(own) == set(other)


@pytest.mark.parametrize("training", ["local", "independent"])
@pytest.mark.parametrize("width", [2, 5, 30])
def test_the_fused_kernel_is_the_steps_it_fuses(data, training, width):
    X, y = data
    model = TrellisClassifier(width, training=training, rerank=0, random_state=0).fit(X, y)
    for scale in (1.0, 100.0):  # the larger one overflows the kernel's exponential
        rows = canonical_csr(X * scale)
        expected = best_paths(model.trellis_, model.margins(X * scale), model.loss_)
        if training == "local" and scale > 1:  # costs beyond a billion are all the same
            assert np.mean(model.model_.paths(rows) != expected) < 0.01
            continue
        np.testing.assert_array_equal(model.model_.paths(rows), expected)
        model.set_params(n_jobs=2)
        np.testing.assert_array_equal(
            model.predict(X * scale), model.classes_[model.assignment_.class_of_path[expected]]
        )


def test_one_row_at_a_time_gives_the_same(data, fitted):
    X, _ = data
    one_by_one = [fitted.predict(X[i])[0] for i in range(50)]
    np.testing.assert_array_equal(one_by_one, fitted.predict(X[:50]))
    classify = fitted.row_predictor()
    one_by_one = [classify(X[i].indices, X[i].data) for i in range(50)]
    np.testing.assert_array_equal(one_by_one, fitted.predict(X[:50]))


def test_any_matrix_of_the_same_numbers_gives_the_same(data, fitted):
    X, y = data
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    unsorted = sparse.coo_matrix(X)
    names = [f"f{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X.toarray(), columns=names)
    for other in (wide, unsorted, sparse.csr_array(X), X.toarray(), X.astype(np.float64)):
        model = clone(fitted).fit(other, y)
        np.testing.assert_array_equal(model.decision_function(X), fitted.decision_function(X))
    model = clone(fitted).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(frame), fitted.predict(X))


def test_margins_are_those_of_the_weights(data, fitted):
    X, _ = data
    weights, bias = fitted.weights_.dense_columns(np.arange(fitted.trellis_.n_edges))
    np.testing.assert_allclose(fitted.margins(X), X @ weights + bias, atol=1e-5)


def test_log_probabilities_are_finite_where_probabilities_are_zero(data):
    X, y = data
    model = TrellisClassifier(5, training="independent", decoding="log", random_state=0).fit(X, y)
    for scale in (1.0, 1e4):
        log_p = model.predict_log_proba(X * scale)
        assert np.isfinite(log_p).all()
        np.testing.assert_array_equal(np.exp(log_p), model.predict_proba(X * scale))
        np.testing.assert_array_equal(log_p, model.decision_function(X * scale))
    assert (model.predict_proba(X * 1e4) == 0).any()


@pytest.mark.parametrize(
    "settings",
    [{}, {"rerank": 5.0}, {"decoding": "cubed_hinge"}, {"learner": "perceptron"}],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 30])
def test_probabilities_of_huge_rows_sum_to_one(data, settings, n_classes):
    X, y = data
    model = TrellisClassifier(5, random_state=0, **settings).fit(X, y % n_classes)
    for scale in (1.0, 1e4, 1e10):
        log_p = model.predict_log_proba(X * scale)
        assert np.isfinite(log_p).all()
        np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=1e-9)
        labels, probabilities = model.predict_top_k(X * scale, 5)
        np.testing.assert_array_equal(labels[:, 0], model.predict(X * scale))
        best = np.sort(np.exp(log_p), axis=1)[:, ::-1][:, :5]
        np.testing.assert_allclose(probabilities, best, rtol=1e-6)


@pytest.mark.parametrize("decoding", ["exponential", "squared", "log", "hinge"])
def test_margins_that_overflow_are_refused_however_they_are_asked_for(data, decoding):
    X, y = data
    model = TrellisClassifier.paper(5, decoding=decoding, random_state=0).fit(X, y)
    huge = np.full((1, X.shape[1]), 3e38, np.float32)
    row = np.arange(X.shape[1]), huge[0]
    for ask in (
        lambda: model.predict(huge),
        lambda: model.predict_top_k(huge),
        lambda: model.predict_proba(huge),
        lambda: model.row_predictor()(*row),
    ):
        with pytest.raises(ValueError, match="margins must be finite"):
            ask()


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "decision_function"])
def test_a_table_of_probabilities_takes_its_own_memory_once(data, fitted, method):
    rows = sparse.vstack([data[0]] * 200)
    getattr(fitted, method)(data[0])
    tracemalloc.start()
    table = getattr(fitted, method)(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    given = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    assert peak < table.nbytes * 1.1 + 3 * given


@pytest.mark.parametrize("model", [TrellisClassifier(5, random_state=0), TrellisEnsemble()])
def test_a_table_that_cannot_fit_is_refused_before_any_work(data, monkeypatch, model):
    X, y = data
    model.fit(X, y)
    monkeypatch.setattr("xtrellis._memory.available_memory", lambda: 200_000)
    monkeypatch.setattr("xtrellis.model.weights.EdgeWeights.margins", None)
    message = r"900 rows x 30 classes takes 0\.0 GB, but only 0\.0 GB .* use predict_top_k"
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(MemoryError, match=message):
            getattr(model, method)(X)


def test_available_memory_is_known_here():
    available = available_memory()
    assert available is None or 2**20 < available < 2**50
