"""Prediction in one go: a row's margins, costs and path while they are in the nearest cache."""

import numpy as np
from numba import njit

from .costs import exponential, softmax_row
from .decode import _trace, _values, level_costs
from .learn import _OPTIONS
from .margins import one_row

EXPONENTIAL, SOFTMAX = 0, 1  # the two losses that models have by default


@njit(**_OPTIONS)
def predict_paths(
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
    loss,
    scale,
    power,
    normalisation,
    width,
    digits,
    path_counts,
    paths,
):
    """Path of least loss of each row; -1 for a row too extreme for this kernel's exponential."""
    n_edges = bias.size
    margins = np.empty(n_edges, np.float32)
    costs = np.empty(n_edges, np.float32)
    scores = np.empty(n_edges, np.float32)
    powers = np.empty(n_edges, np.float32)
    levelled = np.empty(n_edges, np.float64)
    best = np.empty((digits.size, width), np.float64)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        one_row(indices, data, start, stop, place, dense, starts, edges, values, bias, margins)
        for t in range(twins.size):
            margins[twins[t]] = margins[originals[t]]
        if loss == EXPONENTIAL:
            largest = np.float32(0)
            for j in range(n_edges):
                largest = max(largest, abs(margins[j]))
            if largest > np.float32(60):
                paths[i] = -1
                continue
            exponential(margins, costs)
        else:
            softmax_row(margins, width, digits, scale, power, normalisation, scores, powers, costs)
        level_costs(costs, width, digits, levelled)
        _values(levelled, width, digits, best)
        paths[i] = _trace(levelled, width, digits, path_counts, best)
