"""How held-out rows choose what the best classes are ordered once more by, if by anything.

By centroids first (``decoding.reranking``); then, on top of these, by rivals (``decoding.rivals``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arrays import Float64Array, IntArray, canonical_csr, squared_lengths
from ._threads import in_threads
from .decoding import rivals
from .decoding.reranking import (
    LEAST_GAIN,
    N_RERANKED,
    N_TERMS,
    ClassSums,
    choose_reranking,
)
from .decoding.rivals import Rivals, train_rivals
from .judging import Judged, Listed
from .learning.rows import typical_length
from .prediction import TrellisModel

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .fitting import LabelledRows

_OPENED = 3  # vertices of a slice whose classes may be a row's rivals: more gain little
_RIVALS_GAIN = 2 * LEAST_GAIN  # that rivals must be worth, as they take more time and room,
_SURE = 2.0  # in standard deviations, too
_MANY_ROWS = 50_000  # of more rows, only as many have rivals,
_FEW_ROWS = 7_000  # or as many at first, to see whether there is anything to gain
_ROWS = 1_024  # that are searched for at once


def with_reranking(
    estimator: TrellisClassifier,
    judged: Sequence[Judged],
    data: LabelledRows,
    inside: Sequence[npt.NDArray[np.bool_]],
    are_sums: bool = False,
) -> list[Judged]:
    """The models with centroids and rivals from the rows they were trained on, if these help.

    ``inside`` are masks of these rows. Of rows that are sums of others there are no rivals.
    """
    model = judged[0].model
    if estimator.rerank == 0 or not model.is_lazy:
        return list(judged)
    sums = [
        ClassSums.of(data.X, data.y_encoded, each.model.n_classes, own)
        for each, own in zip(judged, inside, strict=True)
    ]
    if estimator.rerank != "auto":
        return _with_centroids(judged, sums, N_TERMS[0], float(estimator.rerank))
    n_listed = min(N_RERANKED, model.n_classes)
    judged = [replace(each, listed=each.model.k_best(each.rows.X, n_listed)) for each in judged]
    costs = np.concatenate([_listed(each)[1] for each in judged])
    hits = np.concatenate([_listed(each)[0] == each.true_paths[:, None] for each in judged])
    weights = np.concatenate([each.rows.sample_weight for each in judged])
    kinds = _cosines(judged, sums)
    kind, strength = choose_reranking(costs, kinds, hits, weights)
    if strength:
        costs = costs - strength * kinds[kind]
    del kinds
    chosen = _with_centroids(judged, sums, N_TERMS[kind], strength) if strength else list(judged)
    if are_sums or model.trellis.n_slices < 2 or not _may_gain(costs, hits, weights):
        return chosen
    found = _rivals_if_worth_it(judged, data, inside, (costs, hits, weights), estimator.n_jobs)
    if found is None:
        return chosen
    return [
        Judged(replace(each.model, rivals=own), each.rows)
        for each, own in zip(chosen, found, strict=True)
    ]


# ---------------------------------------------------------------------- centroids


def _with_centroids(
    judged: Sequence[Judged], sums: Sequence[ClassSums], n_terms: int, strength: float
) -> list[Judged]:
    return [
        Judged(
            replace(each.model, centroids=replace(own.centroids(n_terms), strength=strength)),
            each.rows,
        )
        for each, own in zip(judged, sums, strict=True)
    ]


def _cosines(judged: Sequence[Judged], sums: Sequence[ClassSums]) -> list[Float64Array]:
    """Cosines of the rows and the classes listed for them, for each size of the centroids."""
    kinds: list[Float64Array] = []
    for n_terms in N_TERMS:
        found = [
            own.centroids(n_terms).cosines(each.rows.X, _classes_listed(each))
            for each, own in zip(judged, sums, strict=True)
        ]
        kinds.append(np.concatenate(found))
        if all(own.places.max(initial=0) < n_terms for own in sums):
            break  # no centroid has more entries
    return kinds


def _listed(judged: Judged) -> Listed:
    """The best paths of each row, with their costs and logarithms."""
    assert judged.listed is not None
    return judged.listed


def _classes_listed(judged: Judged) -> IntArray:
    return judged.model.assignment.class_of_path[_listed(judged)[0]]


# ---------------------------------------------------------------------- rivals


def _may_gain(
    costs: Float64Array, hits: npt.NDArray[np.bool_], weights: npt.NDArray[np.floating[Any]]
) -> bool:
    """Whether there are enough rows whose class is listed, but not the first."""
    first = np.take_along_axis(hits, costs.argmin(axis=1)[:, np.newaxis], axis=1)[:, 0]
    return bool(np.average(hits.any(axis=1) & ~first, weights=weights) >= _RIVALS_GAIN)


def _rivals_if_worth_it(
    judged: Sequence[Judged],
    data: LabelledRows,
    inside: Sequence[npt.NDArray[np.bool_]],
    outcomes: tuple[Float64Array, npt.NDArray[np.bool_], npt.NDArray[np.floating[Any]]],
    n_jobs: int | None,
) -> list[Rivals] | None:
    """The learners of the models, with how much they count; None if held-out rows gain too little.

    Rivals of few rows are trained first, which takes a fraction of the time: where these gain
    nothing, those of all rows would gain too little. ``outcomes`` are the costs of the rows' best
    paths, which of these are the true ones, and how much the rows count.
    """
    stages = [(_FEW_ROWS, LEAST_GAIN, 1.0), (_MANY_ROWS, _RIVALS_GAIN, _SURE)]
    if max(int(own.sum()) for own in inside) <= _FEW_ROWS:
        del stages[0]
    found: list[Rivals] = []
    for most_rows, least_gain, n_deviations in stages:
        trained = [
            rivals_of(each.model, data, own, n_jobs=n_jobs, most_rows=most_rows)
            for each, own in zip(judged, inside, strict=True)
        ]
        found = [each for each in trained if each is not None]
        if len(found) < len(judged):
            return None
        losses = [
            np.concatenate(
                [
                    own.cut(n_entries).losses(each.rows.X, _classes_listed(each))
                    for own, each in zip(found, judged, strict=True)
                ]
            )
            for n_entries in rivals.N_ENTRIES
        ]
        costs, hits, weights = outcomes
        kind, strength = choose_reranking(
            costs, [-each for each in losses], hits, weights, rivals.STRENGTHS, n_deviations,
            least_gain,
        )  # fmt: skip
        if not strength:
            return None
    return [replace(own.cut(rivals.N_ENTRIES[kind]), strength=strength) for own in found]


def rivals_of(
    model: TrellisModel,
    data: LabelledRows,
    inside: npt.NDArray[np.bool_] | None = None,
    n_entries: int = rivals.N_ENTRIES[-1],
    n_jobs: int | None = None,
    most_rows: int | None = None,
) -> Rivals | None:
    """Learners of a model's classes against the rivals that it finds, with a strength of zero.

    They learn from all rows, or from those inside; of more than ``most_rows``, only so many have
    rivals.
    """
    own = np.arange(len(data.y_encoded)) if inside is None else np.flatnonzero(inside)
    y_encoded = np.full(len(data.y_encoded), -1, np.int64)
    y_encoded[own] = data.y_encoded[own]
    most_rows = most_rows or _MANY_ROWS
    if len(own) > most_rows:
        own = np.sort(np.random.RandomState(0).permutation(own)[:most_rows])
    listed = np.full((len(data.y_encoded), min(N_RERANKED, model.n_classes)), -1, np.int32)
    n_openable = 1 + _OPENED * (model.trellis.n_slices - 1)

    def find(cut: tuple[int, int]) -> None:
        rows = own[slice(*cut)]
        X = canonical_csr(data.X[rows])
        paths = model.search(X, listed.shape[1], n_openable=n_openable)[0]
        listed[rows] = np.where(paths < 0, -1, model.assignment.class_of_path[paths])

    in_threads(find, pairwise([*range(0, len(own), _ROWS), len(own)]), n_jobs)
    unit = typical_length(squared_lengths(data.X), data.sample_weight)
    settings = model.n_classes, unit, n_entries, n_jobs
    return train_rivals(data.X, y_encoded, listed, data.sample_weight, *settings)
