"""Pruning: small weights are set to zero, and the rest is stored sparsely.

Section 6.2 of the paper. All weights in [-lambda, lambda] become zero; lambda is the largest value
that costs at most ``max_drop`` of the accuracy on validation rows. It is found by bisection over
the quantiles of the weights' sizes. No step copies the matrix: the margins of the validation rows
are computed as if the small weights were zero already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._arrays import Float32Array
from ..model.weights import EdgeWeights, dense_features, edge_type

Steps = tuple[tuple[float, float], ...]

_STEPS = 9  # of the bisection: they determine the share kept to within 1.4 %
_LEAST_SHARE = 1e-3  # smallest share of the weights that is ever kept
_SAMPLE = 2**20  # weights that quantiles are computed from
_HALF_MAX = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Pruning:
    """What pruning did.

    Attributes
    ----------
    threshold : float
        lambda: weights of at most this size were set to zero.
    n_before, n_after : int
        Weights that were not zero, before and after.
    accuracy_before, accuracy_after : float
        On the validation rows; nan if there were none.
    steps : tuple of (threshold, accuracy)
        The thresholds that the search tried, in order.
    """

    threshold: float
    n_before: int
    n_after: int
    accuracy_before: float = float("nan")
    accuracy_after: float = float("nan")
    steps: Steps = ()


Accuracy = Callable[[list[EdgeWeights], float], float]


def prune_together(
    weights: list[EdgeWeights],
    accuracy: Accuracy | None,
    max_drop: float,
    threshold: float | None,
    half: bool,
) -> tuple[list[EdgeWeights], Pruning]:
    """Prune the weights of models that predict together, all at one threshold.

    It is the one given, or the largest at which the accuracy drops by at most ``max_drop``.
    ``accuracy`` is a function of the weights and of a threshold below which they count as zero.
    """
    steps: Steps = ()
    before = after = float("nan")
    if threshold is None:
        if accuracy is None:
            raise ValueError(
                "prune needs validation rows X and y to measure the accuracy on, or a threshold"
            )
        threshold, steps = find_threshold(weights, partial(accuracy, weights), max_drop)
    if accuracy is not None:
        before = steps[0][1] if steps else accuracy(weights, 0.0)
    pruned = [prune_weights(own, float(threshold), half) for own in weights]
    if accuracy is not None:
        after = accuracy(pruned, 0.0)
    n_before, n_after = (sum(own.n_nonzero for own in each) for each in (weights, pruned))
    return pruned, Pruning(float(threshold), n_before, n_after, before, after, steps)


def find_threshold(
    weights: Sequence[EdgeWeights], accuracy: Callable[[float], float], max_drop: float
) -> tuple[float, Steps]:
    """Largest threshold at which the accuracy is at most ``max_drop`` below that without one.

    It is the same for all matrices of a model; an ensemble has several. The bisection is over the
    logarithm of the share of weights kept, so that even the size of a heavily pruned model is
    right to within a few percent.
    """
    sizes = _sample_of_sizes(weights)
    steps = [(0.0, accuracy(0.0))]
    least = steps[0][1] - max_drop
    kept, lost = 0.0, float(np.log(_LEAST_SHARE))
    best = 0.0
    for _ in range(_STEPS):
        middle = (kept + lost) / 2
        threshold = _quantile(sizes, 1 - np.exp(middle))
        steps.append((threshold, accuracy(threshold)))
        if steps[-1][1] >= least - 1e-12:
            kept, best = middle, threshold
        else:
            lost = middle
    return best, tuple(steps)


def held_out_threshold(
    estimator: Any, X: Any, y: Any, max_drop: float = 0.01, random_state: int | None = None
) -> float:
    """Threshold for a model that is trained on all rows: that of one trained on nine tenths.

    Training without the validation rows would cost more accuracy than pruning does. So find the
    threshold with some rows held out, then train on all rows and prune at this threshold.

    Parameters
    ----------
    estimator : TrellisClassifier, LTLSClassifier, TrellisEnsemble or TrellisTextClassifier
        The estimator that will be trained; it is cloned.
    X, y
        Training rows; texts for a :class:`~xtrellis.TrellisTextClassifier`.
    max_drop : float, default=0.01
        Accuracy on the held-out rows that may be lost.
    random_state : int or None, default=None
        Seed of the split.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import TrellisClassifier
    >>> from xtrellis.learning import held_out_threshold
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TrellisClassifier(random_state=0)
    >>> threshold = held_out_threshold(clf, X / 16, y, random_state=0)
    >>> clf.fit(X / 16, y).prune(threshold=threshold).pruning_.n_after < 1_000
    True
    """
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    y = np.asarray(y)
    shuffled = np.random.RandomState(random_state).permutation(len(y))
    held_out, inside = np.sort(shuffled[: len(y) // 10]), np.sort(shuffled[len(y) // 10 :])
    held_out = held_out[np.isin(y[held_out], y[inside])]
    if len(held_out) == 0:
        raise ValueError("there are too few rows to hold some out: pass validation rows to prune")
    model = clone(estimator).fit(_safe_indexing(X, inside), y[inside])
    model.prune(_safe_indexing(X, held_out), y[held_out], max_drop=max_drop)
    return float(getattr(model, "classifier_", model).pruning_.threshold)


def prune_weights(weights: EdgeWeights, threshold: float, half: bool) -> EdgeWeights:
    """Weights larger than the threshold, stored sparsely; rounded to half precision if wanted.

    Rounded weights stay float32 in memory, which is faster to add up, and take two bytes in a
    file.
    """
    from ..kernels import margins as kernels

    limit = np.float32(threshold)
    counts = np.empty(weights.n_features, np.int64)
    kernels.count_above(weights.place, weights.dense, weights.starts, weights.values, limit, counts)
    in_rows, place = dense_features(counts, weights.n_edges)
    starts = np.concatenate([[0], np.cumsum(np.where(in_rows, 0, counts))])
    dense = np.zeros((np.count_nonzero(in_rows), weights.n_edges), np.float32)
    edges = np.empty(starts[-1], edge_type(weights.n_edges))
    values = np.empty(starts[-1], np.float32)
    kernels.take_above(
        *(weights.place, weights.dense, weights.starts, weights.edges, weights.values, limit),
        *(place, dense, starts, edges, values),
    )
    if half:
        dense, values = _rounded(dense), _rounded(values)
    return EdgeWeights(
        weights.bias, place, dense, starts, edges, values, weights.others, weights.twins
    )


def _rounded(values: Float32Array) -> Float32Array:
    """Values rounded to half precision."""
    if values.size and float(np.abs(values).max()) > _HALF_MAX:
        raise ValueError(
            f"a weight of {np.abs(values).max():.3g} does not fit half precision "
            f"(at most {_HALF_MAX:.0f}): scale the features up, or prune with half=False"
        )
    return values.astype(np.float16).astype(np.float32)


def _sample_of_sizes(weights: Sequence[EdgeWeights]) -> Float32Array:
    """Sizes of all non-zero weights, sorted; of an even sample if there are many."""
    stored = [part for own in weights for part in (own.dense.ravel(), own.values)]
    stride = max(1, sum(map(len, stored)) // _SAMPLE)
    # A stride that shares a factor with the number of edges would always meet the same edges.
    while any(np.gcd(stride, own.n_edges) > 1 for own in weights):
        stride += 1
    sizes = np.abs(np.concatenate([part[::stride] for part in stored]))
    return np.sort(sizes[sizes > 0])


def _quantile(sizes: Float32Array, share: float) -> float:
    """Size that this share of the sizes is not above."""
    if len(sizes) == 0:
        return 0.0
    return float(sizes[min(int(share * len(sizes)), len(sizes) - 1)])
