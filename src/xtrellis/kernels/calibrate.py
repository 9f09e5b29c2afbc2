"""Losses as functions of a temperature, each evaluated some dozen times to find the best one."""

import numpy as np

from ._jit import MINIMA, SUMS, kernel
from .costs import _exp
from .decode import _values, level_costs

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
def edge_detours(costs, width, digits, detours):
    """Detours of all edges, for each row of costs.

    They are added up in the order in which ``_values`` does: the best edge's is 0, none is below.
    """
    last = digits.size - 1
    n_edges = costs.shape[1]
    levelled = np.empty(n_edges, np.float64)
    values = np.empty((digits.size, width), np.float64)
    most = 1e30  # stays finite times any scale
    for row in range(costs.shape[0]):
        level_costs(costs[row], width, digits, levelled)
        _values(levelled, width, digits, values)
        exit_start = n_edges
        for i in range(last + 1):
            exit_start -= digits[i]
            for v in range(digits[i]):
                detours[row, exit_start + v] = min(levelled[exit_start + v] - values[i, v], most)
            size = 0 if i == last else width if i + 1 < last else digits[last]
            for v in range(width if size else 0):
                start = width + i * width * width + v * size
                for w in range(size):
                    detour = levelled[start + w] + values[i + 1, w] - values[i, v]
                    detours[row, start + w] = min(detour, most)
        best = levelled[0] + values[0, 0]
        for v in range(1, width):
            best = min(best, levelled[v] + values[0, v])
        for v in range(width):
            detours[row, v] = min(levelled[v] + values[0, v] - best, most)


@kernel(fastmath=SUMS)
def best_path_probabilities(detours, width, digits, scale, probabilities):
    """``1 / Z(source)`` of each row, with ``scale`` = 1 / T."""
    last = digits.size - 1
    powers = np.empty(detours.shape[1], np.float32)
    ahead = np.empty(width, np.float32)
    here = np.empty(width, np.float32)
    for row in range(detours.shape[0]):
        for j in range(powers.size):
            powers[j] = _exp(max(-detours[row, j] * scale, _LEAST))
        for v in range(digits[last]):
            ahead[v] = np.float32(1)
        exit_start = width + (last - 1) * width * width + width * digits[last] + digits[last]
        for i in range(last - 1, -1, -1):
            size = width if i + 1 < last else digits[last]
            for v in range(width):
                start = width + i * width * width + v * size
                total = powers[exit_start + v] if v < digits[i] else np.float32(0)
                for w in range(size):
                    total += powers[start + w] * ahead[w]
                here[v] = total
            exit_start += digits[i]
            ahead, here = here, ahead
        total = np.float32(0)
        for v in range(width):
            total += powers[v] * ahead[v]
        probabilities[row] = 1 / max(np.float64(total), 1.0)
