"""Learners against their definitions and against scikit-learn, one binary problem at a time."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from samples import topics
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.learning import Arow, AveragedPerceptron, LinearSVM, SklearnLearner
from xtrellis.learning.learners import Block, get_learner


def block_of(X, targets, n_edges, weights=None):
    X = canonical_csr(X)
    targets = np.asarray(targets, np.int32).reshape(len(targets), -1)
    if weights is None:
        weights = np.ones(X.shape[0])
    return Block(
        X.indptr, X.indices, X.data, targets, np.asarray(weights, np.float32), X.shape[1], n_edges
    )


def train(learner, block, epochs, seed=0):
    rng = np.random.default_rng(seed)
    state = learner.start(block)
    for _ in range(epochs):
        learner.step(block, state, rng.permutation(block.n_rows))
        if learner.converged(state):
            break
    return learner.finish(block, state)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_svm_is_liblinears(C):
    """Each edge of a block agrees with scikit-learn's LinearSVC on its binary problem."""
    X, y = topics(n_classes=5, n_rows=300)
    weights, bias = train(LinearSVM(C, tolerance=1e-6), block_of(X, y, 5), 3000)
    for edge in range(5):
        svc = LinearSVC(C=C, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y == edge)
        np.testing.assert_allclose(weights[:, edge], svc.coef_[0], atol=2e-3)
        np.testing.assert_allclose(bias[edge], svc.intercept_[0], atol=2e-3)


def test_svm_row_weights_are_liblinears():
    X, y = topics(n_classes=3, n_rows=200)
    counts = np.random.default_rng(0).integers(1, 5, 200)
    weights, _ = train(LinearSVM(1.0, 1e-6), block_of(X, y, 3, counts), 3000)
    svc = LinearSVC(C=1.0, tol=1e-8, max_iter=100_000, random_state=0)
    svc.fit(X, y == 1, sample_weight=counts)
    np.testing.assert_allclose(weights[:, 1], svc.coef_[0], atol=2e-3)


def test_svm_with_several_targets_a_row():
    """A row may be a positive example of several edges: they are independent problems."""
    X, y = topics(n_classes=4, n_rows=200)
    targets = np.stack([y, 4 + y % 2], axis=1)
    together, _ = train(LinearSVM(1.0, 1e-6), block_of(X, targets, 6), 3000)
    apart, _ = train(LinearSVM(1.0, 1e-6), block_of(X, y % 2, 2), 3000)
    np.testing.assert_allclose(together[:, 4:], apart, atol=2e-3)


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


def test_sklearn_classifiers_are_folded_into_weights():
    X, y = topics(n_classes=4, n_rows=200)
    weights, bias = train(SklearnLearner(LogisticRegression()), block_of(X, y, 5), 1)
    expected = LogisticRegression().fit(X, y == 2)
    np.testing.assert_allclose(weights[:, 2], expected.coef_[0], atol=1e-4)
    np.testing.assert_allclose(bias[2], expected.intercept_[0], atol=1e-4)
    assert not weights[:, 4].any()
    assert bias[4] == -1  # no positive example: nothing to fit


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
