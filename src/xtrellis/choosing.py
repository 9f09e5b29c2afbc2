"""How ``fit`` chooses the order of the classes and C: by weights trained without held-out rows.

The settings themselves, and the rule by which one is taken, are in ``selection.settings``.
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
from .learning.training import Report, TrainedEdges, train_edges, train_path
from .model.weights import EdgeWeights
from .prediction import TrellisModel
from .selection.settings import CANDIDATES, ORDER_C, ORDERS, Selection, Trial, choose, trial_of

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .fitting import LabelledRows

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
        return automatic and bool(self.held_out.any())

    @property
    def floor(self) -> float:
        """Share of a block's largest weight below which weights are dropped at once."""
        return _FLOOR if prunes_automatically(self.estimator) and self.held_out.any() else 0.0

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
        estimator, training = self.estimator, self._training
        settings = estimator.epochs, estimator.n_jobs, self.seed, report, self.floor
        return train_edges(self.trellis, rows, training, learner, *settings)

    def path(self, rows: TrainingRows, learners: list[Learner]) -> list[EdgeWeights]:
        """Weights trained without the held-out rows, for each learner in turn."""
        estimator, training = self.estimator, self._training
        settings = estimator.epochs, estimator.n_jobs, self.seed, self.floor
        return train_path(self.trellis, rows, training, learners, *settings)

    @property
    def _training(self) -> Any:
        return self.estimator.training

    def trial(self, model: TrellisModel, order: str, C: float) -> Trial:
        """What the held-out rows say of a model."""
        model, _ = calibrated(self.estimator, model, self.sample)
        return trial_of(order, C, model, self.sample)


def select_order(engine: Engine) -> tuple[PathAssignment, str, list[Trial]]:
    """Assignment of classes to paths, the name of its order, and the trials it was chosen by."""
    from .fitting import assign_paths

    estimator, rng = engine.estimator, np.random.RandomState(engine.seed)
    # Rows held out must not influence which classes are neighbours of theirs, either.
    inside = engine.data[~engine.held_out]
    given = not isinstance(estimator.assignment, str) or estimator.assignment != "similarity"
    if given or not engine.chooses or estimator.training != "local":
        order = "given" if given else ORDERS[0]
        return assign_paths(estimator, engine.trellis, inside, rng), order, []
    probe: Any = replace(engine.learner, C=ORDER_C)
    assignments: dict[str, PathAssignment] = {}
    trials: list[Trial] = []
    for order in ORDERS:
        rng = np.random.RandomState(engine.seed)
        assignments[order] = assign_paths(estimator, engine.trellis, inside, rng, order)
        (weights,) = engine.path(engine.rows(assignments[order]), [probe])
        trials.append(engine.trial(_model(engine, assignments[order], weights), order, ORDER_C))
    best = choose(trials)
    return assignments[best.order], best.order, trials


def select_C(  # noqa: N802
    engine: Engine, assignment: PathAssignment, order: str, trials: list[Trial]
) -> tuple[TrellisModel, Learner, EdgeWeights | None, Selection | None]:
    """A model to train, its learner, its weights without held-out rows, and how C was chosen."""
    if not engine.chooses:
        empty: Any = _no_weights(engine)
        return _model(engine, assignment, empty), engine.learner, None, None
    learners: list[Any] = [replace(engine.learner, C=C) for C in CANDIDATES]
    path = engine.path(engine.rows(assignment), learners)
    models = [_model(engine, assignment, weights) for weights in path]
    tried = [engine.trial(model, order, C) for model, C in zip(models, CANDIDATES, strict=True)]
    best = choose(tried)
    chosen = tried.index(best)
    selection = Selection(order, best.C, (*trials, *tried))
    return models[chosen], learners[chosen], path[chosen], selection


def _model(engine: Engine, assignment: PathAssignment, weights: EdgeWeights) -> TrellisModel:
    return uncalibrated(engine.estimator, engine.data.classes, engine.trellis, assignment, weights)


def _no_weights(engine: Engine) -> EdgeWeights:
    """Weights that stand for those to come."""
    from .model.weights import gather_blocks

    edges = np.arange(engine.trellis.n_edges)
    return gather_blocks([], [edges], engine.data.X.shape[1], np.zeros(len(edges), np.float32))
