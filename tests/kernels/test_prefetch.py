"""Asking for memory early changes no result, wherever the rows end."""

import numpy as np

from samples import topics
from xtrellis.kernels import _prefetch, svm
from xtrellis.kernels._jit import kernel
from xtrellis.learning import LinearSVM
from xtrellis.learning.learners import Block


@kernel
def fetched(indices, starts, table):
    """Ask for the lines of every row, those without features and the last one included."""
    for i in range(starts.size - 1):
        _prefetch.fetch_rows(indices, starts[i], starts[i + 1], table)
    return table.sum()


def test_tables_of_any_width_stay_as_they_are():
    rng = np.random.default_rng(0)
    starts = np.array([0, 3, 3, 7])
    for width in (1, 15, 16, 17, 200):
        table = rng.random((40, width)).astype(np.float32)
        indices, kept = rng.integers(0, 40, 7).astype(np.uint32), table.copy()
        fetched(indices, starts, table)
        np.testing.assert_array_equal(table, kept)


def test_large_tables_are_trained_as_rows_say():
    """Of a table above the limit, the columns of features that occur are those of a small one."""
    X, y = topics(n_classes=20, n_rows=400)
    found = []
    for n_features in (X.shape[1], _prefetch.FAR // 20):
        targets = y.astype(np.int32)[:, np.newaxis]
        weights = np.ones(len(y), np.float32)
        block = Block(X.indptr, X.indices, X.data, targets, weights, n_features, 20)
        learner = LinearSVM(10.0)
        state = learner.start(block)
        assert (4 * state.active.weights.size > svm.FAR) == (n_features > X.shape[1])
        learner.step(block, state, np.arange(len(y)))
        found.append(state.active.weights[: X.shape[1]])
    np.testing.assert_array_equal(*found)
