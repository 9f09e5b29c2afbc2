"""A finished block: what training the edges of a vertex gives, and what the model keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray

FULL_ABOVE = 0.4  # share of a block's columns from which a feature has a value for each of them


@dataclass(frozen=True)
class FinishedBlock:
    """The weights of one trained block: for each feature the columns and values of its entries.

    ``estimators`` holds one per edge where they are not linear; a constant margin is a number.
    """

    edges: IntArray
    bias: Float32Array
    features: IntArray
    counts: npt.NDArray[np.int32]
    columns: npt.NDArray[np.uint16]
    values: Float32Array
    estimators: list[Any] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        arrays = (self.features, self.counts, self.columns, self.values)
        return sum(array.nbytes for array in arrays)

    def above(self, threshold: float) -> FinishedBlock:
        """The same, without the weights of at most this size; not for estimators."""
        large = np.abs(self.values) > threshold
        if large.all():
            return self
        counted = np.concatenate([[0], np.cumsum(large)])
        ends = np.cumsum(self.counts, dtype=np.int64)
        counts = np.diff(counted[np.concatenate([[0], ends])]).astype(np.int32)
        left = counts > 0
        return replace(
            self,
            features=self.features[left],
            counts=counts[left],
            columns=self.columns[large],
            values=self.values[large],
        )

    def __sizeof__(self) -> int:
        """What a cluster plans its memory by."""
        return self.nbytes


def finish_block(
    edges: IntArray,
    features: IntArray,
    weights: Any,
    bias: npt.ArrayLike,
    threshold: float = 0.0,
) -> FinishedBlock:
    """A trained block as it is kept: its weights above the threshold.

    ``weights`` is a table, features x edges, or a list of estimators.
    """
    from ..kernels import storage

    bias = np.asarray(bias, np.float32)
    empty = np.empty(0, np.int32)
    if isinstance(weights, list):
        constant = np.array([isinstance(each, float) for each in weights])
        bias = np.where(constant, [each if isinstance(each, float) else 0 for each in weights], 0)
        return FinishedBlock(
            edges,
            bias.astype(np.float32),
            features,
            empty,
            np.empty(0, np.uint16),
            np.empty(0, np.float32),
            list(weights),
        )
    weights = np.ascontiguousarray(weights, np.float32)
    counts = np.empty(len(features), np.int32)
    limit, full_above = np.float32(threshold), np.float32(FULL_ABOVE)
    n_entries = storage.count_entries(weights, limit, full_above, counts)
    order = np.argsort(features, kind="stable")
    order = order[counts[order] > 0]
    columns, values = np.empty(n_entries, np.uint16), np.empty(n_entries, np.float32)
    storage.take_entries(weights, limit, order, counts, columns, values)
    return FinishedBlock(
        np.asarray(edges), bias, np.asarray(features)[order], counts[order], columns, values
    )


def joined(parts: Sequence[FinishedBlock]) -> FinishedBlock:
    """One block of the edges of several: those of a vertex that was trained in parts.

    A row then looks its features up once, not once for each part.
    """
    from ..kernels import storage

    sizes = [len(part.features) for part in parts]
    offsets = np.cumsum([0, *(len(part.edges) for part in parts)])
    given = (
        np.cumsum([0, *sizes]),
        np.concatenate([part.features for part in parts]),
        np.cumsum(np.concatenate([[0], *(part.counts for part in parts)]), dtype=np.int64),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.values for part in parts]),
        offsets,
        np.float32(FULL_ABOVE),
    )
    features, counts = np.empty(sum(sizes), np.int64), np.empty(sum(sizes), np.int32)
    columns, values = np.empty(0, np.uint16), np.empty(0, np.float32)
    n_features, n_entries = storage.join_entries(*given, features, counts, columns, values)
    columns, values = np.empty(n_entries, np.uint16), np.empty(n_entries, np.float32)
    storage.join_entries(*given, features, counts, columns, values)
    return FinishedBlock(
        np.concatenate([part.edges for part in parts]),
        np.concatenate([part.bias for part in parts]),
        features[:n_features],
        counts[:n_features],
        columns,
        values,
    )


def constant_block(edges: IntArray, bias: npt.ArrayLike) -> FinishedBlock:
    """A block whose margins are the same for every row."""
    nothing = np.empty((0, len(edges)), np.float32)
    return finish_block(edges, np.empty(0, np.int64), nothing, bias)
