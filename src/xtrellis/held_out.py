"""What held-out rows decide: the decoding loss, the calibration, the pruning threshold.

Weights are first trained without the held-out rows. On these, the softmax at the vertices, the
calibration of the best paths and the largest harmless pruning threshold are found; then the weights
are trained on all rows and take over what was found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import sets
from ._arrays import FloatArray
from .decoding import calibration
from .decoding.confidence import N_BEST, BestPaths, fit_best_paths
from .decoding.losses import DecodingLoss, get_loss
from .decoding.reranking import N_RERANKED, centroids_of, choose_strength
from .graph.assignment import PathAssignment
from .graph.codebook import Code
from .graph.trellis import Trellis
from .learning.pruning import find_threshold
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
    model = TrellisModel(
        classes, trellis, assignment, weights, loss, calibration.Tempered(loss, 1.0), code
    )
    return replace(model, calibration=BestPaths()) if model.is_lazy else model


# ---------------------------------------------------------------------- losses and calibration


def calibrated(
    estimator: TrellisClassifier,
    model: TrellisModel,
    data: LabelledRows,
    measure_held_out_loss: bool = False,
) -> tuple[TrellisModel, float]:
    """The model with a calibration fitted on rows that its weights were trained without.

    Its loss is fitted before, by :func:`with_fitted_loss`. Also the mean of -log2 p(true class) on
    these rows, if wanted.
    """
    if len(data.y_encoded) == 0:
        return model, float("nan")
    paths, trellis = model.assignment.path_of_class[data.y_encoded], model.trellis
    if model.is_lazy:
        best, costs, _ = model.ranked(data.X, min(N_BEST, model.n_classes))
        hits = best == paths[:, np.newaxis]
        rank = np.where(hits.any(axis=1), hits.argmax(axis=1), -1)
        fitted: Any = fit_best_paths(costs, rank, data.sample_weight, model.n_classes)
    else:
        some = _evenly(data, _TEMPERATURE_SAMPLE)
        temperature = calibration.fit_temperature(
            trellis,
            model.margins(some.X),
            model.assignment.path_of_class[some.y_encoded],
            some.sample_weight,
            model.loss,
            estimator.n_jobs,
        )
        fitted = calibration.Tempered(model.loss, temperature)
    model = replace(model, calibration=fitted)
    if not measure_held_out_loss:
        return model, float("nan")
    return model, model.log_loss(data.X, data.y_encoded, data.sample_weight)


def _evenly(data: LabelledRows, n: int) -> LabelledRows:
    """At most n of the rows, evenly from all: they may be in the order of their classes."""
    n_rows = len(data.y_encoded)
    return data if n_rows <= n else data[np.linspace(0, n_rows - 1, n).astype(np.int64)]


def with_fitted_loss(
    estimator: TrellisClassifier, model: TrellisModel, data: LabelledRows
) -> TrellisModel:
    """The model with the softmax that suits its weights best, if the loss is left to us."""
    if model.code != "local" or not decodes_automatically(estimator):
        return model
    paths = model.assignment.path_of_class[data.y_encoded]
    rows = model.weights, data.X, paths, data.sample_weight
    return replace(model, loss=calibration.fit_softmax(model.trellis, *rows, estimator.n_jobs))


def with_sets(model: TrellisModel, data: LabelledRows, n_jobs: int | None = None) -> TrellisModel:
    """The model with sets of classes calibrated on rows that its weights were trained without."""
    if len(data.y_encoded) == 0:
        return model
    return sets.with_sets(model, data.X, data.y_encoded, data.sample_weight, n_jobs)


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


def choose_threshold(model: TrellisModel, data: LabelledRows, n_jobs: int | None) -> float:
    """Largest threshold that costs these rows next to nothing.

    At most a tenth of a point of accuracy, and as much of top-5 accuracy: predictions alone would
    not show that the classes behind the best one had become noise.
    """
    if len(data.y_encoded) * _PRUNING_LOSS < 1:
        return 0.0  # so few rows cannot show so small a loss
    data = _evenly(data, _PRUNING_SAMPLE)
    truth = data.y_encoded[:, np.newaxis]
    share = data.sample_weight / data.sample_weight.sum()
    k = min(5, model.n_classes)

    def accuracies(weights: list[EdgeWeights]) -> FloatArray:
        best = replace(model, weights=weights[0]).best_classes(data.X, k, n_jobs)
        hits = best == truth
        return np.array([share @ hits[:, 0], share @ hits.any(axis=1)])

    full: list[FloatArray] = []

    def change(weights: list[EdgeWeights]) -> float:
        found = accuracies(weights)
        full.append(found)  # the first ones are those of all weights
        return float((found - full[0]).min())

    threshold, _ = find_threshold(
        [model.weights], change, _PRUNING_LOSS, n_steps=6, least_share=0.01
    )
    return threshold


# ---------------------------------------------------------------------- re-ranking


def with_centroids(
    estimator: TrellisClassifier, model: TrellisModel, inside: LabelledRows, sample: LabelledRows
) -> TrellisModel:
    """The model with centroids of the rows it was trained on, if they help the held-out ones."""
    if estimator.rerank == 0 or not model.is_lazy:
        return model
    centroids = centroids_of(inside.X, inside.y_encoded, model.n_classes)
    if estimator.rerank != "auto":
        return replace(model, centroids=replace(centroids, strength=float(estimator.rerank)))
    paths, costs, _ = model.k_best(sample.X, min(N_RERANKED, model.n_classes))
    classes = model.assignment.class_of_path[paths]
    hits = classes == sample.y_encoded[:, np.newaxis]
    cosines = centroids.cosines(sample.X, classes)
    strength = choose_strength(costs, cosines, hits, sample.sample_weight)
    return replace(model, centroids=replace(centroids, strength=strength)) if strength else model


# ---------------------------------------------------------------------- all of it


def settled(
    estimator: TrellisClassifier,
    model: TrellisModel,
    before: EdgeWeights | None,
    data: LabelledRows,
    held_out: npt.NDArray[np.bool_],
    sample: LabelledRows,
    measure_held_out_loss: bool = False,
) -> tuple[TrellisModel, float, float]:
    """A model trained on all rows with what a sample of held-out rows says of its weights before.

    Also the loss on these, as :func:`calibrated` measures it, and the pruning threshold. Without
    weights ``before`` nothing is judged. Centroids are those of ``data``.
    """
    threshold = 0.0 if prunes_automatically(estimator) else float(estimator.prune_threshold)
    loss = float("nan")
    if before is not None:
        judged = replace(model, weights=before.above(threshold))
        if prunes_automatically(estimator):
            judged = with_fitted_loss(estimator, judged, sample)
            threshold = choose_threshold(judged, sample, estimator.n_jobs)
            judged = replace(judged, weights=judged.weights.above(threshold))
        judged = with_fitted_loss(estimator, judged, sample)
        judged = with_centroids(estimator, judged, data[~held_out], sample)
        judged, loss = calibrated(estimator, judged, sample, measure_held_out_loss)
        sets = with_sets(judged, sample, estimator.n_jobs).conformal
        model = replace(model, loss=judged.loss, calibration=judged.calibration, conformal=sets)
        if judged.centroids is not None:
            centroids = centroids_of(data.X, data.y_encoded, model.n_classes)
            centroids = replace(centroids, strength=judged.centroids.strength)
            model = replace(model, centroids=centroids)
    weights = stored(estimator, model.weights.above(threshold))
    return replace(model, weights=weights), loss, threshold
