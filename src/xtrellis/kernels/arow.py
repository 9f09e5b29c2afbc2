"""AROW: one pass over the rows of a block."""

import numpy as np

from ._jit import SUMS, kernel
from .learn import _FEW, row_margins


@kernel(fastmath=SUMS)
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
