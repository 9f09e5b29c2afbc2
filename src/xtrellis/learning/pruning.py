"""Pruning: small weights are set to zero, and what is left is stored sparse.

Section 6.2 of the paper. All weights in [-lambda, lambda] become zero; lambda is the largest that
costs at most ``max_drop`` of the accuracy on validation rows. It is found by bisection over the
quantiles of the weights' sizes; each step measures a copy without the small weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._arrays import Float32Array
from ..model.weights import EdgeWeights

Steps = tuple[tuple[float, float], ...]

_STEPS = 9  # of the bisection: the share kept is then known to 1.4 %
_LEAST_SHARE = 1e-3  # of the weights that is ever kept
_SAMPLE = 2**20  # weights that quantiles are taken of


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
        What the search looked at, in order.
    """

    threshold: float
    n_before: int
    n_after: int
    accuracy_before: float = float("nan")
    accuracy_after: float = float("nan")
    steps: Steps = ()


Accuracy = Callable[[list[EdgeWeights]], float]


def prune_together(
    weights: list[EdgeWeights],
    accuracy: Accuracy | None,
    max_drop: float,
    threshold: float | None,
    bits: int,
) -> tuple[list[EdgeWeights], Pruning]:
    """Prune the weights of models that predict together, all at one threshold.

    It is the one given, or the largest at which the accuracy drops by at most ``max_drop``.
    ``accuracy`` is a function of the weights.
    """
    steps: Steps = ()
    before = after = float("nan")
    if threshold is None:
        if accuracy is None:
            raise ValueError(
                "prune needs validation rows X and y to measure the accuracy on, or a threshold"
            )
        threshold, steps = find_threshold(weights, accuracy, max_drop)
    if accuracy is not None:
        before = steps[0][1] if steps else accuracy(weights)
    pruned = [prune_weights(own, float(threshold), bits) for own in weights]
    if accuracy is not None:
        after = accuracy(pruned)
    n_before, n_after = (sum(own.n_nonzero for own in each) for each in (weights, pruned))
    return pruned, Pruning(float(threshold), n_before, n_after, before, after, steps)


def find_threshold(
    weights: Sequence[EdgeWeights],
    accuracy: Accuracy,
    max_drop: float,
    n_steps: int = _STEPS,
    least_share: float = _LEAST_SHARE,
) -> tuple[float, Steps]:
    """Largest threshold at which the accuracy is at most ``max_drop`` below that without one.

    It is one for all matrices of a model: an ensemble has several.
    The bisection is over the logarithm of the share of weights kept: of a pruned model, too, the
    size is then right to a few per cent.
    """
    sizes = _sample_of_sizes(weights)
    # Of copies, with which their directories go: these take more memory than the weights.
    steps = [(0.0, accuracy([replace(own) for own in weights]))]
    least = steps[0][1] - max_drop
    kept, lost = 0.0, float(np.log(least_share))
    best, left = 0.0, list(weights)  # the weights above the best threshold so far
    for _ in range(n_steps):
        middle = (kept + lost) / 2
        threshold = _quantile(sizes, 1 - np.exp(middle))
        pruned = [own.above(threshold) for own in left]
        steps.append((threshold, accuracy(pruned)))
        if steps[-1][1] >= least - 1e-12:
            kept, best, left = middle, threshold, [replace(own) for own in pruned]
        else:
            lost = middle
        del pruned
    return best, tuple(steps)


def prune_weights(weights: EdgeWeights, threshold: float, bits: int) -> EdgeWeights:
    """Weights larger than the threshold, rounded to 8 bits if wanted."""
    pruned = weights.above(threshold)
    return pruned.rounded() if bits == 8 else pruned


def _sample_of_sizes(weights: Sequence[EdgeWeights]) -> Float32Array:
    """Sizes of non-zero weights, sorted: of all, or of an even sample of many."""
    stored = [own.values for own in weights]
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
