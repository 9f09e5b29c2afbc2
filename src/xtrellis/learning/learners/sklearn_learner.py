"""Any scikit-learn binary classifier as a learner."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import IntArray
from .learner import Block, Learner


class SklearnLearner(Learner):
    """Any scikit-learn binary classifier with ``decision_function``, one clone per edge.

    Linear ones (with ``coef_`` and ``intercept_``) are folded into the weight matrix; others are
    kept as they are and asked one by one at prediction.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from xtrellis.learning import SklearnLearner
    >>> SklearnLearner(LogisticRegression()).estimator
    LogisticRegression()
    """

    epochs = 1

    def __init__(self, estimator: Any) -> None:
        for method in ("fit", "decision_function"):
            if not hasattr(estimator, method):
                raise TypeError(f"learner {estimator!r} has no method {method!r}")
        self.estimator = estimator

    def start(self, block: Block) -> list[Any]:
        """No estimators yet."""
        return []

    def step(self, block: Block, state: list[Any], order: IntArray) -> float:
        """Fit one clone for each edge."""
        from sklearn.base import clone
        from sklearn.utils.validation import has_fit_parameter

        X, weights = block.csr[order], block.row_weights[order]
        seed = int(np.random.default_rng(order[:64]).integers(2**30))  # the order is seeded
        state.clear()
        for edge in range(block.n_edges):
            signs = block.signs(edge)[order]
            if (signs == signs[0]).all():
                state.append(float(signs[0]))
                continue
            estimator = clone(self.estimator)
            if estimator.get_params().get("random_state", 0) is None:
                estimator.set_params(random_state=seed + edge)
            if has_fit_parameter(estimator, "sample_weight"):
                estimator.fit(X, signs, sample_weight=weights)
            else:
                estimator.fit(X, signs)
            state.append(estimator)
        return 0.0

    def converged(self, state: list[Any]) -> bool:
        """Always: fitting the clones again would change nothing."""
        return True

    def finish(self, block: Block, state: list[Any]) -> tuple[Any, Any]:
        """Weights of linear estimators; the estimators themselves if one is not linear."""
        if not all(isinstance(e, float) or hasattr(e, "coef_") for e in state):
            return list(state), np.zeros(block.n_edges, np.float32)
        weights = np.zeros((block.n_features, block.n_edges), np.float32)
        bias = np.zeros(block.n_edges, np.float32)
        for edge, estimator in enumerate(state):
            if isinstance(estimator, float):
                bias[edge] = estimator
            else:
                coef = estimator.coef_
                weights[:, edge] = np.ravel(coef.toarray() if hasattr(coef, "toarray") else coef)
                bias[edge] = np.ravel(estimator.intercept_)[0]
        return weights, bias
