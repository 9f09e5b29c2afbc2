"""From labelled rows to a trained trellis: what happens between ``fit(X, y)`` and the model.

The classes are given paths (``graph.assignment``), the rows are held out or trained on
(``learning.rows``), every edge is trained (``learning.training``), and the decoding loss and the
temperature are fitted on held-out rows (``decoding.calibration``). Nothing here changes an
estimator: its parameters are read, and a new :class:`FittedTrellis` is returned.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ._arrays import Float32Array, IntArray, canonical_csr, squared_lengths
from ._checks import (
    check_bits,
    check_fraction,
    check_integer,
    check_jobs,
    check_magnitudes,
    check_threshold,
    checked_mask,
    class_weights,
    is_ragged,
    row_weights,
    weighted,
)
from ._memory import release_memory
from ._progress import training_progress
from .choosing import Choice, choose_settings
from .decoding.losses import get_loss
from .engine import Engine, assign_paths, in_units_of_rows
from .graph.trellis import Trellis
from .held_out import (
    Fold,
    calibrated,
    code_of,
    decodes_automatically,
    prunes_automatically,
    sets_calibrated_on,
    settled,
    stored,
    uncalibrated,
    verdict_of,
)
from .judging import Judged, log_loss, to_judge_by
from .learning.learners import Learner, SklearnLearner, get_learner
from .learning.rows import hold_out_rows, merge_rows, prepare_rows
from .learning.training import History, Report, ResidentBlocks, run_epochs
from .model.packed_arrays import Counts
from .prediction import TrellisModel
from .selection.settings import Selection

if TYPE_CHECKING:
    from .classifier import TrellisClassifier

SAMPLE = 2_000  # training rows that the training error is measured on
HELD_OUT_SAMPLE = 5_000  # held-out rows, at most, that losses and thresholds are fitted on
ENOUGH_JUDGED = 2_000  # held-out rows; with far fewer, others are held out as well, in turn,
MOST_FOLDS = 5  # so often at most


@dataclass(frozen=True, eq=False)
class FittedTrellis:
    """What training gives: the model, its history, and what held-out rows had to say."""

    model: TrellisModel
    history: History
    held_out_loss: float = float("nan")
    selection: Selection | None = None
    threshold: float = 0.0  # size up to which weights were dropped


# ---------------------------------------------------------------------- labelled rows


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Checked training rows that count, their classes as numbers, and their weights."""

    X: Any
    y_encoded: IntArray
    sample_weight: Float32Array
    classes: npt.NDArray[Any]
    may_hold_out: npt.NDArray[np.bool_] | None = None  # None: all of them

    def __getitem__(self, rows: npt.NDArray[Any]) -> LabelledRows:
        """Some of the rows, by their numbers or by a mask."""
        X, mask = canonical_csr(self.X[rows]), self.may_hold_out
        return replace(
            self,
            X=X,
            y_encoded=self.y_encoded[rows],
            sample_weight=self.sample_weight[rows],
            may_hold_out=None if mask is None else mask[rows],
        )


def labelled_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any = None,
    may_hold_out: Any = None,
    reset: bool = True,
) -> LabelledRows:
    """Check the rows for an estimator, which takes note of their features, and encode the labels.

    A class all of whose rows have a weight of zero is still one of the classes.
    """
    _check_complete(y)
    try:
        X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float32, reset=reset)
    except ValueError:
        if is_ragged(y):
            raise ValueError("y must have one label per row, but some rows have several") from None
        raise
    try:
        with warnings.catch_warnings():
            # Many classes with few rows each are what this library is for.
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            check_classification_targets(y)
        classes, y_encoded = np.unique(y, return_inverse=True)
    except (TypeError, ValueError):  # labels that cannot be sorted, or are of no known kind
        types = sorted({type(label).__name__ for label in y})
        if len(types) < 2:
            raise
        raise ValueError(
            f"y mixes labels of types {types[0]} and {types[1]}: convert all of them to one type"
        ) from None
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
    if may_hold_out is not None:
        may_hold_out = checked_mask("may_hold_out", may_hold_out, X.shape[0])[counted]
    if not counted.all():
        X, y_encoded, weights = X[counted], y_encoded[counted], weights[counted]
    return LabelledRows(
        X,
        y_encoded.astype(np.int64),
        np.ascontiguousarray(weights, np.float32),
        classes,
        may_hold_out,
    )


