"""Similarity of classes: their reduced vectors, and an order with like classes side by side.

A class is the direction of the sum of its rows, reduced by a truncated SVD (:func:`class_vectors`).
:func:`class_order` divides the classes into clusters as large as the runs of paths that share a
vertex, by k-means, and orders those inside a cluster by the leaves of average linkage.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._arrays import (
    Float32Array,
    IntArray,
    are_sparse,
    class_sums,
    occurring_columns,
)
from .._threads import in_threads

Order = Literal["plain", "by_rarity"]

MAX_LINKAGE = 4_000  # classes: the largest table of distances ever made holds 64 MB
_MAX_TABLE = 2**25  # classes times clusters: the largest table of k-means holds 128 MB
_DIMENSIONS = 100  # of the reduced class vectors
_POWER_ITERATIONS = 4  # of the singular value decomposition
_PARTS = 4  # of a product that threads share
_ENOUGH_FOR_THREADS = 500  # classes: with fewer, threads would wait for Python's lock
_STARTS = 3  # of k-means, and one from linkage
_ROUNDS = 20  # of k-means, at most;
_FEW_ROUNDS = 8  # where one takes minutes,
_FEW = 16  # and only so many clusters of a class are looked at
_SOME_ROWS = 1_000  # whose cosines with all groups are computed at once


# ---------------------------------------------------------------------- vectors


def class_vectors(
    X: Any,
    y: npt.ArrayLike,
    n_classes: int,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
    order: Order = "plain",
) -> Float32Array:
    """Reduced class vectors of unit length; a class without rows, or with only zeros, is zero.

    ``"plain"`` takes the features as they are. ``"by_rarity"`` multiplies a feature by
    ``log(1 + K / classes that have it)``: classes are alike that share rare features.
    """
    from scipy import sparse
    from sklearn.preprocessing import normalize
    from sklearn.utils.validation import check_array, check_consistent_length

    X = check_array(X, accept_sparse="csr", dtype=[np.float32, np.float64])
    labels = np.asarray(y)
    check_consistent_length(X, labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"y must hold one integer a row, got {labels.dtype} of shape {labels.shape}"
        )
    for extreme in (labels.min(), labels.max()):
        if not 0 <= extreme < n_classes:
            raise ValueError(f"y must hold integers from 0 to {n_classes - 1}, got {extreme}")
    if sparse.issparse(X) and are_sparse(X.shape[1], X.nnz):
        columns, _, renumbered = occurring_columns(X.indices, X.shape[1])
        X = sparse.csr_matrix((X.data, renumbered, X.indptr), (X.shape[0], len(columns)))
    with np.errstate(over="ignore"):  # reported below, with what to do
        sums = class_sums(X, labels, n_classes)
    if sums.nnz == 0:
        return np.zeros((n_classes, 1), np.float32)
    if not np.isfinite(sums.data).all():
        raise ValueError(
            "X has values so large that the rows of a class add up to more than float32 holds; "
            "scale the features, for example each row to length 1"
        )
    columns, classes_with, renumbered = occurring_columns(sums.indices, sums.shape[1])
    shape = n_classes, len(columns)
    sums = sparse.csr_matrix((sums.data, renumbered.astype(np.int32), sums.indptr), shape)
    sums.sort_indices()
    if order == "by_rarity":
        sums.data *= np.log1p(n_classes / classes_with).astype(np.float32)[sums.indices]
    sums = normalize(sums, copy=False)
    reduced = _reduce(sums, rng, n_jobs) if sums.shape[1] > _DIMENSIONS else sums.toarray()
    return np.asarray(normalize(reduced), dtype=np.float32)


def _reduce(rows: Any, rng: np.random.RandomState, n_jobs: int | None = None) -> Float32Array:
    """Left singular vectors times singular values, by subspace iteration on ``rows @ rows.T``.

    A feature of one class only makes no two classes alike: it adds to the diagonal of that product,
    and the rest is left to the others. (Of words, three in four are such.)
    """
    n_rows = rows.shape[0]
    single = np.bincount(rows.indices, minlength=rows.shape[1]) < 2
    own = rows[:, single]
    diagonal = np.asarray(own.multiply(own).sum(axis=1), np.float32)
    common = rows[:, ~single]
    transposed = common.T.tocsr()

    # Some columns at a time, as what comes between has a row for every feature.
    n_columns = max(8, _MAX_TABLE // max(transposed.shape[0], 1))

    def times_square(basis: Float32Array) -> Float32Array:
        parts = []
        for start in range(0, basis.shape[1], n_columns):
            part = np.ascontiguousarray(basis[:, start : start + n_columns])
            inner = _product(transposed, part, n_jobs)
            parts.append(_product(common, inner, n_jobs) + diagonal * part)
        return np.concatenate(parts, axis=1)

    width = min(_DIMENSIONS + 10, n_rows)
    numbers = np.random.default_rng(rng.randint(2**31))  # which is four times as fast
    basis = numbers.standard_normal((n_rows, width), np.float32)
    for _ in range(_POWER_ITERATIONS - 1):
        basis = _spread(times_square(basis))
    basis, _ = np.linalg.qr(times_square(basis))
    squares, directions = np.linalg.eigh(basis.T @ times_square(basis))
    scaled = directions * np.sqrt(np.maximum(squares, 0))
    return np.asarray(basis @ scaled[:, -_DIMENSIONS:])


def _product(matrix: Any, dense: Float32Array, n_jobs: int | None) -> Float32Array:
    """Product of a CSR matrix with a dense one, its rows divided among threads (SciPy uses one)."""
    from ..kernels import cluster as kernels

    n_rows, n_columns = matrix.shape[0], dense.shape[1]
    zeros, out = np.zeros(n_columns, np.float32), np.empty((n_rows, n_columns), np.float32)
    arrays = matrix.indptr.astype(np.int64), matrix.indices, matrix.data
    # Equal parts of the multiplications; a row's bits do not depend on which part it is in.
    cuts = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, _PARTS + 1)[1:-1])
    parts = pairwise([0, *cuts.tolist(), n_rows])
    in_threads(lambda part: kernels.product(*arrays, *part, dense, zeros, out), parts, n_jobs)
    return out


def _spread(basis: Float32Array) -> Float32Array:
    """Another basis of the same space, orthonormal as far as float32 allows.

    A tenth of the time of a QR decomposition, and between two power iterations as good.
    """
    squares, directions = np.linalg.eigh(basis.T @ basis)
    lengths = np.sqrt(np.maximum(squares, max(1e-6 * squares[-1], 1e-30)))
    return np.asarray(basis @ (directions / lengths))


# ---------------------------------------------------------------------- order


def shares_near(
    sums: Any, groups: IntArray, X_aside: Any, classes_aside: IntArray
) -> tuple[float, float]:
    """Share of the rows aside that are nearest to their own group, and of those found by nearness.

    ``sums`` are those of the rows of each class, CSR, and ``groups`` says which one a class is in.
    Near is what has a large cosine with the sum of its rows. A row is found if it is nearest to its
    group, and to its class among those of the group: a rough idea, and a quick one, of how well an
    order of the classes can be learned. Groups alone would say too little: they may be easy to tell
    apart just because all classes that are hard to tell apart are in one of them.

    >>> from scipy import sparse
    >>> sums = sparse.csr_matrix(np.float32([[1, 0, 0], [0, 2, 0], [0, 1, 2]]))
    >>> X_aside = sparse.csr_matrix(np.float32([[3, 0, 0], [0, 1, 0], [1, 1, 1], [2, 0, 1]]))
    >>> shares_near(sums, np.array([0, 1, 1]), X_aside, np.array([0, 1, 1, 2]))
    (0.75, 0.5)
    """
    from scipy import sparse
    from sklearn.preprocessing import normalize

    n_classes, n_groups = len(groups), int(groups.max()) + 1
    each = np.ones(n_classes, np.float32)
    belongs = sparse.csr_matrix((each, (groups, np.arange(n_classes))), (n_groups, n_classes))
    of_groups, of_classes = normalize(belongs @ sums).T.tocsr(), normalize(sums)
    nearest = np.empty(len(classes_aside), np.int64)
    for start in range(0, len(classes_aside), _SOME_ROWS):
        some = slice(start, start + _SOME_ROWS)
        nearest[some] = (X_aside[some] @ of_groups).toarray().argmax(axis=1)
    rows = np.flatnonzero(nearest == groups[classes_aside])
    rows = rows[np.argsort(nearest[rows], kind="stable")]
    by_group = np.argsort(groups, kind="stable")
    firsts = np.searchsorted(groups[by_group], np.arange(n_groups + 1))
    n_found = 0
    for own in np.split(rows, np.flatnonzero(np.diff(nearest[rows])) + 1) if len(rows) else []:
        group = nearest[own[0]]
        members = by_group[firsts[group] : firsts[group + 1]]
        cosines = (X_aside[own] @ of_classes[members].T).toarray()
        n_found += int(np.count_nonzero(members[cosines.argmax(axis=1)] == classes_aside[own]))
    n_rows = max(len(classes_aside), 1)
    return len(rows) / n_rows, n_found / n_rows


def class_order(
    members: IntArray,
    vectors: Float32Array,
    shared: IntArray,
    depth: int,
    rng: np.random.RandomState,
    n_jobs: int | None,
) -> IntArray:
    """Classes in the order of the paths they shall have.

    ``shared`` holds what these paths can share, the most significant first. Classes are divided by
    its first ``depth`` columns, by more of them while the parts are too large for linkage.
    """
    if len(members) < 3 or (depth <= 0 and len(members) <= MAX_LINKAGE):
        return members[_linkage_order(vectors[members])]
    cuts = np.flatnonzero(np.diff(shared[:, 0], prepend=-2, append=-2))
    order = members
    if len(members) * len(cuts) > _MAX_TABLE:
        order = _part(members, vectors, cuts, rng)
        order, _ = _refine(order, vectors[order], np.diff(cuts), _FEW_ROUNDS)
    elif len(cuts) > 2:
        order = _best_parts(members, vectors, cuts, rng, n_jobs)
    return np.concatenate(
        [
            class_order(order[start:stop], vectors, shared[start:stop, 1:], depth - 1, rng, n_jobs)
            for start, stop in pairwise(cuts)
        ]
    )


def _best_parts(
    members: IntArray,
    vectors: Float32Array,
    cuts: IntArray,
    rng: np.random.RandomState,
    n_jobs: int | None,
) -> IntArray:
    """The members in the order, of several tried, whose clusters between the cuts fit best."""

    def attempt(seed: int | None) -> tuple[IntArray, float]:
        if seed is None:
            start = members[_linkage_order(vectors[members])]
        else:
            start = _part(members, vectors, cuts, np.random.RandomState(seed))
        return _refine(start, vectors[start], np.diff(cuts))

    # Half of the starts end in a bad optimum if one cluster is larger than all others.
    uneven = 2 * int(np.diff(cuts).max()) > len(members)
    seeds: list[int | None] = rng.randint(2**31, size=_STARTS * (1 + 2 * uneven)).tolist()
    if len(members) <= MAX_LINKAGE // 2:  # of more, it takes longer than all others together
        seeds.insert(0, None)
    if len(members) < _ENOUGH_FOR_THREADS:
        n_jobs = 1
    return max(in_threads(attempt, seeds, n_jobs), key=lambda found: found[1])[0]


def _linkage_order(vectors: Float32Array) -> IntArray:
    """Leaves of average linkage over cosines, in dendrogram order."""
    from ..kernels import cluster as kernels

    order = np.arange(len(vectors))
    if len(vectors) > 2:
        distances = vectors @ vectors.T
        np.subtract(1, distances, out=distances)
        kernels.linkage_order(distances, order)
    return order


def _part(
    members: IntArray, vectors: Float32Array, cuts: IntArray, rng: np.random.RandomState
) -> IntArray:
    """The members in an order that is cut at ``cuts`` into clusters.

    Cut in two at the middle cut by 2-means, and each half again.
    """
    if len(cuts) <= 2:
        return members
    middle = 1 + int(np.abs(cuts[1:-1] - cuts[0] - len(members) / 2).argmin())
    first = _half(vectors[members], int(cuts[middle] - cuts[0]), rng)
    return np.concatenate(
        [
            _part(members[first], vectors, cuts[: middle + 1], rng),
            _part(members[~first], vectors, cuts[middle:], rng),
        ]
    )


def _half(vectors: Float32Array, size: int, rng: np.random.RandomState) -> npt.NDArray[np.bool_]:
    """Mask of one of two clusters, of ``size`` members, by spherical 2-means."""
    from ..kernels import cluster as kernels

    centres = vectors[rng.choice(len(vectors), 2, replace=False)]
    first = np.empty(len(vectors), dtype=bool)
    kernels.two_means(vectors, size, centres, _ROUNDS, first)
    return first


def _refine(
    members: IntArray, vectors: Float32Array, sizes: IntArray, n_rounds: int = _ROUNDS
) -> tuple[IntArray, float]:
    """Members in a better order for clusters of these sizes, by spherical k-means; and its fit."""
    from ..kernels import cluster as kernels

    cluster = best = np.repeat(np.arange(len(sizes)), sizes)
    sums = np.empty((len(sizes), vectors.shape[1]), np.float32)
    highest = 0.0
    for _ in range(n_rounds):
        kernels.cluster_sums(vectors, cluster, sums)
        fit = float(np.linalg.norm(sums, axis=1).sum())  # of members to their centres
        if fit <= highest:
            break
        highest, best = fit, cluster
        centres = _unit(sums)
        if len(vectors) * len(sizes) > _MAX_TABLE:
            cluster = _fill_by_few(vectors, centres, sizes)
        else:
            cluster = _fill(vectors @ centres.T, sizes)
    return members[np.argsort(best, kind="stable")], highest


def _fill(likeness: Float32Array, sizes: IntArray) -> IntArray:
    """Cluster of each row: the one it is most like, as long as that is not full.

    Rows that would lose most by their second choice go first.
    """
    from ..kernels import cluster as kernels

    clusters = np.empty(len(likeness), dtype=np.int64)
    waiting, capacity = np.arange(len(likeness)), sizes.copy()
    preferred, gap = np.empty(len(waiting), np.int64), np.empty(len(waiting), np.float32)
    while waiting.size:
        kernels.two_best(likeness, waiting, capacity, preferred, gap)
        turn = np.argsort(-gap[: len(waiting)], kind="stable")
        later = np.empty_like(waiting)
        waiting = later[: kernels.assign(waiting, turn, preferred, capacity, clusters, later)]
    return clusters


def _fill_by_few(vectors: Float32Array, centres: Float32Array, sizes: IntArray) -> IntArray:
    """The same, where a table of all likenesses is too large: by the few highest of each vector.

    Vectors whose few clusters are full get what is left, as many at a time as a table can hold.
    """
    from ..kernels import cluster as kernels

    n = len(vectors)
    likeness, few = np.empty((n, _FEW), np.float32), np.empty((n, _FEW), np.int32)
    at_once = max(1, _MAX_TABLE // len(centres) // 4)
    for start in range(0, n, at_once):
        part = slice(start, start + at_once)
        kernels.highest(vectors[part] @ centres.T, likeness[part], few[part])
    clusters, capacity, waiting = np.full(n, -1), sizes.copy(), np.arange(n)
    while waiting.size:
        preferred, gap = np.empty(len(waiting), np.int64), np.empty(len(waiting), np.float32)
        kernels.two_best_of_few(likeness, few, waiting, capacity, preferred, gap)
        waiting, gap = waiting[preferred >= 0], gap[preferred >= 0]
        preferred, later = preferred[preferred >= 0], np.empty_like(waiting)
        turn = np.argsort(-gap, kind="stable")
        waiting = later[: kernels.assign(waiting, turn, preferred, capacity, clusters, later)]
    left = np.flatnonzero(clusters < 0)
    for start in range(0, len(left), at_once):
        some = left[start : start + at_once]
        clusters[some] = _fill(vectors[some] @ centres.T, capacity)
        capacity -= np.bincount(clusters[some], minlength=len(capacity))
    return clusters


def _unit(vectors: Float32Array) -> Float32Array:
    """Vectors scaled to length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
