"""Training rows: merged, shuffled, held out, and laid out as training wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray, canonical_csr
from ..graph.trellis import Trellis

_CHUNK = 8  # rows that are visited together; see visiting_order
_CACHED = 4096  # rows of a block that stay in the processor's caches


def merge_rows(
    X: Any, codes: IntArray, weights: Float32Array
) -> tuple[Any, IntArray, Float32Array]:
    """Equal rows of the same class as one row that counts for all of them.

    The rows come out in an order of their own, whatever order they came in.
    """
    from ..kernels import margins as kernels

    bits = X.data.view(np.uint32)
    hashes = np.empty(X.shape[0], np.uint64)
    kernels.hash_rows(X.indptr, X.indices, bits, codes, hashes)
    order = np.argsort(hashes, kind="stable")
    first = np.empty(len(order), bool)
    kernels.mark_first_rows(X.indptr, X.indices, bits, codes, hashes, order, first)
    starts = np.flatnonzero(first)
    kept = order[starts]
    return canonical_csr(X[kept]), codes[kept], np.add.reduceat(weights[order], starts)


def hold_out_rows(
    codes: IntArray, fraction: float, rng: np.random.RandomState
) -> npt.NDArray[np.bool_]:
    """Random share of the rows, leaving every class at least one row to train on.

    One row of each class stays; the others are chosen a little more often, so that of every class
    with two rows or more the same share is held out.
    """
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    chance = fraction * counts / np.maximum(counts - 1, 1)
    chosen = rng.random_sample(len(codes)) < chance[inverse]
    order = rng.permutation(len(codes))
    _, firsts = np.unique(codes[order], return_index=True)
    chosen[order[firsts]] = False
    return chosen


@dataclass(frozen=True)
class TrainingRows:
    """Training rows as the blocks want them: shuffled, and over the features they contain.

    Attributes
    ----------
    X : csr_matrix of float32
        Rows in a random order; features renumbered, the most frequent first, so that the weights
        used most lie together.
    features : ndarray of int64
        What the features were called before.
    path_edges : ndarray of int32, shape (n, n_slices + 1)
        Edges of each row's path, filled up with -1.
    path_vertices : ndarray of int32, shape (n, n_slices)
    weights : ndarray of float32, shape (n,)
        How much each row counts.
    held_out : ndarray of bool, shape (n,)
        Rows whose margins are wanted from weights trained without them, to fit a temperature.
    """

    X: Any
    features: IntArray
    path_edges: npt.NDArray[np.int32]
    path_vertices: npt.NDArray[np.int32]
    weights: Float32Array
    held_out: npt.NDArray[np.bool_]

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""
        return int(
            self.X.data.nbytes
            + self.X.indices.nbytes
            + self.X.indptr.nbytes
            + self.path_edges.nbytes
            + self.path_vertices.nbytes
        )


def prepare_rows(
    trellis: Trellis,
    X: Any,
    paths: IntArray,
    weights: Float32Array,
    held_out: npt.NDArray[np.bool_],
    rng: np.random.RandomState,
) -> TrainingRows:
    """Shuffle the rows, drop features that no row has, and number the others by frequency."""
    from scipy import sparse

    shuffled = rng.permutation(X.shape[0])
    X = X[shuffled]
    paths = paths[shuffled]
    counts = np.bincount(X.indices, minlength=X.shape[1])
    features = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    place = np.zeros(X.shape[1], X.indices.dtype)
    place[features] = np.arange(len(features))
    renumbered = sparse.csr_matrix((len(paths), len(features)), dtype=np.float32)
    renumbered.data, renumbered.indices = X.data, place[X.indices]
    renumbered.indptr = X.indptr.astype(np.int64)
    return TrainingRows(
        renumbered,
        features,
        trellis.path_edges(paths).astype(np.int32),
        trellis.path_vertices(paths).astype(np.int32),
        np.ascontiguousarray(weights[shuffled]),
        held_out[shuffled],
    )


def visiting_order(rows: IntArray, rng: np.random.Generator) -> IntArray:
    """These rows in a new random order, in which a few neighbours stay together if they are many.

    The rows lie in a random order already; moving chunks of them keeps the processor's caches
    warm, where a fresh permutation of single rows would take twice the time. Chunks are small and
    begin elsewhere every time: coordinate descent with fixed chunks of 64 takes twice the passes.
    """
    if len(rows) <= _CACHED:
        return rng.permutation(rows)
    first = int(rng.integers(_CHUNK))
    n_chunks = -(-(len(rows) + first) // _CHUNK)
    starts = _CHUNK * rng.permutation(n_chunks) - first
    order = (starts[:, np.newaxis] + rng.permutation(_CHUNK)).ravel()
    return rows[order[(order >= 0) & (order < len(rows))]]


def online_rows(trellis: Trellis, X: Any, paths: IntArray, weights: Float32Array) -> TrainingRows:
    """Rows as they come, over all features: a batch of ``partial_fit``."""
    return TrainingRows(
        canonical_csr(X),
        np.arange(X.shape[1]),
        trellis.path_edges(paths).astype(np.int32),
        trellis.path_vertices(paths).astype(np.int32),
        np.ascontiguousarray(weights, np.float32),
        np.zeros(len(paths), bool),
    )
