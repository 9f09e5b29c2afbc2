"""Newton's method for many edges at once, against a dense method in double precision."""

import numpy as np
import pytest
from scipy import sparse

from binary_problems import dense_optimum, objective
from xtrellis.learning.learners import newton
from xtrellis.learning.learners.newton import Edge, solve


def problem(n_edges, seed=0, n=300, n_features=40):
    """Sparse rows, of which some have features that no other row has, and a class for each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)) * (rng.random((n, n_features)) < 0.1)
    y = rng.integers(0, n_edges, n)
    X[np.arange(n), y % n_features] += 1
    signs = [np.where(y == edge, 1, -1).astype(np.int8) for edge in range(n_edges)]
    return sparse.csr_matrix(X, dtype=np.float32), signs, 10 ** rng.uniform(-1, 3, n)


@pytest.mark.parametrize("together", [1, 3, 16])
def test_every_edge_reaches_its_optimum(together, monkeypatch):
    monkeypatch.setattr(newton, "_TOGETHER", together)
    X, signs, costs = problem(7)
    edges = [Edge(own, np.zeros(X.shape[1] + 1)) for own in signs]
    solve(X, edges, costs, 1e-8, 50)
    rows = np.column_stack([X.toarray().astype(float), np.ones(X.shape[0])])
    for edge in edges:
        best = dense_optimum(rows, edge.signs, costs)
        least = objective(rows, edge.signs, costs, best)
        assert objective(rows, edge.signs, costs, edge.weights) <= (1 + 1e-7) * least
        np.testing.assert_allclose(edge.weights, best, atol=1e-3 * np.abs(best).max())
        hinges = np.maximum(0, 1 - edge.signs * (rows @ edge.weights))
        assert edge.loss == pytest.approx(costs @ hinges**2)
        assert edge.gap <= 1e-8


def test_weights_of_features_without_active_rows_vanish():
    """There the objective is the square of the weight alone."""
    X, signs, costs = problem(3)
    X = sparse.hstack([X, np.zeros((X.shape[0], 5))]).tocsr()
    edges = [Edge(own, np.ones(X.shape[1] + 1)) for own in signs]
    solve(X, edges, costs, 1e-8, 50)
    for edge in edges:
        np.testing.assert_allclose(edge.weights[-6:-1], 0, atol=1e-6)


def test_no_steps_measure_the_gap_alone():
    X, signs, costs = problem(2)
    start = np.full(X.shape[1] + 1, 0.1)
    edges = [Edge(own, start.copy()) for own in signs]
    solve(X, edges, costs, 1e-3, 0)
    rows = np.column_stack([X.toarray().astype(float), np.ones(X.shape[0])])
    for edge in edges:
        np.testing.assert_array_equal(edge.weights, start)
        value = objective(rows, edge.signs, costs, start)
        least = objective(rows, edge.signs, costs, dense_optimum(rows, edge.signs, costs))
        assert edge.gap >= (value - least) / value


def test_an_edge_that_is_solved_is_left_alone():
    X, signs, costs = problem(2)
    solved, other = (Edge(own, np.zeros(X.shape[1] + 1)) for own in signs)
    solve(X, [solved], costs, 1e-10, 50)
    weights = solved.weights.copy()
    solve(X, [solved, other], costs, 1e-4, 50)
    np.testing.assert_array_equal(solved.weights, weights)
    assert other.gap <= 1e-4


def test_no_edges_are_no_work():
    X, _, costs = problem(2)
    solve(X, [], costs, 1e-4, 50)
