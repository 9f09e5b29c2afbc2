"""From labelled rows to a trained trellis: what happens between ``fit(X, y)`` and the model.

The classes are given paths (``graph.assignment``), the rows are held out or trained on
(``learning.rows``), every edge is trained (``learning.training``), and the decoding loss and the
temperature are fitted on held-out rows (``decoding.calibration``). Nothing here changes an
estimator: its parameters are read, and a new :class:`FittedTrellis` is returned.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ._arrays import Float32Array, FloatArray, IntArray, canonical_csr
from ._checks import (
    check_bits,
    check_fraction,
    check_integer,
    check_jobs,
    check_magnitudes,
    check_threshold,
    class_weights,
    row_weights,
    weighted,
)
from ._progress import training_progress
from .decoding import calibration
from .decoding.best_paths import N_BEST, BestPaths, fit_best_paths
from .decoding.losses import DecodingLoss, get_loss
from .graph.assignment import (
    PathAssignment,
    given_assignment,
    random_assignment,
    similarity_assignment,
)
from .graph.codebook import Code
from .graph.trellis import Trellis
from .learning.learners import Learner, get_learner
from .learning.pruning import find_threshold
from .learning.rows import hold_out_rows, merge_rows, prepare_rows
from .learning.training import History, Report, ResidentBlocks, run_epochs, train_edges
from .model.weights import EdgeWeights
from .prediction import TrellisModel

if TYPE_CHECKING:
    from .classifier import TrellisClassifier

_SAMPLE = 2_000  # training rows that the training error is measured on
_HELD_OUT_SAMPLE = 5_000  # held-out rows, at most, that losses and thresholds are fitted on
_TEMPERATURE_SAMPLE = 1_000  # of them, where the margins of all edges are needed
_FLOOR = 0.01  # of a block's largest weight: smaller ones are dropped when the block is finished
_PRUNING_LOSS = 0.001  # accuracy on held-out rows that the automatic threshold may cost


@dataclass(frozen=True, eq=False)
class FittedTrellis:
    """What training gives: the model, its history, and the log loss on held-out rows."""

    model: TrellisModel
    history: History
    held_out_loss: float = float("nan")


# ---------------------------------------------------------------------- labelled rows


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Checked training rows that count, their classes as numbers, and their weights."""

    X: Any
    y_encoded: IntArray
    sample_weight: Float32Array
    classes: npt.NDArray[Any]

    def __getitem__(self, rows: npt.NDArray[Any]) -> LabelledRows:
        """Some of the rows, by their numbers or by a mask."""
        X = canonical_csr(self.X[rows])
        return LabelledRows(X, self.y_encoded[rows], self.sample_weight[rows], self.classes)


def labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any = None
) -> LabelledRows:
    """Check the rows for an estimator, which takes note of their features, and encode the labels.

    A class all of whose rows have a weight of zero is still one of the classes.
    """
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float32)
    with warnings.catch_warnings():
        # Many classes with few rows each are what this library is for.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        check_classification_targets(y)
    classes, y_encoded = np.unique(y, return_inverse=True)
    weights = row_weights(sample_weight, X.shape[0])
    if class_weight is not None:
        weights = weighted(weights, class_weights(class_weight, classes, y)[y_encoded])
    counted = weights > 0
    if not counted.any():
        raise ValueError("sample_weight is zero for every row: no row is left to train on")
    n_counted = len(np.unique(y_encoded[counted]))
    if n_counted < 2:
        found = classes[np.unique(y_encoded[counted])].tolist()
        raise ValueError(f"y must have at least two classes, got one class only: {found}")
    X = canonical_csr(X)
    check_magnitudes(X, weights)
    if not counted.all():
        X, y_encoded, weights = X[counted], y_encoded[counted], weights[counted]
    return LabelledRows(
        X, y_encoded.astype(np.int64), np.ascontiguousarray(weights, np.float32), classes
    )


# ---------------------------------------------------------------------- settings


