"""What the training kernels share: margins of one row, and updates of many edges.

A block is a CSR matrix of rows and a few edges (columns of ``weights``) that are learned together.
``targets[i]`` lists the edges of the block that row i is a positive example of, filled up with -1;
it is a negative example of all others. Weights are feature-major, ``weights[feature, edge]``: a
feature's weights for all edges lie side by side, are read once per row and used by every edge.

The work of a pass is that of the product of the rows with the weights, nnz x edges multiply-adds,
plus the updates of the edges that a row is still wrong about, which soon are few.
"""

from ._jit import SUMS, part

_FEW = 2  # an update of fewer than one in this many edges goes edge by edge


@part(fastmath=SUMS)
def row_margins(indices, data, start, stop, weights, bias, margins):
    """Margins of all edges for one row: ``bias + sum_k x_k weights[k]``."""
    for j in range(bias.size):
        margins[j] = bias[j]
    p = start
    while p + 3 < stop:  # four at a time: margins are loaded and stored a quarter as often
        x0, x1, x2, x3 = data[p], data[p + 1], data[p + 2], data[p + 3]
        w0, w1 = weights[indices[p]], weights[indices[p + 1]]
        w2, w3 = weights[indices[p + 2]], weights[indices[p + 3]]
        for j in range(bias.size):
            margins[j] += x0 * w0[j] + x1 * w1[j] + x2 * w2[j] + x3 * w3[j]
        p += 4
    while p < stop:
        x, w0 = data[p], weights[indices[p]]
        for j in range(bias.size):
            margins[j] += x * w0[j]
        p += 1
