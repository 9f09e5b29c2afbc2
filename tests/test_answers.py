"""Rows one at a time, and answers other than a class: none of these."""

import numpy as np
import pytest

from samples import topics
from xtrellis import LTLSClassifier, TrellisClassifier, TrellisEnsemble


@pytest.mark.parametrize(
    "model",
    [
        TrellisClassifier(5, random_state=0),
        TrellisClassifier(5, decoding="hinge", random_state=0),
        LTLSClassifier(random_state=0),
    ],
)
def test_row_predictor_stays_with_the_model_as_it_was(data, model):
    X, y = data
    model.fit(X, y)
    rows = [(X[i].indices, X[i].data) for i in range(20)] + [(X[0].indices, 1e20 * X[0].data)]
    classify = model.row_predictor()
    before = [classify(*row) for row in rows]
    model.fit(X, y % 8)
    assert [classify(*row) for row in rows] == before


def test_row_predictor_in_threads(data, fitted):
    from concurrent.futures import ThreadPoolExecutor

    X, _ = data
    classify = fitted.row_predictor()
    rows = [(X[i].indices, X[i].data) for i in range(300)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: classify(*row), rows))
    np.testing.assert_array_equal(found, fitted.predict(X[:300]))
    with pytest.raises(ValueError, match="two lists of one length"):
        classify([1, 2, 3], [1.0])
    with pytest.raises(ValueError, match="indices must be from 0 to 399"):
        classify([400], [1.0])


@pytest.mark.parametrize("settings", [{}, {"rerank": 5.0}, {"max_classes": 40, "rerank": 5.0}])
def test_row_predictor_takes_features_in_any_order(settings):
    X, y = topics()
    model = TrellisClassifier(5, C=1.0, random_state=0, **settings).fit(X, y)
    expected, classify = model.predict(X), model.row_predictor()
    rng = np.random.default_rng(0)
    for i in range(len(y)):
        order = rng.permutation(X[i].nnz)
        features, values = X[i].indices[order], X[i].data[order]
        assert classify(features, values) == expected[i]
        twice = np.append(features, features), np.append(values / 4, values * 0.75)
        assert classify(*twice) == expected[i]  # as in a sparse matrix, repeated ones are added


def test_row_predictor_refuses_what_is_no_row(fitted):
    classify = fitted.row_predictor()
    for values in ([np.nan], [np.inf], [-np.inf]):
        with pytest.raises(ValueError, match="values must be finite"):
            classify([1], values)
    for indices in ([1.5], [True], [None], ["1"]):
        with pytest.raises(ValueError, match="indices must be integers"):
            classify(indices, [1.0])
    assert classify([], []) == fitted.predict(np.zeros((1, 400)))[0]


@pytest.mark.parametrize("kind", ["one", "several"])
def test_classes_that_are_not_likely_enough(kind):
    X, y = topics()
    clf = TrellisClassifier(5, C=1.0, random_state=0)
    if kind == "several":
        clf = TrellisEnsemble(clf, n_estimators=2, random_state=0)
    clf.fit(X[:700], y[:700])
    labels, shares = clf.predict_top_k(X[700:], 1)
    found = clf.predict(X[700:], min_probability=0.6, otherwise=-1)
    assert found.dtype == y.dtype
    np.testing.assert_array_equal(found, np.where(shares[:, 0] >= 0.6, labels[:, 0], -1))
    assert 0 < (found == -1).sum() < len(found)
    named = clf.predict(X[700:], min_probability=0.6, otherwise="unknown")
    assert named.tolist() == [each if each >= 0 else "unknown" for each in found.tolist()]
    nothing = clf.predict(X[700:], min_probability=0.6)
    assert nothing.tolist() == [each if each >= 0 else None for each in found.tolist()]
    np.testing.assert_array_equal(clf.predict(X[700:], min_probability=0.0), labels[:, 0])
    with pytest.raises(ValueError, match="otherwise needs min_probability"):
        clf.predict(X, otherwise=-1)
    with pytest.raises(ValueError, match="min_probability must be"):
        clf.predict(X, min_probability=1.5)
    with pytest.raises(ValueError, match="otherwise must be one label"):
        clf.predict(X, min_probability=0.5, otherwise=[1, 2])


def test_a_longer_label_for_none_of_these_is_not_cut():
    X, y = topics()
    clf = TrellisClassifier(5, C=1.0, random_state=0).fit(X, y.astype(str))
    nothing = np.zeros((1, X.shape[1]))
    assert clf.predict(nothing, min_probability=0.9, otherwise="none of these") == "none of these"