def check_settings(estimator: TrellisClassifier) -> Learner:
    """Learner of an estimator's settings, or an error that names the parameter that is wrong."""
    if estimator.training not in ("local", "independent"):
        raise ValueError(f"training must be 'local' or 'independent', got {estimator.training!r}")
    if isinstance(estimator.slice_width, str):
        if estimator.slice_width != "auto":
            raise ValueError(
                f"slice_width must be an integer of at least 2, 'auto' or None, "
                f"got {estimator.slice_width!r}"
            )
    elif estimator.slice_width is not None:
        check_integer("slice_width", estimator.slice_width, 2)
    if estimator.epochs is not None:
        check_integer("epochs", estimator.epochs, 1)
    check_integer("n_iter_no_change", estimator.n_iter_no_change, 1)
    check_bits("weight_bits", estimator.weight_bits)
    if estimator.prune_threshold != "auto":
        check_threshold("prune_threshold", estimator.prune_threshold)
    check_fraction("calibration", estimator.calibration)
    check_fraction("validation_fraction", estimator.validation_fraction)
    if isinstance(estimator.assignment, str) and estimator.assignment not in (
        "similarity",
        "random",
    ):
        raise ValueError(
            f"assignment must be 'similarity', 'random' or a permutation, "
            f"got {estimator.assignment!r}"
        )
    if not decodes_automatically(estimator):
        try:
            get_loss(estimator.decoding, code=code_of(estimator))
        except ValueError as error:
            raise ValueError(str(error).replace("loss must", "decoding must", 1)) from None
    check_jobs(estimator.n_jobs)
    if not isinstance(estimator.early_stopping, bool | np.bool_):
        raise ValueError(f"early_stopping must be True or False, got {estimator.early_stopping!r}")
    if not isinstance(estimator.verbose, bool):
        check_integer("verbose", estimator.verbose, 0)
    return learner_of(estimator)


def learner_of(estimator: TrellisClassifier) -> Learner:
    """The learner that the settings name; C is a parameter of the SVM alone."""
    by_name = isinstance(estimator.learner, str)
    if estimator.C != 1.0 and not (by_name and estimator.learner == "svm"):
        raise ValueError(
            f"C applies only to learner='svm', got C={estimator.C!r} with "
            f"learner={estimator.learner!r}"
            + ("" if by_name else ": pass it to the learner itself")
        )
    return get_learner(estimator.learner, estimator.C)


def code_of(estimator: TrellisClassifier) -> Code:
    """The code that edges trained in this way form."""
    return "ternary" if estimator.training == "local" else "binary"


def decodes_automatically(estimator: TrellisClassifier) -> bool:
    """Whether the decoding loss is left to the library."""
    return isinstance(estimator.decoding, str) and estimator.decoding == "auto"


# ---------------------------------------------------------------------- training


def fit_trellis(
    estimator: TrellisClassifier,
    learner: Learner,
    data: LabelledRows,
    measure_held_out_loss: bool = False,
) -> FittedTrellis:
    """Train a trellis as an estimator's parameters say."""
    rng = check_random_state(estimator.random_state)
    if learner.merges_rows:
        merged = merge_rows(data.X, data.y_encoded, data.sample_weight)
        data = LabelledRows(*merged, data.classes)
    share = estimator.validation_fraction if estimator.early_stopping else estimator.calibration
    held_out = hold_out_rows(data.y_encoded, share, rng)
    trellis = trellis_for(estimator, len(data.classes))
    # Rows held out must not influence which classes are neighbours of theirs, either.
    assignment = assign_paths(estimator, trellis, data[~held_out], rng)
    train = _train_by_epochs if estimator.early_stopping else _train_and_calibrate
    fitted = train(
        estimator, learner, data, held_out, trellis, assignment, rng, measure_held_out_loss
    )
    fitted.history.training_error.append(_training_error(fitted.model, data, rng))
    return fitted


def trellis_for(estimator: TrellisClassifier, n_classes: int) -> Trellis:
    """The graph for a number of classes; a slice width above it means one-vs-rest."""
    from .selection.widths import default_slice_width

    if estimator.slice_width is None:
        return Trellis(n_classes, default_slice_width(n_classes))
    return Trellis(n_classes, min(int(estimator.slice_width), n_classes))


def assign_paths(
    estimator: TrellisClassifier, trellis: Trellis, data: LabelledRows, rng: np.random.RandomState
) -> PathAssignment:
    """Assignment of classes to paths, as the parameter says."""
    if not isinstance(estimator.assignment, str):
        return given_assignment(trellis, estimator.assignment)
    if estimator.assignment == "random":
        return random_assignment(trellis, rng)
    order: Any = "depth_first" if estimator.training == "local" else "exit_first"
    return similarity_assignment(trellis, data.X, data.y_encoded, order, rng, estimator.n_jobs)


