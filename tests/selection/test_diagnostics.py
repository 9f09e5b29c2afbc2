"""Diagnostics against their equations, by brute force."""

import numpy as np
import pytest

import oracle
from samples import topics
from xtrellis import TrellisClassifier
from xtrellis.graph import minimum_distance


@pytest.mark.parametrize(("training", "code"), [("independent", "independent"), ("local", "local")])
@pytest.mark.parametrize("loss", ["squared_hinge", "exponential", "log"])
def test_average_loss_bound_and_margin(training, code, loss):
    X, y = topics()
    model = TrellisClassifier(3, training=training, learner="arow", epochs=1, random_state=0).fit(
        X, y
    )
    found = model.diagnose(X, y, loss=loss)
    trellis = model.trellis_
    margins = model.margins(X)
    matrix = oracle.coding_matrix(30, 3, code)
    paths = model.assignment_.path_of_class[y]
    losses = oracle.LOSSES[loss](matrix[paths] * margins.astype(float))
    assert found.average_binary_loss == pytest.approx(losses.mean(), rel=1e-5)
    at_zero = oracle.LOSSES[loss](np.zeros(1))[0]
    bound = losses.sum(axis=1).mean() / (minimum_distance(trellis, code) * at_zero)
    assert found.error_bound == pytest.approx(bound, rel=1e-5)
    totals = oracle.total_losses(matrix, margins, oracle.LOSSES[loss])
    assert found.error == pytest.approx(np.mean(totals.argmin(axis=1) != paths), abs=0.01)
    assert found.error <= found.error_bound
    assert found.average_margin == pytest.approx(np.abs(margins).mean(), rel=1e-5)
    assert 0 < found.share_nonzero <= 1
