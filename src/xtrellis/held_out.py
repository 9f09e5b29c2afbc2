"""What held-out rows decide: the decoding loss, the calibration, the pruning threshold.

Weights are first trained without the held-out rows. On these, the softmax at the vertices, the
calibration of the best paths and the largest harmless pruning threshold are found; then the weights
are trained on all rows and take over what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import sets
from ._arrays import Float32Array, FloatArray
from .choosing_reranking import rivals_of, with_reranking
from .decoding import calibration
from .decoding.calibration import Tempered
from .decoding.confidence import BestPaths, fit_best_paths
from .decoding.conformal import Conformal, conformal_of
from .decoding.losses import DecodingLoss, get_loss
from .decoding.reranking import ClassSums
from .graph.assignment import PathAssignment
from .graph.codebook import Code
from .graph.trellis import Trellis
from .judging import Judged, log_loss, ranks_of
from .learning.pruning import find_threshold
from .learning.rows import held_out_weights
from .model.weights import EdgeWeights
from .prediction import TrellisModel

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .fitting import LabelledRows

_TEMPERATURE_SAMPLE = 1_000  # of them, where the margins of all edges are needed
_FLOOR = 0.01  # of a block's largest weight: where a threshold is found later, it is higher
_PRUNING_LOSS = 0.001  # accuracy on held-out rows that the automatic threshold may cost
_PRUNING_SAMPLE = 2_500  # of them, which are classified at each threshold that is tried


# ---------------------------------------------------------------------- a model to judge


def code_of(estimator: TrellisClassifier) -> Code:
    """The code that edges trained in this way form."""
    return "local" if estimator.training == "local" else "independent"


def decodes_automatically(estimator: TrellisClassifier) -> bool:
    """Whether the decoding loss is left to the library."""
    return isinstance(estimator.decoding, str) and estimator.decoding == "auto"


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
        loss = calibration.LOCAL if code == "local" else get_loss("exponential")
    model = TrellisModel(classes, trellis, assignment, weights, loss, Tempered(loss, 1.0), code)
    return replace(model, calibration=BestPaths()) if model.is_lazy else model


# ---------------------------------------------------------------------- losses and calibration


def calibrated(estimator: TrellisClassifier, model: TrellisModel, rows: LabelledRows) -> Judged:
    """The model with a loss and a calibration fitted on rows its weights were trained without."""
    judged = Judged(model, rows)
    if len(rows.y_encoded) == 0:
        return judged
    judged = Judged(replace(model, loss=fitted_loss(estimator, [judged])), rows)
    return recalibrated(judged, fitted_calibration(estimator, [judged]))


def recalibrated(judged: Judged, calibration: BestPaths | Tempered) -> Judged:
    """The model with another calibration, which does not change what its best paths are."""
    model = replace(judged.model, calibration=calibration)
    lazily = isinstance(calibration, BestPaths)
    return Judged(model, judged.rows, judged.listed or judged.five_best if lazily else None)


def fitted_loss(estimator: TrellisClassifier, judged: Sequence[Judged]) -> DecodingLoss:
    """The softmax that suits the weights best, if the loss is left to us."""
    first = judged[0].model
    if first.code != "local" or not decodes_automatically(estimator):
        return first.loss
    evidence = [
        calibration.Evidence(
            each.model.weights, each.rows.X, each.true_paths, each.rows.sample_weight
        )
        for each in judged
    ]
    return calibration.fit_softmax(first.trellis, evidence, estimator.n_jobs)


def fitted_calibration(
    estimator: TrellisClassifier, judged: Sequence[Judged]
) -> BestPaths | Tempered:
    """Calibration under which the models are as often right as they claim."""
    first = judged[0].model
    if not first.is_lazy:
        return _fitted_temperature(estimator, first, judged[0].rows)
    costs = np.concatenate([each.five_best[1] for each in judged])
    ranks = np.concatenate([each.ranks for each in judged])
    return fit_best_paths(costs, ranks, _weights(judged), first.n_classes)


def _fitted_temperature(
    estimator: TrellisClassifier, model: TrellisModel, rows: LabelledRows
) -> Tempered:
    some = evenly(rows, _TEMPERATURE_SAMPLE)
    temperature = calibration.fit_temperature(
        model.trellis,
        model.margins(some.X),
        model.assignment.path_of_class[some.y_encoded],
        some.sample_weight,
        model.loss,
        estimator.n_jobs,
    )
    return Tempered(model.loss, temperature)


def _weights(judged: Sequence[Judged]) -> Float32Array:
    """How much the rows count that the models are judged by."""
    return np.concatenate([each.rows.sample_weight for each in judged])


def evenly(data: LabelledRows, n: int) -> LabelledRows:
    """At most n of the rows, evenly from all: they may be in the order of their classes."""
    n_rows = len(data.y_encoded)
    return data if n_rows <= n else data[np.linspace(0, n_rows - 1, n).astype(np.int64)]


# ---------------------------------------------------------------------- small weights


def prunes_automatically(estimator: TrellisClassifier) -> bool:
    """Whether the threshold below which weights are dropped is found on held-out rows."""
    return isinstance(estimator.prune_threshold, str)


def floor_of(estimator: TrellisClassifier) -> float:
    """Share of a block's largest weight below which weights are dropped when it is finished."""
    return _FLOOR if prunes_automatically(estimator) else 0.0


