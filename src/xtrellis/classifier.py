"""TrellisClassifier: the scikit-learn estimator.

It holds no mathematics. ``fit`` hands the data from one module to the next: classes to paths
(``path_assignment``), rows and edges to blocks, blocks to weights (``training``), held-out margins
to a temperature (``calibration``). Predictions are in ``prediction``.
"""

from __future__ import annotations

import time
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ._arrays import IntArray, canonical_csr
from ._checks import check_fraction, check_integer, check_jobs, check_memory, row_weights
from ._progress import training_progress
from .base import TrellisPredictor, all_or_nothing
from .decoding import calibration
from .decoding.losses import DecodingLoss, get_loss
from .graph.assignment import (
    PathAssignment,
    given_assignment,
    random_assignment,
    similarity_assignment,
)
from .graph.codebook import Code
from .graph.similarity import similarity_bytes
from .graph.trellis import Trellis
from .learning.learners import Learner, get_learner
from .learning.rows import TrainingRows, hold_out_rows, merge_rows, online_rows, prepare_rows
from .learning.training import History, OnlineBlocks, ResidentBlocks, TrainedEdges, train_edges
from .model.weights import EdgeWeights
from .selection.widths import default_slice_width, select_slice_width

_SAMPLE = 2_000  # training rows that the training error is measured on

_FITTED = ("weights_", "loss_", "temperature_", "probability_loss_", "held_out_loss_")


def _learns_online(self: TrellisClassifier) -> bool:
    if not get_learner(self.learner, self.C, self.r).online:
        raise AttributeError(
            f"partial_fit needs an online learner, 'arow', 'perceptron' or one with online = True: "
            f"{self.learner!r} learns from all rows at once"
        )
    return True


