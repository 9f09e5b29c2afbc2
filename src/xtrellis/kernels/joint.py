"""Joint training: predict the path of a row, then correct the edges where it went wrong (LTLS)."""

import numpy as np

from ._jit import SUMS, kernel
from .decode import _trace, _values, level_costs
from .learn import row_margins


@kernel
def path_edges(number, width, digits, path_counts, edges):
    """Write the edges of a numbered path; return how many. As ``Trellis.path_edges``."""
    last = digits.size - 1
    exit_start = width + (last - 1) * width * width + width * digits[last] + digits.sum()
    rest, before = number, 0
    for i in range(last + 1):
        exit_start -= digits[i]
        longer, exits = path_counts[i + 1], digits[i]
        size = width if i < last else digits[last]
        if rest < exits * (longer + 1):
            v, rest = rest // (longer + 1), rest % (longer + 1)
            leaves = rest == 0
            rest -= 1
        else:
            rest -= exits * (longer + 1)
            v, rest = exits + rest // longer, rest % longer
            leaves = False
        edges[i] = v if i == 0 else width + (i - 1) * width * width + before * size + v
        if leaves:
            edges[i + 1] = exit_start + v
            return i + 2
        before = v
    return last + 2


@kernel(fastmath=SUMS)
def joint_pass(
    indptr,
    indices,
    data,
    order,
    start,
    codes,
    path_of_class,
    width,
    digits,
    path_counts,
    rates,
    clock,
    weights,
    lags,
    margins,
    loss,
):
    """Visit rows from ``order[start]`` on, until one comes whose class has no path yet.

    For each row the heaviest path is found. If it is not the path of the row's class, the row is
    added to the edges of that path only and taken from those of the found path only. ``weights -
    lags / clock`` are the averaged weights. ``loss[0]`` counts the rows predicted wrongly.
    Returns where it stopped, with that row's margins in ``margins``, and the clock.
    """
    n_edges = weights.shape[1]
    no_bias = np.zeros(n_edges, np.float32)
    costs = np.empty(n_edges, np.float64)
    levelled = np.empty(n_edges, np.float64)
    values = np.empty((digits.size, width), np.float64)
    right = np.empty(digits.size + 1, np.int64)
    wrong = np.empty(digits.size + 1, np.int64)
    for q in range(start, order.size):
        i = order[q]
        row_start, row_stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, row_start, row_stop, weights, no_bias, margins)
        truth = path_of_class[codes[i]]
        if truth < 0:
            return q, clock
        for j in range(n_edges):
            costs[j] = -margins[j]
        level_costs(costs, width, digits, levelled)
        _values(levelled, width, digits, values)
        found = _trace(levelled, width, digits, path_counts, values)
        if found != truth:
            loss[0] += 1
            n_right = path_edges(truth, width, digits, path_counts, right)
            n_wrong = path_edges(found, width, digits, path_counts, wrong)
            for p in range(row_start, row_stop):
                k = indices[p]
                step = rates[i] * data[p]
                for e in range(n_right):
                    if e >= n_wrong or right[e] != wrong[e]:
                        weights[k, right[e]] += step
                        lags[k, right[e]] += clock * step
                for e in range(n_wrong):
                    if e >= n_right or right[e] != wrong[e]:
                        weights[k, wrong[e]] -= step
                        lags[k, wrong[e]] -= clock * step
        clock += 1
    return order.size, clock
