"""The learned weights, block by block: what training a vertex gives is what the model holds.

A block is a run of edges and the features that have weights there; a vertex that was trained in
parts is one block all the same. Its arrays follow those of the block before, so a file is its
blocks one after the other, and reading one vertex touches that vertex's pages only. No wide matrix
is made: the weights of a feature in a block are a short list of columns and values, or one value
per column where many are not zero.

A directory, made when the weights are and not stored, lists for every feature the blocks that it
has weights in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray
from .finished_block import FULL_ABOVE, FinishedBlock, constant_block, joined

MAX_COLUMNS = 2**16  # of a block
_SOME = 2**16  # weights that are rounded at once, as that takes several temporary arrays

_TINY = 1e-30  # in place of the largest weight, if there is none
IN_TABLE_ABOVE = 0.2  # share of the blocks from which a feature has a line of the directory's table


class WeightArrays(NamedTuple):
    """The weights as the kernels take them.

    Attributes
    ----------
    vertex_starts : ndarray of int64, shape (n_vertices + 1,)
        First block of each vertex.
    column_starts : ndarray of int64, shape (n_blocks + 1,)
        First column of each block, counted through all blocks.
    edges : ndarray of int64
        The edge that each column stands for.
    bias : ndarray of float32
        One per column.
    entry_starts : ndarray of int64
        First entry of each feature of a block.
    columns : ndarray of uint16
        Column of each entry within its block.
    values : ndarray of float32
    slots, homes, table
        The directory. ``slots`` is a hash table of features; a slot has the feature, where its list
        in ``homes`` starts and stops, and its span in block 0 (``kernels.blocks`` says what a span
        is). The list has pairs of a block and the span there. A feature that is in many blocks has
        a line of the table instead, with its span in each block, and its list stops at -1.
    table_tops : ndarray of uint32
        Beside the table: the largest weight that a feature has in each block, or 1 if that is
        less, in multiples of ``top_unit``, in the lower 16 bits; above them, how far that is above
        the feature's mean weight, in multiples of ``gap_unit``; 0 where it has none. In ``homes``
        it is part of the number of the block, above its lower 32 bits. For ``kernels.bounds``.
    top_biases, bias_gaps : ndarray of float32, shape (n_blocks,)
        The largest bias of each block, and how far it is above the mean.
    top_unit, gap_unit, largest : float
        ``largest`` is a number that no weight or bias is above, in size.
    """

    vertex_starts: IntArray
    column_starts: IntArray
    edges: IntArray
    bias: Float32Array
    entry_starts: IntArray
    columns: npt.NDArray[np.uint16]
    values: Float32Array
    slots: IntArray
    homes: IntArray
    table: IntArray
    table_tops: npt.NDArray[np.uint32]
    top_biases: Float32Array
    bias_gaps: Float32Array
    top_unit: float
    gap_unit: float
    largest: float


@dataclass(frozen=True)
class EdgeWeights:
    """The weights of all edges, block by block; the arrays are those of :class:`WeightArrays`.

    Attributes
    ----------
    n_features : int
        Features of a row; most may have no weights.
    scales : ndarray of float32, shape (n_blocks,), or None
        If weights were rounded to 8 bits: the largest of each block.
    nonlinear : list of (column, features, estimator)
        Estimators that are not linear, asked one by one.
    twins : (edges, edges)
        Edges not stored because their margins are those of the others, in order.
    """

    n_features: int
    vertex_starts: IntArray
    column_starts: IntArray
    edges: IntArray
    bias: Float32Array
    feature_starts: IntArray
    features: npt.NDArray[np.integer[Any]]
    entry_starts: IntArray
    columns: npt.NDArray[np.uint16]
    values: Float32Array
    scales: Float32Array | None = None
    nonlinear: list[tuple[int, IntArray, Any]] = field(default_factory=list)
    twins: tuple[IntArray, IntArray] = field(
        default_factory=lambda: (np.empty(0, np.int64), np.empty(0, np.int64))
    )

    def to_parts(self) -> dict[str, Any]:
        """Parts of a model file; see ``weight_coding``."""
        from .weight_coding import pack_weights

        return pack_weights(self)

    @classmethod
    def from_parts(cls, n_features: int, n_edges: int, **arrays: Any) -> EdgeWeights:
        """Weights of the parts of a model file, every bound checked."""
        from .weight_coding import unpack_weights

        return unpack_weights(arrays, n_edges, n_features)

    @property
    def n_edges(self) -> int:
        """Number of edges, those with a twin included."""
        return len(self.bias) + len(self.twins[0])

    @property
    def n_nonzero(self) -> int:
        """Number of weights that are not zero."""
        return int(np.count_nonzero(self.values))

    @property
    def n_seen(self) -> int:
        """Number of features that have weights."""
        from ..kernels.blocks import SLOT_WORDS

        return int(np.count_nonzero(self.arrays.slots[::SLOT_WORDS] >= 0))

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, the directory included."""
        arrays = (*self.arrays[:-3], self.feature_starts, self.features)
        return sum(array.nbytes for array in arrays)

    @cached_property
    def arrays(self) -> WeightArrays:
        """The weights and their directory, as the kernels take them."""
        from ..kernels import storage
        from .feature_slots import feature_slots

        slots, seen, ranks = feature_slots(self.features, self.n_features)
        n_blocks = len(self.column_starts) - 1
        counts = np.bincount(ranks[self.feature_starts[min(1, n_blocks)] :], minlength=len(seen))
        n_filled = int(np.count_nonzero(np.diff(self.feature_starts)))
        # Not n_filled alone: few blocks with weights among very many would make a vast table.
        in_table = counts > IN_TABLE_ABOVE * max(n_filled, n_blocks // 4)
        listed = np.where(in_table, 0, counts)
        first = np.where(in_table, n_blocks * (np.cumsum(in_table) - 1), np.cumsum(listed) - listed)
        homes = np.empty(2 * listed.sum(), np.int64)
        table = np.zeros(n_blocks * np.count_nonzero(in_table), np.int64)
        table_tops = np.zeros(len(table), np.uint32)
        largest = max(_largest(self.values), _largest(self.bias), _TINY)
        top_unit, gap_unit = largest / storage.MOST, 2 * largest / storage.MOST_GAP
        storage.fill_directory(
            ranks,
            seen,
            in_table,
            first,
            self.feature_starts,
            self.entry_starts,
            self.column_starts,
            self.values,
            top_unit,
            gap_unit,
            slots.ravel(),
            homes,
            table,
            table_tops,
        )
        top_biases = np.maximum.reduceat(self.bias, self.column_starts[:-1])
        means = np.add.reduceat(self.bias.astype(np.float64), self.column_starts[:-1])
        means /= np.diff(self.column_starts)
        bias_gaps = np.nextafter((top_biases - means).astype(np.float32), np.float32(np.inf))
        return WeightArrays(
            self.vertex_starts,
            self.column_starts,
            self.edges,
            self.bias,
            self.entry_starts,
            self.columns,
            self.values,
            slots.ravel(),
            homes,
            table,
            table_tops,
            top_biases,
            bias_gaps,
            top_unit,
            gap_unit,
            largest,
        )

    def margins(self, X: Any) -> Float32Array:
        """Margins of CSR rows with float32 data: ``X W + bias``, (n, n_edges)."""
        from ..kernels import blocks

        out = np.empty((X.shape[0], self.n_edges), np.float32)
        blocks.all_margins(X.indptr, X.indices, X.data, self.arrays, out)
        for column, features, estimator in self.nonlinear:
            out[:, self.edges[column]] = estimator.decision_function(X[:, features])
        if len(self.twins[0]):
            out[:, self.twins[0]] = out[:, self.twins[1]]
        return out

    def vertex_margins(self, X: Any, vertices: IntArray, out: Float32Array) -> None:
        """Margins of the edges that leave one vertex per row, into the first columns of ``out``."""
        from ..kernels import blocks

        blocks.vertex_margins(X.indptr, X.indices, X.data, self.arrays, vertices, out)
        column_of = {int(column): (features, each) for column, features, each in self.nonlinear}
        for vertex in np.unique(vertices) if column_of else ():
            rows = np.flatnonzero(vertices == vertex)
            start, stop = self.column_starts[self.vertex_starts[vertex : vertex + 2]]
            for column in range(start, stop):
                if column in column_of:
                    features, estimator = column_of[column]
                    out[rows, column - start] = estimator.decision_function(X[rows][:, features])

    def above(self, threshold: float) -> EdgeWeights:
        """The same, without the weights of at most this size."""
        from ..kernels import storage

        if threshold == 0:
            return self
        feature_starts = np.empty_like(self.feature_starts)
        kept = np.empty(len(self.features), np.int64)
        entry_starts = np.empty(len(self.features) + 1, np.int64)
        columns, values = np.empty_like(self.columns), np.empty_like(self.values)
        n_features, n_entries = storage.prune_entries(
            self.feature_starts,
            self.column_starts,
            self.entry_starts,
            self.columns,
            self.values,
            np.float32(threshold),
            np.float32(FULL_ABOVE),
            feature_starts,
            kept,
            entry_starts,
            columns,
            values,
        )
        return replace(
            self,
            feature_starts=feature_starts,
            features=self.features[kept[:n_features]],
            entry_starts=entry_starts[: n_features + 1].copy(),
            columns=columns[:n_entries].copy(),
            values=values[:n_entries].copy(),
        )

    def rounded(self) -> EdgeWeights:
        """The same, with weights rounded to 8 bits: one byte each in a file.

        The codes -127 to 127 stand for ``sign(q) (q / 127)^2`` of the block's largest weight: steps
        are fine where most weights are, near zero.
        """
        if self.scales is not None:
            return self
        entries = self.entry_starts[self.feature_starts]
        sizes = np.diff(entries)
        largest = np.zeros(len(sizes), np.float32)
        some = np.flatnonzero(sizes)
        if len(some):
            starts = entries[some]
            highest = np.maximum.reduceat(self.values, starts)
            largest[some] = np.maximum(highest, -np.minimum.reduceat(self.values, starts))
        values = np.empty_like(self.values)
        for start in range(0, len(values), _SOME):
            part = slice(start, start + _SOME)
            numbers = np.arange(start, min(start + _SOME, len(values)))
            scales = largest[np.searchsorted(entries, numbers, side="right") - 1]
            values[part] = decode(encode(self.values[part], scales), scales)
        return replace(self, values=values, scales=largest)

    def dense_columns(self, edges: IntArray) -> tuple[Float32Array, Float32Array]:
        """Weights of some edges over all features, (n_features, len(edges)), and their biases."""
        stored = self._stored(edges)
        weights = np.zeros((self.n_features, len(edges)), np.float32)
        column_of_edge = np.full(self.n_edges, -1)
        column_of_edge[self.edges] = np.arange(len(self.edges))
        wanted = column_of_edge[stored]
        for block in np.unique(np.searchsorted(self.column_starts, wanted, side="right") - 1):
            start, stop = self.column_starts[block : block + 2]
            here = np.flatnonzero((wanted >= start) & (wanted < stop))
            low, high = self.feature_starts[block : block + 2]
            entries = slice(self.entry_starts[low], self.entry_starts[high])
            table = np.zeros((high - low, stop - start), np.float32)
            rows = np.repeat(np.arange(high - low), np.diff(self.entry_starts[low : high + 1]))
            table[rows, self.columns[entries]] = self.values[entries]
            weights[np.ix_(self.features[low:high], here)] = table[:, wanted[here] - start]
        return weights, self.bias[wanted]

    def edge_weights(self, edge: int) -> tuple[IntArray, Float32Array, float]:
        """Features that have a weight at one edge, ascending; the weights; and the bias."""
        (column,) = np.flatnonzero(self.edges == self._stored(np.array([edge]))[0])
        block = np.searchsorted(self.column_starts, column, side="right") - 1
        low, high = self.feature_starts[block : block + 2]
        entries = slice(self.entry_starts[low], self.entry_starts[high])
        features = np.repeat(
            self.features[low:high].astype(np.int64), np.diff(self.entry_starts[low : high + 1])
        )
        here = self.columns[entries] == column - self.column_starts[block]
        here &= self.values[entries] != 0
        return features[here], self.values[entries][here], float(self.bias[column])

    def _stored(self, edges: IntArray) -> IntArray:
        """Edges whose weights are stored for these: their twins, for those that have one."""
        stored = np.array(edges)
        twin = np.isin(stored, self.twins[0])
        stored[twin] = self.twins[1][np.searchsorted(self.twins[0], stored[twin])]
        return stored


_LEVELS = np.sign(np.arange(-127, 128)) * (np.arange(-127, 128) / 127) ** 2
_LEVELS = _LEVELS.astype(np.float32)


def encode(values: Float32Array, scales: Float32Array) -> npt.NDArray[np.int8]:
    """Codes from -127 to 127 of weights, given the largest weight of each one's block."""
    share = np.divide(values, scales, out=np.zeros_like(values), where=scales > 0)
    return np.asarray(np.rint(np.sign(share) * np.sqrt(np.abs(share)) * 127), np.int8)


def decode(codes: npt.NDArray[np.int8], scales: Float32Array) -> Float32Array:
    """Weights that the codes stand for."""
    return np.asarray(_LEVELS[codes.astype(np.int64) + 127] * scales, np.float32)


def gather_blocks(
    blocks: Iterable[FinishedBlock],
    groups: Sequence[IntArray],
    n_features: int,
    constants: Float32Array,
    twins: tuple[IntArray, IntArray] | None = None,
) -> EdgeWeights:
    """All blocks one after the other, in the order of their edges.

    ``groups`` lists the edges that leave each vertex, in order; edges that are in no block have the
    same margin for every row, that of ``constants``. A vertex that was trained in parts becomes one
    block, if there is more than one group.
    """
    by_first_edge = {int(block.edges[0]): block for block in blocks}
    ordered: list[FinishedBlock] = []
    vertex_starts = [0]
    for edges in groups:
        at, first = 0, len(ordered)
        while at < len(edges):
            block = by_first_edge.get(int(edges[at]))
            if block is None:
                stop = at + 1
                while stop < len(edges) and int(edges[stop]) not in by_first_edge:
                    stop += 1
                block = constant_block(edges[at:stop], constants[edges[at:stop]])
            ordered.append(block)
            at += len(block.edges)
        parts = ordered[first:]
        is_linear = not any(part.estimators for part in parts)
        if len(groups) > 1 and len(parts) > 1 and is_linear and len(edges) <= MAX_COLUMNS:
            ordered[first:] = [joined(parts)]
        vertex_starts.append(len(ordered))
    column_starts = _starts([len(block.edges) for block in ordered])
    linear = [block.features if not block.estimators else block.features[:0] for block in ordered]
    index_type = np.int32 if n_features < 2**31 else np.int64
    return EdgeWeights(
        n_features,
        np.array(vertex_starts, np.int64),
        column_starts,
        np.concatenate([block.edges for block in ordered]).astype(np.int64),
        np.concatenate([block.bias for block in ordered]),
        _starts([len(features) for features in linear]),
        np.concatenate(linear).astype(index_type),
        _starts(np.concatenate([block.counts for block in ordered])),
        np.concatenate([block.columns for block in ordered]),
        np.concatenate([block.values for block in ordered]),
        None,
        [
            (int(start) + j, block.features, estimator)
            for block, start in zip(ordered, column_starts, strict=False)
            for j, estimator in enumerate(block.estimators)
            if not isinstance(estimator, float)
        ],
        *(() if twins is None else (twins,)),
    )


def _largest(values: Float32Array) -> float:
    """The largest size of a weight, without a copy of all."""
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


def _starts(sizes: Any) -> IntArray:
    """Where each of several runs starts, and the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
