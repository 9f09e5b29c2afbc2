"""Training some vertices again: all of them give what training gives."""

import numpy as np

from samples import topics
from xtrellis.graph import Trellis
from xtrellis.learning import LinearSVM
from xtrellis.learning.retraining import retrain
from xtrellis.learning.rows import prepare_rows
from xtrellis.learning.training import train_edges


def arrays(weights):
    return [weights.edges, weights.bias, weights.features, weights.columns, weights.values]


def test_all_vertices_again_are_training_and_none_change_nothing():
    X, y = topics()
    trellis, learner = Trellis(30, 5), LinearSVM()
    nothing = np.zeros(len(y), bool)
    weight = np.ones(len(y), np.float32)
    rows, others = (
        prepare_rows(trellis, X, paths, weight, nothing, np.random.RandomState(0))
        for paths in (y, 29 - y)
    )
    trained = train_edges(trellis, rows, "local", learner, None, 1, 7).weights
    other = train_edges(trellis, others, "local", learner, None, 1, 7).weights
    every = {(-1, 0)} | {(i, v) for i, n in enumerate(trellis.slice_sizes) for v in range(n)}
    again, n_blocks = retrain(trellis, other, rows, every, learner, None, 1, 7)
    assert n_blocks > 5
    for found, expected in zip(arrays(again), arrays(trained), strict=True):
        np.testing.assert_array_equal(found, expected)
    source, n_blocks = retrain(trellis, trained, rows, {(-1, 0)}, learner, None, 1, 7)
    assert n_blocks == 1
    for found, expected in zip(arrays(source), arrays(trained), strict=True):
        np.testing.assert_array_equal(found, expected)
