"""Pruning: the largest threshold within the drop, sparse storage, the same predictions."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from samples import shared_set, topics
from xtrellis import LTLSClassifier, TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.learning.pruning import find_threshold, prune_weights


@pytest.fixture(scope="module")
def rows():
    return topics(n_rows=1500)


@pytest.fixture(scope="module", params=["local", "paper", "wide", "ltls"])
def fitted(request, rows):
    X, y = rows
    model = {
        "local": TrellisClassifier(6, random_state=0),
        "paper": TrellisClassifier.paper(4, random_state=0),
        "wide": TrellisClassifier(30, training="independent", random_state=0),
        "ltls": LTLSClassifier(random_state=0),
    }[request.param]
    return model.fit(X[:1000], y[:1000])


def matrix(weights):
    """Weights of all edges that have weights of their own."""
    own = np.setdiff1d(np.arange(weights.n_edges), weights.twins[0])
    return weights.dense_columns(own)[0]


@pytest.mark.parametrize("threshold", [0.0, 0.03, 0.2, 1e9])
def test_small_weights_are_gone_and_large_ones_stay(fitted, threshold):
    before = matrix(fitted.weights_)
    after = prune_weights(fitted.weights_, threshold, bits=32)
    np.testing.assert_array_equal(matrix(after), np.where(abs(before) > threshold, before, 0))
    rounded = matrix(prune_weights(fitted.weights_, threshold, bits=8))
    largest = abs(matrix(after)).max(initial=0)
    np.testing.assert_allclose(rounded, matrix(after), atol=largest / 127)
    assert ((rounded == 0) >= (matrix(after) == 0)).all()


def test_margins_of_pruned_weights_are_those_of_the_pruned_matrix(fitted, rows):
    X = canonical_csr(rows[0])
    pruned = prune_weights(fitted.weights_, 0.1, bits=32)
    edges = np.arange(pruned.n_edges)
    columns, bias = fitted.weights_.dense_columns(edges)
    expected = X @ np.where(abs(columns) > 0.1, columns, 0) + bias
    np.testing.assert_allclose(pruned.margins(X), expected, atol=1e-5)


@pytest.mark.parametrize("max_drop", [0.0, 0.01, 0.05])
def test_drop_is_within_bounds_and_threshold_near_the_largest(fitted, rows, max_drop):
    X, y = rows[0][1000:], rows[1][1000:]
    model = copy.copy(fitted).prune(X, y, max_drop=max_drop, bits=32)
    told = model.pruning_
    assert told.accuracy_before == pytest.approx(fitted.score(X, y))
    assert told.accuracy_after == pytest.approx(model.score(X, y))
    assert told.accuracy_after >= told.accuracy_before - max_drop - 1e-12
    assert told.n_after == np.count_nonzero(matrix(model.weights_)) < told.n_before
    thresholds = sorted(step[0] for step in told.steps)
    above = [t for t in thresholds if t > told.threshold]
    if above:  # the next one that was looked at loses too much
        accuracy = dict(told.steps)[above[0]]
        assert accuracy < told.accuracy_before - max_drop


def test_bisection_finds_the_edge(fitted):
    edge = 0.07
    sizes = abs(matrix(fitted.weights_))
    n_larger = np.count_nonzero(sizes > edge)
    threshold, steps = find_threshold(
        [fitted.weights_],
        lambda own: 0.9 if own[0].n_nonzero >= n_larger else 0.5,
        max_drop=0.1,
    )
    assert threshold <= edge
    assert n_larger <= np.count_nonzero(sizes > threshold) <= 1.05 * n_larger + 5
    assert len(steps) == 10


def test_rows_of_unknown_classes_are_never_right(fitted, rows):
    X, y = rows[0][1000:], rows[1][1000:].copy()
    y[:50] = 99
    told = copy.copy(fitted).prune(X, y).pruning_
    assert told.accuracy_before == pytest.approx(0.9 * fitted.score(X[50:], y[50:]))


def test_threshold_alone_needs_no_rows(fitted):
    model = copy.copy(fitted).prune(threshold=0.1)
    assert np.isnan(model.pruning_.accuracy_after)
    assert model.pruning_.threshold == 0.1


def test_a_share_of_the_training_rows_gives_the_threshold(rows):
    """Rows of no weight say nothing, neither in training nor about the threshold."""
    X, y = rows
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    shuffled = np.random.RandomState(1).permutation(len(y))
    outside, inside = np.sort(shuffled[:300]), np.sort(shuffled[300:])
    alone = TrellisClassifier(6, random_state=1).fit(X[inside], y[inside], weights[inside])
    alone.prune(X[outside], y[outside], max_drop=0.02, sample_weight=weights[outside])
    model = TrellisClassifier(6, random_state=1).fit(X, y, weights)
    before = model.weights_.n_nonzero
    model.prune(X, y, max_drop=0.02, validation_fraction=0.2, sample_weight=weights)
    assert model.pruning_.threshold == alone.pruning_.threshold
    assert model.weights_.n_nonzero < before
    plain = TrellisClassifier(6, random_state=1).fit(X, y)
    plain.prune(X, y, max_drop=0.02, validation_fraction=0.2)
    assert plain.pruning_.threshold != alone.pruning_.threshold


def test_pruned_model_goes_on_learning(rows):
    X, y = rows
    model = TrellisClassifier.paper(4, random_state=0)
    model.partial_fit(X[:700], y[:700], classes=np.arange(30)).prune(threshold=0.05)
    before = model.score(X[1000:], y[1000:])
    model.partial_fit(X[700:1000], y[700:1000])
    assert model.score(X[1000:], y[1000:]) > before - 0.02


def assert_bad_pruning_is_refused(model, X, y):
    with pytest.raises(ValueError, match=r"needs validation rows X and y .*, or a threshold"):
        model.prune()
    with pytest.raises(ValueError, match="max_drop must be"):
        model.prune(X, y, max_drop=1.5)
    with pytest.raises(ValueError, match="bits must be 8 or 32, got 16"):
        model.prune(X, y, bits=16)
    with pytest.raises(ValueError, match="threshold must be at least 0"):
        model.prune(threshold=-1.0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.prune(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        model.prune(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="validation_fraction must be"):
        model.prune(X, y, validation_fraction=1.0)
    with pytest.raises(ValueError, match="validation_fraction needs the training rows X and y"):
        model.prune(validation_fraction=0.1)
    with pytest.raises(ValueError, match="either threshold or validation_fraction"):
        model.prune(X, y, threshold=0.1, validation_fraction=0.1)
    with pytest.raises(ValueError, match="too few rows to set some aside"):
        model.prune(X[:9], y[:9], validation_fraction=0.1)
    with pytest.raises(ValueError, match="not fitted"):
        clone(model).prune(X, y)


def test_bad_input(fitted, rows):
    X, y = rows
    model = copy.copy(fitted)
    assert_bad_pruning_is_refused(model, X, y)
    assert model.weights_ is fitted.weights_


def test_huge_weights_are_rounded_like_others(fitted):
    weights = prune_weights(fitted.weights_, 0.0, bits=32)
    weights = replace(weights, values=weights.values * np.float32(1e30), scales=None)
    rounded = prune_weights(weights, 0.0, bits=8)
    largest = abs(matrix(weights)).max()
    np.testing.assert_allclose(matrix(rounded), matrix(weights), atol=largest / 127)


def test_icd10cm_fits_a_megabyte(tmp_path):
    """A bar of ours: at most 1.1 MB with at least 88.9 %."""
    X, y, X_test, y_test = shared_set("icd10cm")
    model = TrellisClassifier(40, C=3, n_jobs=2, random_state=0).fit(X, y)
    size = model.prune(threshold=0.2).save(tmp_path / "model")
    assert size < 1.1e6
    assert model.score(X_test, y_test) > 0.889
