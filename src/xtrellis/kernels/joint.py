"""Joint training: predict the path of a row, then correct the edges where it went wrong (LTLS)."""

import numpy as np

from ._jit import SUMS, kernel
from .decode import best_path, level_and_fill
from .graph import exit_edge, first_edge
from .learn import row_margins


@kernel
def path_edges(number, g, edges):
    """Write the edges of a numbered path; return how many. As ``Trellis.path_edges``."""
    rest, v = number, 0
    for i in range(g.digits.size):
        # The first vertices, which have an exit, carry one path more than the others.
        longer, exits = g.path_counts[i + 1], g.digits[i]
        start = first_edge(g.slices, i - 1, v)
        if rest < exits * (longer + 1):
            v, rest = rest // (longer + 1), rest % (longer + 1)
            leaves = rest == 0
            rest -= 1
        else:
            rest -= exits * (longer + 1)
            v, rest = exits + rest // longer, rest % longer
            leaves = False
        edges[i] = start + v
        if leaves:
            edges[i + 1] = exit_edge(g.slices, i, v)
            return i + 2
    return g.digits.size + 1


@kernel(fastmath=SUMS)
def joint_pass(
    indptr,
    indices,
    data,
    order,
    start,
    codes,
    path_of_class,
    g,
    rates,
    clock,
    weights,
    lags,
    margins,
    loss,
):
    """Visit rows from ``order[start]`` on, up to the first one whose class has no path yet.

    For each row the heaviest path is found. If it is not the path of the row's class, the row is
    added to the edges of that path only and taken from those of the found path only. ``weights -
    lags / clock`` are the averaged weights. ``loss[0]`` counts the rows predicted wrongly.
    Returns where it stopped, with that row's margins in ``margins``, and the clock.
    """
    n_edges = g.n_edges
    no_bias = np.zeros(n_edges, np.float32)
    costs = np.empty(n_edges, np.float32)
    levelled = np.empty(n_edges, np.float64)
    values = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    right = np.empty(g.digits.size + 1, np.int64)
    wrong = np.empty(g.digits.size + 1, np.int64)
    for q in range(start, order.size):
        i = order[q]
        row_start, row_stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, row_start, row_stop, weights, no_bias, margins)
        truth = path_of_class[codes[i]]
        if truth < 0:
            return q, clock
        for j in range(n_edges):
            costs[j] = -margins[j]
        level_and_fill(costs, g.slices, levelled, values)
        found = best_path(levelled, g.slices, values)
        if found != truth:
            loss[0] += 1
            n_right = path_edges(truth, g, right)
            n_wrong = path_edges(found, g, wrong)
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
