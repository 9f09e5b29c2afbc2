"""What the trellises of an ensemble say of rows, and the classes of the largest mean probability.

A trellis votes with the probabilities of its five best classes; what they leave it divides evenly
among all others. So the best classes of the mean are among those that some trellis has named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._arrays import Float64Array, IntArray
from .decoding.confidence import N_BEST
from .prediction import TrellisModel

_NONE = -1.0  # the sum of what is no candidate: less than any probability
_ROUNDING = 1e-9  # relative error of what is left to a class
_TABLE = 2**15  # candidates that are sorted at a time: as many as caches hold


class Votes(NamedTuple):
    """What a trellis says of some rows."""

    classes: IntArray  # (n_rows, n_best): numbers of the best classes
    probabilities: Float64Array  # (n_rows, n_best)
    others: Float64Array  # (n_rows,): probability of each class that is not named


def votes_of(model: TrellisModel, rows: Any) -> Votes:
    """Votes of a model on checked rows."""
    n_best = min(N_BEST, model.n_classes)
    classes, log_p = model.top_k(rows, n_best)
    probabilities = np.exp(log_p)
    left = np.maximum(1 - probabilities.sum(axis=1), 0)
    others, last = left / max(model.n_classes - n_best, 1), probabilities[:, -1]
    above = (others > last) & (others < last * (1 + _ROUNDING))  # where all are equally likely
    return Votes(classes, probabilities, np.where(above, last, others))


def log_mean(models: Sequence[TrellisModel], rows: Any) -> Float64Array:
    """Logarithms of the mean probabilities of all classes, finite however small these are."""
    n_classes = models[0].n_classes
    n_best = min(N_BEST, n_classes)
    total = np.full((rows.shape[0], n_classes), -np.inf)
    for model in models:
        classes, log_p = model.top_k(rows, n_best)
        own = model.log_probabilities(rows)
        if n_classes > n_best:
            np.put_along_axis(own, classes, -np.inf, axis=1)
            others = np.logaddexp.reduce(own, axis=1) - np.log(n_classes - n_best)
            own[:] = others[:, np.newaxis]
        np.put_along_axis(own, classes, log_p, axis=1)
        np.logaddexp(total, own, out=total)
    total -= np.log(len(models))
    return total


def best_of_mean(votes: Sequence[Votes], n_classes: int, k: int) -> tuple[IntArray, Float64Array]:
    """The k classes of the largest mean probability; of equal ones, that named first.

    So a class that all trellises name first is the best, even if others are equally likely.
    """
    named = np.concatenate([vote.classes for vote in votes], axis=1)
    total = np.zeros(named.shape)
    for vote in votes:
        matches = named[:, :, np.newaxis] == vote.classes[:, np.newaxis]
        own = (matches * vote.probabilities[:, np.newaxis]).sum(axis=2)
        total += np.where(matches.any(axis=2), own, vote.others[:, np.newaxis])
    order = np.argsort(named, axis=1, kind="stable")  # so that equal classes are neighbours
    ordered = np.take_along_axis(named, order, axis=1)
    rows, places = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    total[rows, order[rows, places + 1]] = _NONE
    if k > votes[0].classes.shape[1]:
        others = np.sum([vote.others for vote in votes], axis=0)
        found, sums = _best_with_others(named, total, others, n_classes, k)
    else:
        found, sums = _best(named, total, k)
    return found, sums / len(votes)


def _best(classes: IntArray, sums: Float64Array, k: int) -> tuple[IntArray, Float64Array]:
    """The k classes of the largest sums in each row, and these; of equal ones, the first."""
    best = np.argsort(-sums, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(classes, best, axis=1), np.take_along_axis(sums, best, axis=1)


def _best_with_others(
    named: IntArray, total: Float64Array, others: Float64Array, n_classes: int, k: int
) -> tuple[IntArray, Float64Array]:
    """The same where classes that no trellis has named may be among the k best.

    These all have the same sum, so of them only the first k can be among the best; and among the
    first classes at most as many are named as there are names.
    """
    n_rows, n_named = named.shape
    first = np.arange(min(n_classes, n_named + k))
    found, sums = np.empty((n_rows, k), np.int64), np.empty((n_rows, k))
    n_together = max(1, _TABLE // (len(first) + n_named))
    for start in range(0, n_rows, n_together):
        part = slice(start, start + n_together)
        names, own = named[part], total[part]
        table = np.repeat(others[part, np.newaxis], len(first), axis=1)
        rows, places = np.nonzero(names < len(first))
        table[rows, names[rows, places]] = _NONE  # these are candidates already
        classes = np.concatenate([names, np.broadcast_to(first, table.shape)], axis=1)
        scores = np.concatenate([own, table], axis=1)
        found[part], sums[part] = _best(classes, scores, k)
    return found, sums
