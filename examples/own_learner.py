"""A learner of your own: least squares by stochastic gradient descent.

A learner trains the edges of one block together. A block holds rows and, for each row, the edges
it is a positive example of; the row is a negative example of the others. The learner need not know
what an edge is: it returns one column of weights and one bias per edge.

    python examples/own_learner.py
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from xtrellis import TrellisClassifier
from xtrellis.learning import Learner


class LeastSquares(Learner):
    """Linear regression on ±1."""

    epochs = 5

    def __init__(self, rate=0.02):
        self.rate = rate

    def start(self, block):
        """The state to train: here weights and biases of zero."""
        return np.zeros((block.n_features, block.n_edges)), np.zeros(block.n_edges)

    def step(self, block, state, order):
        """Visit the rows once, in the given order; return the sum of their losses."""
        weights, bias = state
        X, loss = block.csr, 0.0
        for i in order:
            features, x = X[i].indices, X[i].data
            signs = np.full(block.n_edges, -1.0)
            signs[block.targets[i][block.targets[i] >= 0]] = 1.0
            error = x @ weights[features] + bias - signs
            weights[features] -= self.rate * np.outer(x, error)
            bias -= self.rate * error
            loss += float(error @ error)
        return loss

    def finish(self, block, state):
        """The weights, (n_features, n_edges), and the biases, (n_edges,)."""
        return state


def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    for learner in (LeastSquares(), "svm"):
        clf = TrellisClassifier(learner=learner, random_state=0).fit(X_train, y_train)
        name = learner if isinstance(learner, str) else type(learner).__name__
        print(f"{name}: test accuracy {clf.score(X_test, y_test):.1%}")


if __name__ == "__main__":
    main()
