"""Classifiers of scikit-learn as learners."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from binary_problems import block_of, train
from samples import topics
from xtrellis.learning import SklearnLearner


def test_sklearn_classifiers_are_folded_into_weights():
    X, y = topics(n_classes=4, n_rows=200)
    weights, bias = train(SklearnLearner(LogisticRegression()), block_of(X, y, 5), 1)
    expected = LogisticRegression().fit(X, y == 2)
    np.testing.assert_allclose(weights[:, 2], expected.coef_[0], atol=1e-4)
    np.testing.assert_allclose(bias[2], expected.intercept_[0], atol=1e-4)
    assert not weights[:, 4].any()
    assert bias[4] == -1  # no positive example: nothing to fit
