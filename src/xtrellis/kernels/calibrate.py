"""Losses as functions of a temperature, each evaluated some dozen times to find the best one."""

import numpy as np

from ._jit import MINIMA, SUMS, kernel
from .costs import _exp
from .decode import level_and_fill
from .graph import exit_edge, first_edge, n_heads, n_slices, n_vertices

_LEAST = np.float32(-87)  # e^-87 is the smallest power that float32 holds in full


@kernel(fastmath=SUMS)
def softmax_log_sums(below_top, weights, scale):
    """``sum_i weights_i log sum_j exp(scale z_ij)``, where the largest z of each row is 0."""
    total = 0.0
    for i in range(below_top.shape[0]):
        row_sum = np.float32(0)
        for j in range(below_top.shape[1]):
            row_sum += _exp(max(below_top[i, j] * scale, _LEAST))
        total += weights[i] * np.log(np.float64(row_sum))
    return total


# ---------------------------------------------------------------------- the best path's probability
#
# With D(v) the least cost from v to the sink, call c(v, w) + D(w) - D(v) >= 0 the detour of an
# edge: what taking it adds to the best that can be had from v. A path costs the best path's cost
# and its detours. So with Z(v) = sum_w exp(-detour(v, w) / T) Z(w), which is 1 at the sink, the
# best path has the probability 1 / Z(source). Detours do not depend on T, Z lies between 1 and K
# whatever the costs are, and no logarithm is needed.


@kernel(fastmath=MINIMA)
def edge_detours(costs, g, detours):
    """Detours of all edges, for each row of costs.

    They are added up in the order of ``level_and_fill``: the best edge's is 0, none is below.
    """
    slices = g.slices
    levelled = np.empty(g.n_edges, np.float64)
    values = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    most = 1e30  # stays finite times any scale
    for row in range(costs.shape[0]):
        level_and_fill(costs[row], slices, levelled, values)
        for i in range(-1, n_slices(slices)):
            size = n_heads(slices, i)
            for v in range(n_vertices(slices, i)):
                start, leaving = first_edge(slices, i, v), exit_edge(slices, i, v)
                for w in range(size):
                    detour = levelled[start + w] + values[i + 2, w] - values[i + 1, v]
                    detours[row, start + w] = min(detour, most)
                if leaving >= 0:
                    detours[row, leaving] = min(levelled[leaving] - values[i + 1, v], most)


@kernel(fastmath=SUMS)
def best_path_probabilities(detours, g, scale, probabilities):
    """``1 / Z(source)`` of each row, with ``scale`` = 1 / T."""
    slices = g.slices
    powers = np.empty(g.n_edges, np.float32)
    ahead = np.empty(g.slice_width, np.float32)
    here = np.empty(g.slice_width, np.float32)
    for row in range(detours.shape[0]):
        for j in range(powers.size):
            powers[j] = _exp(max(-detours[row, j] * scale, _LEAST))
        for i in range(n_slices(slices) - 1, -2, -1):
            size = n_heads(slices, i)
            for v in range(n_vertices(slices, i)):
                start, leaving = first_edge(slices, i, v), exit_edge(slices, i, v)
                total = powers[leaving] if leaving >= 0 else np.float32(0)
                for w in range(size):
                    total += powers[start + w] * ahead[w]
                here[v] = total
            ahead, here = here, ahead
        probabilities[row] = 1 / max(np.float64(ahead[0]), 1.0)