def _check_complete(y: Any) -> None:
    """Refuse a missing label, for which scikit-learn names no row, or which it takes as a text."""
    if not isinstance(y, list | tuple):
        if getattr(y, "ndim", 0) != 1 or getattr(y.dtype, "kind", "O") != "O":
            return
        y = np.asarray(y, object)
    for row, label in enumerate(y):
        if label is None or type(label).__name__ == "NAType" or _is_nan(label):
            raise ValueError(f"y[{row}] is missing ({label!r}): every row needs a label")


def _is_nan(label: Any) -> bool:
    return isinstance(label, float) and label != label


def class_sizes(data: LabelledRows, before: Counts | None = None) -> Counts:
    """Number of rows of each class, with those that were seen before."""
    n_classes = len(data.classes)
    sizes = np.bincount(data.y_encoded, minlength=n_classes)
    return Counts.of(sizes if before is None else sizes + before.values(n_classes))


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
    if isinstance(estimator.C, str) and estimator.C != "auto":
        raise ValueError(f"C must be a positive number or 'auto', got {estimator.C!r}")
    if estimator.rerank != "auto":
        check_threshold("rerank", estimator.rerank)
    if estimator.prune_threshold != "auto":
        check_threshold("prune_threshold", estimator.prune_threshold)
    _check_room(estimator)
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


def _check_room(estimator: TrellisClassifier) -> None:
    """Raise an error if there cannot be paths that no class has."""
    if estimator.max_classes is None:
        return
    check_integer("max_classes", estimator.max_classes, 2)
    if estimator.training != "local" or not decodes_automatically(estimator):
        raise ValueError("max_classes needs training='local' and decoding='auto'")
    if not isinstance(get_learner(estimator.learner), SklearnLearner):
        return
    raise ValueError(f"max_classes needs one of the library's learners, not {estimator.learner!r}")


def learner_of(estimator: TrellisClassifier) -> Learner:
    """The learner that the settings name; C is a parameter of the SVM alone."""
    by_name = isinstance(estimator.learner, str)
    if estimator.C != "auto" and not (by_name and estimator.learner == "svm"):
        raise ValueError(
            f"C applies only to learner='svm', got C={estimator.C!r} with "
            f"learner={estimator.learner!r}"
            + ("" if by_name else ": pass it to the learner itself")
        )
    C: Any = 1.0 if estimator.C == "auto" else estimator.C
    return get_learner(estimator.learner, C)


# ---------------------------------------------------------------------- training


def fit_trellis(
    estimator: TrellisClassifier,
    learner: Learner,
    data: LabelledRows,
    measure_held_out_loss: bool = False,
) -> FittedTrellis:
    """Train a trellis as an estimator's parameters say."""
    rng = check_random_state(estimator.random_state)
    sizes = class_sizes(data)
    learner = in_units_of_rows(estimator, learner, squared_lengths(data.X), data.sample_weight)
    if learner.merges_rows:
        merged = merge_rows(data.X, data.y_encoded, data.sample_weight, data.may_hold_out)
        data = LabelledRows(*merged[:3], data.classes, merged[3])
    share = estimator.validation_fraction if estimator.early_stopping else estimator.calibration
    if not estimator.early_stopping:  # more rows would be held out in vain
        share = min(share, HELD_OUT_SAMPLE / len(data.y_encoded))
    held_out = hold_out_rows(data.y_encoded, share, rng, data.may_hold_out)
    trellis = trellis_for(estimator, len(data.classes))
    train = _train_by_epochs if estimator.early_stopping else _train_and_calibrate
    fitted = train(estimator, learner, data, held_out, trellis, rng, measure_held_out_loss)
    fitted = replace(fitted, model=replace(fitted.model, class_sizes=sizes))
    fitted.history.training_error.append(_training_error(fitted.model, data, rng))
    return fitted


def trellis_for(estimator: TrellisClassifier, n_classes: int) -> Trellis:
    """The graph for a number of classes; a slice width above it means one-vs-rest."""
    from .selection.default_width import FEW_CLASSES, default_slice_width

    is_svm = estimator.training == "local" and isinstance(estimator.learner, str)
    is_svm = is_svm and estimator.learner == "svm"
    if estimator.max_classes is not None:
        if n_classes > estimator.max_classes:
            raise ValueError(
                f"y has {n_classes} classes, but max_classes is {estimator.max_classes}: raise it"
            )
        n_classes = int(estimator.max_classes)  # as many paths
    elif estimator.slice_width is None and is_svm and n_classes <= FEW_CLASSES:
        return Trellis(n_classes, n_classes)  # one-vs-rest
    if estimator.slice_width is None:
        return Trellis(n_classes, default_slice_width(n_classes))
    return Trellis(n_classes, min(int(estimator.slice_width), n_classes))


