"""Descriptions of classes: texts that are further training rows of their classes.

A class that has a description, but no other row, can be predicted like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

_WANTED = "class_texts must be a dict such as {'A00': 'Cholera'}"


def described_rows(class_texts: Any, y: npt.ArrayLike) -> tuple[list[str], npt.NDArray[Any]]:
    """Texts that describe classes, and their labels, in the type of the labels y.

    >>> described_rows({"A00": "Cholera", "A01": ["Typhoid", "Paratyphoid"]}, ["A00", "A00"])
    (['Cholera', 'Typhoid', 'Paratyphoid'], array(['A00', 'A01', 'A01'], dtype='<U3'))
    """
    if not isinstance(class_texts, Mapping):
        raise TypeError(f"{_WANTED}, got {type(class_texts).__name__}")
    if not class_texts:
        raise ValueError(f"class_texts is empty: {_WANTED}, or None")
    own = np.asarray(y)
    texts: list[str] = []
    labels: list[Any] = []
    for label, given in class_texts.items():
        if not _is_like(label, own):
            raise TypeError(
                f"class_texts has a label {label!r}, of another type than the labels of y, such as "
                f"{own[:1].tolist()[0]!r}"
            )
        for text in [given] if isinstance(given, str) else _listed(label, given):
            if not text.strip():
                raise ValueError(f"class_texts[{label!r}] is empty: describe the class, or omit it")
            texts.append(text)
            labels.append(label)
    if own.dtype.kind == "O":
        as_objects = np.empty(len(labels), object)
        as_objects[:] = labels
        return texts, as_objects
    return texts, np.asarray(labels)


def _listed(label: Any, given: Any) -> list[str]:
    """Several texts of one class."""
    if not isinstance(given, list | tuple) or not all(isinstance(text, str) for text in given):
        raise TypeError(f"class_texts[{label!r}] must be a text or a list of texts, got {given!r}")
    if not given:
        raise ValueError(f"class_texts[{label!r}] is empty: describe the class, or omit it")
    return list(given)


def _is_like(label: Any, y: npt.NDArray[Any]) -> bool:
    """Whether a label is of the type of others: a text, an integer, a number, ..."""
    kind = y.dtype.kind
    if kind == "O":
        return isinstance(label, type(y.flat[0])) if y.size else True
    if kind == "U":
        return isinstance(label, str)
    if isinstance(label, bool | np.bool_) or kind == "b":
        return isinstance(label, bool | np.bool_) and kind == "b"
    if kind in "iu":
        return isinstance(label, Integral)
    if kind == "f":
        return isinstance(label, Real)
    return np.asarray(label).dtype.kind == kind
