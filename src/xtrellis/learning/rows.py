"""Training rows: merged, shuffled, held out, and laid out as training needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray, canonical_csr, occurring_columns
from ..graph.trellis import Trellis

_CHUNK = 8  # rows that are visited together; see visiting_order
_CACHED = 4096  # rows of a block that stay in the processor's caches
_MANY = 10  # rows of a class: one more or less makes no difference
_FEW_SINGLE = 0.01  # classes with one row for each with two: a random hundredth of the rows, set
# aside, leaves as many or more


def merge_rows(
    X: Any,
    y_encoded: IntArray,
    sample_weight: Float32Array,
    may_hold_out: npt.NDArray[np.bool_] | None = None,
) -> tuple[Any, IntArray, Float32Array, npt.NDArray[np.bool_] | None]:
    """Equal rows of the same class as one row that counts for all of them.

    The rows come out in an order of their own, whatever order they came in. A row may be held out
    if one of those that it counts for may.
    """
    from ..kernels import margins as kernels

    bits = X.data.view(np.uint32)
    hashes = np.empty(X.shape[0], np.uint64)
    kernels.hash_rows(X.indptr, X.indices, bits, y_encoded, hashes)
    order = np.argsort(hashes, kind="stable")
    first = np.empty(len(order), bool)
    kernels.mark_first_rows(X.indptr, X.indices, bits, y_encoded, hashes, order, first)
    starts = np.flatnonzero(first)
    kept = order[starts]
    weights = np.add.reduceat(sample_weight[order], starts)
    if may_hold_out is not None:
        may_hold_out = np.logical_or.reduceat(may_hold_out[order], starts)
    return canonical_csr(X[kept]), y_encoded[kept], weights, may_hold_out


def typical_length(squares: npt.NDArray[Any], sample_weight: Float32Array) -> float:
    """Root mean square of lengths above 0, given their squares, rounded to a power of 2.

    By that, numbers are divided without error. It is 1 for rows of length 1, and if there are none.

    >>> typical_length(np.array([9.0, 0.0, 16.0]), np.ones(3, np.float32))
    4.0
    """
    some = squares > 0
    if not some.any():
        return 1.0
    square = np.average(squares[some].astype(np.float64), weights=sample_weight[some])
    exponent = np.clip(np.round(np.log2(square) / 2), -60, 60)  # float32 holds its square
    return float(2.0**exponent)


def hold_out_rows(
    y_encoded: IntArray,
    fraction: float,
    rng: np.random.RandomState,
    may_hold_out: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.bool_]:
    """Random share of the rows, leaving every class at least one row to train on.

    One row of each class stays; the others are chosen a little more often, so that the same share
    of every class with two rows or more is held out. Rows that may not be held out are among those
    that stay.
    """
    _, inverse, counts = np.unique(y_encoded, return_inverse=True, return_counts=True)
    chance = fraction * counts / np.maximum(counts - 1, 1)
    chosen = rng.random_sample(len(y_encoded)) < chance[inverse]
    order = rng.permutation(len(y_encoded))
    if may_hold_out is not None:
        chosen &= may_hold_out
        order = order[np.argsort(may_hold_out[order], kind="stable")]
    _, firsts = np.unique(y_encoded[order], return_index=True)
    chosen[order[firsts]] = False
    return chosen


def held_out_weights(
    y_encoded: IntArray, held_out: npt.NDArray[np.bool_], numbers: IntArray
) -> Float32Array:
    """How many of the rows to come each of these held-out rows stands for: one on average.

    A held-out row is judged by a model that has seen one row less of its class than there are. That
    is as it should be if rows to come are drawn like those at hand: of each class some happened to
    be drawn, and of some classes one. But where a share of every class was set aside to be
    predicted, hardly any class is left with one row, and a row to come is of a class with as many
    rows as there are. Then rows are weighted, by the number of rows that their class had left, so
    that these numbers are as frequent as among all rows.

    >>> y_encoded = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2])
    >>> held_out = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0], bool)
    >>> held_out_weights(y_encoded, held_out, np.flatnonzero(held_out)).round(2)
    array([0.  , 0.67, 2.33], dtype=float32)
    """
    sizes, chosen = np.bincount(y_encoded), y_encoded[held_out]
    left = np.minimum(sizes - np.bincount(chosen, minlength=len(sizes)), _MANY)
    sizes = np.minimum(sizes, _MANY)
    n_classes = np.bincount(sizes, minlength=_MANY + 1)
    if n_classes[1] > _FEW_SINGLE * n_classes[2] or len(chosen) == 0:
        return np.ones(len(numbers), np.float32)
    wanted = np.bincount(sizes[y_encoded], minlength=_MANY + 1)
    found = np.bincount(left[chosen], minlength=_MANY + 1)
    # What no class was left with goes to the next number below that some were, or else above.
    for number in range(_MANY, 0, -1):
        if not found[number]:
            wanted[number - 1] += wanted[number]
            wanted[number] = 0
    wanted[np.flatnonzero(found)[0]] += wanted[0]
    wanted[0] = 0
    weights = wanted / wanted.sum() * found.sum() / np.maximum(found, 1)
    return weights.astype(np.float32)[left[y_encoded[numbers]]]


def shuffled_rows(X: Any, rng: np.random.RandomState) -> tuple[Any, IntArray, IntArray]:
    """Rows in a random order over the features they contain; these features, and the order.

    The most frequent features come first, so that the weights used most lie together.
    """
    from scipy import sparse

    order = rng.permutation(X.shape[0])
    X = X[order]
    columns, counts, renumbered = occurring_columns(X.indices, X.shape[1])
    by_frequency = np.argsort(-counts, kind="stable")
    place = np.empty(len(columns), np.int32)
    place[by_frequency] = np.arange(len(columns), dtype=np.int32)
    result = sparse.csr_matrix((X.shape[0], len(columns)), dtype=np.float32)
    result.data, result.indices = X.data, place[renumbered]
    result.indptr = X.indptr.astype(np.int64)
    return result, columns[by_frequency], order


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows as the blocks need them.

    Attributes
    ----------
    X : csr_matrix of float32
        The rows, over the features they contain.
    features : ndarray of int64
        Numbers of these features in the caller's rows.
    n_features : int
        Number of features of the caller's rows.
    paths : ndarray of int64, shape (n,)
        Path of each row's class.
    path_edges : ndarray of int32, shape (n, n_slices + 1)
        Edges of these paths, filled up with -1.
    path_vertices : ndarray of int32, shape (n, n_slices)
    n_edges : int
        Number of edges of the trellis.
    sample_weight : ndarray of float32, shape (n,)
        How much each row counts.
    held_out : ndarray of bool, shape (n,)
        Rows that the weights are first trained without.
    holds_out : bool
        Whether there are any: among all rows, if these are a part of them.
    """

    X: Any
    features: IntArray
    n_features: int
    paths: IntArray
    path_edges: npt.NDArray[np.int32]
    path_vertices: npt.NDArray[np.int32]
    n_edges: int
    sample_weight: Float32Array
    held_out: npt.NDArray[np.bool_]
    holds_out: bool

    def __sizeof__(self) -> int:
        """Bytes of all arrays: what a cluster plans its memory by."""
        arrays = [self.X.data, self.X.indices, self.X.indptr, *vars(self).values()]
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def prepare_rows(
    trellis: Trellis,
    X: Any,
    paths: IntArray,
    sample_weight: Float32Array,
    held_out: npt.NDArray[np.bool_],
    rng: np.random.RandomState,
) -> TrainingRows:
    """Rows in a random order, over the features that occur."""
    n_features = X.shape[1]
    X, features, order = shuffled_rows(X, rng)
    return _with_paths(
        trellis, X, features, n_features, paths[order], sample_weight[order], held_out[order]
    )


def online_rows(
    trellis: Trellis, X: Any, paths: IntArray, sample_weight: Float32Array
) -> TrainingRows:
    """Rows as they come, over all features: a batch of ``partial_fit``."""
    X, n_features = canonical_csr(X), X.shape[1]
    none = np.zeros(len(paths), bool)
    features = np.arange(n_features)
    return _with_paths(trellis, X, features, n_features, paths, sample_weight, none)


def _with_paths(
    trellis: Trellis,
    X: Any,
    features: IntArray,
    n_features: int,
    paths: IntArray,
    sample_weight: Float32Array,
    held_out: npt.NDArray[np.bool_],
) -> TrainingRows:
    """Training rows with the edges and vertices of their paths."""
    return TrainingRows(
        X=X,
        features=features,
        n_features=n_features,
        paths=paths,
        path_edges=trellis.path_edges(paths).astype(np.int32),
        path_vertices=trellis.path_vertices(paths).astype(np.int32),
        n_edges=trellis.n_edges,
        sample_weight=np.ascontiguousarray(sample_weight, np.float32),
        held_out=held_out,
        holds_out=bool(held_out.any()),
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
