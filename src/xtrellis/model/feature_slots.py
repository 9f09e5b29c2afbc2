"""A hash table of features, whose slots kernels look up (``kernels.blocks.slot_of``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import IntArray


def feature_slots(
    features: npt.NDArray[np.integer[Any]], n_features: int
) -> tuple[IntArray, IntArray, npt.NDArray[np.int32]]:
    """A table of the distinct ones of some features, of which there are at most ``n_features``.

    Returns the table, (n_slots, SLOT_WORDS), of whose words only the first are filled; the slot of
    each distinct feature, in the order in which they appear; and the place of each given feature in
    that order.

    >>> slots, seen, ranks = feature_slots(np.array([70, 20, 70]), 100)
    >>> slots[seen, 0], ranks
    (array([70, 20]), array([0, 1, 0], dtype=int32))
    """
    from ..kernels import storage
    from ..kernels.blocks import SLOT_WORDS

    most = min(len(features), n_features)
    slots = np.zeros((2 ** int(np.ceil(np.log2(4 / 3 * most + 2))), SLOT_WORDS), np.int64)
    slots[:, 0] = -1
    seen, ranks = np.empty(most, np.int64), np.empty(len(features), np.int32)
    n_seen = storage.rank_features(
        features.astype(np.int64, copy=False), slots.ravel(), seen, ranks
    )
    return slots, seen[:n_seen], ranks
