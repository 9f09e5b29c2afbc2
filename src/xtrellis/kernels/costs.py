"""Edge costs in float32, vectorised: the two that prediction spends its time in."""

import numpy as np

from ._jit import FIXED, SUMS, kernel
from .graph import exit_edge, first_edge, n_heads, n_slices, n_vertices


@kernel(fastmath=SUMS, inline="always")
def _exp(x):
    """e^x for -87 <= x <= 88, to a few units in the last place; unlike libm's, goes to SIMD.

    x = n log 2 + r with |r| <= log(2) / 2; e^r by a polynomial, 2^n by its bits.
    """
    exponent = np.int32(x * np.float32(1.4426950408889634) + np.float32(127.5))  # n + 127
    n = np.float32(exponent) - np.float32(127)
    r = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1)
    return p * np.int32(exponent << np.int32(23)).view(np.float32)


@kernel(fastmath=SUMS, inline="always")
def _log(x):
    """Logarithm of x > 0, not denormal, to a few units in the last place; goes to SIMD, too.

    x = 2^n (1 + m) with sqrt(1/2) <= 1 + m < sqrt(2); log(1 + m) by a polynomial, n by the bits.
    """
    root = np.int32(0x3F3504F3)  # the bits of sqrt(1/2)
    above = np.int32(np.float32(x).view(np.int32) - root)
    n = np.float32(above >> np.int32(23))
    m = np.int32((above & np.int32(0x007FFFFF)) + root).view(np.float32) - np.float32(1)
    p = np.float32(7.0376836292e-2)
    p = p * m - np.float32(1.1514610310e-1)
    p = p * m + np.float32(1.1676998740e-1)
    p = p * m - np.float32(1.2420140846e-1)
    p = p * m + np.float32(1.4249322787e-1)
    p = p * m - np.float32(1.6668057665e-1)
    p = p * m + np.float32(2.0000714765e-1)
    p = p * m - np.float32(2.4999993993e-1)
    p = p * m + np.float32(3.3333331174e-1)
    tail = p * m * m * m - n * np.float32(2.12194440e-4) - np.float32(0.5) * m * m
    return m + tail + n * np.float32(0.693359375)


@kernel(fastmath=FIXED, inline="always")
def score(margin, scale, power):
    """Score z of an edge: ``scale f``, or ``-scale max(0, 1 - f)^power``."""
    short = np.float32(1) - margin
    short = short if short > np.float32(0) else np.float32(0)
    z = -short * short * scale
    z *= short if power == 3 else np.float32(1)
    return margin * scale if power == 0 else z


@kernel(fastmath=SUMS)
def exponential(margins, costs):
    """``-2 sinh f``, for |f| <= 60; flat arrays."""
    for j in range(margins.size):
        f = margins[j]
        power = _exp(f)
        square = f * f
        series = np.float32(1) + square * np.float32(1 / 42)
        series = np.float32(1) + square * np.float32(1 / 20) * series
        series = np.float32(1) + square * np.float32(1 / 6) * series
        # Near 0 the difference of two numbers near 1 would lose the digits of f.
        far = np.float32(1) / power - power
        costs[j] = np.float32(-2) * f * series if square < np.float32(0.0625) else far


@kernel(fastmath=SUMS)
def _log_sum_exp(scores, start, size, exit_edge):
    """Log of the sum of the exponentials of one vertex's scores, whatever their size."""
    top = scores[exit_edge] if exit_edge >= 0 else scores[start]
    for j in range(start, start + size):
        top = max(top, scores[j])
    total = np.exp(scores[exit_edge] - top) if exit_edge >= 0 else np.float32(0)
    for j in range(start, start + size):
        total += np.exp(scores[j] - top)
    return top + np.log(total)


@kernel(fastmath=SUMS)
def _scores(margins, scale, power, scores):
    """``scale f``, or ``-scale max(0, 1 - f)^power`` for a power of 2 or 3; the largest size."""
    largest = np.float32(0)
    if power == 0:
        for j in range(margins.size):
            scores[j] = margins[j] * scale[j]
            largest = max(largest, abs(scores[j]))
        return largest
    for j in range(margins.size):
        short = max(np.float32(1) - margins[j], np.float32(0))
        scores[j] = -short * short * scale[j]
        scores[j] *= short if power == 3 else np.float32(1)
        largest = max(largest, -scores[j])
    return largest


@kernel(fastmath=SUMS)
def scores_and_powers(margins, scale, power, scores, powers):
    """Scores z and their e^z; False if one would overflow or vanish, and then no powers."""
    if _scores(margins, scale, power, scores) >= np.float32(80):
        return False
    for j in range(margins.size):
        powers[j] = _exp(scores[j])
    return True


@kernel(fastmath=SUMS)
def vertex_softmax(margins, g, scale, power, normalisation, costs):
    """``normalisation log sum_s exp(z_s) - z_e``, s over the edges that leave the tail of e.

    z are the scores of ``_scores``, with one scale per edge. For all rows.
    """
    slices = g.slices
    scores = np.empty(g.n_edges, np.float32)
    powers = np.empty(g.n_edges, np.float32)
    for row in range(margins.shape[0]):
        safe = scores_and_powers(margins[row], scale, power, scores, powers)
        for i in range(-1, n_slices(slices)):
            size = n_heads(slices, i)
            for v in range(n_vertices(slices, i)):
                start, leaving = first_edge(slices, i, v), exit_edge(slices, i, v)
                if safe:
                    total = powers[leaving] if leaving >= 0 else np.float32(0)
                    for j in range(start, start + size):
                        total += powers[j]
                    norm = _log(total)
                else:
                    norm = _log_sum_exp(scores, start, size, leaving)
                norm *= normalisation
                for j in range(start, start + size):
                    costs[row, j] = norm - scores[j]
                if leaving >= 0:
                    costs[row, leaving] = norm - scores[leaving]
