"""Prediction in one go: a row's margins, costs and path while they are in the nearest cache.

One kernel for each of the two losses that models have by default. They leave rows with extreme
margins, for which costs need the care of ``losses`` and ``decode``, to the caller: path -1.
"""

import numpy as np

from ._jit import SUMS, kernel
from .costs import _log, exponential, scores_and_powers
from .decode import best_path, fill_values
from .margins import one_row


@kernel(fastmath=SUMS)
def exponential_paths(
    indptr,
    indices,
    data,
    place,
    dense,
    starts,
    edges,
    values,
    bias,
    twins,
    originals,
    g,
    paths,
):
    """Path of least exponential loss of each row."""
    margins = np.empty(bias.size, np.float32)
    costs = np.empty(bias.size, np.float32)
    best = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        one_row(indices, data, start, stop, place, dense, starts, edges, values, bias, margins)
        for t in range(twins.size):
            margins[twins[t]] = margins[originals[t]]
        largest = np.float32(0)
        for j in range(bias.size):
            largest = max(largest, abs(margins[j]))
        if largest > np.float32(8):  # costs below 3,000 add up exactly enough as they are
            paths[i] = -1
            continue
        exponential(margins, costs)
        fill_values(costs, g.slices, best)
        paths[i] = best_path(costs, g.slices, best)


@kernel(fastmath=SUMS)
def softmax_paths(
    indptr,
    indices,
    data,
    place,
    dense,
    starts,
    edges,
    values,
    bias,
    twins,
    originals,
    scale,
    power,
    normalisation,
    g,
    paths,
):
    """Path of least cost of each row, under a softmax at every vertex."""
    width, digits, path_counts = g.slice_width, g.digits, g.path_counts
    margins = np.empty(bias.size, np.float32)
    scores = np.empty(bias.size, np.float32)
    powers = np.empty(bias.size, np.float32)
    norms = np.empty(1 + (digits.size - 1) * width + digits[-1], np.float32)
    best = np.empty((digits.size, width), np.float64)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        one_row(indices, data, start, stop, place, dense, starts, edges, values, bias, margins)
        for t in range(twins.size):
            margins[twins[t]] = margins[originals[t]]
        if scores_and_powers(margins, scale, power, scores, powers):
            _vertex_sums(powers, width, digits, norms)
            for v in range(norms.size):
                norms[v] = normalisation * _log(norms[v])
            _softmax_values(scores, norms, width, digits, best)
            paths[i] = _softmax_trace(scores, width, digits, path_counts, best)
        else:
            paths[i] = -1


# ---------------------------------------------------------------------- softmax, step by step
#
# An edge e that leaves v costs norm(v) - z_e, with z its score and norm(v) the share of the log-sum
# of all z that leave v. Costs are made where they are needed and not kept; they are small enough to
# need no levelling. Vertices are numbered the source first, then slice by slice.


@kernel(fastmath=SUMS, inline="always")
def _sum(values, start, size):
    """Sum of a run of numbers, by four sums, as one would wait for itself at every step."""
    total = second = third = fourth = np.float32(0)
    stop = start + size // 4 * 4
    for j in range(start, stop, 4):
        total += values[j]
        second += values[j + 1]
        third += values[j + 2]
        fourth += values[j + 3]
    for j in range(stop, start + size):
        total += values[j]
    return (total + second) + (third + fourth)


@kernel(fastmath=SUMS)
def _vertex_sums(powers, width, digits, sums):
    """Sum of e^z over the edges that leave each vertex."""
    last = digits.size - 1
    exit_start = powers.size
    sums[0] = _sum(powers, 0, width)
    for i in range(last + 1):
        exit_start -= digits[i]
        size = 0 if i == last else width if i + 1 < last else digits[last]
        for v in range(digits[last] if i == last else width):
            total = _sum(powers, width + i * width * width + v * size, size)
            leaving = powers[exit_start + v] if v < digits[i] else np.float32(0)
            sums[1 + i * width + v] = total + leaving


@kernel(fastmath=SUMS, inline="always")
def _least(ahead, scores, start, size):
    """``min_w ahead[w] - scores[start + w]``, by four minima likewise."""
    lowest, second, third, fourth = np.inf, np.inf, np.inf, np.inf
    stop = size // 4 * 4
    for w in range(0, stop, 4):
        lowest = min(lowest, ahead[w] - np.float64(scores[start + w]))
        second = min(second, ahead[w + 1] - np.float64(scores[start + w + 1]))
        third = min(third, ahead[w + 2] - np.float64(scores[start + w + 2]))
        fourth = min(fourth, ahead[w + 3] - np.float64(scores[start + w + 3]))
    for w in range(stop, size):
        lowest = min(lowest, ahead[w] - np.float64(scores[start + w]))
    return min(min(lowest, second), min(third, fourth))


@kernel(fastmath=SUMS)
def _softmax_values(scores, norms, width, digits, values):
    """Fill ``values[i, v]``: the least cost from vertex v of slice i to the sink."""
    last = digits.size - 1
    exit_start = width + (last - 1) * width * width + width * digits[last]
    for v in range(digits[last]):
        values[last, v] = norms[1 + last * width + v] - scores[exit_start + v]
    exit_start += digits[last]
    for i in range(last - 1, -1, -1):
        size = width if i + 1 < last else digits[last]
        ahead = values[i + 1]
        for v in range(width):
            lowest = _least(ahead, scores, width + i * width * width + v * size, size)
            if v < digits[i]:
                lowest = min(lowest, -np.float64(scores[exit_start + v]))
            values[i, v] = norms[1 + i * width + v] + lowest
        exit_start += digits[i]


@kernel(fastmath=SUMS, inline="always")
def _best_head(scores, start, size, ahead):
    """Which of the next vertices a path goes on to, the first of equals, and its cost from here.

    Without the vertex's norm, which all its edges share.
    """
    best = 0
    lowest = ahead[0] - np.float64(scores[start])
    for w in range(1, size):
        cost = ahead[w] - np.float64(scores[start + w])
        if cost < lowest:
            lowest, best = cost, w
    return best, lowest


@kernel(fastmath=SUMS)
def _softmax_trace(scores, width, digits, path_counts, values):
    """Number of the path that ``values`` promise, walked as by ``decode.best_path``."""
    last = digits.size - 1
    exit_start = scores.size
    start, size, v, number = 0, width, 0, 0
    for i in range(last + 1):
        head, lowest = _best_head(scores, start, size, values[i])
        if i > 0:
            exit_start -= digits[i - 1]
            if v < digits[i - 1]:
                if -np.float64(scores[exit_start + v]) <= lowest:
                    return number
                number += 1
        v = head
        number += v * path_counts[i + 1] + min(v, digits[i])
        size = width if i + 1 < last else digits[last]
        start = width + i * width * width + v * size
    return number
