"""LTLSClassifier: the ancestor of W-LTLS (Jasinska and Karampatziakis, 2016).

Section 4 of the paper. Slices of two vertices, the heaviest path as prediction, and *joint*
training: for each row the path is predicted, and the edges where it differs from the true path are
corrected, by the averaged perceptron. A class takes its path when it is first seen: the best one
that is still free.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from ._arrays import Float32Array, IntArray
from ._changing import built_aside
from ._checks import check_fraction, check_integer, check_jobs
from ._progress import training_progress
from .base import TrellisPredictor
from .decoding import calibration
from .decoding.losses import get_loss
from .fitting import LabelledRows, class_sizes, labelled_rows
from .graph.assignment import PathAssignment
from .graph.trellis import Trellis
from .held_out import sets_calibrated_on
from .judging import Judged
from .learning.greedy import GreedyAssignment
from .learning.rows import hold_out_rows, shuffled_rows, visiting_order
from .learning.training import History, Report, run_epochs
from .model.finished_block import finish_block
from .model.weights import EdgeWeights, gather_blocks
from .prediction import TrellisModel


class LTLSClassifier(TrellisPredictor):
    """Log-time log-space classifier: a trellis trained jointly, with greedy path assignment.

    Parameters
    ----------
    slice_width : int, default=2
        Vertices in a slice of the trellis.
    epochs : int, default=5
        Passes over the rows.
    calibration : float, default=0.0
        Share of the rows for a temperature of the probabilities, as in
        :class:`~xtrellis.TrellisClassifier`; above 0 trains twice.
    n_jobs : int or None, default=None
        Threads for prediction; joint training is one after the other.
    random_state : int, RandomState or None, default=None
        Seed of the order of rows.
    verbose : int, default=0
        Whether to show a progress bar, with the share of rows that were wrong.

    Attributes
    ----------
    classes_, trellis_, assignment_, weights_, loss_, temperature_, history_, n_features_in_
        As of :class:`~xtrellis.TrellisClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import LTLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = LTLSClassifier(random_state=0).fit(X[:1500] / 16, y[:1500])
    >>> clf.score(X[1500:] / 16, y[1500:]) > 0.6
    True
    """

    history_: History

    def __init__(
        self,
        slice_width: int = 2,
        *,
        epochs: int = 5,
        calibration: float = 0.0,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.slice_width = slice_width
        self.epochs = epochs
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, may_hold_out: Any = None) -> Self:
        """Train on rows X with labels y; see :meth:`TrellisClassifier.fit`."""
        check_integer("slice_width", self.slice_width, 2)
        check_integer("epochs", self.epochs, 1)
        check_fraction("calibration", self.calibration)
        check_jobs(self.n_jobs)
        with built_aside(self, fresh=True) as new:
            data = labelled_rows(new, X, y, sample_weight, may_hold_out=may_hold_out)
            new.model_, new.history_ = new._fit(data, check_random_state(self.random_state))
        return self

    def _fit(self, data: LabelledRows, rng: np.random.RandomState) -> tuple[TrellisModel, History]:
        """Train on all rows; before that without some of them, to fit the temperature on those."""
        probability_loss, sets = calibration.Tempered(get_loss("log"), 1.0), None
        held_out = hold_out_rows(data.y_encoded, self.calibration, rng, data.may_hold_out)
        if held_out.any():
            model, _ = self._train(data[~held_out], probability_loss, rng)
            outside = data[held_out]
            temperature = calibration.fit_temperature(
                model.trellis,
                model.margins(outside.X),
                model.assignment.path_of_class[outside.y_encoded],
                outside.sample_weight,
                probability_loss,
            )
            probability_loss = calibration.Tempered(probability_loss.loss, temperature)
            judged = Judged(replace(model, calibration=probability_loss), outside)
            sets = sets_calibrated_on([judged], trained_on=1 - float(held_out.mean()))
        model, history = self._train(data, probability_loss, rng)
        return replace(model, conformal=sets, class_sizes=class_sizes(data)), history

    def _train(
        self, data: LabelledRows, probability_loss: calibration.Tempered, rng: np.random.RandomState
    ) -> tuple[TrellisModel, History]:
        """Weights and assignment from all of these rows."""
        n_classes = len(data.classes)
        trellis = Trellis(n_classes, min(self.slice_width, n_classes))
        with training_progress(self.verbose) as report:
            weights, assignment, history = train_jointly(trellis, data, self.epochs, rng, report)
        model = TrellisModel(
            data.classes,
            trellis,
            assignment,
            weights,
            get_loss("squared"),
            probability_loss,
            "independent",
        )
        return model, history


def train_jointly(
    trellis: Trellis,
    data: LabelledRows,
    epochs: int,
    rng: np.random.RandomState,
    report: Report | None = None,
) -> tuple[EdgeWeights, PathAssignment, History]:
    """Averaged weights of all edges, the greedy assignment, and the share of errors per epoch.

    ``report`` is called after each epoch with its share of the work and of rows that were wrong.
    """
    X, features, order = shuffled_rows(data.X, np.random.RandomState(rng.randint(2**31)))
    joint = JointTraining(
        trellis,
        X,
        data.y_encoded[order],
        data.sample_weight[order],
        np.random.default_rng(int(rng.randint(2**31))),
    )

    def stop(error: float) -> bool:
        if report is not None:
            report(1 / epochs, error)
        return False

    history = History()
    history.training_error, _ = run_epochs(joint.step, epochs, stop)
    edges = np.arange(trellis.n_edges)
    finished = finish_block(edges, features, joint.averaged(), np.zeros(trellis.n_edges))
    weights = gather_blocks([finished], [edges], data.X.shape[1], finished.bias)
    return weights, joint.greedy.finish(), history


class JointTraining:
    """The averaged structured perceptron under way: weights, their lags, and the paths so far."""

    def __init__(
        self,
        trellis: Trellis,
        X: Any,
        y_encoded: IntArray,
        sample_weight: Float32Array,
        rng: np.random.Generator,
    ) -> None:
        self.trellis, self.X, self.rng = trellis, X, rng
        self.y_encoded, self.sample_weight = y_encoded, sample_weight
        self.greedy = GreedyAssignment(trellis)
        self.weights = np.zeros((X.shape[1], trellis.n_edges), np.float32)
        self.lags = np.zeros(self.weights.shape)
        self.margins = np.empty(trellis.n_edges, np.float32)
        self.clock = 1.0

    def step(self) -> float:
        """Visit each row once; the share of rows that were predicted wrongly."""
        from .kernels import joint

        order = visiting_order(np.arange(len(self.y_encoded)), self.rng)
        errors, at = np.zeros(1), 0
        while at < len(order):
            at, self.clock = joint.joint_pass(
                self.X.indptr,
                self.X.indices,
                self.X.data,
                order,
                at,
                self.y_encoded,
                self.greedy.path_of_class,
                self.trellis.arrays,
                self.sample_weight,
                self.clock,
                self.weights,
                self.lags,
                self.margins,
                errors,
            )
            if at < len(order):  # a class seen for the first time
                self.greedy.assign(int(self.y_encoded[order[at]]), self.margins, "squared")
        return float(errors[0]) / len(order)

    def averaged(self) -> Float32Array:
        """Mean over time: the final weights less how late each update came."""
        return (self.weights - self.lags / self.clock).astype(np.float32)
