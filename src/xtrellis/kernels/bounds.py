"""What the best edge of a vertex costs at least, from a few numbers for each feature and vertex.

Let ``t_f`` be the largest weight of feature f among the edges of a vertex, or 0 if all are below
it. For a row without negative values no margin there is above ``U = max bias + sum_f x_f t_f``, and
no score above z(U). The log of the sum of exponentials is at least the largest score, so that the
cheapest edge costs

    nu log sum_s exp(z_s) - max_s z_s >= (nu - 1) max_s z_s >= (nu - 1) z(U).

For ``nu = 1`` that says nothing, and the search does without. Where none of the row's features has
weights, the sum is that of the biases alone, and the cost of the cheapest edge is known. The
``t_f`` are 16-bit numbers that are rounded up and at least 1, so that a sum of 0 means that there
are none.
"""

import numpy as np

from ._jit import FIXED, kernel, part
from .blocks import BLOCK_MASK, TOP_BITS
from .costs import score

RESOLUTION = 65536.0  # costs are whole multiples of one over this
_ROUNDING = 2.0**-22  # relative error of one term of a margin, or of a score: above float32's
_LEAST = 2.0**-13  # error of a cost, whatever the scores
_MOST = 2.0**45  # of a rounded bound


@kernel(fastmath=FIXED, inline="always")
def _add_tops(data, start, n, lows, highs, homes, table_tops, first, last, tops):
    """For each block of the first slice, the sum of ``x_f t_f`` over a row's features.

    Returns the sum of the row's values, or a negative number if one of them is negative.
    """
    total = 0.0
    for block in range(first, last):
        tops[block] = 0
    for p in range(n):
        x, low, high = data[start + p], lows[p], highs[p]
        if x < 0:
            return -1.0
        total += np.float64(x)
        if high < 0:
            for block in range(np.uint64(first), np.uint64(last)):
                tops[block] += x * np.float32(table_tops[np.uint64(low) + block])
        else:
            for q in range(low, high):
                word = homes[2 * q]
                tops[word & BLOCK_MASK] += x * np.float32(word >> TOP_BITS)
    return total


@part(fastmath=FIXED)
def least_costs(
    data,
    start,
    n,
    lows,
    highs,
    w,
    width,
    scale,
    power,
    normalisation,
    log_sums_at_rest,
    tops,
    least,
):
    """Bounds of the cheapest edge's cost at each vertex of the first slice, in units of a cost.

    Returns False, and no bounds, for rows with negative values. ``tops`` is scratch, one number per
    block; ``log_sums_at_rest`` are those of rows without features.
    """
    vertex_starts = w.vertex_starts
    first, last = vertex_starts[1], vertex_starts[1 + width]
    total = _add_tops(data, start, n, lows, highs, w.homes, w.table_tops, first, last, tops)
    if total < 0:
        return False
    slack = (n + 4) * _ROUNDING * (total + 1) * w.largest
    for v in range(width):
        highest, is_met = -np.inf, False
        for block in range(vertex_starts[1 + v], vertex_starts[2 + v]):
            margin = np.float64(w.top_biases[block]) + tops[block] * w.top_unit + slack
            highest = margin if margin > highest else highest
            is_met |= tops[block] > 0
        z = np.float64(score(np.float32(highest), scale, power))
        log_sum = z if is_met else log_sums_at_rest[v]
        bound = normalisation * log_sum - z
        bound -= _LEAST + _ROUNDING * abs(z)
        bound = np.floor(bound * RESOLUTION)
        bound = bound if bound > 0 else 0.0
        least[v] = bound if bound < _MOST else _MOST
    return True
