"""Classes that come and go: a new class takes a free path, and removing a class frees its path.

A new class takes the free path that the model finds cheapest for its centroid: the one
that it would predict for the new class's rows anyway. Only the vertices on its path are trained
again, and the SVMs of classes against their rivals, if there are any; the weights of all other
vertices stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._arrays import Float32Array, IntArray, canonical_csr, class_sums, squared_lengths
from ._changing import built_aside
from ._checks import encoded_labels, known_labels
from .choosing_reranking import rivals_of
from .decoding.reranking import ClassSums
from .engine import in_units_of_rows
from .fitting import LabelledRows, check_settings, class_sizes, labelled_rows
from .graph.assignment import PathAssignment
from .held_out import floor_of, stored
from .learning.learners import Learner, LinearSVM
from .learning.retraining import Vertex, retrain
from .learning.rows import merge_rows, prepare_rows
from .model.packed_arrays import Counts
from .prediction import TrellisModel

if TYPE_CHECKING:
    from .classifier import TrellisClassifier

_FIRST, _MOST = 64, 4_096  # best paths that are looked at for a free one


@dataclass(frozen=True, eq=False)
class Added:
    """What adding classes did.

    Attributes
    ----------
    classes : ndarray
        The new labels, sorted.
    paths : ndarray of int64
        The path that each of them took.
    vertices : list of (int, int)
        Vertices that were trained again: their slice, -1 for the source, and their number there.
    n_blocks : int
        Blocks that were trained.
    """

    classes: npt.NDArray[Any]
    paths: IntArray
    vertices: list[Vertex]
    n_blocks: int


# ---------------------------------------------------------------------- paths


def with_paths_for(
    model: TrellisModel, X: Any, y: npt.NDArray[Any]
) -> tuple[TrellisModel, npt.NDArray[Any]]:
    """The model with paths for the labels that it does not know, and these labels.

    Its weights stay as they are.
    """
    unknown = encoded_labels(model.classes, y) < 0
    new = np.unique(y[unknown])
    if len(new) == 0:
        return model, new
    if len(new) > model.assignment.n_free:
        raise ValueError(
            f"there is room for {model.assignment.n_free} further classes, and y has {len(new)} "
            f"that are new: fit with a larger max_classes"
        )
    rows = np.flatnonzero(unknown)
    paths = _free_paths(model, X[rows], np.searchsorted(new, y[rows]), len(new))
    classes = np.concatenate([model.classes, new])
    order = np.argsort(classes, kind="stable")
    numbers = np.concatenate([np.arange(model.n_classes), np.full(len(new), -1)])[order]
    every = np.concatenate([model.assignment.path_of_class, paths])[order]
    return _renumbered(model, classes[order], every, numbers), new


def without_classes(model: TrellisModel, labels: Any) -> TrellisModel:
    """The model without some classes: their paths are free, and never predicted."""
    gone = known_labels(model.classes, np.atleast_1d(np.asarray(labels)))
    kept = np.setdiff1d(np.arange(model.n_classes), gone)
    if len(kept) < 2:
        raise ValueError(f"at least two classes must be left, but only {len(kept)} would be")
    if not model.is_lazy:
        raise ValueError("only classes of models trained locally can be removed")
    return _renumbered(model, model.classes[kept], model.assignment.path_of_class[kept], kept)


def _renumbered(
    model: TrellisModel, classes: npt.NDArray[Any], paths: IntArray, numbers: IntArray
) -> TrellisModel:
    """The model with these classes, whose numbers were those given; -1 for one that is new."""
    class_of_path = np.full(model.trellis.n_classes, -1, np.int64)
    class_of_path[paths] = np.arange(len(paths))
    centroids = None if model.centroids is None else model.centroids.of_classes(numbers)
    rivals = None if model.rivals is None else model.rivals.of_classes(numbers)
    sizes = model.class_sizes
    if sizes is not None:  # no row of a new class was seen yet
        sizes = Counts.of(np.append(sizes.values(model.n_classes), 0)[numbers])
    return replace(
        model,
        classes=classes,
        assignment=PathAssignment(paths, class_of_path),
        centroids=centroids,
        rivals=rivals,
        class_sizes=sizes,
        conformal=None,  # sets were calibrated for the old classes
    )


def _free_paths(model: TrellisModel, X: Any, y_encoded: IntArray, n_new: int) -> IntArray:
    """For each new class the cheapest free path for its centroid, the largest class first."""
    centroids = _centroids(X, y_encoded, n_new)
    sizes = np.bincount(y_encoded, minlength=n_new)
    free = model.assignment.class_of_path < 0
    found = np.full(n_new, -1, np.int64)
    n_asked, most = _FIRST, min(_MOST, model.trellis.n_classes)
    while True:
        n_asked = min(n_asked, most)
        left = np.flatnonzero(found < 0)
        best = model.search(canonical_csr(centroids[left]), n_asked)[0]
        for place in np.argsort(-sizes[left], kind="stable"):
            mine = best[place][free[best[place]]]
            if len(mine):
                found[left[place]] = mine[0]
                free[mine[0]] = False
        if n_asked == most or (found >= 0).all():
            break
        n_asked *= 4
    rest = np.flatnonzero(found < 0)
    found[rest] = np.flatnonzero(free)[: len(rest)]
    return found


def _centroids(X: Any, y_encoded: IntArray, n_classes: int) -> Any:
    """Sums of the rows of each class, as long as its rows are on average."""
    from scipy import sparse

    sums = class_sums(X, y_encoded, n_classes)
    counts = np.bincount(y_encoded, minlength=n_classes)
    wanted = np.bincount(y_encoded, _lengths(X), n_classes) / np.maximum(counts, 1)
    return sparse.diags_array(wanted / np.maximum(_lengths(sums), 1e-30)) @ sums


def _lengths(X: Any) -> Float32Array:
    """Euclidean length of each row."""
    return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())


# ---------------------------------------------------------------------- weights


def with_classes(
    estimator: TrellisClassifier, learner: Learner, model: TrellisModel, data: LabelledRows
) -> tuple[TrellisModel, Added]:
    """The model with the classes of these rows that it does not know, and what was trained.

    ``data`` has rows of all classes, old and new: every path passes the source.
    """
    # A class whose rows all have a weight of zero has no rows here.
    absent = np.setdiff1d(model.classes, data.classes[np.unique(data.y_encoded)])
    if len(absent):
        raise ValueError(
            f"y must have rows of all classes, because the vertices that they share are retrained; "
            f"there are none of {absent[:1].tolist()[0]!r}"
        )
    grown, new = with_paths_for(model, data.X, data.classes[data.y_encoded])
    paths = grown.assignment.path_of_class[np.searchsorted(grown.classes, new)]
    if len(new) == 0:
        return model, Added(new, paths, [], 0)
    own = known_labels(grown.classes, data.classes[data.y_encoded])
    data = replace(data, classes=grown.classes, y_encoded=own)
    trellis, X, y_encoded, weights = grown.trellis, data.X, data.y_encoded, data.sample_weight
    if learner.merges_rows:
        X, y_encoded, weights, _ = merge_rows(X, y_encoded, weights)
    seed = estimator.random_state if isinstance(estimator.random_state, int) else 0
    nothing = np.zeros(len(y_encoded), bool)
    rng = np.random.RandomState(seed)
    of_rows = grown.assignment.path_of_class[y_encoded]
    rows = prepare_rows(trellis, X, of_rows, weights, nothing, rng)
    vertices: set[Vertex] = {(-1, 0)}
    for place, column in enumerate(trellis.path_vertices(paths).T):
        vertices |= {(place, int(vertex)) for vertex in column[column >= 0]}
    drop = floor_of(estimator), _threshold_of(estimator)
    settings = learner, estimator.epochs, estimator.n_jobs, seed, *drop
    retrained, n_blocks = retrain(trellis, model.weights, rows, vertices, *settings)
    grown = replace(grown, weights=stored(estimator, retrained), class_sizes=class_sizes(data))
    if grown.rivals is not None:
        found = rivals_of(grown, data, None, grown.rivals.n_entries, estimator.n_jobs)
        assert found is not None  # there are no more features than before
        grown = replace(grown, rivals=replace(found, strength=grown.rivals.strength))
    if grown.centroids is not None:
        sums = ClassSums.of(data.X, data.y_encoded, grown.n_classes)
        fresh = sums.centroids(grown.centroids.n_terms)
        grown = replace(grown, centroids=replace(fresh, strength=grown.centroids.strength))
    return grown, Added(new, paths, sorted(vertices), n_blocks)


def _threshold_of(estimator: TrellisClassifier) -> float:
    """The size up to which weights were dropped, in ``fit`` or by ``prune`` afterwards."""
    in_fit = getattr(estimator, "prune_threshold_", 0.0)
    return max(in_fit, estimator.pruning_.threshold) if hasattr(estimator, "pruning_") else in_fit


# ---------------------------------------------------------------------- estimators


class GrowingMixin:
    """Methods by which the classes of a fitted classifier come and go."""

    model_: TrellisModel
    added_: Added

    def add_classes(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the classes of y that are new, on rows of all classes, old and new.

        A new class takes the free path nearest to its centroid; ``max_classes`` says how many there
        are. Only the vertices on the paths of the new classes are trained again. All settings stay
        as they are: C, the decoding loss, the calibration, the threshold below which weights are
        dropped.

        Returns
        -------
        self
            ``added_`` lists the new classes, their paths, and the vertices trained again.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from xtrellis import TrellisClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = TrellisClassifier(max_classes=10, random_state=0).fit(X[y < 8] / 16, y[y < 8])
        >>> clf.add_classes(X / 16, y).added_.classes
        array([8, 9])
        >>> clf.score(X / 16, y) > 0.9
        True
        """
        check_is_fitted(self)
        with built_aside(self) as aside:
            new: Any = aside
            learner = check_settings(new)
            selection = getattr(new, "selection_", None)
            if selection is not None and isinstance(learner, LinearSVM):
                learner = replace(learner, C=selection.C)
            data = labelled_rows(new, X, y, sample_weight, new.class_weight, reset=False)
            lengths = squared_lengths(data.X)
            learner = in_units_of_rows(new, learner, lengths, data.sample_weight)
            new.model_, new.added_ = with_classes(new, learner, new.model_, data)
            new._online = None  # states of online learners belong to the old weights
        return self

    def remove_classes(self, labels: Any) -> Self:
        """Forget some classes: they are never predicted again, and their paths are free.

        >>> import numpy as np
        >>> from xtrellis import TrellisClassifier
        >>> X, y = np.tile(np.eye(4), (3, 1)), [0, 1, 2, 3] * 3
        >>> clf = TrellisClassifier(random_state=0).fit(X, y).remove_classes([2])
        >>> clf.classes_, 2 in clf.predict(X)
        (array([0, 1, 3]), False)
        """
        check_is_fitted(self)
        with built_aside(self) as new:
            new.model_ = without_classes(new.model_, labels)
        return self