def _train_and_calibrate(
    estimator: TrellisClassifier,
    learner: Learner,
    data: LabelledRows,
    held_out: npt.NDArray[np.bool_],
    trellis: Trellis,
    assignment: PathAssignment,
    rng: np.random.RandomState,
    measure_held_out_loss: bool,
) -> FittedTrellis:
    """Train on all rows; calibrate on margins from weights trained without the held-out rows."""
    paths = assignment.path_of_class[data.y_encoded]
    rows = prepare_rows(trellis, data.X, paths, data.sample_weight, held_out, rng)
    training: Any = estimator.training
    seed = int(rng.randint(2**31))
    floor = _FLOOR if prunes_automatically(estimator) and held_out.any() else 0.0
    with training_progress(estimator.verbose) as report:
        trained = train_edges(
            *(trellis, rows, training, learner, estimator.epochs, estimator.n_jobs, seed, report),
            floor=floor,
        )
    threshold = 0.0 if prunes_automatically(estimator) else float(estimator.prune_threshold)
    model = uncalibrated(estimator, data.classes, trellis, assignment, trained.weights)
    loss = float("nan")
    if trained.before is not None:
        sample = data[rng.permutation(np.flatnonzero(held_out))[:_HELD_OUT_SAMPLE]]
        before = replace(model, weights=trained.before.above(threshold))
        if prunes_automatically(estimator):
            before = _with_fitted_loss(estimator, before, sample)
            threshold = choose_threshold(before, sample, estimator.n_jobs)
            before = replace(before, weights=before.weights.above(threshold))
        before, loss = _calibrated(estimator, before, sample, measure_held_out_loss)
        model = replace(model, loss=before.loss, calibration=before.calibration)
    model = replace(model, weights=stored(estimator, trained.weights.above(threshold)))
    return FittedTrellis(model, trained.history, loss)


def prunes_automatically(estimator: TrellisClassifier) -> bool:
    """Whether the threshold below which weights are dropped is found on held-out rows."""
    return isinstance(estimator.prune_threshold, str)


def stored(estimator: TrellisClassifier, weights: EdgeWeights) -> EdgeWeights:
    """Weights as the model keeps them."""
    return weights.rounded() if estimator.weight_bits == 8 else weights


def choose_threshold(model: TrellisModel, data: LabelledRows, n_jobs: int | None) -> float:
    """Largest threshold that costs these rows next to nothing.

    At most a tenth of a point of accuracy, and as much of top-5 accuracy: predictions alone would
    not show that the classes behind the best one had become noise.
    """
    truth = data.y_encoded[:, np.newaxis]
    share = data.sample_weight / data.sample_weight.sum()
    k = min(5, model.n_classes)

    def accuracies(weights: list[EdgeWeights]) -> FloatArray:
        best, _ = replace(model, weights=weights[0]).top_k(data.X, k, n_jobs)
        hits = best == truth
        return np.array([share @ hits[:, 0], share @ hits.any(axis=1)])

    full = accuracies([model.weights])
    threshold, _ = find_threshold(
        [model.weights],
        lambda weights: float((accuracies(weights) - full).min()),
        _PRUNING_LOSS,
        n_steps=6,
        least_share=0.01,
    )
    return threshold


