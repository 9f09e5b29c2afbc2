"""How ``fit`` chooses the order of the classes, C and the width, by rows held out of training.

The candidates, and the rule by which one is taken, are in ``selection.settings``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arrays import Float32Array, IntArray
from .graph.assignment import (
    PathAssignment,
    given_assignment,
    random_assignment,
    similarity_assignment,
)
from .graph.similarity import Order, share_near
from .graph.trellis import Trellis
from .held_out import calibrated, floor_of, uncalibrated
from .judging import Judged, losses_of
from .learning.learners import Learner, LinearSVM
from .learning.rows import TrainingRows, hold_out_rows, prepare_rows
from .learning.training import Report, TrainedEdges, train_before, train_edges
from .model.weights import EdgeWeights
from .prediction import TrellisModel
from .selection.default_width import default_slice_width
from .selection.settings import (
    CLEARER,
    FIRST_C,
    HIGHER,
    LOWER,
    MEANT,
    ORDERS,
    WIDER,
    Selection,
    Trial,
    choose,
    deviation,
    is_better_order,
    is_clearly_better,
    is_dominated,
    is_worth_it,
)

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .fitting import LabelledRows

ENOUGH = 100  # held-out rows; with fewer, differences between settings are chance
_MANY_ROWS = 10_000  # settings are tried on at most so many rows,
_MANY_VALUES = 500_000  # with at most so many values,
_SOME_ROWS = 5_000  # except that fewer rows than these would judge by chance: of dense features
_MUCH_WORK = 10**9  # products for each pass over the source's rows: then weights are trained
_TOLERANCE = 0.1  # less precisely, in three quarters of the time
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
    """The learner for rows of these squared lengths: an SVM whose C is ours measures in theirs.

    The unit is the root mean square of the lengths above 0, rounded to a power of 2, by which
    numbers are divided without error. It is 1 for rows of length 1.
    """
    some = squares > 0
    ours = estimator.C == "auto" and isinstance(estimator.learner, str)
    if not ours or not isinstance(learner, LinearSVM) or not some.any():
        return learner
    square = np.average(squares[some].astype(np.float64), weights=sample_weight[some])
    exponent = np.clip(np.round(np.log2(square) / 2), -60, 60)  # float32 holds its square
    return replace(learner, unit=float(2.0**exponent))


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
        """The same, with another order first if the usual one means far less to rows.

        Rows are rarely nearest to the classes with which theirs share a vertex where frequent
        features drown all others, as counts of words do that are not weighted. With many classes
        that costs accuracy, more than trials on some of the classes would show.
        """
        usual, *others = self.ranked
        if not self._orders_matter or (found := self._share_near(usual)) >= MEANT:
            return self
        shares = [self._share_near(order) for order in others]
        best = others[int(np.argmax(shares))]
        if max(shares) < CLEARER * found:
            return self
        return replace(self, ranked=(best, *(each for each in ORDERS if each != best)))

    def _share_near(self, order: Order) -> float:
        """Share of the held-out rows that are nearest to their own vertex of the first slice."""
        inside, aside = self.data[~self.held_out], self.sample
        paths = self.assignment(order).path_of_class
        vertices = self.trellis.path_vertices(paths)[:, 0]
        vertices = vertices - vertices.min()
        return share_near(inside.X, vertices[inside.y_encoded], aside.X, vertices[aside.y_encoded])

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


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model trained without the held-out rows, its learner, and its figures on these rows."""

    engine: Engine
    model: TrellisModel
    learner: Learner
    trial: Trial


