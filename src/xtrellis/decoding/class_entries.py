"""Entries of classes, one list after the other: of their centroids, or of their own weights.

``starts`` says where the list of each class begins, and where the last one ends.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray

_SOME_ENTRIES = 2**20  # that are ranked at once


def are_sound(starts: IntArray, features: npt.NDArray[Any]) -> bool:
    """Whether there is a list for each class, and no feature below zero."""
    return (
        starts.ndim == features.ndim == 1
        and len(starts) > 1
        and starts[0] == 0
        and starts[-1] == len(features)
        and bool((np.diff(starts) >= 0).all())
        and bool((features >= 0).all())
    )


def starts_of(counts: npt.NDArray[Any]) -> IntArray:
    """Where lists of these lengths begin, and where the last one ends.

    >>> starts_of(np.array([2, 0, 1]))
    array([0, 2, 2, 3])
    """
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def lists_of(starts: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Starts of the lists of some classes, and which entries they have; -1 stands for no entry.

    >>> lists_of(np.array([0, 2, 2, 3]), np.array([2, -1, 0]))
    (array([0, 1, 1, 3]), array([2, 0, 1]))
    """
    counts = np.where(numbers < 0, 0, np.diff(starts)[numbers])
    new = starts_of(counts)
    return new, np.arange(new[-1]) + np.repeat(starts[:-1][numbers] - new[:-1], counts)


def places_in_lists(starts: IntArray, sizes: Float32Array) -> npt.NDArray[np.int32]:
    """How each entry ranks within its list, the largest first; the first of equal ones first.

    Sizes must not be negative.

    >>> places_in_lists(np.array([0, 3, 4]), np.float32([2, 5, 5, 1]))
    array([2, 0, 1, 0], dtype=int32)
    """
    places = np.empty(len(sizes), np.int32)
    cuts = np.searchsorted(starts, np.arange(0, len(sizes), _SOME_ENTRIES))
    for first, last in pairwise([*np.unique(cuts).tolist(), len(starts) - 1]):
        part = slice(starts[first], starts[last])
        places[part] = _places(starts[first : last + 1] - starts[first], sizes[part])
    return places


def _places(starts: IntArray, sizes: Float32Array) -> IntArray:
    # The bits of numbers above zero are ordered as the numbers are, so that list and entry are one
    # integer: far faster to sort than by two keys.
    counts = np.diff(starts)
    keys = np.repeat(np.arange(len(counts), dtype=np.int64) << 32, counts)
    keys += np.int64(2**32 - 1) - sizes.view(np.uint32)
    places = np.empty(len(keys), np.int64)
    places[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    return places - np.repeat(starts[:-1], counts)
