"""Rivals are chosen where classes that are alike part at the source, and the model keeps them."""

import numpy as np
import pytest
from scipy import sparse

from xtrellis import TrellisClassifier, load_model
from xtrellis.choosing_reranking import rivals_of
from xtrellis.fitting import labelled_rows

N_CLASSES, GROUP = 300, 10
SETTINGS = {"assignment": "random", "C": 1.0, "random_state": 0}  # so groups are torn apart


def groups_of_classes(n_rows, seed=0):
    """Rows with eight words of their group, two of their class, and one of a class like it."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(N_CLASSES), n_rows)
    group, n = y // GROUP, len(y)
    common = 20 * group[:, np.newaxis] + rng.integers(0, 20, (n, 8))
    of_classes = 20 * (N_CLASSES // GROUP)
    like = GROUP * group + rng.integers(0, GROUP, n)
    whose = np.stack([y, y, like], axis=1)
    own = of_classes + 10 * whose + rng.integers(0, 10, (n, 3))
    noise = of_classes + 10 * N_CLASSES + rng.integers(0, 500, (n, 10))
    columns = np.concatenate([common, own, noise], axis=1)
    rows = np.repeat(np.arange(n), columns.shape[1])
    shape = n, of_classes + 10 * N_CLASSES + 500
    X = sparse.csr_matrix((np.ones(columns.size, np.float32), (rows, columns.ravel())), shape)
    order = rng.permutation(n)
    return X[order], y[order]


@pytest.fixture(scope="module")
def data():
    return groups_of_classes(20), groups_of_classes(10, seed=1)


@pytest.fixture(scope="module")
def fitted(data):
    return TrellisClassifier(**SETTINGS).fit(*data[0])


def test_they_are_chosen_where_they_help(data, fitted):
    X, y = data[1]
    without = TrellisClassifier(**SETTINGS, rerank=0).fit(*data[0])
    assert fitted.model_.rivals is not None
    assert without.model_.rivals is None
    assert fitted.score(X, y) > without.score(X, y) + 0.02


def test_answers_agree_with_each_other(data, fitted, tmp_path):
    X, _ = data[1]
    X = X[:60]
    labels, probabilities = fitted.predict_top_k(X, 12)
    np.testing.assert_array_equal(labels[:, 0], fitted.predict(X))
    every = fitted.predict_proba(X)
    np.testing.assert_allclose(every.sum(axis=1), 1)
    np.testing.assert_allclose(np.take_along_axis(every, labels, axis=1), probabilities, atol=1e-4)
    classify = fitted.row_predictor()
    one_by_one = [classify(X[i].indices, X[i].data) for i in range(60)]
    np.testing.assert_array_equal(one_by_one, labels[:, 0])
    fitted.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), every)
    assert loaded.model_.rivals.strength == fitted.model_.rivals.strength
    explanation = fitted.explain(X[0])
    margin = fitted.model_.rivals.margins(X[:1], np.array([[labels[0, 0]]]))[0, 0]
    assert explanation.against_rivals == margin
    assert f"margin against rivals {margin:+.3f}" in str(explanation)


def test_the_result_does_not_depend_on_threads(data, fitted):
    settings = fitted.get_params() | {"n_jobs": 2}
    other = TrellisClassifier(**settings).fit(*data[0])
    for name in ("starts", "features", "codes", "units", "biases"):
        ours, theirs = (getattr(each.model_.rivals, name) for each in (fitted, other))
        np.testing.assert_array_equal(ours, theirs)


def test_rivals_are_rows_of_other_classes_that_list_the_class(data, fitted):
    X, y = data[0]
    rows = labelled_rows(TrellisClassifier(), X, y, None)
    inside = np.arange(len(y)) % 2 > 0
    some = rivals_of(fitted.model_, rows, inside)
    alone = rivals_of(fitted.model_, rows[inside])
    np.testing.assert_array_equal(some.codes, alone.codes)
    np.testing.assert_array_equal(some.biases, alone.biases)


def test_classes_that_come_get_rivals_too(data):
    X, y = data[0]
    old = y < N_CLASSES - 20
    clf = TrellisClassifier(max_classes=N_CLASSES, **SETTINGS).fit(X[old], y[old])
    assert clf.model_.rivals is not None
    clf.add_classes(X, y)
    new = y >= N_CLASSES - 20
    assert clf.score(X[new], y[new]) > 0.9 * clf.score(X[~new], y[~new])
    assert len(clf.model_.rivals.biases) == N_CLASSES
    kept = clf.model_.rivals.biases[1:]
    clf.remove_classes([0])
    np.testing.assert_array_equal(clf.model_.rivals.biases, kept)
