"""The learned matrix: weights and biases of all edges, and the margins of rows.

Training hands in finished blocks as their non-zero weights. Together they become one matrix,
features x edges: dense if more than a quarter of it is not zero, else sparse by feature. Features
never seen in training, and weights that ended at zero, are not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .learners import Float32Array
from .trellis import IntArray

DENSE_ABOVE = 0.25  # share of non-zeros from which SIMD over zeros beats skipping them


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
    from .kernels import margins as kernels

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
    place : ndarray of int32, shape (n_features,), or None
        Dense storage: row of ``dense`` that holds each feature's weights, -1 for none.
    dense : ndarray of float32, shape (n_seen, n_edges), or None
    starts, edges, values : ndarray, or None
        Sparse storage: the weights of feature k are at ``starts[k]`` to ``starts[k + 1]``.
    others : list of (edge, features, estimator)
        Estimators that are not linear.
    twins : (edges, edges) or None
        Edges not stored because their margins are those of the others, in order.
    """

    n_features: int
    bias: Float32Array
    place: npt.NDArray[np.int32] | None = None
    dense: Float32Array | None = None
    starts: npt.NDArray[np.int64] | None = None
    edges: npt.NDArray[np.int32] | None = None
    values: Float32Array | None = None
    others: list[tuple[int, IntArray, Any]] = field(default_factory=list)
    twins: tuple[IntArray, IntArray] | None = None

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.bias)

    @property
    def n_nonzero(self) -> int:
        """Number of weights that are not zero."""
        if self.dense is not None:
            return int(np.count_nonzero(self.dense))
        assert self.values is not None
        return len(self.values)

    @property
    def n_seen(self) -> int:
        """Number of features that have weights."""
        if self.dense is not None:
            return len(self.dense)
        assert self.starts is not None
        return int(np.count_nonzero(np.diff(self.starts)))

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        arrays = (self.bias, self.place, self.dense, self.starts, self.edges, self.values)
        return sum(array.nbytes for array in arrays if array is not None)

    def columns(self, edges: IntArray) -> Float32Array:
        """Weights of some edges over all features, dense: (n_features, len(edges))."""
        edges = np.array(edges)
        if self.twins is not None:
            twin = np.isin(edges, self.twins[0])
            place = np.searchsorted(self.twins[0], edges[twin])
            edges[twin] = self.twins[1][place]
        result = np.zeros((self.n_features, len(edges)), np.float32)
        if self.dense is not None:
            assert self.place is not None
            seen = np.flatnonzero(self.place >= 0)
            result[seen] = self.dense[self.place[seen]][:, edges]
            return result
        assert self.starts is not None
        assert self.edges is not None
        assert self.values is not None
        features = np.repeat(np.arange(self.n_features), np.diff(self.starts))
        for column, edge in enumerate(edges):
            here = self.edges == edge
            result[features[here], column] = self.values[here]
        return result

    def margins(self, X: Any, out: Float32Array | None = None) -> Float32Array:
        """Margins of CSR rows with float32 data: ``X W + bias``, (n, n_edges)."""
        from .kernels import margins as kernels

        if out is None:
            out = np.empty((X.shape[0], self.n_edges), np.float32)
        if self.dense is not None:
            kernels.dense_margins(
                X.indptr, X.indices, X.data, self.place, self.dense, self.bias, out
            )
        else:
            kernels.sparse_margins(
                X.indptr, X.indices, X.data, self.starts, self.edges, self.values, self.bias, out
            )
        for edge, features, estimator in self.others:
            out[:, edge] = estimator.decision_function(X[:, features])
        if self.twins is not None and len(self.twins[0]):
            out[:, self.twins[0]] = out[:, self.twins[1]]
        return out


def join_blocks(
    blocks: Sequence[FinishedBlock],
    n_features: int,
    n_edges: int,
    max_dense_bytes: float = np.inf,
) -> EdgeWeights:
    """One matrix of all blocks."""
    from .kernels import margins as kernels

    bias = np.zeros(n_edges, np.float32)
    counts = np.zeros(n_features, np.int64)
    others = []
    for block in blocks:
        bias[block.edges] = block.bias
        counts[block.features] += block.counts
        for edge, estimator in zip(block.edges, block.estimators, strict=False):
            if isinstance(estimator, float):
                bias[edge] = estimator
            else:
                others.append((int(edge), block.features, estimator))
    n_seen, n_nonzero = np.count_nonzero(counts), counts.sum()
    dense_bytes = 4 * n_seen * n_edges
    if n_nonzero > DENSE_ABOVE * n_seen * n_edges and dense_bytes <= max_dense_bytes:
        place = np.full(n_features, -1, np.int32)
        place[counts > 0] = np.arange(n_seen)
        dense = np.zeros((n_seen, n_edges), np.float32)
        for block in blocks:
            dense[np.repeat(place[block.features], block.counts), block.columns] = block.values
        return EdgeWeights(n_features, bias, place=place, dense=dense, others=others)
    starts = np.concatenate([[0], np.cumsum(counts)])
    edges, values = np.empty(n_nonzero, np.int32), np.empty(n_nonzero, np.float32)
    cursor = starts[:-1].copy()
    for block in blocks:
        kernels.merge_block(
            block.features, block.counts, block.columns, block.values, cursor, edges, values
        )
    return EdgeWeights(n_features, bias, starts=starts, edges=edges, values=values, others=others)
