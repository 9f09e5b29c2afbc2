"""The averaged perceptron against its definition."""

import numpy as np

from binary_problems import block_of
from samples import topics
from xtrellis.learning import AveragedPerceptron


def test_averaged_perceptron_is_the_mean_over_time():
    X, y = topics(n_classes=4, n_rows=100)
    order = np.random.default_rng(0).permutation(100)
    block = block_of(X, y, 4)
    learner = AveragedPerceptron()
    state = learner.start(block)
    learner.step(block, state, order)
    weights, bias = learner.finish(block, state)
    dense = X.toarray().astype(float)
    for edge in range(4):
        w, b, total_w, total_b = np.zeros(X.shape[1]), 0.0, np.zeros(X.shape[1]), 0.0
        for i in order:
            total_w += w
            total_b += b
            sign = 1 if y[i] == edge else -1
            if sign * (w @ dense[i] + b) <= 0:
                w, b = w + sign * dense[i], b + sign
        total_w, total_b = total_w + w, total_b + b
        np.testing.assert_allclose(weights[:, edge], total_w / 101, atol=1e-5)
        np.testing.assert_allclose(bias[edge], total_b / 101, atol=1e-5)
