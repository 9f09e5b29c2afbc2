"""Blocks made by hand, and training them: what the tests of learners share."""

import numpy as np

from xtrellis._arrays import canonical_csr
from xtrellis.learning.learners import Block


def block_of(X, targets, n_edges, weights=None):
    X = canonical_csr(X)
    targets = np.asarray(targets, np.int32).reshape(len(targets), -1)
    if weights is None:
        weights = np.ones(X.shape[0])
    return Block(
        X.indptr, X.indices, X.data, targets, np.asarray(weights, np.float32), X.shape[1], n_edges
    )


def run(learner, block, state, epochs, seed=0):
    """Epochs until the learner has converged; the state."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        learner.step(block, state, rng.permutation(block.n_rows))
        if learner.converged(state):
            break
    return state


def train(learner, block, epochs, seed=0):
    """Weights and biases after some epochs."""
    return learner.finish(block, run(learner, block, learner.start(block), epochs, seed))


def objective(X, signs, costs, w):
    hinges = np.maximum(0, 1 - signs * (X @ w))
    return w @ w / 2 + costs @ hinges**2


def dense_optimum(X, signs, costs):
    """Minimum of the objective by damped Newton steps; the last column of X is constant."""
    w = np.zeros(X.shape[1])
    for _ in range(500):
        hinges = np.maximum(0, 1 - signs * (X @ w))
        active = hinges > 0
        gradient = w - X.T @ (2 * costs * hinges * signs)
        hessian = np.eye(len(w)) + X[active].T @ (2 * costs[active, None] * X[active])
        step, length = -np.linalg.solve(hessian, gradient), 1.0
        wanted = objective(X, signs, costs, w) + 1e-4 * length * (gradient @ step)
        while length > 1e-9 and objective(X, signs, costs, w + length * step) > wanted:
            length /= 2
        w = w + length * step
        if np.linalg.norm(step) < 1e-10 * (1 + np.linalg.norm(w)):
            break
    return w