class TrellisClassifier(TrellisPredictor):
    """Classifier for many classes, with one linear learner for each edge of a trellis.

    Parameters
    ----------
    slice_width : int, "auto" or None, default=None
        Vertices in a slice of the trellis, b, from 2 (smallest model) to the number of classes
        (one-vs-rest). None chooses by :func:`default_slice_width`; "auto" trains a ladder of
        widths and keeps one, by :func:`select_slice_width`.
    training : {"local", "independent"}, default="local"
        Whether an edge learns from the rows whose path passes its tail, or from all rows.
    learner : {"svm", "arow", "perceptron"}, Learner or scikit-learn classifier, default="svm"
        What is trained for each edge.
    assignment : {"similarity", "random"} or array-like, default="similarity"
        Which class is which path; or the path of each class, in the order of ``classes_``.
    decoding : str, callable or decoding loss, default="auto"
        Loss that paths are judged by. "auto" is the exponential loss for independent training, and
        for local training a :class:`~xtrellis.decoding.VertexSoftmax` fitted on held-out rows.
    epochs : int or None, default=None
        Passes over the rows; None leaves it to the learner.
    C : float, default=1.0
        Of the SVM: weight of the loss.
    r : float, default=1.0
        Of AROW: its regulariser.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    calibration : float, default=0.1
        Share of the training rows that are first held out, to fit the decoding loss and the
        temperature of the probabilities on; then they are trained on, too. 0 leaves both as they
        are.
    early_stopping : bool, default=False
        Whether to stop when the accuracy on a validation part no longer rises, and keep the best
        epoch. Holds a dense state for all edges in memory.
    validation_fraction : float, default=0.1
        Share of the rows set aside for early stopping.
    n_iter_no_change : int, default=2
        Epochs without a better accuracy before training stops early.
    max_memory : float or None, default=None
        Bytes that training may use beside the caller's own data.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of all that is random.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    trellis_ : Trellis
    assignment_ : PathAssignment
    weights_ : EdgeWeights
    loss_ : decoding loss
    temperature_ : float
    history_ : History
    held_out_loss_ : float
        Of width selection: mean of -log2 p(true class) on the rows held out for calibration; nan
        if it was not measured.
    width_selection_ : WidthSelection
        With ``slice_width="auto"``: the widths tried. The width itself is that of ``trellis_``.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import TrellisClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TrellisClassifier(random_state=0).fit(X[:1500] / 16, y[:1500])
    >>> clf.score(X[1500:] / 16, y[1500:]) > 0.8
    True
    >>> labels, probabilities = clf.predict_top_k(X[1500:1502] / 16, k=3)
    >>> labels.shape, bool((probabilities.sum(axis=1) <= 1).all())
    ((2, 3), True)
    """

    _measures_held_out_loss = False  # width selection wants it, and it takes time

    def __init__(
        self,
        slice_width: int | str | None = None,
        *,
        training: str = "local",
        learner: Any = "svm",
        assignment: Any = "similarity",
        decoding: Any = "auto",
        epochs: int | None = None,
        C: float = 1.0,
        r: float = 1.0,
        class_weight: Any = None,
        calibration: float = 0.1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        max_memory: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.slice_width = slice_width
        self.training = training
        self.learner = learner
        self.assignment = assignment
        self.decoding = decoding
        self.epochs = epochs
        self.C = C
        self.r = r
        self.class_weight = class_weight
        self.calibration = calibration
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, slice_width: int | str, **parameters: Any) -> Self:
        """The paper's W-LTLS: independent AROW, random assignment, exponential decoding.

        >>> TrellisClassifier.paper(10, random_state=0)
        TrellisClassifier(assignment='random', calibration=0.0, learner='arow',
                          random_state=0, slice_width=10, training='independent')
        """
        settings: dict[str, Any] = {
            "training": "independent",
            "learner": "arow",
            "assignment": "random",
            "calibration": 0.0,
        }
        return cls(slice_width, **{**settings, **parameters})

    @property
    def _code(self) -> Code:
        return "local" if self.training == "local" else "independent"

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type that sorts.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Train; may leave the estimator half-way if it fails."""
        learner = self._checked_settings()
        if self.slice_width == "auto":
            return self._fit_auto(X, y, sample_weight)
        self.__dict__.pop("width_selection_", None)
        rng = check_random_state(self.random_state)
        X, codes, weights = self._encode(X, y, sample_weight)
        self.code_ = self._code
        if learner.merges_rows:
            X, codes, weights = merge_rows(X, codes, weights)
        self.trellis_ = Trellis(len(self.classes_), self._width(len(self.classes_)))
        share = self.validation_fraction if self.early_stopping else self.calibration
        held_out = hold_out_rows(codes, share, rng)
        # Rows held out must not have a say in what their class is beside, either.
        self.assignment_ = self._assign(canonical_csr(X[~held_out]), codes[~held_out], rng)
        self._online = None
        paths = self.assignment_.path_of_class[codes]
        if self.early_stopping:
            self._fit_early_stopping(X, codes, paths, weights, held_out, learner, rng)
        else:
            rows = prepare_rows(self.trellis_, X, paths, weights, held_out, rng)
            trained = self._train(rows, learner, rng)
            self._take(trained.weights, trained.history)
            held_out_paths = self.trellis_.path_numbers(rows.path_edges[trained.sample])
            self._calibrate(trained.sample_margins, held_out_paths, rows.weights[trained.sample])
        self._measure_training_error(X, codes, weights, rng)
        return self

    def _fit_auto(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Become the classifier that width selection chooses."""
        selection = select_slice_width(
            X, y, estimator=self, sample_weight=sample_weight, verbose=self.verbose
        )
        settings = self.get_params(deep=False)
        found = vars(selection.classifier)
        self.__dict__.update({name: found[name] for name in found if name not in settings})
        self.width_selection_ = replace(selection, classifier=None)
        return self

    def _assign(self, X: Any, codes: IntArray, rng: np.random.RandomState) -> PathAssignment:
        """Assignment of classes to paths, as the parameter says."""
        if not isinstance(self.assignment, str):
            return given_assignment(self.trellis_, self.assignment)
        if self.assignment == "random":
            return random_assignment(self.trellis_, rng)
        width = self.trellis_.slice_width
        needed = similarity_bytes(len(self.classes_), width, X, self.n_jobs)
        needed += X.data.nbytes + X.indices.nbytes
        advice = "say assignment='random'"
        check_memory(needed, self.max_memory, "ordering the classes by similarity", advice)
        laying: Any = "depth_first" if self.training == "local" else "exit_first"
        return similarity_assignment(self.trellis_, X, codes, laying, rng, self.n_jobs)

    def _width(self, n_classes: int) -> int:
        if self.slice_width is None:
            return default_slice_width(n_classes)
        width = int(self.slice_width)
        if width > n_classes:
            raise ValueError(
                f"slice_width must be from 2 to the number of classes ({n_classes}), got {width}"
            )
        return width

    def _train(
        self, rows: TrainingRows, learner: Learner, rng: np.random.RandomState
    ) -> TrainedEdges:
        """Weights of all edges, with a progress bar if wanted."""
        with training_progress(self.verbose) as report:
            return train_edges(
                self.trellis_,
                rows,
                self.training,  # type: ignore[arg-type]
                learner,
                self.epochs,
                self.n_jobs,
                int(rng.randint(2**31)),
                self.n_features_in_,
                self.max_memory,
                report,
            )

    def _take(self, weights: EdgeWeights, history: History) -> None:
        """Keep what was trained; losses are the default ones until they are fitted."""
        self.weights_, self.history_ = weights, history
        if isinstance(self.decoding, str) and self.decoding == "auto":
            self.loss_ = calibration.LOCAL if self._code == "local" else get_loss("exponential")
        else:
            self.loss_ = get_loss(self.decoding, code=self._code)
        self.temperature_, self.held_out_loss_ = 1.0, np.nan
        self.probability_loss_: DecodingLoss = self.loss_

    def _calibrate(self, margins: Any, paths: IntArray, weights: Any) -> None:
        """Fit the losses on margins of rows that the weights were trained without."""
        if len(paths) == 0:
            return
        given = (self.trellis_, margins, paths, weights)
        if self._code == "local" and isinstance(self.decoding, str) and self.decoding == "auto":
            self.loss_ = calibration.fit_softmax(*given, self.n_jobs)
        self.temperature_ = calibration.fit_temperature(*given, self.loss_, self.n_jobs)
        self.probability_loss_ = calibration.Tempered(self.loss_, self.temperature_)
        if self._measures_held_out_loss:
            self.held_out_loss_ = calibration.log_loss(
                self.trellis_, [margins], paths, self.probability_loss_, weights
            )

    def _fit_early_stopping(
        self,
        X: Any,
        codes: IntArray,
        paths: IntArray,
        weights: npt.NDArray[np.float32],
        validation: npt.NDArray[np.bool_],
        learner: Learner,
        rng: np.random.RandomState,
    ) -> None:
        """Epoch by epoch, until the validation accuracy no longer rises; keep the best epoch."""
        if not validation.any():
            raise ValueError(
                f"early_stopping needs rows to set aside: validation_fraction = "
                f"{self.validation_fraction} of {len(codes)} rows leaves none"
            )
        inside = ~validation
        nobody = np.zeros(int(inside.sum()), bool)
        rows = prepare_rows(self.trellis_, X[inside], paths[inside], weights[inside], nobody, rng)
        blocks = ResidentBlocks(
            self.trellis_,
            rows,
            self.training,  # type: ignore[arg-type]
            learner,
            self.n_jobs,
            int(rng.randint(2**31)),
            self.n_features_in_,
            self.max_memory,
        )
        history, best, waited = History(), -1.0, 0
        X_out, codes_out, weights_out = (
            canonical_csr(X[validation]),
            codes[validation],
            weights[validation],
        )
        n_epochs = self.epochs or learner.epochs
        with training_progress(self.verbose) as report:
            for _ in range(n_epochs):
                start = time.perf_counter()
                history.loss.append(blocks.step())
                history.seconds.append(time.perf_counter() - start)
                self._take(blocks.weights(), history)
                if self.calibration:
                    margins = self.weights_.margins(X_out)
                    self._calibrate(margins, paths[validation], weights_out)
                right = self._codes(X_out) == codes_out
                accuracy = float(np.average(right, weights=weights_out))
                history.validation_accuracy.append(accuracy)
                if report is not None:
                    report(1 / n_epochs, history.loss[-1])
                waited += 1
                if accuracy > best:
                    best, waited = accuracy, 0
                    kept = {name: vars(self)[name] for name in _FITTED}
                if waited >= self.n_iter_no_change:
                    break
        self.__dict__.update(kept)

    def _measure_training_error(
        self,
        X: Any,
        codes: IntArray,
        weights: npt.NDArray[np.float32],
        rng: np.random.RandomState,
    ) -> None:
        """Training error of the finished model, on at most 2,000 rows."""
        sample = rng.permutation(X.shape[0])[:_SAMPLE]
        wrong = self._codes(canonical_csr(X[sample])) != codes[sample]
        error = np.average(wrong, weights=weights[sample])
        self.history_.training_error.append(float(error))

    @available_if(_learns_online)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch of rows, each visited once. For online learners (AROW, perceptron).

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        classes : array-like, default=None
            All classes there will be; needed at the first call, unless the model was fitted
            before. The first batch also says which classes are alike, if the assignment is by
            similarity.
        """
        with all_or_nothing(self):
            return self._partial_fit(X, y, classes, sample_weight)

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        """Learn from a batch; may leave the estimator half-way if it fails."""
        learner = self._checked_settings()
        first = not hasattr(self, "classes_")
        if first and self.slice_width == "auto":
            raise ValueError(
                "slice_width='auto' needs all rows at once: give partial_fit a number, or None"
            )
        if first and classes is None:
            raise ValueError("classes must be given at the first call of partial_fit")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all rows at once: "
                f"give partial_fit a dict of weights"
            )
        if (
            not first
            and classes is not None
            and not np.array_equal(np.unique(classes), self.classes_)
        ):
            raise ValueError("classes must be the same at every call of partial_fit")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32, reset=first)
        X, weights = canonical_csr(X), row_weights(sample_weight, X.shape[0])
        if self.class_weight is not None:
            weights = weights * np.array([self.class_weight.get(label, 1.0) for label in y])
        if first:
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError("classes must name at least two classes")
            self.trellis_ = Trellis(len(self.classes_), self._width(len(self.classes_)))
            self.code_ = self._code
        codes = self._known_codes(y)
        if first:
            self.assignment_ = self._assign(X, codes, check_random_state(self.random_state))
            self.history_ = History()
        online: OnlineBlocks | None = getattr(self, "_online", None)
        if online is None:
            needed = self.n_features_in_ * self.trellis_.n_edges * learner.bytes_a_weight
            check_memory(needed, self.max_memory, "partial_fit, which keeps all edges dense,")
            online = OnlineBlocks(
                self.trellis_,
                self.training,  # type: ignore[arg-type]
                learner,
                self.n_features_in_,
                getattr(self, "weights_", None),
            )
        counted = weights > 0
        paths = self.assignment_.path_of_class[codes[counted]]
        rows = online_rows(self.trellis_, X[counted], paths, weights[counted])
        self._online = online
        self.history_.loss.append(online.learn(rows))
        if first:
            self._take(online.weights(), self.history_)
        else:
            self.weights_ = online.weights()
        return self

    # ------------------------------------------------------------------ settings

    def _checked_settings(self) -> Learner:
        """Learner of these settings, or an error that names the parameter that is wrong."""
        if self.training not in ("local", "independent"):
            raise ValueError(f"training must be 'local' or 'independent', got {self.training!r}")
        if isinstance(self.slice_width, str):
            if self.slice_width != "auto":
                raise ValueError(
                    f"slice_width must be an integer of at least 2, 'auto' or None, "
                    f"got {self.slice_width!r}"
                )
        elif self.slice_width is not None:
            check_integer("slice_width", self.slice_width, 2)
        if self.epochs is not None:
            check_integer("epochs", self.epochs, 1)
        check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        check_fraction("calibration", self.calibration)
        check_fraction("validation_fraction", self.validation_fraction)
        if self.max_memory is not None and not (
            isinstance(self.max_memory, Real) and float(self.max_memory) > 0
        ):
            raise ValueError(
                f"max_memory must be a positive number of bytes, got {self.max_memory!r}"
            )
        if isinstance(self.assignment, str) and self.assignment not in ("similarity", "random"):
            raise ValueError(
                f"assignment must be 'similarity', 'random' or a permutation, "
                f"got {self.assignment!r}"
            )
        if not (isinstance(self.decoding, str) and self.decoding == "auto"):
            try:
                get_loss(self.decoding, code=self._code)
            except ValueError as error:
                raise ValueError(str(error).replace("loss must", "decoding must", 1)) from None
        check_jobs(self.n_jobs)
        if not isinstance(self.early_stopping, bool | np.bool_):
            raise ValueError(f"early_stopping must be True or False, got {self.early_stopping!r}")
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, 0)
        return get_learner(self.learner, self.C, self.r)
