"""The learned matrix: dense and sparse storage hold the same weights."""

import numpy as np
import pytest

import xtrellis.model.weights as module
from samples import topics
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.model.weights import finish_block, join_blocks


def blocks(density, seed=0):
    """Two blocks over some of 50 features: edges 0 to 3 and 4 to 9."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((50, 10), np.float32)
    finished = []
    for edges in (np.arange(4), np.arange(4, 10)):
        features = rng.permutation(50)[:30]
        weights = rng.standard_normal((30, len(edges))) * (rng.random((30, len(edges))) < density)
        matrix[np.ix_(features, edges)] = weights
        finished.append(finish_block(edges, features, weights, edges / 10))
    return finished, matrix


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_margins_are_the_product(density):
    finished, matrix = blocks(density)
    weights = join_blocks(finished, 50, 10)
    assert (len(weights.dense) > len(weights.values) / 10) == (density == 0.9)
    assert weights.n_nonzero == np.count_nonzero(matrix)
    assert weights.n_seen == np.count_nonzero(matrix.any(axis=1))
    np.testing.assert_array_equal(weights.columns(np.arange(10)), matrix)
    np.testing.assert_array_equal(weights.columns(np.array([7, 2])), matrix[:, [7, 2]])
    X = canonical_csr(np.random.default_rng(1).standard_normal((20, 50)))
    expected = X.toarray() @ matrix + np.arange(10) / 10
    np.testing.assert_allclose(weights.margins(X), expected, atol=1e-5)


def test_storage_makes_no_difference_to_predictions(monkeypatch):
    X, y = topics()
    dense = TrellisClassifier.paper(5, random_state=0).fit(X, y)
    monkeypatch.setattr(module, "DENSE_ABOVE", 2.0)
    sparse = TrellisClassifier.paper(5, random_state=0).fit(X, y)
    assert len(dense.weights_.dense) > 0
    assert len(sparse.weights_.dense) == 0
    assert sparse.weights_.n_nonzero == dense.weights_.n_nonzero
    np.testing.assert_allclose(
        sparse.decision_function(X), dense.decision_function(X), atol=1e-4, rtol=1e-4
    )
