"""The averaged perceptron: one pass over the rows of a block."""

import numpy as np

from ._jit import SUMS, kernel
from .learn import row_margins


@kernel(fastmath=SUMS)
def perceptron_pass(indptr, indices, data, order, targets, rates, clock, weights, bias, lags):
    """One pass of the perceptron; ``weights - lags / clock`` are its averaged weights.

    ``lags`` has one row more than ``weights``, for the bias. Returns the number of mistakes and
    the clock, which counts rows.
    """
    n_edges = bias.size
    margins = np.empty(n_edges, np.float32)
    mistakes = 0.0
    for i in order:
        start, stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, start, stop, weights, bias, margins)
        for t in targets[i]:
            if t >= 0:
                margins[t] = -margins[t]
        for j in range(n_edges):
            if margins[j] >= 0:
                mistakes += 1
                step = -rates[i]
                for t in targets[i]:
                    if t == j:
                        step = rates[i]
                bias[j] += step
                lags[-1, j] += clock * step
                for p in range(start, stop):
                    k = indices[p]
                    weights[k, j] += step * data[p]
                    lags[k, j] += clock * (step * data[p])
        clock += 1
    return mistakes, clock
