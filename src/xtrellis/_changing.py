"""Changing an estimator all at once: it is as it was, or as it shall be, never in between."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Estimator = TypeVar("Estimator", bound=Any)


@contextmanager
def built_aside(estimator: Estimator, *, fresh: bool = False) -> Iterator[Estimator]:
    """A copy to work on, which the estimator becomes at the end, in one step.

    If the work fails or is interrupted the estimator stays as it was, and a thread that predicts
    meanwhile sees it as it was before or as it is afterwards. A ``fresh`` copy has the parameters,
    but nothing that was fitted.
    """
    aside = copy.copy(estimator)
    if fresh:
        for name in _fitted_names(estimator):
            del aside.__dict__[name]
    yield aside
    estimator.__dict__ = aside.__dict__


def _fitted_names(estimator: Any) -> list[str]:
    """Attributes that fitting sets: by scikit-learn's convention they end in an underscore."""
    parameters = estimator.get_params(deep=False)
    return [
        name
        for name in vars(estimator)
        if name not in parameters and (name.endswith("_") or name == "_online")
    ]
