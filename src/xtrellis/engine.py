"""Training as an estimator's settings say: on given rows, on a given graph, on some of the classes.

An :class:`Engine` assigns classes to paths, of which there are several orders, and trains weights,
with or without the held-out rows. ``choosing`` tries settings with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arrays import Float32Array, IntArray, unit_sums
from .graph.assignment import (
    PathAssignment,
    given_assignment,
    random_assignment,
    similarity_assignment,
)
from .graph.similarity import Order, shares_near
from .graph.trellis import Trellis
from .held_out import evenly, floor_of, uncalibrated
from .learning.learners import Learner, LinearSVM
from .learning.rows import TrainingRows, hold_out_rows, prepare_rows, typical_length
from .learning.training import Report, TrainedEdges, train_before, train_edges
from .model.weights import EdgeWeights
from .prediction import TrellisModel
from .selection.default_width import default_slice_width
from .selection.settings import CLEARER, MEANT, ORDERS, WIDER

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .fitting import LabelledRows

ENOUGH = 100  # held-out rows; with fewer, differences between settings are chance
_MANY_ROWS = 10_000  # settings are tried on at most so many rows,
_MANY_VALUES = 500_000  # with at most so many values,
_SOME_ROWS = 5_000  # except that fewer rows than these would judge by chance: of dense features
_NEAR_ROWS = 2_500  # that orders of the classes are compared on by nearness
_SHARES = 2  # times as many rows are held out of a sample: they judge more reliably


def assign_paths(
    estimator: TrellisClassifier,
    trellis: Trellis,
    data: LabelledRows,
    rng: np.random.RandomState,
    order: Order = "plain",
    known: dict[Order, Float32Array] | None = None,
) -> PathAssignment:
    """Assignment of classes to paths, as the parameter says; ``known`` are class vectors."""
    n_classes = len(data.classes)
    if not isinstance(estimator.assignment, str):
        return given_assignment(trellis, estimator.assignment, n_classes)
    if estimator.assignment == "random":
        return random_assignment(trellis, rng, n_classes)
    path_order: Any = "depth_first" if estimator.training == "local" else "exit_first"
    return similarity_assignment(
        trellis, data.X, data.y_encoded, path_order, rng, estimator.n_jobs, order, n_classes, known
    )


def in_units_of_rows(
    estimator: TrellisClassifier,
    learner: Learner,
    squares: npt.NDArray[Any],
    sample_weight: Float32Array,
) -> Learner:
    """The learner for rows of these squared lengths: an SVM whose C is ours measures in theirs."""
    ours = estimator.C == "auto" and isinstance(estimator.learner, str)
    if not ours or not isinstance(learner, LinearSVM):
        return learner
    return replace(learner, unit=typical_length(squares, sample_weight))


def _share_tried(n_rows: int, n_values: int) -> float:
    """Share of the rows that settings are tried on, or more than 1 for all of them."""
    of_values = max(_MANY_VALUES / max(1, n_values), _SOME_ROWS / n_rows)
    return min(_MANY_ROWS / n_rows, of_values)


@dataclass(frozen=True, eq=False)
class Engine:
    """Training as an estimator's settings say, on given rows and a given graph."""

    estimator: TrellisClassifier
    learner: Learner
    data: LabelledRows
    held_out: npt.NDArray[np.bool_]
    trellis: Trellis
    sample: LabelledRows  # some of the held-out rows
    seed: int
    assignments: dict[Any, PathAssignment] = field(default_factory=dict)  # those made so far
    class_vectors: dict[Any, Float32Array] = field(default_factory=dict)  # of the rows not held out
    ranked: tuple[Order, ...] = ORDERS  # orders of the classes, the usual one first

    @property
    def chooses(self) -> bool:
        """Whether there are settings to choose, and rows to choose them by."""
        automatic = self.estimator.C == "auto" and isinstance(self.learner, LinearSVM)
        return automatic and len(self.sample.y_encoded) >= ENOUGH

    @property
    def floor(self) -> float:
        """Share of a block's largest weight below which weights are dropped at once."""
        return floor_of(self.estimator) if self.held_out.any() else 0.0

    @property
    def is_one_vs_rest(self) -> bool:
        """Whether there is a vertex for each class: then their order makes no difference."""
        return self.trellis.slice_width == self.trellis.n_classes

    @property
    def arranges(self) -> bool:
        """Whether there are settings to choose, and the assignment is ours to make, too."""
        return self._assigns and self.chooses

    @property
    def _assigns(self) -> bool:
        """Whether classes are assigned by similarity to the paths of local training."""
        ours = isinstance(self.estimator.assignment, str)
        ours = ours and self.estimator.assignment == "similarity"
        return ours and self._training == "local"

    @property
    def _orders_matter(self) -> bool:
        """Whether an order has to be taken, and there are rows to compare them by."""
        return self._assigns and not self.is_one_vs_rest and len(self.sample.y_encoded) >= ENOUGH

    @property
    def orders(self) -> tuple[Any, ...]:
        """Orders of the classes to choose from: one, if there is no other or it is not ours."""
        return self.ranked if self.arranges and not self.is_one_vs_rest else self.ranked[:1]

    @property
    def wider(self) -> list[int]:
        """Further slice widths to choose from: none, if the width is given."""
        width, n_classes = self.trellis.slice_width, self.trellis.n_classes
        ours = self.estimator.slice_width is None and len(self.orders) > 1
        wider = [int(times * width) for times in WIDER]
        return [each for each in wider if ours and each <= n_classes // 4]

    def assignment(self, order: Any) -> PathAssignment:
        """Which class is which path."""
        if order not in self.assignments:
            # Rows held out must not influence which classes are neighbours of theirs, either.
            inside = self.data[~self.held_out]
            rng = np.random.RandomState(self.seed)
            self.assignments[order] = assign_paths(
                self.estimator, self.trellis, inside, rng, order, self.class_vectors
            )
        return self.assignments[order]

    def with_usual_order(self) -> Engine:
        """The same, with another order first by which far more rows are found.

        Rows are rarely nearest to the classes with which theirs share a vertex where frequent
        features drown all others, as counts of words do that are not weighted. With many classes
        that costs accuracy, more than trials on some of the classes would show.
        """
        if not self._orders_matter:
            return self
        data = self.data
        sums = unit_sums(data.X, data.y_encoded, len(data.classes), ~self.held_out)
        usual, *others = self.ranked
        near, found = self._shares_near(usual, sums)
        if near >= MEANT:
            return self
        shares = [self._shares_near(order, sums)[1] for order in others]
        if max(shares) < CLEARER * found:
            return self
        best = others[int(np.argmax(shares))]
        return replace(self, ranked=(best, *(each for each in ORDERS if each != best)))

    def _shares_near(self, order: Order, sums: Any) -> tuple[float, float]:
        """Shares of the held-out rows near to their own vertex of the first slice, and found."""
        vertices = self.trellis.path_vertices(self.assignment(order).path_of_class)[:, 0]
        aside = evenly(self.sample, _NEAR_ROWS)
        return shares_near(sums, vertices - vertices.min(), aside.X, aside.y_encoded)

    def with_trellis(self, trellis: Trellis) -> Engine:
        """The same on another graph."""
        same = trellis.slice_width == self.trellis.slice_width
        return self if same else replace(self, trellis=trellis, assignments={})

    def on_a_sample(self) -> Engine:
        """The same on some of the classes with all their rows, if there are many rows.

        Runs of neighbouring classes are taken, which are as similar, and hence as hard to tell
        apart, as all classes are. (On classes taken at random, other settings are best.)
        """
        if self.tries_all:
            return self
        data = self.data
        classes = self.sampled_classes(data.y_encoded, max(data.X.nnz, 1))
        return self.on_classes(classes, data[np.isin(data.y_encoded, classes)])

    @property
    def tries_all(self) -> bool:
        """Whether settings are tried on all classes."""
        few = _share_tried(len(self.data.y_encoded), max(self.data.X.nnz, 1)) >= 1
        return few or not self.arranges

    def sampled_classes(
        self, y_encoded: IntArray, n_values: int, most_values: float = np.inf
    ) -> IntArray:
        """Classes that have as many of these rows as settings are tried on, ascending."""
        n_rows = len(y_encoded)
        share = min(_share_tried(n_rows, n_values), most_values / max(1, n_values))
        by_path = np.argsort(self.assignment(self.orders[0]).path_of_class)
        runs = np.array_split(by_path, default_slice_width(self.trellis.n_classes))
        order = np.random.RandomState(self.seed).permutation(len(runs))
        by_run = np.concatenate([runs[i] for i in order])
        sizes = np.bincount(y_encoded, minlength=self.trellis.n_classes)
        n_taken = np.searchsorted(np.cumsum(sizes[by_run]), share * n_rows)
        return np.sort(by_run[: max(2, n_taken)])

    def on_classes(self, classes: IntArray, rows: LabelledRows) -> Engine:
        """The same on some of the classes, given all their rows."""
        new_number = np.full(self.trellis.n_classes, -1)
        new_number[classes] = np.arange(len(classes))
        rows = replace(
            rows, y_encoded=new_number[rows.y_encoded], classes=self.data.classes[classes]
        )
        rng = np.random.RandomState(self.seed)
        share = min(_SHARES * self.estimator.calibration, 0.5)
        held_out = hold_out_rows(rows.y_encoded, share, rng, rows.may_hold_out)
        width = default_slice_width(len(classes))
        if self.is_one_vs_rest or self.estimator.slice_width is not None:
            width = min(self.trellis.slice_width, len(classes))
        trellis = Trellis(len(classes), width)
        return replace(
            self,
            data=rows,
            held_out=held_out,
            trellis=trellis,
            sample=rows[np.flatnonzero(held_out)],
            assignments={},
            class_vectors={},
        )

    def rows(
        self, assignment: PathAssignment, held_out: npt.NDArray[np.bool_] | None = None
    ) -> TrainingRows:
        """Training rows with the paths of their classes."""
        data, rng = self.data, np.random.RandomState(self.seed)
        paths = assignment.path_of_class[data.y_encoded]
        outside = self.held_out if held_out is None else held_out
        return prepare_rows(self.trellis, data.X, paths, data.sample_weight, outside, rng)

    def train(self, rows: TrainingRows, learner: Learner, report: Report | None) -> TrainedEdges:
        """Weights of all edges."""
        estimator = self.estimator
        settings = estimator.epochs, estimator.n_jobs, self.seed, report, self.floor
        return train_edges(self.trellis, rows, self._training, learner, *settings)

    def train_before(self, rows: TrainingRows, learner: Learner) -> EdgeWeights:
        """Weights of all edges, trained without the held-out rows."""
        estimator = self.estimator
        settings = estimator.epochs, estimator.n_jobs, self.seed, self.floor
        return train_before(self.trellis, rows, self._training, learner, *settings)

    def model(self, assignment: PathAssignment, weights: EdgeWeights) -> TrellisModel:
        """A model whose losses are not fitted yet."""
        classes = self.data.classes
        return uncalibrated(self.estimator, classes, self.trellis, assignment, weights)

    @property
    def _training(self) -> Any:
        return self.estimator.training
