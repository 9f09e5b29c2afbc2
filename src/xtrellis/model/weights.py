"""The learned matrix: weights and biases of all edges, and the margins of rows.

Training hands in finished blocks as their non-zero weights. Together they become one matrix,
features x edges, stored feature by feature: a feature with weights on more than a quarter of the
edges, as frequent ones have, as a dense row; any other as a list. Features never seen in training,
and weights that ended at zero, are not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray
from .._threads import in_threads

DENSE_ABOVE = 0.25  # share of edges from which adding zeros, too, is faster than a list


@dataclass(frozen=True)
class FinishedBlock:
    """The weights of one trained block: for each feature its non-zero weights, in order."""

    edges: IntArray
    bias: Float32Array
    features: IntArray
    counts: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    values: Float32Array
    estimators: list[Any] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(
            array.nbytes for array in (self.features, self.counts, self.columns, self.values)
        )


def finish_block(
    edges: IntArray, features: IntArray, weights: Any, bias: npt.ArrayLike
) -> FinishedBlock:
    """Non-zero weights of a trained block; ``weights`` may be a list of estimators instead."""
    from ..kernels import margins as kernels

    bias = np.asarray(bias, dtype=np.float32)
    estimators = []
    if isinstance(weights, list):
        estimators, weights = weights, np.zeros((0, len(edges)), np.float32)
        counts = np.zeros(len(features), np.int32)
    else:
        counts = np.empty(len(features), np.int32)
    weights = np.ascontiguousarray(weights, dtype=np.float32)
    n_nonzero = kernels.count_nonzeros(weights)
    columns, values = np.empty(n_nonzero, np.int32), np.empty(n_nonzero, np.float32)
    kernels.take_nonzeros(weights, features, edges, counts, columns, values)
    return FinishedBlock(edges, bias, features, counts, columns, values, estimators)


@dataclass
class EdgeWeights:
    """Weights of all edges.

    Attributes
    ----------
    bias : ndarray of float32, shape (n_edges,)
    place : ndarray of int32, shape (n_features,)
        Row of ``dense`` that holds the feature's weights, or -1.
    dense : ndarray of float32, shape (n_dense, n_edges)
    starts : ndarray of int64, shape (n_features + 1,)
        The weights of a feature k that is not dense are at ``starts[k]`` to ``starts[k + 1]`` of
        the next two.
    edges : ndarray of uint16, or of int32 for more than 65,536 edges
    values : ndarray of float32
    others : list of (edge, features, estimator)
        Estimators that are not linear.
    twins : (edges, edges)
        Edges not stored because their margins are those of the others, in order.
    """

    bias: Float32Array
    place: npt.NDArray[np.int32]
    dense: Float32Array
    starts: npt.NDArray[np.int64]
    edges: npt.NDArray[np.uint16] | npt.NDArray[np.int32]
    values: Float32Array
    others: list[tuple[int, IntArray, Any]] = field(default_factory=list)
    twins: tuple[IntArray, IntArray] = field(
        default_factory=lambda: (np.empty(0, np.int64), np.empty(0, np.int64))
    )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.place)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.bias)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of features and of edges."""
        return self.n_features, self.n_edges

    @property
    def n_nonzero(self) -> int:
        """Number of weights that are not zero."""
        return int(np.count_nonzero(self.dense)) + len(self.values)

    @property
    def n_seen(self) -> int:
        """Number of features that have weights."""
        return len(self.dense) + int(np.count_nonzero(np.diff(self.starts)))

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The matrix as the kernels take it."""
        return self.place, self.dense, self.starts, self.edges, self.values, self.bias

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    def columns(self, edges: IntArray) -> Float32Array:
        """Weights of some edges over all features, dense: (n_features, len(edges))."""
        stored = self._stored(edges)
        distinct, inverse = np.unique(stored, return_inverse=True)
        result = np.zeros((self.n_features, len(distinct)), np.float32)
        rows = np.flatnonzero(self.place >= 0)
        result[rows] = self.dense[self.place[rows]][:, distinct]
        column = np.full(self.n_edges, -1)
        column[distinct] = np.arange(len(distinct))
        here = np.flatnonzero(column[self.edges] >= 0)
        features = np.searchsorted(self.starts, here, side="right") - 1
        result[features, column[self.edges[here]]] = self.values[here]
        return result[:, inverse]

    def biases(self, edges: IntArray) -> Float32Array:
        """Biases of some edges."""
        return self.bias[self._stored(edges)]

    def _stored(self, edges: IntArray) -> IntArray:
        """Edges whose weights are stored for these: their twins, for those that have one."""
        stored = np.array(edges)
        twin = np.isin(stored, self.twins[0])
        stored[twin] = self.twins[1][np.searchsorted(self.twins[0], stored[twin])]
        return stored

    def to_parts(self) -> dict[str, Any]:
        """Parts of a model file."""
        from .weights_packing import pack_weights

        return pack_weights(self)

    @classmethod
    def from_parts(cls, **parts: Any) -> EdgeWeights:
        """Weights of the parts of a model file, every bound checked."""
        from .packing import call_checked
        from .weights_packing import unpack_weights

        return call_checked(unpack_weights, parts, "weights")

    def margins(self, X: Any, threshold: float = 0.0) -> Float32Array:
        """Margins of CSR rows with float32 data: ``X W + bias``, (n, n_edges).

        With a threshold, as if weights of at most its size were zero.
        """
        from ..kernels import margins as kernels

        out = np.empty((X.shape[0], self.n_edges), np.float32)
        if threshold > 0:
            limit = np.float32(threshold)
            kernels.thresholded_rows(X.indptr, X.indices, X.data, *self.arrays, limit, out)
        else:
            kernels.all_rows(X.indptr, X.indices, X.data, *self.arrays, out)
        for edge, features, estimator in self.others:
            out[:, edge] = estimator.decision_function(X[:, features])
        if len(self.twins[0]):
            out[:, self.twins[0]] = out[:, self.twins[1]]
        return out


def edge_type(n_edges: int) -> type[np.uint16] | type[np.int32]:
    """Smallest type for the numbers of edges that there are kernels for."""
    return np.uint16 if n_edges <= 2**16 else np.int32


def dense_features(
    counts: IntArray, n_edges: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Which features are stored as dense rows, by their numbers of weights; and in which row."""
    in_rows = counts > DENSE_ABOVE * n_edges
    return in_rows, np.where(in_rows, np.cumsum(in_rows) - 1, -1).astype(np.int32)


