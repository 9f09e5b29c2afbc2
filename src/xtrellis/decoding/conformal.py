"""Sets of classes that contain the true class as often as asked: split conformal prediction.

The classes of a row are sorted by probability. The class at rank r has the score

    s = log p_r - log r,

and a set consists of the classes whose score reaches a threshold. Choose the threshold so that the
true class reaches it for a fraction c of rows that the weights were not trained on. Then it does so
for a fraction c of new rows, too, however good or bad the model is (Vovk et al., 2005). Sets
defined by the probability alone (Sadinle et al., 2019) are smallest if probabilities are exact. Far
down the list they are not, and ``log r`` keeps the sets of doubtful rows from growing to thousands
of classes. Scores never rise with r, so a set is complete at the first class that misses the
threshold.

The model is trained on all rows in the end, and is then a little better than the weights that the
held-out rows judged. Misses fall about with the square root of the number of rows: on splits of the
training rows of clinc150, icd10cm, finnish_lemmas and mesh_terms, the exponent was 0.5 to 0.7 at
coverages from 50 to 95 %. So weights trained on a share t of all rows may miss 1 / sqrt(t) times as
often as the model is to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, Float64Array, IntArray
from .._checks import check_shape

Find = Callable[[IntArray, int], tuple[IntArray, Float64Array]]

ENOUGH = 100  # rows to calibrate on; with fewer, the threshold is too uncertain
MOST_RANKS = 2048  # ranks that are told apart, so that calibration need not list more classes
LEVELS = np.unique(np.concatenate([np.arange(50) / 1_000, np.arange(10, 201) / 200]))
_FIRST, _FACTOR = 8, 4  # classes that are listed at first, and times more for rows that need more
_AT_ONCE = 2**20  # classes of all rows together
_HALF = 0.5  # of the rows: what a model gains by more than twice as many is not foretold
_TOLERANCE = 1e-4  # of a score: costs are rounded


@dataclass(frozen=True, eq=False)
class Conformal:
    """Scores of the true classes of held-out rows: quantiles, from the lowest to the highest.

    Attributes
    ----------
    n_rows : int
        Number of held-out rows, or how many that counted alike would tell as much.
    quantiles : ndarray of float32
        At the levels of ``LEVELS``.

    Examples
    --------
    >>> import numpy as np
    >>> conformal = conformal_of(np.log(np.linspace(0.001, 1, 1000)), np.ones(1000))
    >>> round(float(np.exp(conformal.threshold(0.9))), 2)
    0.1
    """

    n_rows: int
    quantiles: Float32Array

    def __post_init__(self) -> None:
        check_shape("quantiles", self.quantiles, LEVELS.shape)
        if self.n_rows < ENOUGH or not np.isfinite(self.quantiles).all():
            raise ValueError(f"quantiles must be finite, of at least {ENOUGH} rows")
        if (np.diff(self.quantiles) < 0).any():
            raise ValueError("quantiles must not fall")

    def threshold(self, coverage: float) -> float:
        """Score that the true class reaches with this probability, or a ValueError."""
        if not (isinstance(coverage, Real) and 0 < float(coverage) < 1):
            raise ValueError(f"coverage must be above 0 and below 1, got {coverage!r}")
        # Of n rows and a new one, each is equally likely to have the lowest score of all.
        n_missed = np.floor((self.n_rows + 1) * (1 - float(coverage)) + 1e-9)
        if n_missed < 1:
            highest = self.n_rows / (self.n_rows + 1)
            raise ValueError(
                f"coverage must be at most {highest:.4f} with {self.n_rows} held-out rows, got "
                f"{coverage}: it takes more rows to be so sure"
            )
        level = (n_missed - 1) / max(self.n_rows - 1, 1)
        return float(np.interp(level, LEVELS, self.quantiles)) - _TOLERANCE


def conformal_of(
    scores: Float64Array, sample_weight: npt.ArrayLike, trained_on: float = 1.0
) -> Conformal | None:
    """Quantiles of the scores of true classes; None if the rows are too few.

    ``trained_on`` is the share of the model's training rows that the weights which gave these
    scores were trained on.
    """
    weights = np.asarray(sample_weight, np.float64)
    if len(scores) < ENOUGH:
        return None
    order = np.argsort(scores, kind="stable")
    scores, weights = scores[order], weights[order]
    shares = np.cumsum(weights) - weights
    # Up to one miss in two; above, the shares of misses draw together again, up to all rows.
    half = 0.5 / np.sqrt(max(trained_on, _HALF))
    levels = np.interp(LEVELS, [0, 0.5, 1], [0, half, 1])
    quantiles = np.interp(levels, shares / shares[-1], scores).astype(np.float32)
    n_rows = int(weights.sum() ** 2 / (weights**2).sum())
    return Conformal(n_rows, quantiles) if n_rows >= ENOUGH else None


def with_ranks(log_p: Float64Array, first: int = 1) -> Float64Array:
    """Scores of classes in order of probability, along the last axis."""
    ranks = np.arange(first, first + log_p.shape[-1])
    return log_p - np.log(np.minimum(ranks, MOST_RANKS))


# ---------------------------------------------------------------------- rows


def true_scores(
    find: Find,
    score: Callable[[IntArray], Float64Array],
    truth: IntArray,
    n_classes: int,
    known: tuple[IntArray, Float64Array] | None = None,
) -> Float64Array:
    """Scores of the true classes of some rows.

    ``find(rows, k)`` lists the k best classes of some of the rows and their log-probabilities;
    ``score(rows)`` gives those of the true classes that are too far behind to be listed. ``known``
    is what ``find`` would list for all rows, if some classes are known already.
    """
    scores, most = np.empty(len(truth)), min(n_classes, MOST_RANKS)
    waiting, k = np.arange(len(truth)), 0

    def take(rows: IntArray, classes: IntArray, log_p: Float64Array) -> IntArray:
        """Scores of the classes that are listed; the rows whose class is not."""
        hits = classes == truth[rows, np.newaxis]
        found = hits.any(axis=1)
        at = hits.argmax(axis=1)[found]
        scores[rows[found]] = with_ranks(log_p)[found, at]
        return rows[~found]

    if known is not None:
        waiting = take(waiting, *known)
    while len(waiting) and k < most:
        k = _next(max(k, _FIRST), most)
        left = [take(rows, *find(rows, k)) for rows in _parts(waiting, k)]
        waiting = np.concatenate(left)
    if len(waiting):
        scores[waiting] = score(waiting) - np.log(most)
    return scores


def sets_above(find: Find, n_rows: int, n_classes: int, threshold: float) -> list[IntArray]:
    """Classes of each row whose score reaches the threshold, the best first."""
    sets: list[Any] = [None] * n_rows
    waiting, k = np.arange(n_rows), 0
    while len(waiting):
        k = _next(k, n_classes)
        left = []
        for rows in _parts(waiting, k):
            classes, log_p = find(rows, k)
            sizes = (with_ranks(log_p) >= threshold).sum(axis=1)
            complete = (sizes < k) | (k == n_classes)
            for row, own, size in zip(
                rows[complete], classes[complete], sizes[complete], strict=True
            ):
                sets[row] = own[:size].copy()
            left.append(rows[~complete])
        waiting = np.concatenate(left)
    return sets


def _next(k: int, most: int) -> int:
    return min(max(_FIRST, _FACTOR * k), most)


def _parts(rows: IntArray, k: int) -> list[IntArray]:
    """Rows, so many at a time that the classes listed for them fit the memory."""
    size = max(1, _AT_ONCE // k)
    return [rows[start : start + size] for start in range(0, len(rows), size)]
