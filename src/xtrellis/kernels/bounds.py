"""What the best edge of a vertex costs at least, from a few numbers for each feature and vertex.

Let ``t_f`` be the largest weight of feature f among the edges of a vertex, or 0 if all are below
it. For a row without negative values no margin there is above ``U = max bias + sum_f x_f t_f``, and
no score above z(U). The log of the sum of exponentials is at least the largest score, so that the
cheapest edge costs

    nu log sum_s exp(z_s) - max_s z_s >= (nu - 1) max_s z_s >= (nu - 1) z(U).

For ``nu = 1`` that says nothing. But if scores are margins, ``z_s = s f_s``, the log of the sum is
at least that of the number W of edges plus their mean score (Jensen), so that

    log sum_s exp(z_s) - max_s z_s >= log W - s (max f - mean f)
                                   >= log W - s (max bias - mean bias + sum_f x_f (t_f - m_f)),

where ``m_f`` is the mean weight of feature f among the W edges. Where none of the row's features
has weights, the sum is that of the biases alone, and the cost of the cheapest edge is known. The
``t_f`` and ``t_f - m_f`` are numbers of 16 and 15 bits that are rounded up and at least 1, so that
a sum of 0 means that there are none.
"""

import numpy as np

from ._jit import FIXED, kernel, part
from .blocks import BLOCK_MASK, GAP_BITS, TOP_BITS
from .costs import score

RESOLUTION = 65536.0  # costs are whole multiples of one over this
_ROUNDING = 2.0**-22  # relative error of one term of a margin, or of a score: above float32's
_LEAST = 2.0**-13  # error of a cost, whatever the scores
_MOST = 2.0**45  # of a rounded bound
_TOP_MASK = 2**GAP_BITS - 1


@kernel(fastmath=FIXED, inline="always")
def _add_tops(data, start, n, lows, highs, homes, table_tops, first, last, shift, tops):
    """For each block of the first slice, the sum of ``x_f t_f`` over a row's features.

    Or that of ``x_f (t_f - m_f)`` if the shift is GAP_BITS and not 0. Returns the sum of the row's
    values, or a negative number if one of them is negative.
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
                code = np.int64(table_tops[np.uint64(low) + block]) >> shift
                tops[block] += x * np.float32(code & _TOP_MASK)
        else:
            for q in range(low, high):
                word = homes[2 * q]
                code = (word >> TOP_BITS) >> shift
                tops[word & BLOCK_MASK] += x * np.float32(code & _TOP_MASK)
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
    by_gaps = power == 0 and normalisation >= 1
    shift, unit = (GAP_BITS, w.gap_unit) if by_gaps else (0, w.top_unit)
    total = _add_tops(data, start, n, lows, highs, w.homes, w.table_tops, first, last, shift, tops)
    if total < 0:
        return False
    slack = (n + 4) * _ROUNDING * (total + 1) * w.largest  # of a margin
    for v in range(width):
        highest, widest, is_met = -np.inf, -np.inf, False
        n_edges = np.int64(0)
        for block in range(vertex_starts[1 + v], vertex_starts[2 + v]):
            margin = np.float64(w.top_biases[block]) + slack
            margin += 0.0 if by_gaps else tops[block] * unit
            highest = margin if margin > highest else highest
            is_met |= tops[block] > 0
            gap = np.float64(w.bias_gaps[block]) + tops[block] * unit + 4 * slack
            widest = gap if gap > widest else widest
            size = w.column_starts[block + 1] - w.column_starts[block]
            n_edges = size if size < n_edges or n_edges == 0 else n_edges
        z = np.float64(score(np.float32(highest), scale, power))
        if by_gaps and is_met:  # of several blocks, the cheapest edge may be in any
            bound = np.log(np.float64(n_edges)) - np.float64(scale) * widest
            z = np.float64(scale) * (total + 1) * w.largest  # no score is larger
        else:
            log_sum = z if is_met else log_sums_at_rest[v]
            bound = normalisation * log_sum - z
        bound -= _LEAST + _ROUNDING * abs(z)
        bound = np.floor(bound * RESOLUTION)
        bound = bound if bound > 0 else 0.0
        least[v] = bound if bound < _MOST else _MOST
    return True
