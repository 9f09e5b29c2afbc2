"""What all learners promise: parameters in reach, errors that say what is wrong, finite weights."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from binary_problems import block_of, train
from samples import topics
from xtrellis import TrellisClassifier
from xtrellis.learning import Arow, AveragedPerceptron, LinearSVM
from xtrellis.learning.learners import get_learner


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LinearSVM(C=0), ValueError, "C must be positive and finite, got 0"),
        (lambda: Arow(r=-1.0), ValueError, "r must be positive and finite, got -1.0"),
        (lambda: get_learner("tree"), ValueError, "learner must be .* got 'tree'"),
        (lambda: get_learner(object()), TypeError, "has no method 'fit'"),
    ],
)
def test_bad_learners(make, error, message):
    with pytest.raises(error, match=message):
        make()


class Shrunk(LinearSVM):
    """A learner of one's own, with a parameter."""

    def __init__(self, C=1.0, factor=1.0):
        super().__init__(C)
        self.factor = factor

    def finish(self, block, state):
        weights, bias = super().finish(block, state)
        return weights * np.float32(self.factor), bias * np.float32(self.factor)


def test_parameters_of_a_learner_are_in_reach():
    X, y = topics()
    model = TrellisClassifier(5, learner=Shrunk(factor=0.0), random_state=0)
    assert model.get_params()["learner__factor"] == 0.0
    copied = clone(model).set_params(learner__factor=1.0)
    assert model.learner.factor == 0.0
    assert copied.fit(X, y).score(X, y) > model.fit(X, y).score(X, y)
    search = GridSearchCV(model, {"learner__factor": [0.0, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"learner__factor": 1.0}
    assert "learner=Shrunk" in repr(model)


@pytest.mark.parametrize("learner", [LinearSVM(), Arow(), AveragedPerceptron()])
@pytest.mark.parametrize("factor", [1e20, 1e30, 3e38])
def test_features_that_overflow_are_named(learner, factor):
    """Never a model of zeros, or of what is not a number."""
    X, y = topics(n_classes=3, n_rows=60)
    X = X.multiply(np.float32(factor)).tocsr()
    with pytest.raises(ValueError, match=r"overflow; scale them, e\.g\. with .*MaxAbsScaler"):
        train(learner, block_of(X, y, 3), 5)


@pytest.mark.parametrize("learner", [LinearSVM(), Arow(), AveragedPerceptron()])
def test_large_features_are_learned_from(learner):
    X, y = topics(n_classes=3, n_rows=60)
    X = X.multiply(np.float32(1e15)).tocsr()
    weights, bias = train(learner, block_of(X, y, 3), 20)
    assert ((X @ weights + bias).argmax(axis=1) == y).all()


@pytest.mark.parametrize("weight", [1e30, 1e38])
def test_row_weights_that_overflow_are_named(weight):
    """The SVM's curvature at 1e38 does; at 1e30 its weights have to be finite and not zero."""
    X, y = topics(n_classes=3, n_rows=60)
    block = block_of(X, y, 3, np.full(60, weight))
    if weight == 1e38:
        with pytest.raises(ValueError, match=r"row weights as large as 1e\+38 overflow"):
            train(LinearSVM(), block, 5)
    else:
        weights, _ = train(LinearSVM(), block, 40)
        assert np.isfinite(weights).all()
        assert weights.any()
