"""How ``fit`` chooses the order of the classes and C: by weights trained without held-out rows.

The candidates, and the rule by which one is taken, are in ``selection.settings``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .graph.assignment import PathAssignment
from .graph.trellis import Trellis
from .held_out import calibrated, prunes_automatically, uncalibrated
from .learning.learners import Learner, LinearSVM
from .learning.rows import TrainingRows, prepare_rows
from .learning.training import Report, TrainedEdges, train_before, train_edges
from .model.weights import EdgeWeights
from .prediction import TrellisModel
from .selection.settings import (
    FIRST_C,
    HIGHER,
    LOWER,
    ORDERS,
    Selection,
    Trial,
    choose,
    is_good,
    trial_of,
)

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .fitting import LabelledRows

_ENOUGH = 100  # held-out rows: what fewer say of a setting is chance
_FLOOR = 0.01  # of a block's largest weight: smaller ones are dropped when the block is finished


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

    @property
    def chooses(self) -> bool:
        """Whether there are settings to choose, and rows to choose them by."""
        automatic = self.estimator.C == "auto" and isinstance(self.learner, LinearSVM)
        return automatic and len(self.sample.y_encoded) >= _ENOUGH

    @property
    def floor(self) -> float:
        """Share of a block's largest weight below which weights are dropped at once."""
        return _FLOOR if prunes_automatically(self.estimator) and self.held_out.any() else 0.0

    @property
    def orders(self) -> tuple[Any, ...]:
        """Orders of the classes to choose from: one, if the assignment is not ours to make."""
        ours = isinstance(self.estimator.assignment, str)
        ours = ours and self.estimator.assignment == "similarity"
        return ORDERS if ours and self.chooses and self._training == "local" else ORDERS[:1]

    def assignment(self, order: Any) -> PathAssignment:
        """Which class is which path."""
        from .fitting import assign_paths

        # Rows held out must not influence which classes are neighbours of theirs, either.
        inside = self.data[~self.held_out]
        rng = np.random.RandomState(self.seed)
        return assign_paths(self.estimator, self.trellis, inside, rng, order)

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
    """A model trained without the held-out rows, its learner, and what these rows say of it."""

    model: TrellisModel
    learner: Learner
    trial: Trial


def select_settings(engine: Engine) -> tuple[Candidate, Selection]:
    """The best order of the classes at one C; then the best C.

    C goes up by steps of about three while that keeps the log loss good, and down if the first step
    up does not.
    """
    candidates = [
        _try_out(engine, engine.assignment(order), order, FIRST_C) for order in engine.orders
    ]
    first = _best(candidates)
    found = [first]
    for steps in (HIGHER, LOWER):
        for C in steps:
            found.append(_try_out(engine, first.model.assignment, first.trial.order, C))
            if not is_good(found[-1].trial, [each.trial for each in found]):
                break
        if len(found) > 2:  # higher values were good: lower ones are not
            break
    best = _best(found)
    trials = [each.trial for each in (*candidates, *found[1:])]
    return best, Selection(best.trial.order, best.trial.C, tuple(trials))


def _try_out(engine: Engine, assignment: PathAssignment, order: str, C: float) -> Candidate:
    """Train with these settings, without the held-out rows."""
    assert isinstance(engine.learner, LinearSVM)
    learner = replace(engine.learner, C=C)
    weights = engine.train_before(engine.rows(assignment), learner)
    model, _ = calibrated(engine.estimator, engine.model(assignment, weights), engine.sample)
    return Candidate(model, learner, trial_of(order, C, model, engine.sample))


def _best(candidates: list[Candidate]) -> Candidate:
    return candidates[choose([each.trial for each in candidates])]
