"""Path assignment: which class is which path of the trellis.

Section 4.1 of the paper. Any one-to-one assignment decodes correctly; a good one puts classes that
are alike on paths that share edges, which makes the edges' binary problems easier to learn.

* :func:`random_assignment`, the paper's own choice.
* :func:`similarity_assignment`, ours: classes with like mean feature vectors share the early
  vertices of their paths.
* :class:`GreedyAssignment`, of LTLS: during online training a class seen for the first time
  takes the best path that is still free.
* :func:`given_assignment`, any permutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .decoding import AnyLoss, k_best_paths
from .threads import in_threads
from .trellis import IntArray, Trellis, checked_integer

Laying = Literal["depth_first", "exit_first"]

Float32Array = npt.NDArray[np.float32]

MAX_LINKAGE = 4_000  # classes: the largest table of distances ever made holds 64 MB
_MAX_TABLE = 2**25  # classes times clusters: the largest table of k-means holds 128 MB
_DIMENSIONS = 100  # of the reduced class vectors
_POWER_ITERATIONS = 4  # of the singular value decomposition
_PARTS = 4  # of a product that threads share
_ENOUGH_FOR_THREADS = 500  # classes: with fewer, threads would wait for Python's lock
_STARTS = 3  # of k-means, and one from linkage
_ROUNDS = 20  # of k-means, at most


@dataclass(frozen=True, eq=False)
class PathAssignment:
    """A one-to-one map between classes 0 .. K-1 and paths.

    Attributes
    ----------
    path_of_class : ndarray of int64, shape (K,)
    class_of_path : ndarray of int64, shape (K,)
        Its inverse.

    Examples
    --------
    >>> from xtrellis import Trellis, given_assignment
    >>> assignment = given_assignment(Trellis(3, 2), [2, 0, 1])
    >>> assignment.path_of_class, assignment.class_of_path
    (array([2, 0, 1]), array([1, 2, 0]))
    """

    path_of_class: IntArray
    class_of_path: IntArray


def given_assignment(trellis: Trellis, permutation: npt.ArrayLike) -> PathAssignment:
    """Assignment of class k to path ``permutation[k]``.

    Examples
    --------
    >>> from xtrellis import Trellis, given_assignment
    >>> given_assignment(Trellis(3, 2), [2, 0, 1]).path_of_class
    array([2, 0, 1])
    """
    paths = np.asarray(permutation)
    if paths.shape != (trellis.n_classes,):
        raise ValueError(
            f"permutation must hold one path for each of the {trellis.n_classes} classes, "
            f"got shape {paths.shape}"
        )
    if paths.dtype.kind not in "iu":
        raise ValueError(f"permutation must hold integers, got {paths.dtype}")
    outside = np.flatnonzero((paths < 0) | (paths >= trellis.n_classes))
    if outside.size:
        raise ValueError(
            f"permutation must hold paths from 0 to {trellis.n_classes - 1}, "
            f"got permutation[{outside[0]}] = {paths[outside[0]]}"
        )
    uses = np.bincount(paths, minlength=trellis.n_classes)
    if uses.max() > 1:
        twice = int(np.argmax(uses > 1))
        raise ValueError(
            f"permutation must hold each path once, got path {twice} for classes "
            f"{np.flatnonzero(paths == twice)[:2].tolist()}"
        )
    paths = paths.astype(np.int64)
    classes = np.empty_like(paths)
    classes[paths] = np.arange(len(paths))
    return PathAssignment(paths, classes)


def random_assignment(
    trellis: Trellis, random_state: int | np.random.RandomState | None = None
) -> PathAssignment:
    """Assignment drawn from all permutations alike, as in the paper.

    Examples
    --------
    >>> from xtrellis import Trellis, random_assignment
    >>> random_assignment(Trellis(5, 2), random_state=0).path_of_class
    array([2, 0, 1, 3, 4])
    """
    from sklearn.utils import check_random_state

    rng = check_random_state(random_state)
    return given_assignment(trellis, rng.permutation(trellis.n_classes))


# ---------------------------------------------------------------------- greedy


class GreedyAssignment:
    """Hands out paths one class at a time: the best one that is still free (LTLS).

    Parameters
    ----------
    trellis : Trellis
        The graph.
    n_candidates : int, default=20
        A new class takes the first free path among this many best ones; if none of them is
        free, the free path with the lowest number.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis import GreedyAssignment, Trellis
    >>> trellis = Trellis(9, 2)
    >>> greedy = GreedyAssignment(trellis)
    >>> margins = np.linspace(-1, 1, trellis.n_edges)
    >>> greedy.assign(4, margins), greedy.assign(2, margins), greedy.assign(4, -margins)
    (8, 7, 8)
    >>> greedy.finish().path_of_class       # classes never seen take what is left, in order
    array([0, 1, 7, 2, 8, 3, 4, 5, 6])
    """

    def __init__(self, trellis: Trellis, n_candidates: int = 20) -> None:
        if checked_integer("n_candidates", n_candidates) < 1:
            raise ValueError(f"n_candidates must be at least 1, got {n_candidates}")
        self.trellis = trellis
        self.n_candidates = min(n_candidates, trellis.n_classes)
        self.path_of_class = np.full(trellis.n_classes, -1, dtype=np.int64)
        self.class_of_path = np.full(trellis.n_classes, -1, dtype=np.int64)
        self._first_free = 0

    def assign(self, label: int, margins: npt.ArrayLike, loss: AnyLoss = "squared") -> int:
        """Path of class ``label``; a class seen for the first time is given one.

        Parameters
        ----------
        label : int
            The class, from 0 to K - 1.
        margins : array-like of shape (n_edges,)
            Margins of the row at hand, which say how good each path is.
        loss : default="squared"
            As for :func:`xtrellis.best_paths`.
        """
        if not 0 <= checked_integer("label", label) < self.trellis.n_classes:
            raise ValueError(f"label must be from 0 to {self.trellis.n_classes - 1}, got {label}")
        if self.path_of_class[label] < 0:
            row = np.asarray(margins)[np.newaxis]
            if row.ndim != 2:
                raise ValueError(
                    f"margins must be those of one row, shape ({self.trellis.n_edges},), "
                    f"got shape {row.shape[1:]}"
                )
            best = k_best_paths(self.trellis, row, self.n_candidates, loss)[0][0]
            free = best[self.class_of_path[best] < 0]
            self._take(label, int(free[0]) if free.size else self._lowest_free())
        return int(self.path_of_class[label])

    def finish(self) -> PathAssignment:
        """The whole assignment: classes never seen take the paths left over, in order."""
        paths = self.path_of_class.copy()
        paths[paths < 0] = np.flatnonzero(self.class_of_path < 0)
        return given_assignment(self.trellis, paths)

    def _lowest_free(self) -> int:
        while self.class_of_path[self._first_free] >= 0:
            self._first_free += 1
        return self._first_free

    def _take(self, label: int, path: int) -> None:
        self.path_of_class[label] = path
        self.class_of_path[path] = label


# ---------------------------------------------------------------------- similarity


def similarity_assignment(
    trellis: Trellis,
    X: Any,
    y: npt.ArrayLike,
    laying: Laying = "depth_first",
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> PathAssignment:
    """Assignment that puts classes with similar features on neighbouring paths.

    A class is the direction of the sum of its rows, words of few classes weighing more, reduced to
    100 dimensions by a truncated SVD. The paths fall into runs that share the first vertex, and
    these into runs that share the second, too; the classes are parted into clusters of just those
    sizes by k-means, and inside a cluster put in the leaf order of average linkage.
    (``"exit_first"`` does with linkage alone if K allows.) No table of distances between more than
    4,000 classes is made.

    Parameters
    ----------
    trellis : Trellis
        The graph.
    X : {array-like, sparse matrix} of shape (n, n_features)
        Training rows.
    y : array-like of int, shape (n,)
        Their classes, from 0 to K - 1. A class without rows gets one of the last paths.
    laying : {"depth_first", "exit_first"}, default="depth_first"
        What similar classes share first: the vertices from the first slice on (so neighbours in
        the order have neighbouring path numbers), which suits local training; or the vertex
        before the sink, then those from the first slice on, which suits independent training.
    random_state : int, RandomState or None
        Seed of the SVD and of k-means.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis import Trellis, similarity_assignment
    >>> X = np.array([[1, 0, 0], [0, 1, 0], [9, 1, 0], [0, 8, 1.0]])
    >>> assignment = similarity_assignment(Trellis(4, 2), X, [0, 1, 2, 3], random_state=0)
    >>> assignment.class_of_path            # 0 beside 2, 1 beside 3
    array([0, 2, 1, 3])
    """
    from sklearn.utils import check_random_state
    from threadpoolctl import threadpool_limits

    if laying not in ("depth_first", "exit_first"):
        raise ValueError(f"laying must be 'depth_first' or 'exit_first', got {laying!r}")
    rng = check_random_state(random_state)
    paths = np.arange(trellis.n_classes) if laying == "depth_first" else exit_first(trellis)
    shared = trellis.path_vertices(paths)
    if laying == "exit_first":
        shared = np.column_stack([_exits(trellis, paths), shared])
    with threadpool_limits(1, user_api="blas"):  # the same bits for any number of threads
        vectors = class_vectors(X, y, trellis.n_classes, rng, n_jobs)
        known = vectors.any(axis=1)
        members = np.flatnonzero(known)
        # Parting by the second slice, too, gains where there are more; nothing for independent.
        depth = min(2, trellis.n_slices - 1) if laying == "depth_first" else 0
        order = _order(members, vectors, shared[: len(members)], depth, rng, n_jobs)
    path_of_class = np.empty(trellis.n_classes, dtype=np.int64)
    path_of_class[np.concatenate([order, np.flatnonzero(~known)])] = paths
    return given_assignment(trellis, path_of_class)


def exit_first(trellis: Trellis) -> IntArray:
    """All path numbers, ordered by exit vertex first, then by the slices from the first one.

    >>> exit_first(Trellis(9, 2))       # the paths by way of the last slice, then the short one
    array([1, 2, 3, 4, 5, 6, 7, 8, 0])
    """
    # Exits have the highest edge numbers, the last slice's first; paths are in slice order.
    return np.argsort(_exits(trellis, np.arange(trellis.n_classes)), kind="stable")


def _exits(trellis: Trellis, paths: IntArray) -> IntArray:
    """Last edge of each path."""
    edges = trellis.path_edges(paths)
    last = (edges >= 0).sum(axis=1, keepdims=True) - 1
    return np.asarray(np.take_along_axis(edges, last, axis=1)[:, 0])


def class_vectors(
    X: Any,
    y: npt.ArrayLike,
    n_classes: int,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
) -> Float32Array:
    """Reduced class vectors of unit length; a class without rows, or with only zeros, is zero."""
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
    rows = np.arange(len(labels))
    ones = np.ones(len(labels), dtype=X.dtype)
    belongs = sparse.csr_matrix((ones, (labels, rows)), (n_classes, len(labels)))
    with np.errstate(over="ignore"):  # told below, with what to do
        sums = sparse.csr_matrix(belongs @ X, dtype=np.float32)
    if sums.nnz == 0:
        return np.zeros((n_classes, 1), np.float32)
    if not np.isfinite(sums.data).all():
        raise ValueError(
            "X has values so large that the rows of a class add up to more than float32 holds; "
            "scale the features, for example each row to length 1"
        )
    classes_with = np.bincount(sums.indices, minlength=sums.shape[1])
    seen = np.flatnonzero(classes_with)
    sums = sums[:, seen]  # features that no row has would only take memory
    sums.sort_indices()
    sums.data *= np.log1p(n_classes / classes_with[seen]).astype(np.float32)[sums.indices]
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

    def times_square(basis: Float32Array) -> Float32Array:
        inner = _product(transposed, basis, n_jobs)
        return np.asarray(_product(common, inner, n_jobs) + diagonal * basis)

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
    """Product of a CSR matrix with a dense one, its rows parted among threads (SciPy's are not)."""
    from .kernels import cluster as kernels

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


def _order(
    members: IntArray,
    vectors: Float32Array,
    shared: IntArray,
    depth: int,
    rng: np.random.RandomState,
    n_jobs: int | None,
) -> IntArray:
    """Classes in the order of the paths they shall have.

    ``shared`` holds what these paths can share, the most significant first. Classes are parted by
    its first ``depth`` columns, by more of them while the parts are too large for linkage.
    """
    if len(members) < 3 or (depth <= 0 and len(members) <= MAX_LINKAGE):
        return members[_linkage_order(vectors[members])]
    cuts = np.flatnonzero(np.diff(shared[:, 0], prepend=-2, append=-2))
    order = members
    if len(members) * len(cuts) > _MAX_TABLE:
        order = _part(members, vectors, cuts, rng)
    elif len(cuts) > 2:
        order = _best_parts(members, vectors, cuts, rng, n_jobs)
    return np.concatenate(
        [
            _order(order[start:stop], vectors, shared[start:stop, 1:], depth - 1, rng, n_jobs)
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

    seeds: list[int | None] = rng.randint(2**31, size=_STARTS).tolist()
    if len(members) <= MAX_LINKAGE:
        seeds.insert(0, None)  # it takes longest
    if len(members) < _ENOUGH_FOR_THREADS:
        n_jobs = 1
    return max(in_threads(attempt, seeds, n_jobs), key=lambda found: found[1])[0]


def _linkage_order(vectors: Float32Array) -> IntArray:
    """Leaves of average linkage over cosines, in dendrogram order."""
    from .kernels import cluster as kernels

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
    from .kernels import cluster as kernels

    centres = vectors[rng.choice(len(vectors), 2, replace=False)]
    first = np.empty(len(vectors), dtype=bool)
    kernels.two_means(vectors, size, centres, _ROUNDS, first)
    return first


def _refine(members: IntArray, vectors: Float32Array, sizes: IntArray) -> tuple[IntArray, float]:
    """Members in a better order for clusters of these sizes, by spherical k-means; and its fit."""
    from .kernels import cluster as kernels

    cluster = best = np.repeat(np.arange(len(sizes)), sizes)
    sums = np.empty((len(sizes), vectors.shape[1]), np.float32)
    highest = 0.0
    for _ in range(_ROUNDS):
        kernels.cluster_sums(vectors, cluster, sums)
        fit = float(np.linalg.norm(sums, axis=1).sum())  # of members to their centres
        if fit <= highest:
            break
        highest, best = fit, cluster
        cluster = _fill(vectors @ _unit(sums).T, sizes)
    return members[np.argsort(best, kind="stable")], highest


def _fill(likeness: Float32Array, sizes: IntArray) -> IntArray:
    """Cluster of each row: the one it is most like, as far as there is room.

    Where there is too little, those go first who would lose most by their second choice.
    """
    from .kernels import cluster as kernels

    clusters = np.empty(len(likeness), dtype=np.int64)
    waiting, room = np.arange(len(likeness)), sizes.copy()
    wish, lead = np.empty(len(waiting), np.int64), np.empty(len(waiting), np.float32)
    while waiting.size:
        kernels.two_best(likeness, waiting, room, wish, lead)
        turn = np.argsort(-lead[: len(waiting)], kind="stable")
        later = np.empty_like(waiting)
        waiting = later[: kernels.seat(waiting, turn, wish, room, clusters, later)]
    return clusters


def _unit(vectors: Float32Array) -> Float32Array:
    """Vectors scaled to length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