def _train_and_calibrate(
    estimator: TrellisClassifier,
    learner: Learner,
    data: LabelledRows,
    held_out: npt.NDArray[np.bool_],
    trellis: Trellis,
    rng: np.random.RandomState,
    measure_held_out_loss: bool,
) -> FittedTrellis:
    """Train on all rows, with settings that suit weights trained without the held-out rows."""
    drawn = rng.permutation(np.flatnonzero(held_out))[:HELD_OUT_SAMPLE]
    seed = rng.randint(2**31)
    engine = Engine(estimator, learner, data, held_out, trellis, data[drawn], seed)
    choice = choose_settings(engine)
    engine, before = choice.engine, choice.before
    engine.class_vectors.clear()  # no other order is asked for
    release_memory()
    # All rows are trained on; the held-out ones last, if there are no weights without them yet.
    outside = held_out if before is None else np.zeros_like(held_out)
    with training_progress(estimator.verbose) as report:
        rows = engine.rows(choice.assignment, outside)
        trained = engine.train(rows, choice.learner, report)
    before = trained.before if before is None else before
    weights, history = trained.weights, trained.history
    del rows, trained  # what is not needed any more must not add to the peak of memory
    release_memory()
    folds = []
    if before is not None:
        sample = to_judge_by(data, held_out, drawn)
        folds.append(Fold(engine.model(choice.assignment, before), held_out, sample))
    del before
    folds += _more_folds(choice, folds, rng)
    choice = replace(choice, before=None)
    release_memory()
    verdict = verdict_of(estimator, data, folds, measure_held_out_loss)
    weights = weights.above(verdict.threshold)
    release_memory()
    model = settled(estimator, engine.model(choice.assignment, weights), data, verdict)
    return FittedTrellis(model, history, verdict.log_loss, choice.selection, verdict.threshold)


def _more_folds(
    choice: Choice, folds: Sequence[Fold], rng: np.random.RandomState
) -> Iterator[Fold]:
    """Further rows, held out in turn, until there are enough to be sure of what they say."""
    engine, data = choice.engine, choice.engine.data
    if not folds or engine.estimator.training != "local" or not engine.learner.is_quick:
        return
    share = engine.estimator.calibration
    held_out = folds[0].held_out
    may_hold_out = np.ones_like(held_out) if data.may_hold_out is None else data.may_hold_out
    # As many folds as come nearest to enough rows: a few rows less are not worth a training.
    n_folds = round(ENOUGH_JUDGED / max(len(folds[0].sample.y_encoded), 1))
    for _ in range(min(n_folds, int(1 / share), MOST_FOLDS) - 1):
        may_hold_out = may_hold_out & ~held_out
        held_out = hold_out_rows(data.y_encoded, share, rng, may_hold_out)
        if not held_out.any():
            return
        fold = replace(engine, held_out=held_out, assignments={}, class_vectors={})
        assignment = choice.assignment
        if not fold.is_one_vs_rest:  # where the rows of a class decide which are its neighbours
            order = engine.orders[0] if choice.selection is None else choice.selection.order
            assignment = fold.assignment(order)
        weights = fold.train_before(fold.rows(assignment), choice.learner)
        yield Fold(fold.model(assignment, weights), held_out, to_judge_by(data, held_out))


def _train_by_epochs(
    estimator: TrellisClassifier,
    learner: Learner,
    data: LabelledRows,
    validation: npt.NDArray[np.bool_],
    trellis: Trellis,
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
    assignment = assign_paths(estimator, trellis, inside, rng)
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
            judged = calibrated(estimator, model, outside)
            model = judged.model
            held_out_loss = log_loss(judged) if measure_held_out_loss else held_out_loss
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
    model = best[0]
    if estimator.calibration:
        judged = [Judged(model, outside)]
        model = replace(model, conformal=sets_calibrated_on(judged, estimator.n_jobs))
    return FittedTrellis(model, history, best[1])


def _training_error(model: TrellisModel, data: LabelledRows, rng: np.random.RandomState) -> float:
    """Training error of the finished model, on at most 2,000 rows."""
    some = data[rng.permutation(data.X.shape[0])[:SAMPLE]]
    wrong = model.classify(some.X) != some.y_encoded
    return float(np.average(wrong, weights=some.sample_weight))
