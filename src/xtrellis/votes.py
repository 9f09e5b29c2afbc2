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
    return Votes(classes, probabilities, left / max(model.n_classes - n_best, 1))


def best_of_mean(votes: Sequence[Votes], n_classes: int, k: int) -> tuple[IntArray, Float64Array]:
    """The k classes of the largest mean probability, the first of equal ones first."""
    named = np.concatenate([vote.classes for vote in votes], axis=1)
    total = np.zeros(named.shape)
    for vote in votes:
        matches = named[:, :, np.newaxis] == vote.classes[:, np.newaxis]
        own = (matches * vote.probabilities[:, np.newaxis]).sum(axis=2)
        total += np.where(matches.any(axis=2), own, vote.others[:, np.newaxis])
    if k > votes[0].classes.shape[1]:
        return _best_with_others(votes, named, total, n_classes, k)
    order = np.argsort(named, axis=1, kind="stable")  # so that equal classes are neighbours
    named, total = (np.take_along_axis(each, order, axis=1) for each in (named, total))
    total[:, 1:][named[:, 1:] == named[:, :-1]] = -1.0
    best = np.argsort(-total, axis=1, kind="stable")[:, :k]
    found, sums = (np.take_along_axis(each, best, axis=1) for each in (named, total))
    return found, sums / len(votes)


def _best_with_others(
    votes: Sequence[Votes], named: IntArray, total: Float64Array, n_classes: int, k: int
) -> tuple[IntArray, Float64Array]:
    """The same where classes that no trellis has named may be among the k best.

    These have all the same probability: of them only the first k can be among the best, and of the
    first classes at most as many are named as there are names.
    """
    first = np.arange(min(n_classes, named.shape[1] + k))
    others = np.sum([vote.others for vote in votes], axis=0)
    found, sums = np.empty((len(named), k), np.int64), np.empty((len(named), k))
    for i in range(len(named)):
        own, at = np.unique(named[i], return_index=True)
        rest = np.setdiff1d(first, own, assume_unique=True)
        candidates = np.concatenate([own, rest])
        scores = np.concatenate([total[i, at], np.full(len(rest), others[i])])
        best = np.lexsort((candidates, -scores))[:k]
        found[i], sums[i] = candidates[best], scores[best]
    return found, sums / len(votes)
