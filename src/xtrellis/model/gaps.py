"""Lists of ascending numbers as the distances between them, in two bytes each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_WIDE = 2**16 - 1  # stands for a distance that does not fit
_MOST = 2**62


def pack_gaps(
    values: npt.NDArray[Any], starts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    """Distances of each number to the one before in its list, and those too large for two bytes.

    >>> gaps, wide = pack_gaps(np.array([3, 5, 70_000, 2]), np.array([0, 3, 4]))
    >>> gaps, wide
    (array([    3,     2, 65535,     2], dtype=uint16), array([69995]))
    >>> unpack_gaps(gaps, wide, np.array([0, 3, 4]))
    array([    3,     5, 70000,     2])
    """
    gaps = values.astype(np.int64)
    gaps[1:] -= values[:-1]
    firsts = starts[:-1][np.diff(starts) > 0]
    gaps[firsts] = values[firsts]
    return np.minimum(gaps, _WIDE).astype(np.uint16), gaps[gaps >= _WIDE]


def unpack_gaps(
    gaps: npt.NDArray[np.uint16], wide_gaps: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The lists again; raises a ValueError if they cannot be right."""
    is_wide = gaps == _WIDE
    sound = (
        gaps.ndim == wide_gaps.ndim == 1
        and gaps.shape == (starts[-1],)
        and np.count_nonzero(is_wide) == len(wide_gaps)
        and bool((wide_gaps >= _WIDE).all())
        and int(wide_gaps.max(initial=0)) < _MOST // max(len(wide_gaps), 1)
    )
    if not sound:
        raise ValueError("distances between numbers do not fit their lists")
    steps = gaps.astype(np.int64)
    steps[is_wide] = wide_gaps
    sums = np.concatenate([[0], np.cumsum(steps)])
    return np.asarray(sums[1:] - np.repeat(sums[starts[:-1]], np.diff(starts)))
