"""AROW against its definition, one binary problem at a time."""

import numpy as np
import pytest

from binary_problems import block_of
from samples import topics
from xtrellis.learning import Arow


def reference_arow(X, signs, order, r):
    """AROW as written in the paper by Crammer et al., for one problem, in float64."""
    X = X.toarray().astype(float)
    mean, variance = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for i in order:
        x, y = X[i], signs[i]
        if y * (mean @ x) < 1:
            beta = 1 / (x @ (variance * x) + r)
            mean += max(0, 1 - y * (mean @ x)) * beta * y * variance * x
            variance -= beta * (variance * x) ** 2
    return mean


@pytest.mark.parametrize("n_edges", [3, 40])
@pytest.mark.parametrize("r", [0.1, 1.0])
def test_arow_is_the_papers(n_edges, r):
    X, y = topics(n_classes=n_edges, n_rows=150)
    block = block_of(X, y, n_edges)
    order = np.random.default_rng(1).permutation(150)
    learner = Arow(r)
    state = learner.start(block)
    learner.step(block, state, order)
    learner.step(block, state, order[::-1])
    weights, bias = learner.finish(block, state)
    assert not bias.any()
    for edge in range(n_edges):
        signs = np.where(y == edge, 1, -1)
        expected = reference_arow(X, signs, np.concatenate([order, order[::-1]]), r)
        np.testing.assert_allclose(weights[:, edge], expected, atol=1e-4)