def stored(estimator: TrellisClassifier, weights: EdgeWeights) -> EdgeWeights:
    """Weights as the model keeps them."""
    return weights.rounded() if estimator.weight_bits == 8 else weights


def choose_threshold(judged: Sequence[Judged], n_jobs: int | None) -> float:
    """Largest threshold that costs these rows next to nothing.

    At most a tenth of a point of accuracy, and as much of top-5 accuracy: predictions alone would
    not show that the classes behind the best one had become noise.
    """
    n_rows = sum(len(each.rows.y_encoded) for each in judged)
    if n_rows * _PRUNING_LOSS < 1:
        return 0.0  # so few rows cannot show so small a loss
    share = min(1.0, _PRUNING_SAMPLE / n_rows)
    judged = [
        Judged(each.model, evenly(each.rows, int(share * len(each.rows.y_encoded))))
        for each in judged
    ]
    shares = _weights(judged) / _weights(judged).sum()
    k = min(5, judged[0].model.n_classes)

    def accuracies(weights: list[EdgeWeights]) -> FloatArray:
        models = [
            replace(each.model, weights=left) for each, left in zip(judged, weights, strict=True)
        ]
        ranks = np.concatenate(
            [
                ranks_of(model, each.rows.X, each.rows.y_encoded, k, n_jobs)
                for model, each in zip(models, judged, strict=True)
            ]
        )
        return np.array([shares @ (ranks == 0), shares @ (ranks >= 0)])

    full: list[FloatArray] = []

    def change(weights: list[EdgeWeights]) -> float:
        found = accuracies(weights)
        full.append(found)  # the first ones are those of all weights
        return float((found - full[0]).min())

    threshold, _ = find_threshold(
        [each.model.weights for each in judged],
        change,
        _PRUNING_LOSS,
        n_steps=6,
        least_share=0.01,
    )
    return threshold


# ---------------------------------------------------------------------- all of it


class Fold(NamedTuple):
    """A model that was trained without some of the rows, which rows, and a sample of them."""

    model: TrellisModel
    held_out: npt.NDArray[np.bool_]
    sample: LabelledRows


class Verdict(NamedTuple):
    """What held-out rows say of weights that were trained without them.

    Attributes
    ----------
    threshold : float
        Weights of at most this size are dropped.
    judged : list of Judged
        The models without these weights, calibrated; none if there are no held-out rows.
    trained_on : float
        Share of the rows that they were trained on.
    log_loss : float
        Mean of -log2 p(true class) on the held-out rows; nan if it was not asked for.
    """

    threshold: float
    judged: Sequence[Judged] = ()
    trained_on: float = 1.0
    log_loss: float = float("nan")


