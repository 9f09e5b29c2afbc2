"""How ``fit`` chooses the order of the classes, C and the width, by rows held out of training.

The candidates, and the rule by which one is taken, are in ``selection.settings``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .engine import ENOUGH, Engine
from .graph.assignment import PathAssignment
from .graph.trellis import Trellis
from .held_out import calibrated
from .judging import Judged, losses_of
from .learning.learners import Learner, LinearSVM
from .model.weights import EdgeWeights
from .prediction import TrellisModel
from .selection.settings import (
    FIRST_C,
    HIGHER,
    LOWER,
    Selection,
    Trial,
    choose,
    deviation,
    is_better_order,
    is_clearly_better,
    is_dominated,
    is_worth_it,
)

_MUCH_WORK = 10**9  # products for each pass over the source's rows: then weights are trained
_TOLERANCE = 0.1  # less precisely, in three quarters of the time


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