def least_bytes(n_features: int, n_edges: int) -> int:
    """Memory of a matrix without a single weight: its biases, and where features have theirs."""
    return 4 * n_edges + 4 * n_features + 8 * (n_features + 1)


def join_blocks(
    blocks: Sequence[FinishedBlock], n_features: int, n_edges: int, n_jobs: int | None = None
) -> EdgeWeights:
    """One matrix of all blocks."""
    from ..kernels import margins as kernels

    bias = np.zeros(n_edges, np.float32)
    counts = np.zeros(n_features, np.int64)
    before = []  # for each block, how many weights of its features earlier blocks have
    others = []
    for block in blocks:
        bias[block.edges] = block.bias
        before.append(counts[block.features])
        counts[block.features] += block.counts
        for edge, estimator in zip(block.edges, block.estimators, strict=False):
            if isinstance(estimator, float):
                bias[edge] = estimator
            else:
                others.append((int(edge), block.features, estimator))
    in_rows, place = dense_features(counts, n_edges)
    dense = np.zeros((np.count_nonzero(in_rows), n_edges), np.float32)
    starts = np.concatenate([[0], np.cumsum(np.where(in_rows, 0, counts))])
    edges = np.empty(starts[-1], edge_type(n_edges))
    values = np.empty(starts[-1], np.float32)

    def merge(index: int) -> None:
        block = blocks[index]
        at = starts[block.features] + before[index]
        of_block = block.features, block.counts, block.columns, block.values
        kernels.merge_block(*of_block, place, dense, at, edges, values)

    in_threads(merge, range(len(blocks)), n_jobs)
    return EdgeWeights(bias, place, dense, starts, edges, values, others)