def verdict_of(
    estimator: TrellisClassifier,
    data: LabelledRows,
    folds: list[Fold],
    measure_held_out_loss: bool = False,
    are_sums: bool = False,
) -> Verdict:
    """What the held-out rows of some folds say together.

    The list is emptied: of the weights of the folds, only those that are not dropped are kept.
    ``data`` are rows, or their sums, class by class.
    """
    threshold = 0.0 if prunes_automatically(estimator) else float(estimator.prune_threshold)
    if not folds:
        return Verdict(threshold)
    trained_on = trained_share(data, folds)
    masks = [fold.held_out for fold in folds]
    judged = [Judged(fold.model, fold.sample) for fold in folds]
    folds.clear()
    judged = _pruned(judged, threshold)
    if prunes_automatically(estimator):
        judged = _afresh(_with_loss(estimator, judged))
        threshold = choose_threshold(judged, estimator.n_jobs)
        judged = _pruned(judged, threshold)
    judged = _with_loss(estimator, judged)
    inside = [~held_out for held_out in masks]
    judged = with_reranking(estimator, judged, data, inside, are_sums)
    fitted = fitted_calibration(estimator, judged)
    judged = [recalibrated(each, fitted) for each in judged]
    log_loss = _log_loss(judged) if measure_held_out_loss else float("nan")
    return Verdict(threshold, judged, trained_on, log_loss)


def settled(
    estimator: TrellisClassifier, model: TrellisModel, data: LabelledRows, verdict: Verdict
) -> TrellisModel:
    """A model whose small weights are dropped, with what the held-out rows say.

    Centroids and rivals are those of ``data``. Without held-out rows its losses stay as they are.
    """
    weights = stored(estimator, model.weights)
    if not verdict.judged:
        return replace(model, weights=weights)
    of_fold = verdict.judged[0].model
    model = replace(
        model,
        weights=weights,
        loss=of_fold.loss,
        calibration=of_fold.calibration,
        conformal=sets_calibrated_on(verdict.judged, estimator.n_jobs, verdict.trained_on),
    )
    centroids, rivals = of_fold.centroids, of_fold.rivals
    if rivals is not None:  # found without re-ranking
        own = rivals_of(model, data, None, rivals.n_entries, estimator.n_jobs)
        rivals = None if own is None else replace(own, strength=rivals.strength)
    if centroids is not None:
        fresh = ClassSums.of(data.X, data.y_encoded, model.n_classes).centroids(centroids.n_terms)
        centroids = replace(fresh, strength=centroids.strength)
    return replace(model, centroids=centroids, rivals=rivals)


def trained_share(data: LabelledRows, folds: Sequence[Fold]) -> float:
    """Share of the rows that the weights of the folds were trained on.

    It is 1 where held-out rows are weighted by what their classes had left: that makes up for it.
    """
    held_out = folds[0].held_out
    weights = held_out_weights(data.y_encoded, held_out, np.flatnonzero(held_out))
    if len(weights) == 0 or np.ptp(weights) > 0:
        return 1.0
    return float(1 - np.mean([fold.held_out.mean() for fold in folds]))


def _pruned(judged: Sequence[Judged], threshold: float) -> list[Judged]:
    return [
        Judged(replace(each.model, weights=each.model.weights.above(threshold)), each.rows)
        for each in judged
    ]


def _afresh(judged: Sequence[Judged]) -> list[Judged]:
    """The same, without the directories of the weights, which take more memory than they do."""
    return [
        Judged(replace(each.model, weights=replace(each.model.weights)), each.rows)
        for each in judged
    ]


def _with_loss(estimator: TrellisClassifier, judged: Sequence[Judged]) -> list[Judged]:
    loss = fitted_loss(estimator, judged)
    return [Judged(replace(each.model, loss=loss), each.rows) for each in judged]


def _log_loss(judged: Sequence[Judged]) -> float:
    weights = [each.rows.sample_weight.sum() for each in judged]
    return float(np.average([log_loss(each) for each in judged], weights=weights))


def sets_calibrated_on(
    judged: Sequence[Judged], n_jobs: int | None = None, trained_on: float = 1.0
) -> Conformal | None:
    """Which sets of classes contain the true class of these rows as often as asked.

    The models judged were trained on a share of what the model to predict with is trained on.
    """
    scores = [
        sets.scores_of_truth(
            each.model,
            each.rows.X,
            each.rows.y_encoded,
            each.rows.sample_weight,
            n_jobs,
            each.listed,
        )
        for each in judged
    ]
    of_rows, weights = (np.concatenate(parts) for parts in zip(*scores, strict=True))
    return conformal_of(of_rows, weights, trained_on)
