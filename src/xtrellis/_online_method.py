"""A method that a classifier has only with an online learner."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from .learning.learners import get_learner


class OnlineMethod:
    """A method that only classifiers with an online learner have.

    scikit-learn's ``available_if`` does the same, but says only that the attribute is missing.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        try:
            online = get_learner(estimator.learner).online
        except (TypeError, ValueError) as error:  # fit will say so, too
            raise AttributeError(str(error)) from error
        if not online:
            raise AttributeError(
                f"partial_fit needs an online learner, which learner={estimator.learner!r} is not: "
                f"use 'arow', 'perceptron' or a Learner with online = True"
            )
        return MethodType(self.method, estimator)
