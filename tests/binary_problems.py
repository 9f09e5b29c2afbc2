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
