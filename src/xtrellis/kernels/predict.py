"""Prediction in one go: a row's margins, costs and path while they are in the nearest cache.

One kernel for each of the two losses that models have by default. They leave rows with extreme
margins, for which costs need the care of ``losses`` and ``decode``, to the caller: path -1.
"""

import numpy as np
from numba import njit

from .costs import exponential, scores_and_powers
from .decode import _trace, _values
from .learn import _OPTIONS
from .margins import one_row


@njit(**_OPTIONS)
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
    width,
    digits,
    path_counts,
    paths,
):
    """Path of least exponential loss of each row."""
    margins = np.empty(bias.size, np.float32)
    costs = np.empty(bias.size, np.float32)
    best = np.empty((digits.size, width), np.float64)
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
        _values(costs, width, digits, best)
        paths[i] = _trace(costs, width, digits, path_counts, best)


@njit(**_OPTIONS)
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
    width,
    digits,
    path_counts,
    paths,
):
    """Path of least cost of each row, under a softmax at every vertex."""
    margins = np.empty(bias.size, np.float32)
    scores = np.empty(bias.size, np.float32)
    powers = np.empty(bias.size, np.float32)
    costs = np.empty(bias.size, np.float32)
    best = np.empty((digits.size, width), np.float64)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        one_row(indices, data, start, stop, place, dense, starts, edges, values, bias, margins)
        for t in range(twins.size):
            margins[twins[t]] = margins[originals[t]]
        if scores_and_powers(margins, scale, power, scores, powers):
            softmax_values(width, digits, normalisation, scores, powers, costs, best)
            paths[i] = _trace(costs, width, digits, path_counts, best)
        else:
            paths[i] = -1


@njit(**_OPTIONS)
def softmax_values(width, digits, normalisation, scores, powers, costs, values):
    """Costs under a softmax at every vertex and least costs to the sink, in one sweep.

    The same as ``softmax_row`` and then ``_values``, from the scores z and their e^z: the edges of
    a vertex share its log-sum, so each is looked at twice while it is near. The costs are small
    enough to need no levelling.
    """
    last = digits.size - 1
    exit_start = width + (last - 1) * width * width + width * digits[last]
    for v in range(digits[last]):
        edge = exit_start + v
        costs[edge] = normalisation * np.log(powers[edge]) - scores[edge]
        values[last, v] = costs[edge]
    exit_start += digits[last]
    for i in range(last - 1, -1, -1):
        size = width if i + 1 < last else digits[last]
        for v in range(width):
            start = width + i * width * width + v * size
            leaves = v < digits[i]
            total = powers[exit_start + v] if leaves else np.float32(0)
            for j in range(start, start + size):
                total += powers[j]
            norm = normalisation * np.log(total)
            lowest = np.inf
            if leaves:
                costs[exit_start + v] = norm - scores[exit_start + v]
                lowest = np.float64(costs[exit_start + v])
            for w in range(size):
                cost = norm - scores[start + w]
                costs[start + w] = cost
                lowest = min(lowest, cost + values[i + 1, w])
            values[i, v] = lowest
        exit_start += digits[i]
    total = np.float32(0)
    for v in range(width):
        total += powers[v]
    norm = normalisation * np.log(total)
    for v in range(width):
        costs[v] = norm - scores[v]
