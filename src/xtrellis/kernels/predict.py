"""Prediction in one pass: a row's margins, their costs and its best path, while all are in cache.

For the exponential loss, the paper's choice. Rows with extreme margins, whose costs need the care
of ``losses`` and ``decode``, are left to the caller: path -1.
"""

import numpy as np

from ._jit import SUMS, kernel
from .blocks import longest_row, row_margins
from .costs import exponential
from .decode import best_path, fill_values


@kernel(fastmath=SUMS)
def exponential_paths(indptr, indices, data, w, twins, originals, g, paths):
    """Path of least exponential loss of each row."""
    n_columns = w.bias.size
    n_edges = n_columns + twins.size
    longest, n_blocks = longest_row(indptr), w.column_starts.size - 1
    lows, highs = np.empty(longest, np.int64), np.empty(longest, np.int64)
    spans = np.empty(longest, np.int64)
    columns = np.empty(n_columns, np.float32)
    margins = np.empty(n_edges, np.float32)
    costs = np.empty(n_edges, np.float32)
    best = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, start, stop, w, 0, n_blocks, lows, highs, spans, columns)
        for j in range(n_columns):
            margins[w.edges[j]] = columns[j]
        for t in range(twins.size):
            margins[twins[t]] = margins[originals[t]]
        largest = np.float32(0)
        for j in range(n_edges):
            largest = max(largest, abs(margins[j]))
        if largest > np.float32(8):  # costs below 3,000 add up exactly enough as they are
            paths[i] = -1
            continue
        exponential(margins, costs)
        fill_values(costs, g.slices, best)
        paths[i] = best_path(costs, g.slices, best)
