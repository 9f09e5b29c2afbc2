"""Path assignment: which class is which path of the trellis.

Section 4.1 of the paper. Any one-to-one assignment decodes correctly; a good one puts classes that
are alike on paths that share edges, which makes the edges' binary problems easier to learn.

* :func:`random_assignment`, the paper's own choice.
* :func:`similarity_assignment`, ours: classes with like mean feature vectors share the early
  vertices of their paths.
* :func:`given_assignment`, any permutation.

LTLS assigns paths while it trains: see ``learning/greedy.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray
from .._threads import single_threaded_blas
from .similarity import Order, class_order, class_vectors
from .trellis import Trellis

PathOrder = Literal["depth_first", "exit_first"]

_MAX_FREE = 10_000  # paths per class in a model file: more would only fill memory


@dataclass(frozen=True, eq=False)
class PathAssignment:
    """A one-to-one map between classes 0 .. K-1 and paths.

    Attributes
    ----------
    path_of_class : ndarray of int64, shape (K,)
    class_of_path : ndarray of int64, shape (n_paths,)
        Its inverse; -1 for a path that is free, which no class has.

    Examples
    --------
    >>> from xtrellis.graph import Trellis, given_assignment
    >>> assignment = given_assignment(Trellis(3, 2), [2, 0, 1])
    >>> assignment.path_of_class, assignment.class_of_path
    (array([2, 0, 1]), array([1, 2, 0]))
    """

    path_of_class: IntArray
    class_of_path: IntArray

    @property
    def n_free(self) -> int:
        """Number of paths that no class has."""
        return len(self.class_of_path) - len(self.path_of_class)

    def to_parts(self) -> dict[str, Any]:
        """Parts of a model file: the inverse follows."""
        parts: dict[str, Any] = {"path_of_class": self.path_of_class}
        return {**parts, "n_paths": len(self.class_of_path)} if self.n_free else parts

    @classmethod
    def from_parts(cls, path_of_class: IntArray, n_paths: int | None = None) -> PathAssignment:
        """Assignment of the parts of a model file."""
        n_classes = len(path_of_class)
        n_paths = n_classes if n_paths is None else n_paths
        if not n_classes <= n_paths <= _MAX_FREE * n_classes:
            raise ValueError(f"{n_classes} classes cannot have {n_paths} paths")
        # Any graph with as many paths does.
        return given_assignment(Trellis(n_paths, 2), path_of_class, n_classes)


def given_assignment(
    trellis: Trellis, permutation: npt.ArrayLike, n_classes: int | None = None
) -> PathAssignment:
    """Assignment of class k to path ``permutation[k]``.

    There are as many classes as paths, unless ``n_classes`` says that there are fewer.

    Examples
    --------
    >>> from xtrellis.graph import Trellis, given_assignment
    >>> given_assignment(Trellis(3, 2), [2, 0, 1]).path_of_class
    array([2, 0, 1])
    """
    paths = np.asarray(permutation)
    n_classes = trellis.n_classes if n_classes is None else n_classes
    if paths.shape != (n_classes,):
        raise ValueError(
            f"permutation must hold one path for each of the {n_classes} classes, "
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
    classes = np.full(trellis.n_classes, -1, np.int64)
    classes[paths] = np.arange(len(paths))
    return PathAssignment(paths, classes)


def random_assignment(
    trellis: Trellis,
    random_state: int | np.random.RandomState | None = None,
    n_classes: int | None = None,
) -> PathAssignment:
    """Assignment drawn from all permutations alike, as in the paper.

    Examples
    --------
    >>> from xtrellis.graph import Trellis, random_assignment
    >>> random_assignment(Trellis(5, 2), random_state=0).path_of_class
    array([2, 0, 1, 3, 4])
    """
    from sklearn.utils import check_random_state

    rng = check_random_state(random_state)
    return given_assignment(trellis, rng.permutation(trellis.n_classes)[:n_classes], n_classes)


# ---------------------------------------------------------------------- similarity


def similarity_assignment(
    trellis: Trellis,
    X: Any,
    y: npt.ArrayLike,
    path_order: PathOrder = "depth_first",
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    order: Order = "plain",
    n_classes: int | None = None,
    known: dict[Order, Float32Array] | None = None,
) -> PathAssignment:
    """Assignment that puts classes with similar features on neighbouring paths.

    The similarity of two classes is the cosine of their reduced vectors (``similarity.py``). The
    paths fall into runs that share the first vertex, and these into runs that share the second,
    too; the classes are divided into clusters of just those sizes by k-means, and inside a cluster
    put in the leaf order of average linkage. (``"exit_first"`` does with linkage alone if K
    allows.) No table of distances between more than 4,000 classes is made.

    Parameters
    ----------
    trellis : Trellis
        The graph.
    X : {array-like, sparse matrix} of shape (n, n_features)
        Training rows.
    y : array-like of int, shape (n,)
        Their classes, from 0 to K - 1. A class without rows gets one of the last paths.
    path_order : {"depth_first", "exit_first"}, default="depth_first"
        What similar classes share first: the vertices from the first slice on (so neighbours in
        the order have neighbouring path numbers), which suits local training; or the vertex
        before the sink, then those from the first slice on, which suits independent training.
    random_state : int, RandomState or None
        Seed of the SVD and of k-means.
    n_jobs : int or None
        Threads; the result does not depend on it.
    order : {"plain", "by_rarity"}, default="plain"
        Whether features of few classes weigh more.
    n_classes : int or None
        Number of classes, if there are more paths: free ones are then spread evenly, so that there
        is room beside all classes.
    known : dict or None
        Reduced class vectors of earlier calls with the same rows and seed, by order. Those of this
        call are added: another graph needs no others.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis.graph import Trellis, similarity_assignment
    >>> X = np.array([[1, 0, 0], [0, 1, 0], [9, 1, 0], [0, 8, 1.0]])
    >>> assignment = similarity_assignment(Trellis(4, 2), X, [0, 1, 2, 3], random_state=0)
    >>> assignment.class_of_path            # 0 beside 2, 1 beside 3
    array([0, 2, 1, 3])
    """
    from sklearn.utils import check_random_state

    if path_order not in ("depth_first", "exit_first"):
        raise ValueError(f"path_order must be 'depth_first' or 'exit_first', got {path_order!r}")
    rng = check_random_state(random_state)
    paths = np.arange(trellis.n_classes) if path_order == "depth_first" else exit_first(trellis)
    shared = trellis.path_vertices(paths)
    if path_order == "exit_first":
        shared = np.column_stack([_exits(trellis, paths), shared])
    n_classes = trellis.n_classes if n_classes is None else n_classes
    taken = np.arange(n_classes) * trellis.n_classes // n_classes
    paths, shared = paths[taken], shared[taken]
    own_rng = np.random.RandomState(rng.randint(2**31))  # k-means is the same if vectors are known
    known = {} if known is None else known
    with single_threaded_blas():  # bit for bit the same with any number of threads
        if order not in known:
            known[order] = class_vectors(X, y, n_classes, own_rng, n_jobs, order)
        vectors = known[order]
        has_rows = vectors.any(axis=1)
        members = np.flatnonzero(has_rows)
        # Parting by the second slice, too, gains where there are more; nothing for independent.
        depth = min(2, trellis.n_slices - 1) if path_order == "depth_first" else 0
        found = class_order(members, vectors, shared[: len(members)], depth, rng, n_jobs)
    path_of_class = np.empty(n_classes, dtype=np.int64)
    path_of_class[np.concatenate([found, np.flatnonzero(~has_rows)])] = paths
    return given_assignment(trellis, path_of_class, n_classes)


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
