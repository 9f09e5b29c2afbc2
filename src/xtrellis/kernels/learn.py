"""Training kernels: one pass of a learner over the rows of one block.

A block is a CSR matrix of rows and a few edges (columns of ``weights``) that are learned together.
``targets[i]`` lists the edges of the block that row i is a positive example of, filled up with -1;
it is a negative example of all others. Weights are feature-major, ``weights[feature, edge]``: a
feature's weights for all edges lie side by side, are read once a row and used by every edge.

The work of a pass is that of the product of the rows with the weights, nnz x edges multiply-adds,
plus the updates of the edges that a row is still wrong about, which soon are few.
"""

import numpy as np

from ._jit import SUMS
from ._jit import kernel as njit

_OPTIONS = {"fastmath": SUMS}
_FEW = 2  # an update of fewer than one in this many edges goes edge by edge


@njit(**_OPTIONS)
def row_margins(indices, data, start, stop, weights, bias, margins):
    """Margins of all edges for one row: ``bias + sum_k x_k weights[k]``."""
    for j in range(bias.size):
        margins[j] = bias[j]
    for p in range(start, stop):
        x, k = data[p], indices[p]
        for j in range(bias.size):
            margins[j] += x * weights[k, j]


@njit(**_OPTIONS)
def squared_norms(indptr, data, norms):
    """Squared length of every row."""
    for i in range(indptr.size - 1):
        total = np.float32(0)
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * data[p]
        norms[i] = total


@njit(**_OPTIONS)
def _add_to_edges(indices, data, start, stop, steps, changed, n_changed, weights):
    """Add ``steps[j] * x`` to the weights of the edges that changed."""
    if n_changed * _FEW < steps.size:
        for p in range(start, stop):
            x, k = data[p], indices[p]
            for c in range(n_changed):
                weights[k, changed[c]] += x * steps[changed[c]]
    else:
        for p in range(start, stop):
            x, k = data[p], indices[p]
            for j in range(steps.size):
                weights[k, j] += x * steps[j]


# ---------------------------------------------------------------------- linear SVM


@njit(**_OPTIONS)
def svm_pass(
    indptr,
    indices,
    data,
    order,
    targets,
    costs,
    norms,
    tolerance,
    duals,
    weights,
    bias,
    moves,
    losses,
):
    """One pass of dual coordinate descent for L2-regularised squared-hinge SVMs.

    Each edge minimises ``|w|^2 / 2 + sum_i C_i max(0, 1 - y_i w.x_i)^2`` by its dual variables
    ``a_i >= 0``, with ``w = sum_i a_i y_i x_i``. With ``D = 1 / (2 C_i)`` the gradient of one of
    them is ``G = y_i w.x_i - 1 + D a_i``, and its exact minimum ``a_i - G / (|x_i|^2 + D)``, cut
    off at 0. The bias is the weight of a constant feature of 1.

    ``order`` lists the rows to visit. ``moves[i]`` becomes the largest gradient that row i's
    variables followed, and rows with none above ``tolerance`` are left as they are; ``losses[i]``
    the sum of its squared hinges before the update.
    """
    n_edges = bias.size
    margins = np.empty(n_edges, np.float32)
    steps = np.empty(n_edges, np.float32)
    changed = np.empty(n_edges, np.uint32)
    for i in order:
        start, stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, start, stop, weights, bias, margins)
        own = duals[i]
        ridge = np.float32(0.5) / costs[i]
        scale = np.float32(1) / (norms[i] + np.float32(1) + ridge)
        loss = np.float32(0)
        for j in range(n_edges):
            short = np.float32(1) + margins[j]  # how far a negative example is from its margin
            hinge = max(short, np.float32(0))
            loss += hinge * hinge
            steps[j] = own[j] - max(own[j] + (short - ridge * own[j]) * scale, np.float32(0))
        for t in targets[i]:
            if t >= 0:
                hinge = max(np.float32(1) + margins[t], np.float32(0))
                loss -= hinge * hinge
                short = np.float32(1) - margins[t]
                hinge = max(short, np.float32(0))
                loss += hinge * hinge
                steps[t] = max(own[t] + (short - ridge * own[t]) * scale, np.float32(0)) - own[t]
        largest = np.float32(0)
        for j in range(n_edges):
            largest = max(largest, abs(steps[j]))
        losses[i] = loss
        largest /= scale  # the gradient, which does not depend on the length of the rows
        moves[i] = largest
        if largest <= tolerance:
            continue
        n_changed = np.int64(0)  # a plain 0 would have what it is given to compiled twice
        for j in range(n_edges):
            changed[n_changed] = j
            n_changed += steps[j] != 0
            bias[j] += steps[j]
            own[j] -= steps[j]
        for t in targets[i]:
            if t >= 0:
                own[t] += 2 * steps[t]  # a positive example's variable moves with its weights
        _add_to_edges(indices, data, start, stop, steps, changed, n_changed, weights)


