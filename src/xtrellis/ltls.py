"""LTLSClassifier: the ancestor of W-LTLS (Jasinska and Karampatziakis, 2016).

Section 4 of the paper. Slices of two vertices, the heaviest path as prediction, and *joint*
training: for each row the path is predicted, and the edges where it differs from the true path are
corrected, by the averaged perceptron. A class takes its path when it is first seen: the best one
that is still free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from ._arrays import IntArray, canonical_csr
from ._checks import check_fraction, check_integer, check_jobs
from ._progress import training_progress
from .base import TrellisPredictor, all_or_nothing
from .decoding import calibration
from .decoding.losses import get_loss
from .decoding.paths import layout
from .graph.assignment import PathAssignment
from .graph.trellis import Trellis
from .learning.greedy import GreedyAssignment
from .learning.rows import TrainingRows, hold_out_rows, prepare_rows, visiting_order
from .learning.training import History
from .model.weights import EdgeWeights, finish_block, join_blocks


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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X with labels y."""
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        check_integer("slice_width", self.slice_width, 2)
        check_integer("epochs", self.epochs, 1)
        check_fraction("calibration", self.calibration)
        check_jobs(self.n_jobs)
        X, codes, weights = self._encode(X, y, sample_weight)
        rng = check_random_state(self.random_state)
        self.trellis_ = Trellis(len(self.classes_), self.slice_width)
        self.code_ = "independent"
        self.temperature_, self.loss_ = 1.0, get_loss("squared")
        self.probability_loss_ = get_loss("log")
        held_out = hold_out_rows(codes, self.calibration, rng)
        if held_out.any():
            inside = ~held_out
            self._train(X[inside], codes[inside], weights[inside], rng)
            margins = self.weights_.margins(canonical_csr(X[held_out]))
            paths = self.assignment_.path_of_class[codes[held_out]]
            self.temperature_ = calibration.fit_temperature(
                self.trellis_, margins, paths, weights[held_out], get_loss("log")
            )
            self.probability_loss_ = calibration.Tempered(get_loss("log"), self.temperature_)
        self._train(X, codes, weights, rng)
        return self

    def _train(
        self,
        X: Any,
        codes: IntArray,
        weights: npt.NDArray[np.float32],
        rng: np.random.RandomState,
    ) -> None:
        """Weights and assignment from all of these rows."""
        # Paths are not known yet: each row comes with its class in place of one.
        nobody = np.zeros(len(codes), bool)
        shuffle = np.random.RandomState(rng.randint(2**31))
        rows = prepare_rows(self.trellis_, X, codes, weights, nobody, shuffle)
        codes = self.trellis_.path_numbers(rows.path_edges)
        with training_progress(self.verbose) as report:
            self.weights_, self.assignment_, self.history_ = train_jointly(
                self.trellis_,
                rows,
                codes,
                self.epochs,
                int(rng.randint(2**31)),
                self.n_features_in_,
                report,
            )


def train_jointly(
    trellis: Trellis,
    rows: TrainingRows,
    codes: IntArray,
    epochs: int,
    seed: int,
    n_features: int,
    report: Callable[[float, float], None] | None = None,
) -> tuple[EdgeWeights, PathAssignment, History]:
    """Averaged weights of all edges, the greedy assignment, and the share of errors an epoch.

    ``report`` is called after each epoch with its share of the work and of rows that were wrong.
    """
    from .kernels import joint

    X, rng = rows.X, np.random.default_rng(seed)
    greedy = GreedyAssignment(trellis)
    weights = np.zeros((X.shape[1], trellis.n_edges), np.float32)
    lags = np.zeros(weights.shape)
    margins = np.empty(trellis.n_edges, np.float32)
    history, clock = History(), 1.0
    for _ in range(epochs):
        order = visiting_order(np.arange(len(codes)), rng)
        errors, at = np.zeros(1), 0
        while at < len(order):
            at, clock = joint.joint_pass(
                X.indptr,
                X.indices,
                X.data,
                order,
                at,
                codes,
                greedy.path_of_class,
                *layout(trellis),
                rows.weights,
                clock,
                weights,
                lags,
                margins,
                errors,
            )
            if at < len(order):  # a class seen for the first time
                greedy.assign(int(codes[order[at]]), margins, "squared")
        history.training_error.append(float(errors[0]) / len(order))
        if report is not None:
            report(1 / epochs, history.training_error[-1])
    averaged = (weights - lags / clock).astype(np.float32)
    finished = finish_block(
        np.arange(trellis.n_edges), rows.features, averaged, np.zeros(trellis.n_edges)
    )
    joined = join_blocks([finished], n_features, trellis.n_edges)
    return joined, greedy.finish(), history