def _train_by_epochs(
    estimator: TrellisClassifier,
    learner: Learner,
    data: LabelledRows,
    validation: npt.NDArray[np.bool_],
    trellis: Trellis,
    assignment: PathAssignment,
    rng: np.random.RandomState,
    measure_held_out_loss: bool,
) -> FittedTrellis:
    """Train epoch by epoch until the validation accuracy no longer rises; keep the best epoch."""
    if not validation.any():
        raise ValueError(
            f"early_stopping needs rows to set aside: validation_fraction = "
            f"{estimator.validation_fraction} of {len(data.y_encoded)} rows leaves none"
        )
    inside, outside = data[~validation], data[validation]
    paths = assignment.path_of_class[inside.y_encoded]
    none = np.zeros(len(paths), bool)
    rows = prepare_rows(trellis, inside.X, paths, inside.sample_weight, none, rng)
    training: Any = estimator.training
    seed = int(rng.randint(2**31))
    blocks = ResidentBlocks(trellis, rows, training, learner, estimator.n_jobs, seed)
    n_epochs = estimator.epochs or learner.epochs
    accuracies: list[float] = []
    best: tuple[TrellisModel, float]

    def stop(loss: float, report: Report | None) -> bool:
        nonlocal best
        weights = blocks.weights()
        if not prunes_automatically(estimator):
            weights = weights.above(float(estimator.prune_threshold))
        weights = stored(estimator, weights)
        model = uncalibrated(estimator, data.classes, trellis, assignment, weights)
        held_out_loss = float("nan")
        if estimator.calibration:
            model, held_out_loss = _calibrated(estimator, model, outside, measure_held_out_loss)
        right = model.classify(outside.X, estimator.n_jobs) == outside.y_encoded
        accuracies.append(float(np.average(right, weights=outside.sample_weight)))
        if report is not None:
            report(1 / n_epochs, loss)
        best_epoch = int(np.argmax(accuracies))
        if best_epoch == len(accuracies) - 1:
            best = model, held_out_loss
        return len(accuracies) - 1 - best_epoch >= estimator.n_iter_no_change

    with training_progress(estimator.verbose) as report:
        losses, seconds = run_epochs(blocks.step, n_epochs, partial(stop, report=report))
    history = History(losses, seconds, validation_accuracy=accuracies)
    return FittedTrellis(best[0], history, best[1])


def uncalibrated(
    estimator: TrellisClassifier,
    classes: npt.NDArray[Any],
    trellis: Trellis,
    assignment: PathAssignment,
    weights: EdgeWeights,
) -> TrellisModel:
    """Model with the default losses, or the one that was asked for, as they are."""
    code = code_of(estimator)
    loss: DecodingLoss
    if not decodes_automatically(estimator):
        loss = get_loss(estimator.decoding, code=code)
    else:
        loss = calibration.LOCAL if code == "ternary" else get_loss("exponential")
    model = TrellisModel(
        classes, trellis, assignment, weights, loss, calibration.Tempered(loss, 1.0), code
    )
    return replace(model, calibration=BestPaths()) if model.is_lazy else model


def _calibrated(
    estimator: TrellisClassifier,
    model: TrellisModel,
    data: LabelledRows,
    measure_held_out_loss: bool,
) -> tuple[TrellisModel, float]:
    """The model with losses fitted on rows that its weights were trained without.

    Also the mean of -log2 p(true class) on these rows, if wanted.
    """
    if len(data.y_encoded) == 0:
        return model, float("nan")
    model = _with_fitted_loss(estimator, model, data)
    paths, trellis = model.assignment.path_of_class[data.y_encoded], model.trellis
    if model.is_lazy:
        best, costs, _ = model.k_best(data.X, min(N_BEST, model.n_classes))
        hits = best == paths[:, np.newaxis]
        rank = np.where(hits.any(axis=1), hits.argmax(axis=1), -1)
        fitted: Any = fit_best_paths(costs, rank, data.sample_weight, model.n_classes)
    else:
        some = data[np.arange(len(paths))[:_TEMPERATURE_SAMPLE]]
        temperature = calibration.fit_temperature(
            trellis,
            model.margins(some.X),
            paths[: len(some.y_encoded)],
            some.sample_weight,
            model.loss,
            estimator.n_jobs,
        )
        fitted = calibration.Tempered(model.loss, temperature)
    model = replace(model, calibration=fitted)
    if not measure_held_out_loss:
        return model, float("nan")
    return model, model.log_loss(data.X, data.y_encoded, data.sample_weight)


def _with_fitted_loss(
    estimator: TrellisClassifier, model: TrellisModel, data: LabelledRows
) -> TrellisModel:
    """The model with the softmax that suits its weights best, if the loss is left to us."""
    if model.code != "ternary" or not decodes_automatically(estimator):
        return model
    paths = model.assignment.path_of_class[data.y_encoded]
    rows = model.weights, data.X, paths, data.sample_weight
    return replace(model, loss=calibration.fit_softmax(model.trellis, *rows, estimator.n_jobs))


def _training_error(model: TrellisModel, data: LabelledRows, rng: np.random.RandomState) -> float:
    """Training error of the finished model, on at most 2,000 rows."""
    some = data[rng.permutation(data.X.shape[0])[:_SAMPLE]]
    wrong = model.classify(some.X) != some.y_encoded
    return float(np.average(wrong, weights=some.sample_weight))