# ---------------------------------------------------------------------- AROW


@njit(**_OPTIONS)
def arow_pass(indptr, indices, data, order, targets, regularisers, bias, weights, variances):
    """One pass of AROW with diagonal covariance, the paper's learner.

    For a row with ``y w.x < 1``: ``v = sum_k x_k^2 S_k``, ``beta = 1 / (v + r)``,
    ``w += (1 - y w.x) beta y S x`` and ``S -= beta (S x)^2``. ``regularisers[i]`` is the row's r;
    the bias, zero unless training resumes from elsewhere, is not learned.
    Returns the sum of squared hinges met on the way, before each row's update.
    """
    n_edges = weights.shape[1]
    margins = np.empty(n_edges, np.float32)
    confidence = np.empty(n_edges, np.float32)
    steps = np.empty(n_edges, np.float32)
    changed = np.empty(n_edges, np.uint32)
    total = 0.0
    for i in order:
        start, stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, start, stop, weights, bias, margins)
        for t in targets[i]:
            if t >= 0:
                margins[t] = -margins[t]  # from here on, -y w.x
        highest = margins[0]
        for j in range(1, n_edges):
            highest = max(highest, margins[j])
        if highest <= np.float32(-1):
            continue
        n_changed = 0
        for j in range(n_edges):
            changed[n_changed] = j
            n_changed += margins[j] > np.float32(-1)
        if n_changed * _FEW < n_edges:
            for c in range(n_changed):
                confidence[c] = regularisers[i]
            for p in range(start, stop):
                square, k = data[p] * data[p], indices[p]
                for c in range(n_changed):
                    confidence[c] += square * variances[k, changed[c]]
            for c in range(n_changed):
                hinge = np.float32(1) + margins[changed[c]]
                total += hinge * hinge
                confidence[c] = np.float32(1) / confidence[c]
                steps[c] = -hinge * confidence[c]
                for t in targets[i]:
                    if t == changed[c]:
                        steps[c] = -steps[c]
            for p in range(start, stop):
                x, k = data[p], indices[p]
                for c in range(n_changed):
                    j = changed[c]
                    spread = variances[k, j] * x
                    weights[k, j] += steps[c] * spread
                    variances[k, j] -= confidence[c] * spread * spread
            continue
        confidence[:] = regularisers[i]
        for p in range(start, stop):
            square, k = data[p] * data[p], indices[p]
            for j in range(n_edges):
                confidence[j] += square * variances[k, j]
        loss = np.float32(0)
        for j in range(n_edges):
            hinge = max(np.float32(1) + margins[j], np.float32(0))
            loss += hinge * hinge
            beta = np.float32(1) / confidence[j] if hinge > 0 else np.float32(0)
            confidence[j] = beta
            steps[j] = -hinge * beta
        total += loss
        for t in targets[i]:
            if t >= 0:
                steps[t] = -steps[t]
        for p in range(start, stop):
            x, k = data[p], indices[p]
            for j in range(n_edges):
                spread = variances[k, j] * x
                weights[k, j] += steps[j] * spread
                variances[k, j] -= confidence[j] * spread * spread
    return total


# ---------------------------------------------------------------------- averaged perceptron


@njit(**_OPTIONS)
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
