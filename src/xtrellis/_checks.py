"""Checks of parameters: one line that names the parameter, its value and what is wanted."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from ._arrays import Float32Array


def checked_integer(name: str, value: object) -> int:
    """Return ``value`` as a Python integer, or raise a TypeError that names it."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    return int(value)


def check_integer(name: str, value: Any, least: int) -> None:
    """An integer that is large enough, or a ValueError that names the parameter."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")


def check_jobs(n_jobs: Any) -> None:
    """A number of threads as joblib takes it, or a ValueError."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be an integer other than 0, or None, got {n_jobs!r}")


def check_fraction(name: str, value: Any) -> None:
    """A number from 0 to below 1, or a ValueError that names the parameter."""
    if not (isinstance(value, Real) and 0 <= float(value) < 1):
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}")


def check_positive(**parameters: float) -> None:
    for name, value in parameters.items():
        if not (isinstance(value, Real) and np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive and finite, got {value!r}")


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """An array of this shape, or a ValueError that names it."""
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")


def check_pruning(max_drop: Any, threshold: Any) -> None:
    """Bounds that pruning can work with, or a ValueError that names the wrong one."""
    check_fraction("max_drop", max_drop)
    if threshold is not None and not (
        isinstance(threshold, Real) and 0 <= float(threshold) < np.inf
    ):
        raise ValueError(f"threshold must be at least 0 and finite, got {threshold!r}")


def check_memory(
    needed: float, max_memory: float | None, what: str, advice: str = "use a smaller slice_width"
) -> None:
    """Raise a MemoryError if something takes more than it may."""
    if max_memory is not None and needed > max_memory:
        raise MemoryError(
            f"max_memory is {max_memory / 2**20:.1f} MB, but {what} takes "
            f"{needed / 2**20:.1f} MB; raise max_memory or {advice}"
        )


def row_weights(sample_weight: Any, n_rows: int) -> Float32Array:
    """Weight of each row: 1 unless said otherwise."""
    if sample_weight is None:
        return np.ones(n_rows, np.float32)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight)
    from sklearn.utils.validation import check_array

    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float32, input_name="sample_weight"
    )
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have shape ({n_rows},), one weight a row; got {weights.shape}"
        )
    if weights.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min()}")
    return np.asarray(weights)
