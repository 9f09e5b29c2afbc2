"""Lazy decoding: for which losses the best paths need the margins of a few vertices only.

If no edge cost is negative, a path is at least as costly as its beginning. So the shortest path is
found as Dijkstra finds it: the cheapest open path goes on, margins are computed for the vertex that
it reaches, and the first path to reach the sink is the best of all (``kernels.lazy``).

Under local training the cost of an edge depends on the margins at its tail only:

    c_e = nu log sum_s exp(z_s) - z_e,    s over the edges that leave the same vertex.

It is not negative where

* ``nu = 1``: the sum is at least ``exp(z_e)``;
* ``nu < 1`` and all ``z <= 0``, as hinges are. Let ``l`` be the log of the sum, ``l >= z_e``. If
  ``l >= 0``, then ``nu l >= 0 >= z_e``; if ``l < 0``, then ``nu l >= l >= z_e``.

The path's own hinge, ``z_e = -max(0, 1 - f_e)^p`` with ``nu = 0``, is a case of it. The paper's
code, and losses summed over all edges of a vertex, have costs of both signs: there all margins are
computed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray
from ..graph.trellis import Trellis
from .losses import DecodingLoss
from .vertex_losses import PathHinge, VertexSoftmax


def is_bounded(loss: DecodingLoss) -> bool:
    """Whether no cost of a loss is ever negative.

    >>> is_bounded(VertexSoftmax(power=2, normalisation=0.75))
    True
    >>> is_bounded(VertexSoftmax(power=0, normalisation=0.75))
    False
    """
    if isinstance(loss, PathHinge):
        return loss.power in (2, 3)
    return isinstance(loss, VertexSoftmax) and (loss.power > 0 or loss.normalisation == 1)


def normalised(loss: DecodingLoss) -> VertexSoftmax:
    """The softmax whose products the search returns beside the costs of a bounded loss."""
    if isinstance(loss, PathHinge):
        return VertexSoftmax(temperature=1.0, power=int(loss.power))
    assert isinstance(loss, VertexSoftmax)
    return replace(loss, normalisation=1.0)


def search_settings(loss: DecodingLoss, trellis: Trellis) -> tuple[Float32Array, int, float]:
    """A bounded loss as the search takes it: 1 / T of each step, power and normalisation."""
    n_steps = trellis.n_slices + 1
    if isinstance(loss, PathHinge):
        return np.ones(n_steps, np.float32), int(loss.power), 0.0
    assert isinstance(loss, VertexSoftmax)
    temperatures = np.broadcast_to(np.ravel(loss.temperature), n_steps)
    return (1 / temperatures).astype(np.float32), loss.power, float(loss.normalisation)


def log_sums(
    bias: Float32Array, starts: IntArray, scales: Float32Array, power: int
) -> npt.NDArray[np.float64]:
    """Log of the sum of exponentials at each vertex of the first slice, for rows without features.

    The biases of vertex v are those from ``starts[v]`` up to ``starts[v + 1]``.
    """
    if len(starts) < 2 or len(scales) < 3:  # one slice: its vertices have one edge
        return np.zeros(max(len(starts) - 1, 0))
    margins = bias[starts[0] : starts[-1]].astype(np.float64)
    scale = float(scales[1])
    scores = -scale * np.maximum(1 - margins, 0) ** power if power else scale * margins
    firsts = starts[:-1] - starts[0]
    top = np.maximum.reduceat(scores, firsts)
    powers = np.exp(scores - np.repeat(top, np.diff(starts)))
    return np.asarray(top + np.log(np.add.reduceat(powers, firsts)))