class Contest:
    """Trials of settings, one after the other; only models that may still be chosen are kept."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.trials: list[Trial] = []
        self.left: list[Candidate] = []

    def enter(self, engine: Engine, assignment: PathAssignment, order: str, C: float) -> Trial:
        """Try out settings."""
        new = _try_out(engine, assignment, order, C)
        self.trials.append(new.trial)
        if not any(is_dominated(new.trial, each.trial) for each in self.left):
            margin = deviation(self.n_rows) / 2
            self.left = [
                each for each in self.left if not is_dominated(each.trial, new.trial, margin)
            ]
            self.left.append(new)
        return new.trial

    @property
    def best(self) -> Candidate:
        """The one to choose of those so far."""
        return self.left[choose([each.trial for each in self.left], self.n_rows)]

    def selection(self) -> Selection:
        """What was chosen, and all that was tried."""
        best, n_classes = self.best.trial, len(self.best.engine.data.classes)
        return Selection(best.order, best.C, best.slice_width, n_classes, tuple(self.trials))


@dataclass(frozen=True, eq=False)
class Choice:
    """The settings to train with.

    ``before`` are weights with these settings, trained without the held-out rows, if there are any
    yet.
    """

    engine: Engine
    assignment: PathAssignment
    learner: Learner
    before: EdgeWeights | None = None
    selection: Selection | None = None


def choose_settings(engine: Engine) -> Choice:
    """The best settings; the first if there is nothing to choose, or too few rows to choose by."""
    if not engine.chooses:
        return first_settings(engine.with_usual_order())
    if not engine.tries_all:
        engine = engine.with_usual_order()
    small = engine.on_a_sample()
    if len(small.sample.y_encoded) < ENOUGH:
        small = engine
    return choose_on(small, engine, engine.data.X.nnz)


def first_settings(engine: Engine) -> Choice:
    """The settings to begin with."""
    return Choice(engine, engine.assignment(engine.orders[0]), engine.learner)


def choose_on(small: Engine, engine: Engine, n_values: int) -> Choice:
    """Settings for an engine that are the best on some of its classes, or on all of them.

    ``n_values`` is the number of values of all its rows.
    """
    best, selection = select_settings(small)
    if small is engine:
        model = best.model
        return Choice(best.engine, model.assignment, best.learner, model.weights, selection)
    times = best.trial.slice_width / small.trellis.slice_width
    width = min(int(times * engine.trellis.slice_width), engine.trellis.n_classes)
    engine = engine.with_trellis(Trellis(engine.trellis.n_classes, width))
    selection = replace(selection, slice_width=width)
    assignment, learner = engine.assignment(selection.order), best.learner
    if n_values * width > _MUCH_WORK and isinstance(learner, LinearSVM):
        learner = replace(learner, tolerance=_TOLERANCE)
    return Choice(engine, assignment, learner, None, selection)


def select_settings(engine: Engine) -> tuple[Candidate, Selection]:
    """The order of the classes at one C; then the best C; then the best width."""
    contest = Contest(len(engine.sample.y_encoded))
    for order in engine.orders:
        usual, contest.left = contest.left, []
        trial = contest.enter(engine, engine.assignment(order), order, FIRST_C)
        if usual and not is_better_order(trial, usual[0].trial, contest.n_rows):
            contest.left = usual
    _climb(contest)
    contest.left = [contest.best]
    _widen(contest, engine)
    return contest.best, contest.selection()


def _climb(contest: Contest) -> None:
    """Raise C while that clearly helps; lower it if no step up lowers the log loss."""
    first = contest.best
    settings = first.engine, first.model.assignment, first.trial.order
    trial = first.trial
    least = trial.log_loss
    for C in HIGHER:
        before, trial = trial, contest.enter(*settings, C)
        goes_on = is_clearly_better(trial, before, least, contest.n_rows)
        least = min(trial.log_loss, least)
        if not goes_on:
            break
    if least == first.trial.log_loss:
        for C in LOWER:
            contest.enter(*settings, C)


def _widen(contest: Contest, engine: Engine) -> None:
    """Take wider slices where held-out rows clearly gain.

    Four times the width is tried even if twice the width was not worth it, but only if it seems to
    have gained something, and its log loss is no higher.
    """
    for width in engine.wider:
        narrow = contest.best
        wide = engine.with_trellis(Trellis(engine.trellis.n_classes, width))
        order = narrow.trial.order
        trial = contest.enter(wide, wide.assignment(order), order, narrow.trial.C)
        # One that is worth it is more accurate, so it was kept, as the last one.
        better = is_worth_it(trial, narrow.trial, contest.n_rows)
        contest.left = [contest.left[-1] if better else narrow]
        gain = trial.accuracy - narrow.trial.accuracy
        if trial.log_loss > narrow.trial.log_loss or gain < deviation(contest.n_rows) / 2:
            break


def _try_out(engine: Engine, assignment: PathAssignment, order: str, C: float) -> Candidate:
    """Train with these settings, without the held-out rows."""
    assert isinstance(engine.learner, LinearSVM)
    learner = replace(engine.learner, C=C)
    weights = engine.train_before(engine.rows(assignment), learner)
    judged = calibrated(engine.estimator, engine.model(assignment, weights), engine.sample)
    return Candidate(engine, judged.model, learner, trial_of(order, C, judged))


def trial_of(order: str, C: float, judged: Judged) -> Trial:
    """What rows say of a model that was trained without them."""
    losses, ranks = losses_of(judged)
    share = judged.rows.sample_weight / judged.rows.sample_weight.sum()
    return Trial(
        order,
        C,
        judged.model.trellis.slice_width,
        float(share @ losses),
        float(share @ (ranks == 0)),
        float(share @ ((ranks >= 0) & (ranks < 5))),
    )
