"""Path assignment: which class is which path of the trellis.

Section 4.1 of the paper. Any one-to-one assignment decodes correctly; a good one puts classes that
are alike on paths that share edges, which makes the edges' binary problems easier to learn.

* :func:`random_assignment`, the paper's own choice.
* :func:`similarity_assignment`, ours: classes in the leaf order of a hierarchy over their mean
  feature vectors, laid over the paths in order.
* :class:`GreedyAssignment`, of LTLS: during online training a class seen for the first time
  takes the best path that is still free.
* :func:`given_assignment`, any permutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .decoding import AnyLoss, k_best_paths
from .trellis import IntArray, Trellis, checked_integer

Laying = Literal["depth_first", "exit_first"]

MAX_LINKAGE = 20_000  # classes: the largest K x K distance matrix ever made holds 1.6 GB
_CHUNK = 4_000  # above that, average linkage inside chunks of this many classes
_DIMENSIONS = 100  # of the reduced class vectors


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
) -> PathAssignment:
    """Assignment that puts classes with similar features on neighbouring paths.

    A class is the direction of the sum of its rows, reduced to 100 dimensions by a truncated SVD.
    The classes are put in the leaf order of average linkage over the cosines between them; above
    20,000 classes by recursive splitting in two, with average linkage inside the parts, so that
    no K x K matrix is made. The ordered classes are then laid over the paths.

    Parameters
    ----------
    trellis : Trellis
        The graph.
    X : {array-like, sparse matrix} of shape (n, n_features)
        Training rows.
    y : array-like of int, shape (n,)
        Their classes, from 0 to K - 1. A class without rows goes to the end of the order.
    laying : {"depth_first", "exit_first"}, default="depth_first"
        How the ordered classes are laid over the paths: by path number, the vertex in the first
        slice most significant, which suits local training; or the vertex before the sink most
        significant, then the slices from the first, which suits independent training.
    random_state : int, RandomState or None
        Seed of the SVD and of the splitting.

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

    if laying not in ("depth_first", "exit_first"):
        raise ValueError(f"laying must be 'depth_first' or 'exit_first', got {laying!r}")
    rng = check_random_state(random_state)
    order = _leaf_order(class_vectors(X, y, trellis.n_classes, rng), rng)
    paths = np.arange(trellis.n_classes) if laying == "depth_first" else exit_first(trellis)
    path_of_class = np.empty(trellis.n_classes, dtype=np.int64)
    path_of_class[order] = paths
    return given_assignment(trellis, path_of_class)


def exit_first(trellis: Trellis) -> IntArray:
    """All path numbers, ordered by exit vertex first, then by the slices from the first one.

    >>> exit_first(Trellis(9, 2))       # the paths by way of the last slice, then the short one
    array([1, 2, 3, 4, 5, 6, 7, 8, 0])
    """
    paths = np.arange(trellis.n_classes)
    edges = trellis.path_edges(paths)
    exits = np.take_along_axis(edges, (edges >= 0).sum(axis=1, keepdims=True) - 1, axis=1)[:, 0]
    # Exits have the highest edge numbers, the last slice's first; paths are in slice order.
    return np.argsort(exits, kind="stable")


def class_vectors(
    X: Any, y: npt.ArrayLike, n_classes: int, rng: np.random.RandomState
) -> npt.NDArray[np.float64]:
    """Reduced class vectors of unit length; a class without rows, or with only zeros, is zero."""
    from scipy import sparse
    from sklearn.preprocessing import normalize
    from sklearn.utils.extmath import randomized_svd
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
    sums = normalize(sparse.csr_matrix((ones, (labels, rows)), (n_classes, len(labels))) @ X)
    dimensions = min(_DIMENSIONS, n_classes - 1, X.shape[1] - 1)
    if dimensions >= 1 and X.shape[1] > _DIMENSIONS:
        left, singular, _ = randomized_svd(
            sparse.csr_matrix(sums, dtype=np.float32), dimensions, random_state=rng
        )
        sums = left * singular
    return np.asarray(normalize(sums.toarray() if sparse.issparse(sums) else sums))


def _leaf_order(vectors: npt.NDArray[np.float64], rng: np.random.RandomState) -> IntArray:
    """Classes in an order that keeps similar ones together."""
    empty = ~vectors.any(axis=1)
    known = np.flatnonzero(~empty)
    parts = [known] if len(known) <= MAX_LINKAGE else _split(known, vectors, rng)
    order = [part[_linkage_order(vectors[part])] for part in parts]
    return np.concatenate([*order, np.flatnonzero(empty)])


def _linkage_order(vectors: npt.NDArray[np.float64]) -> IntArray:
    """Leaves of average linkage over cosines, in dendrogram order."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(vectors) < 3:
        return np.arange(len(vectors))
    return np.asarray(leaves_list(linkage(vectors, "average", metric="cosine")), dtype=np.int64)


def _split(
    members: IntArray, vectors: npt.NDArray[np.float64], rng: np.random.RandomState
) -> list[IntArray]:
    """Cut in two by spherical 2-means, again and again, until the parts are small enough.

    The parts come in an order that keeps neighbours alike: of two halves, the one more like what
    came before is put first.
    """
    parts, waiting = [], [members]
    while waiting:
        part = waiting.pop()
        if len(part) <= _CHUNK:
            parts.append(part)
            continue
        halves = _halves(part, vectors[part], rng)
        if parts:
            previous = vectors[parts[-1]].mean(axis=0)
            halves.sort(key=lambda half: -float(vectors[half].mean(axis=0) @ previous))
        waiting += halves[::-1]
    return parts


def _halves(
    members: IntArray, vectors: npt.NDArray[np.float64], rng: np.random.RandomState
) -> list[IntArray]:
    """Two clusters by spherical 2-means, neither with less than a quarter of the members."""
    centres = vectors[rng.choice(len(vectors), 2, replace=False)]
    lean = vectors @ (centres[0] - centres[1])
    for _ in range(20):
        first = lean > 0
        if not 0 < first.sum() < len(first):
            break
        centres = np.stack([vectors[first].mean(axis=0), vectors[~first].mean(axis=0)])
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
        new = vectors @ (centres[0] - centres[1])
        if ((new > 0) == first).all():
            break
        lean = new
    ranked = np.argsort(-lean, kind="stable")
    cut = int(np.clip((lean > 0).sum(), len(lean) // 4, len(lean) - len(lean) // 4))
    return [members[np.sort(ranked[:cut])], members[np.sort(ranked[cut:])]]
