"""Linear SVMs: passes of dual coordinate descent for a block, and Newton steps for single edges.

Each edge minimises ``P(w) = |w|^2 / 2 + sum_i C_i max(0, 1 - y_i w.x_i)^2``. The bias is the
weight of a constant feature of 1.
"""

import numpy as np

from ._jit import SUMS, kernel
from .learn import row_margins

_FEW = 8  # an update of fewer than one in this many edges goes edge by edge
_RUN = 256  # rows whose losses are added up in single precision
_ORDERLESS = {"contract", "nsz", "reassoc"}  # but infinities matter
_MAX_PRODUCTS = 1000  # Hessian products per Newton step


@kernel(fastmath=SUMS)
def squared_norms(indptr, data, norms):
    """Squared length of every row."""
    for i in range(indptr.size - 1):
        total = np.float32(0)
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * data[p]
        norms[i] = total


# ---------------------------------------------------------------------- coordinate descent


@kernel(fastmath=SUMS)
def _add_to_edges(indices, data, start, stop, steps, changed, weights):
    """Add ``steps[j] * x`` to the weights of the edges that changed; ``changed`` is scratch."""
    count = 0
    for j in range(steps.size):
        count += steps[j] != 0
    n_changed = np.int64(0)
    if count * _FEW < steps.size:
        for j in range(steps.size):
            changed[n_changed] = j
            n_changed += steps[j] != 0
        for p in range(start, stop):
            x, k = data[p], indices[p]
            for c in range(n_changed):
                weights[k, changed[c]] += x * steps[changed[c]]
    else:
        for p in range(start, stop):
            x, k = data[p], indices[p]
            for j in range(steps.size):
                weights[k, j] += x * steps[j]


@kernel(fastmath=SUMS)
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
    values,
):
    """One pass of dual coordinate descent over the rows in ``order``, for all edges of a block.

    The dual variables ``a_i >= 0`` of an edge give ``w = sum_i a_i y_i x_i``. With
    ``D = 1 / (2 C_i)`` the gradient of one of them is ``G = y_i w.x_i - 1 + D a_i``, and its exact
    minimum ``a_i - G / (|x_i|^2 + D)``, cut off at 0.

    ``moves[i]`` becomes the largest gradient that row i's variables followed; rows with none above
    ``tolerance`` are left as they are. ``losses[j]`` becomes edge j's ``sum_i C_i hinge_i^2``, each
    before the row's update, and ``values[j]`` its ``sum_i a_i - a_i^2 / (4 C_i)``, each after it:
    over all rows, ``|w|^2 + losses - values`` is the duality gap, or a little more.
    """
    n_edges = bias.size
    margins = np.empty(n_edges, np.float32)
    steps = np.empty(n_edges, np.float32)
    changed = np.empty(n_edges, np.uint32)
    loss = np.zeros(n_edges, np.float32)
    value = np.zeros(n_edges, np.float32)
    losses[:] = 0
    values[:] = 0
    n_summed = 0
    for i in order:
        start, stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, start, stop, weights, bias, margins)
        own = duals[i]
        cost = costs[i]
        ridge = np.float32(0.5) / cost
        curve = norms[i] + np.float32(1) + ridge
        scale = np.float32(1) / curve
        for j in range(n_edges):
            short = np.float32(1) + margins[j]  # how far a negative example is from its margin
            hinge = max(short, np.float32(0))
            loss[j] += cost * hinge * hinge
            steps[j] = own[j] - max(own[j] + (short - ridge * own[j]) * scale, np.float32(0))
        for t in targets[i]:
            if t >= 0:
                hinge = max(np.float32(1) + margins[t], np.float32(0))
                loss[t] -= cost * hinge * hinge
                short = np.float32(1) - margins[t]
                hinge = max(short, np.float32(0))
                loss[t] += cost * hinge * hinge
                steps[t] = max(own[t] + (short - ridge * own[t]) * scale, np.float32(0)) - own[t]
        largest = np.float32(0)
        for j in range(n_edges):
            largest = max(largest, abs(steps[j]))
        moves[i] = largest * curve
        if moves[i] > tolerance:
            for j in range(n_edges):
                bias[j] += steps[j]
                own[j] -= steps[j]
            for t in targets[i]:
                if t >= 0:
                    own[t] += 2 * steps[t]  # a positive example's variable moves with its weights
            _add_to_edges(indices, data, start, stop, steps, changed, weights)
        for j in range(n_edges):
            value[j] += own[j] - np.float32(0.5) * ridge * own[j] * own[j]
        n_summed += 1
        if n_summed == _RUN:
            n_summed = 0
            for j in range(n_edges):
                losses[j] += loss[j]
                values[j] += value[j]
                loss[j] = 0
                value[j] = 0
    for j in range(n_edges):
        losses[j] += loss[j]
        values[j] += value[j]


# ---------------------------------------------------------------------- Newton's method


@kernel
def _dot(indices, data, start, stop, vector):
    """``vector.x`` for one row; the vector's last entry belongs to the constant feature."""
    total = vector[-1]
    for p in range(start, stop):
        total += vector[indices[p]] * data[p]
    return total


@kernel
def _add(indices, data, start, stop, factor, vector):
    """``vector += factor * x`` for one row."""
    for p in range(start, stop):
        vector[indices[p]] += factor * data[p]
    vector[-1] += factor


