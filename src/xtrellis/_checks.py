"""Checks of parameters: one line that names the parameter, its value and what is wanted."""

from __future__ import annotations

import re
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import Float32Array, IntArray

_LARGEST = 1e36  # sum of a row's squares, or of the row weights: float32 ends at 3.4e38
_SMALLEST = 1e-18  # of the largest value: squares of smaller ones vanish in float32
_HARMLESS = 1e14  # no row has so many features that the squares of smaller values overflow


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


def checked_mask(name: str, value: Any, n_rows: int) -> npt.NDArray[np.bool_]:
    """One truth value per row, or a ValueError that names the parameter."""
    mask = np.asarray(value)
    if mask.dtype != np.bool_ or mask.shape != (n_rows,):
        raise ValueError(
            f"{name} must be {n_rows} truth values, one per row; "
            f"got {mask.dtype} of shape {mask.shape}"
        )
    return mask


def check_bits(name: str, value: Any) -> None:
    """A size that weights can be stored in, or a ValueError that names the parameter."""
    if value not in (8, 32):
        raise ValueError(f"{name} must be 8 or 32, got {value!r}")


def check_pruning(max_drop: Any, threshold: Any, bits: Any = 8) -> None:
    """Bounds that pruning can work with, or a ValueError that names the wrong one."""
    check_fraction("max_drop", max_drop)
    if threshold is not None:
        check_threshold("threshold", threshold)
    check_bits("bits", bits)


def check_threshold(name: str, value: Any) -> None:
    """A number from 0 up, or a ValueError that names the parameter."""
    if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
        raise ValueError(f"{name} must be at least 0 and finite, got {value!r}")


def clamped_k(k: Any, n_classes: int) -> int:
    """How many of the best classes to return: at most as many as there are."""
    check_integer("k", k, 1)
    return min(int(k), n_classes)


# ---------------------------------------------------------------------- labels and row weights


def encoded_labels(classes: npt.NDArray[Any], y: npt.NDArray[Any]) -> IntArray:
    """Numbers of labels, -1 for one that is not among the sorted classes."""
    if y.dtype.kind == "O":  # of several types, perhaps, which do not sort
        numbers = {label: number for number, label in enumerate(classes.tolist())}
        return np.array([numbers.get(label, -1) for label in y.tolist()], np.int64)
    encoded = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    return np.where(classes[encoded] == y, encoded, -1).astype(np.int64)


def known_labels(classes: npt.NDArray[Any], y: npt.NDArray[Any]) -> IntArray:
    """Numbers of labels, or an error that names one that is not among the sorted classes."""
    encoded = encoded_labels(classes, y)
    if (encoded < 0).any():
        label = y[encoded < 0][:1].tolist()[0]
        raise ValueError(f"y holds a label that is not in classes: {label!r}")
    return encoded


def row_weights(sample_weight: Any, n_rows: int) -> Float32Array:
    """Weight of each row, 1 by default."""
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
            f"sample_weight must have shape ({n_rows},), one weight per row; got {weights.shape}"
        )
    if weights.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min()}")
    return np.asarray(weights)


def weighted(weights: Float32Array, factors: Float32Array) -> Float32Array:
    """Weights times factors; what is too large for float32 is infinite, without a warning."""
    with np.errstate(over="ignore"):
        return weights * factors


def check_magnitudes(X: Any, weights: Float32Array) -> None:
    """Refuse numbers so large that training in float32 would overflow."""
    total = float(weights.sum(dtype=np.float64))
    if not total <= _LARGEST:
        raise ValueError(
            f"sample_weight and class_weight add up to {total:.3g}, at most {_LARGEST:.0e} is "
            f"possible: divide them by their mean"
        )
    largest = max(float(X.data.max(initial=0)), -float(X.data.min(initial=0)))
    if 0 < largest < _SMALLEST:
        raise ValueError(
            f"X has no value larger than {largest:.3g}, too small to train on: "
            f"scale the features, for example with MaxAbsScaler"
        )
    if largest < _HARMLESS:
        return
    squares = np.append(X.data.astype(np.float64) ** 2, 0)
    if np.add.reduceat(squares, np.minimum(X.indptr[:-1], len(squares) - 1)).max() > _LARGEST:
        raise ValueError(
            f"X has a value of size {largest:.3g}, too large to train on: "
            f"scale the features, for example with MaxAbsScaler"
        )


def class_weights(
    class_weight: Any, classes: npt.NDArray[Any], y: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    """Weight of each class, 1 by default, or an error that names the class and its weight."""
    from sklearn.utils import compute_class_weight

    if not isinstance(class_weight, dict):
        return np.asarray(compute_class_weight(class_weight, classes=classes, y=y), np.float32)
    for label, weight in class_weight.items():
        if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
            raise ValueError(
                f"class_weight must be at least 0 and finite, got {weight!r} for class {label!r}"
            )
    known = set(classes.tolist())
    unknown = [label for label in class_weight if label not in known]
    # Within cross-validation a class may be missing from a part of the rows.
    if unknown and not known <= class_weight.keys():
        raise ValueError(f"class_weight names a class that is not in y: {unknown[0]!r}")
    return np.array([class_weight.get(label, 1.0) for label in classes.tolist()], np.float32)


def is_ragged(y: Any) -> bool:
    """Whether rows have lists of labels, not all of them of the same length."""
    try:
        np.asarray(y)
    except ValueError:
        return True
    return False


def what_it_must_be(message: str) -> str | None:
    """What pydantic says that a value should be or have, in the words of our own errors.

    >>> what_it_must_be("Input should be a valid integer, unable to parse string as an integer")
    'must be an integer'
    """
    found = re.match(
        r"(?:Input|List) should (be|have) (.*?)(, unable to parse.*| after validation.*)?$", message
    )
    if not found:
        return None
    what = found[2].replace("a valid integer", "an integer").replace("a valid", "a")
    return f"must {found[1]} {what}"
