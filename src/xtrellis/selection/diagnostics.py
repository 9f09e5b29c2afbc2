"""Diagnostics of the paper: average binary loss, the bound on the training error, margins.

Section 6: with loss-based decoding, the training error is at most ``l * epsilon / (rho * L(0))``
(equation 3), where epsilon is the average binary loss (equation 4), l the number of edges and rho
the minimum distance of the code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import FloatArray, IntArray
from ..decoding.losses import Loss, get_loss
from ..decoding.paths import best_paths
from ..graph.codebook import Code, codewords, minimum_distance
from ..graph.trellis import Trellis
from ..model.weights import EdgeWeights


@dataclass(frozen=True)
class Diagnosis:
    """What :meth:`TrellisClassifier.diagnose` measures.

    Attributes
    ----------
    average_binary_loss : float
        epsilon of equation (4).
    error : float
        Share of the rows decoded wrongly with this loss.
    error_bound : float
        ``l * epsilon / (rho * L(0))``, equation (3); it holds for convex losses.
    average_margin : float
        Mean of |f| over rows and edges (Appendix E.4).
    share_nonzero : float
        Share of the weights, over the features seen in training, that are not zero.
    """

    average_binary_loss: float
    error: float
    error_bound: float
    average_margin: float
    share_nonzero: float


def diagnose(
    trellis: Trellis,
    weights: EdgeWeights,
    margins: Iterable[FloatArray],
    paths: IntArray,
    loss: Any,
    code: Code,
) -> Diagnosis:
    """Diagnostics of batches of margins whose true paths are given, in order."""
    found = get_loss(loss)
    if not isinstance(found, Loss):
        raise ValueError(f"loss must be a loss of the margin, got {loss!r}")
    decoder = get_loss(found, code=code)
    total_loss = total_margin = 0.0
    wrong = start = 0
    for batch in margins:
        truth = paths[start : start + len(batch)]
        start += len(batch)
        words = codewords(trellis, truth, code=code)
        total_loss += float(found(words * batch).sum(dtype=np.float64))
        total_margin += float(np.abs(batch).sum(dtype=np.float64))
        wrong += int((best_paths(trellis, batch, decoder) != truth).sum())
    at_zero = float(found(np.zeros(1))[0])
    n_pairs = max(start, 1) * trellis.n_edges
    epsilon = total_loss / n_pairs
    return Diagnosis(
        average_binary_loss=epsilon,
        error=wrong / max(start, 1),
        error_bound=trellis.n_edges * epsilon / (minimum_distance(trellis, code) * at_zero),
        average_margin=total_margin / n_pairs,
        share_nonzero=weights.n_nonzero / max(1, weights.n_seen * trellis.n_edges),
    )