@kernel(fastmath=_ORDERLESS)
def _product(a, b):
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@kernel(fastmath=_ORDERLESS)
def svm_newton(
    indptr, indices, data, order, targets, costs, edges, tolerance, n_steps, weights, bias, gaps
):
    """Newton's method for single edges: the optimum, whatever the weights of the rows.

    Coordinate descent crawls where dual variables are strongly coupled, as those of heavy rows
    that are alike but differ in sign. Here, the generalised Hessian
    ``H = I + 2 sum_{i: hinge_i > 0} C_i x_i x_i'`` of the primal objective, which is piecewise
    quadratic, gives the step ``d = -H^-1 g`` by preconditioned conjugate gradients, and an exact
    line search along it follows.

    With r what is left of ``g + H d``, the quadratic model lies at most ``-g.d / 2 + |r|^2 / 2``
    above its minimum, because H is at least I. An edge is solved when this bound, or
    ``|g|^2 / 2`` itself, is at most ``tolerance`` of the objective; the ratio is left in ``gaps``.
    Edge ``edges[c]`` has the weights ``weights[c]``; those with a gap within the tolerance are
    skipped. Returns each edge's ``sum_i C_i hinge_i^2``.
    """
    n, n_features = order.size, weights.shape[1]
    w = np.empty(n_features + 1)
    gradient, step = np.empty_like(w), np.empty_like(w)
    scale, residual, direction, image = (
        np.empty_like(w),
        np.empty_like(w),
        np.empty_like(w),
        np.empty_like(w),
    )
    signs, margins, slopes = np.empty(n), np.empty(n), np.empty(n)
    active = np.empty(n, np.int64)
    losses = np.zeros(edges.size)
    for c in range(edges.size):
        if gaps[c] <= tolerance:
            continue
        w[:-1] = weights[c]
        w[-1] = bias[c]
        for s in range(n):
            i = order[s]
            signs[s] = -1.0
            for t in targets[i]:
                if t == edges[c]:
                    signs[s] = 1.0
            margins[s] = _dot(indices, data, indptr[i], indptr[i + 1], w)
        for n_taken in range(n_steps + 1):
            gradient[:] = w
            scale[:] = 0.0
            loss = 0.0
            n_active = 0
            for s in range(n):
                hinge = 1.0 - signs[s] * margins[s]
                if hinge > 0:
                    i = order[s]
                    active[n_active] = i
                    n_active += 1
                    loss += costs[i] * hinge * hinge
                    twice = 2.0 * costs[i]
                    pull = -twice * hinge * signs[s]
                    for p in range(indptr[i], indptr[i + 1]):
                        gradient[indices[p]] += pull * data[p]
                        scale[indices[p]] += twice * data[p] * data[p]
                    gradient[-1] += pull
                    scale[-1] += twice
            losses[c] = loss
            objective = 0.5 * _product(w, w) + loss
            enough = tolerance * objective
            norm = _product(gradient, gradient)
            gaps[c] = min(gaps[c], 0.5 * norm / objective)
            if gaps[c] <= tolerance or n_taken == n_steps:
                break
            # Conjugate gradients; a hundredth of the diagonal is the better preconditioner.
            reach = 0.0
            for k in range(w.size):
                scale[k] = 1.0 / (1.0 + 0.01 * scale[k])
                step[k] = 0.0
                residual[k] = -gradient[k]
                direction[k] = scale[k] * residual[k]
                reach += residual[k] * direction[k]
            gain = 0.0
            for n_products in range(1, _MAX_PRODUCTS + 1):
                image[:] = direction
                for u in range(n_active):
                    i = active[u]
                    start, stop = indptr[i], indptr[i + 1]
                    factor = 2.0 * costs[i] * _dot(indices, data, start, stop, direction)
                    _add(indices, data, start, stop, factor, image)
                length = reach / _product(direction, image)
                norm = 0.0
                renewed = 0.0
                for k in range(w.size):
                    step[k] += length * direction[k]
                    residual[k] -= length * image[k]
                    norm += residual[k] * residual[k]
                    renewed += scale[k] * residual[k] * residual[k]
                more = 0.5 * length * reach
                gain += more
                if norm <= enough or (gain > enough and n_products * more <= 0.2 * gain):
                    break
                for k in range(w.size):
                    direction[k] = scale[k] * residual[k] + renewed / reach * direction[k]
                reach = renewed
            for s in range(n):
                i = order[s]
                slopes[s] = _dot(indices, data, indptr[i], indptr[i + 1], step)
            length = _line_search(
                signs,
                margins,
                slopes,
                costs,
                order,
                _product(gradient, step),
                _product(w, step),
                _product(step, step),
            )
            for k in range(w.size):
                w[k] += length * step[k]
            for s in range(n):
                margins[s] += length * slopes[s]
            gaps[c] = (gain + 0.5 * norm) / objective
        weights[c] = w[:-1]
        bias[c] = w[-1]
    return losses


@kernel
def _line_search(signs, margins, slopes, costs, order, descent, drift, square):
    """Where the objective is least along the step: its derivative rises from piece to piece."""
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(50):
        derivative = drift + length * square
        curvature = square
        for s in range(order.size):
            hinge = 1.0 - signs[s] * (margins[s] + length * slopes[s])
            if hinge > 0:
                twice = 2.0 * costs[order[s]] * slopes[s]
                derivative -= twice * signs[s] * hinge
                curvature += twice * slopes[s]
        if abs(derivative) <= 0.1 * abs(descent):
            break
        if derivative > 0:
            high = length
        else:
            low = length
        length -= derivative / curvature
        if not low < length < high:
            length = 0.5 * (low + high)
    return length
