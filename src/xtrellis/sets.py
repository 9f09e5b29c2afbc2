"""Sets of classes that contain the true class as often as asked, built from a model's best paths.

``decoding.conformal`` explains the idea and finds the thresholds; this module applies them to a
model's rows.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ._arrays import Float64Array, FloatArray, IntArray, canonical_csr
from ._threads import in_threads, thread_count
from .decoding.calibration import path_costs
from .decoding.confidence import N_BEST, BestPaths
from .decoding.conformal import conformal_of, sets_above, true_scores
from .decoding.paths import checked_costs, log_probabilities
from .decoding.reranking import N_RERANKED
from .prediction import TrellisModel

# Rows to calibrate on, at most: some have a true class of low rank, which is slow. With 5,000, the
# standard error of the coverage is 0.6 points at 80 %, and 0.4 at 90 %.
_SAMPLE = 5_000


def sets_of(
    model: TrellisModel, X: Any, coverage: float, n_jobs: int | None = None
) -> list[IntArray]:
    """Numbers of the classes in each row's set, best first; see ``conformal``."""
    if model.conformal is None:
        raise ValueError(
            "sets of classes need at least 100 rows that were held out in training, and this model "
            "has fewer: train on more rows, with the default setting"
        )
    threshold = model.conformal.threshold(coverage)
    return sets_above(_finder(model, X, n_jobs), X.shape[0], model.n_classes, threshold)


def likely_sets(
    model: TrellisModel, X: Any, sets: list[IntArray], n_jobs: int | None = None
) -> tuple[list[IntArray], list[Float64Array]]:
    """The classes of each set, the most likely first, and their probabilities.

    Probabilities are those of ``top_k``. Beyond the fifth class, their order is not always that of
    the scores that sets are made by.
    """
    sizes = np.array([len(own) for own in sets])
    ordered, probabilities = list(sets), [np.empty(0) for _ in sets]
    for size in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == size)
        classes, log_p = model.top_k(canonical_csr(X[rows]), size, n_jobs)
        order = np.argsort(-log_p, axis=1, kind="stable")
        classes = np.take_along_axis(classes, order, axis=1)
        shares = np.exp(np.take_along_axis(log_p, order, axis=1))
        for row, own, likely in zip(rows.tolist(), classes, shares, strict=True):
            ordered[row], probabilities[row] = own, likely
    return ordered, probabilities


def with_sets(
    model: TrellisModel, X: Any, y_encoded: IntArray, sample_weight: Any, n_jobs: int | None = None
) -> TrellisModel:
    """The model with its sets calibrated on rows that the weights were not trained on."""
    scores, weights = scores_of_truth(model, X, y_encoded, sample_weight, n_jobs)
    return replace(model, conformal=conformal_of(scores, weights))


def scores_of_truth(
    model: TrellisModel,
    X: Any,
    y_encoded: IntArray,
    sample_weight: Any,
    n_jobs: int | None = None,
    listed: tuple[IntArray, Float64Array, Float64Array] | None = None,
) -> tuple[Float64Array, FloatArray]:
    """Scores of the true classes of at most 5,000 of the rows, and how much these rows count.

    ``listed`` are the best paths of the rows, if they were found before.
    """
    sample_weight = np.asarray(sample_weight)
    if len(y_encoded) > _SAMPLE:
        some = np.random.default_rng(0).permutation(len(y_encoded))[:_SAMPLE]
        X, y_encoded = canonical_csr(X[some]), y_encoded[some]
        sample_weight = sample_weight[some]
        listed = None

    def score(rows: IntArray) -> Float64Array:
        return class_scores(model, canonical_csr(X[rows]), y_encoded[rows])

    known = None if listed is None else _scored(model, *listed[:2])
    scores = true_scores(_finder(model, X, n_jobs), score, y_encoded, model.n_classes, known)
    return scores, sample_weight


def _finder(model: TrellisModel, X: Any, n_jobs: int | None = None) -> Any:
    """Function that returns the k best classes of some rows, and their scores."""

    def find(rows: IntArray, k: int) -> tuple[IntArray, Float64Array]:
        cuts = np.linspace(0, len(rows), min(4 * thread_count(n_jobs), len(rows)) + 1)
        parts = in_threads(
            lambda cut: scored(model, canonical_csr(X[rows[cut[0] : cut[1]]]), k),
            pairwise(cuts.astype(int)),
            n_jobs,
        )
        return np.concatenate([part[0] for part in parts]), np.concatenate(
            [part[1] for part in parts]
        )

    return find


def scored(model: TrellisModel, X: Any, k: int) -> tuple[IntArray, Float64Array]:
    """Numbers of the k best classes of each row, and scores: the logs of their probabilities.

    Scores never rise from one class to the next, and do not depend on k. After the fifth class they
    therefore differ from those of ``top_k``.
    """
    if isinstance(model.calibration, BestPaths):
        paths, costs, _ = model.ranked(X, max(k, min(N_BEST, model.n_classes)))
        classes, scores = _scored(model, paths, costs)
        return classes[:, :k], scores[:, :k]
    paths, scores = model.best_of_all(X, k)
    return model.assignment.class_of_path[paths], np.minimum.accumulate(scores, axis=1)


def _scored(
    model: TrellisModel, paths: IntArray, costs: Float64Array
) -> tuple[IntArray, Float64Array]:
    """The same for paths that were found before, five or more, or all."""
    assert isinstance(model.calibration, BestPaths)
    costs = np.maximum.accumulate(costs, axis=1)
    scores = model.calibration.log_scores(costs, model.n_classes)
    return model.assignment.class_of_path[paths], scores


def class_scores(model: TrellisModel, X: Any, y_encoded: IntArray) -> Float64Array:
    """The score of one given class per row; other classes are listed only for re-ranking."""
    paths = model.assignment.path_of_class[y_encoded]
    if isinstance(model.calibration, BestPaths):
        n_ranked = N_RERANKED if model.reranks else N_BEST
        _, costs, _ = model.ranked(X, min(n_ranked, model.n_classes))
        own = path_costs(model.trellis, model.weights, X, paths, model.loss)
        own = np.maximum(own, costs[:, -1])  # as of the others behind those that are re-ranked
        every = np.concatenate([costs[:, :N_BEST], own[:, np.newaxis]], axis=1)
        return model.calibration.log_scores(every, model.n_classes)[:, -1]
    scores, start = np.empty(len(paths)), 0
    for margins in model.margin_batches(X):
        rows = slice(start, start + len(margins))
        start = rows.stop
        tempered = checked_costs(model.trellis, margins, model.calibration)
        scores[rows] = log_probabilities(model.trellis, tempered, paths[rows])
    return scores
