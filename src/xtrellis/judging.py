"""What rows say of a model that was trained without them: ranks of their classes, and log loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arrays import Float64Array, IntArray, canonical_csr
from ._threads import in_threads
from .decoding.confidence import N_BEST, N_JUDGED, BestPaths, losses_in_bits
from .learning.rows import held_out_weights
from .prediction import TrellisModel

if TYPE_CHECKING:
    from .fitting import LabelledRows

Listed = tuple[IntArray, Float64Array, Float64Array]  # best paths, their costs and their logs

_ROWS = 1_024  # that are searched for at once


def to_judge_by(
    data: LabelledRows, held_out: npt.NDArray[np.bool_], numbers: IntArray | None = None
) -> LabelledRows:
    """Rows held out, or some of them; each counts for as many rows to come as it stands for.

    Those that stand for none are left out.
    """
    numbers = np.flatnonzero(held_out) if numbers is None else numbers
    weights = held_out_weights(data.y_encoded, held_out, numbers)
    rows = data[numbers[weights > 0]]
    return replace(rows, sample_weight=rows.sample_weight * weights[weights > 0])


@dataclass(frozen=True, eq=False)
class Judged:
    """A model, and rows that its weights were trained without.

    Models of the same graph are judged together, each by its own rows: where a tenth of the rows is
    too few to be sure of anything, several tenths are held out in turn. ``listed`` are the best
    paths of the rows, five or more, if they were found before.
    """

    model: TrellisModel
    rows: LabelledRows
    listed: Listed | None = None

    @property
    def true_paths(self) -> IntArray:
        """Path of each row's class."""
        return self.model.assignment.path_of_class[self.rows.y_encoded]

    @cached_property
    def five_best(self) -> Listed:
        """The five best paths of each row, or all of fewer; their costs and their logs."""
        k = min(N_BEST, self.model.n_classes)
        if self.listed is None:
            return self.model.ranked(self.rows.X, k)
        paths, costs, logs = self.listed
        return paths[:, :k], costs[:, :k], logs[:, :k]

    @property
    def ranks(self) -> IntArray:
        """Place of the true path among the five best, or -1."""
        return _places(self.five_best[0], self.true_paths)


def _places(listed: IntArray, wanted: IntArray) -> IntArray:
    """Where each row lists the number wanted, or -1."""
    hits = listed == wanted[:, np.newaxis]
    return np.where(hits.any(axis=1), hits.argmax(axis=1), -1)


def losses_of(judged: Judged) -> tuple[Float64Array, IntArray]:
    """-log2 p(true class) of each row, and the rank of this class; -1 if it is not among the best.

    Classes beyond the 20 best share what those leave.
    """
    model, rows = judged.model, judged.rows
    n_classes, n_listed = model.n_classes, min(N_JUDGED, model.n_classes)
    if not isinstance(model.calibration, BestPaths):
        best, log_p = model.top_k(rows.X, n_listed)
        hits = best == rows.y_encoded[:, np.newaxis]
        return losses_in_bits(log_p, hits, n_classes), _places(best, rows.y_encoded)
    paths, costs, logs = judged.five_best
    log_p = model.calibration.log_probabilities(costs, logs, n_classes)
    losses = losses_in_bits(log_p, paths == judged.true_paths[:, np.newaxis], n_classes)
    # More are listed only where it matters: the probabilities of the five do not depend on them.
    missed = np.flatnonzero(judged.ranks < 0)
    if len(missed) and n_listed > paths.shape[1]:
        best, log_p = model.top_k(canonical_csr(rows.X[missed]), n_listed)
        hits = best == rows.y_encoded[missed, np.newaxis]
        losses[missed] = losses_in_bits(log_p, hits, n_classes)
    return losses, judged.ranks


def log_loss(judged: Judged) -> float:
    """Mean of -log2 p(true class) over the rows."""
    return float(np.average(losses_of(judged)[0], weights=judged.rows.sample_weight))


def ranks_of(
    model: TrellisModel, X: Any, y_encoded: IntArray, k: int, n_jobs: int | None = None
) -> IntArray:
    """Place of each row's class among its k best, or -1.

    A search may end when it comes to this class, which is most often the first.
    """
    if not model.is_lazy or model.reranks or model.assignment.n_free:
        return _places(model.best_classes(X, k, n_jobs), y_encoded)
    wanted = model.assignment.path_of_class[y_encoded]

    def ranks(cut: tuple[int, int]) -> IntArray:
        rows = slice(*cut)
        return _places(model.search(canonical_csr(X[rows]), k, until=wanted[rows])[0], wanted[rows])

    cuts = [*range(0, X.shape[0], _ROWS), X.shape[0]]
    return np.concatenate(in_threads(ranks, pairwise(cuts), n_jobs))
