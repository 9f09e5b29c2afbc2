"""The learned weights: blocks hold exactly what they were given, and margins are the product."""

import numpy as np
import pytest

import xtrellis.model.weights as module
from samples import topics
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.model.finished_block import finish_block
from xtrellis.model.weights import decode, encode, gather_blocks


def blocks(density, seed=0, threshold=0.0):
    """Two blocks over some of 50 features: edges 0 to 3 and 4 to 9. Two more are constant."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((50, 12), np.float32)
    finished = []
    for edges in (np.arange(4), np.arange(4, 10)):
        features = rng.permutation(50)[:30]
        weights = rng.standard_normal((30, len(edges))) * (rng.random((30, len(edges))) < density)
        weights = weights.astype(np.float32)
        matrix[np.ix_(features, edges)] = np.where(np.abs(weights) > threshold, weights, 0)
        finished.append(finish_block(edges, features, weights, edges / 10, threshold))
    return finished, matrix


def gathered(finished):
    groups = [np.arange(4), np.array([4, 5, 6, 7, 8, 9, 10]), np.array([11])]
    return gather_blocks(finished, groups, 50, np.full(12, -1, np.float32))


@pytest.mark.parametrize("density", [0.05, 0.9])
@pytest.mark.parametrize("threshold", [0.0, 0.7])
def test_margins_are_the_product(density, threshold):
    finished, matrix = blocks(density, threshold=threshold)
    weights = gathered(finished[::-1])  # in whatever order they end
    assert weights.n_edges == 12
    assert weights.n_nonzero == np.count_nonzero(matrix)
    assert weights.n_seen == np.count_nonzero(matrix.any(axis=1))
    bias = np.append(np.arange(10) / 10, [-1, -1]).astype(np.float32)
    for edges in (np.arange(12), np.array([7, 2, 11])):
        columns, biases = weights.dense_columns(edges)
        np.testing.assert_array_equal(columns, matrix[:, edges])
        np.testing.assert_array_equal(biases, bias[edges])
    X = canonical_csr(np.random.default_rng(1).standard_normal((20, 50)))
    np.testing.assert_allclose(weights.margins(X), X.toarray() @ matrix + bias, atol=1e-5)


def test_pruning_keeps_what_is_above():
    finished, matrix = blocks(0.6)
    pruned = gathered(finished).above(0.5)
    kept = np.where(np.abs(matrix) > 0.5, matrix, 0)
    np.testing.assert_array_equal(pruned.dense_columns(np.arange(12))[0], kept)
    assert pruned.n_seen == np.count_nonzero(kept.any(axis=1))


def test_codes_are_close_and_come_back_exactly():
    rng = np.random.default_rng(0)
    values = (rng.standard_normal(5000) ** 3).astype(np.float32)
    scales = np.full(5000, np.abs(values).max(), np.float32)
    once = decode(encode(values, scales), scales)
    np.testing.assert_array_equal(decode(encode(once, scales), scales), once)
    steps = np.sqrt(np.abs(values) / scales[0])  # the finer, the smaller the weight
    assert (np.abs(once - values) <= scales[0] * (steps / 127 + 1 / 127**2)).all()
    assert once.max() == values.max() or once.min() == values.min()


def test_rounding_twice_changes_nothing():
    weights = gathered(blocks(0.6)[0]).rounded()
    again = weights.rounded()
    np.testing.assert_array_equal(weights.values, again.values)
    X = canonical_csr(np.eye(50))
    full = gathered(blocks(0.6)[0]).margins(X)
    assert np.abs(weights.margins(X) - full).max() < 0.03
    assert np.abs(weights.margins(X) - full).max() > 0


@pytest.mark.parametrize(("name", "value"), [("FULL_ABOVE", 2.0), ("IN_TABLE_ABOVE", 2.0)])
def test_storage_makes_no_difference_to_margins(monkeypatch, name, value):
    """Lists or full rows of weights, lists or lines of the directory: the same numbers."""
    X, y = topics()
    expected = TrellisClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr(module, name, value)
    other = TrellisClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(expected.margins(X), other.margins(X))
    np.testing.assert_array_equal(expected.predict(X), other.predict(X))


def test_cost_follows_the_features_that_occur():
    finished, _ = blocks(0.5)
    groups = [np.arange(4), np.array([4, 5, 6, 7, 8, 9, 10]), np.array([11])]
    wide = gather_blocks(finished, groups, 2**40, np.zeros(12, np.float32))
    assert wide.nbytes < 20_000


@pytest.mark.parametrize("density", [0.05, 0.5, 0.9])
def test_a_vertex_trained_in_parts_becomes_one_block(density):
    finished, matrix = blocks(density)
    groups = [np.arange(10), np.array([10]), np.array([11])]
    weights = gather_blocks(finished, groups, 50, np.full(12, -1, np.float32))
    assert weights.vertex_starts.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(weights.dense_columns(np.arange(12))[0], matrix)
    assert (np.diff(weights.features[: weights.feature_starts[1]]) > 0).all()
    counts = np.diff(weights.entry_starts)
    assert ((counts == 10) | (counts <= 4)).all()  # in full, or at most 0.4 of the columns
    assert weights.n_nonzero == np.count_nonzero(matrix)


def test_features_whose_weights_were_rounded_to_zero_are_left_out():
    finished, matrix = blocks(0.5)
    finished[0].values[:] = 0
    groups = [np.arange(10), np.array([10, 11])]
    weights = gather_blocks(finished, groups, 50, np.full(12, -1, np.float32))
    matrix[:, :4] = 0
    np.testing.assert_array_equal(weights.dense_columns(np.arange(12))[0], matrix)
    assert weights.features.tolist() == np.flatnonzero(matrix.any(axis=1)).tolist()
    assert (np.diff(weights.entry_starts) > 0).all()


def test_blocks_of_estimators_stay_apart():
    finished, _ = blocks(0.5)
    estimators = finish_block(np.arange(4), np.arange(50), [1.0, 0.0, -1.0, 1.0], np.zeros(4))
    groups = [np.arange(10), np.array([10, 11])]
    weights = gather_blocks([estimators, finished[1]], groups, 50, np.zeros(12, np.float32))
    assert weights.vertex_starts.tolist() == [0, 2, 3]
