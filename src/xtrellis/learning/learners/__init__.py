"""Learners: what is trained for every edge.

The contract is in ``learner.py``. Here are AROW, the paper's; a linear SVM; the averaged
perceptron; and a wrapper for any scikit-learn classifier.
"""

from __future__ import annotations

from typing import Any

from .arow import Arow
from .learner import Block, Learner
from .perceptron import AveragedPerceptron
from .sklearn_learner import SklearnLearner
from .svm import LinearSVM

__all__ = [
    "Arow",
    "AveragedPerceptron",
    "Block",
    "Learner",
    "LinearSVM",
    "SklearnLearner",
    "get_learner",
]


def get_learner(learner: Any, C: float = 1.0, r: float = 1.0) -> Learner:
    """Learner by name (``"svm"``, ``"arow"``, ``"perceptron"``), or made of an estimator.

    >>> get_learner("arow", r=0.5)
    Arow(r=0.5)
    """
    if isinstance(learner, Learner):
        return learner
    if not isinstance(learner, str):
        return SklearnLearner(learner)
    if learner == "svm":
        return LinearSVM(C=C)
    if learner == "arow":
        return Arow(r=r)
    if learner == "perceptron":
        return AveragedPerceptron()
    raise ValueError(
        f"learner must be 'svm', 'arow', 'perceptron', a Learner or a scikit-learn classifier, "
        f"got {learner!r}"
    )
