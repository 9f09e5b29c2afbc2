"""Linear SVMs: rounds of dual coordinate descent for all edges of a block.

Each edge minimises ``P(w) = |w|^2 / 2 + sum_i C_i max(0, 1 - y_i w.x_i)^2``. The bias is u times
the weight of a constant feature u; ``unit`` is u^2. The squared lengths in ``norms`` include it.
"""

import numpy as np

from ._jit import SUMS, kernel, part
from ._prefetch import FAR, fetch_rows
from .learn import row_margins

_FEW = 8  # an update of fewer than one in this many edges goes edge by edge
_RUN = 256  # rows whose losses are added up in single precision
_CACHED, _CHUNK = 4096, 8  # as in rows.visiting_order
_TURNS = 4  # of passes over an edge's own rows, one visits all of them, the others those with
_STILL = np.float32(0.1)  # of the largest gradient or more
_ENOUGH = np.float32(0.05)  # of the first gradients are left: then they end
_SIDE = 16  # edges whose weights share a cache line


@part(fastmath=SUMS)
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


@part
def _shuffle(order, state):
    """Put the rows into a new random order; of many, a few neighbours stay together.

    See ``rows.visiting_order``, which gave them the order they come in.
    """
    chunk = np.int64(1) if order.size <= _CACHED else np.int64(_CHUNK)
    for c in range(order.size // chunk - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = np.int64((state >> np.uint64(33)) % np.uint64(c + 1))
        for k in range(chunk):
            i, j = c * chunk + k, other * chunk + k
            order[i], order[j] = order[j], order[i]
    return state


@part(fastmath=SUMS)
def svm_pass(
    indptr,
    indices,
    data,
    order,
    targets,
    costs,
    norms,
    unit,
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
    over all rows, ``|w|^2 + losses - values`` estimates the duality gap. It is exact only if
    nothing moves (an infinite ``tolerance``), and may be too small otherwise.
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
    is_far = 4 * weights.size > FAR
    for at in range(order.size):
        i = order[at]
        if is_far and at + 1 < order.size:
            following = order[at + 1]
            fetch_rows(indices, indptr[following], indptr[following + 1], weights)
        start, stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, start, stop, weights, bias, margins)
        own = duals[i]
        cost = costs[i]
        ridge = np.float32(0.5) / cost
        curve = norms[i] + ridge
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
        least = tolerance * scale
        for j in range(n_edges):
            size = abs(steps[j])
            largest = max(largest, size)
            steps[j] = steps[j] if size > least else np.float32(0)
        moves[i] = largest * curve
        if moves[i] > tolerance:
            for j in range(n_edges):
                bias[j] += unit * steps[j]
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


@kernel
def svm_round(
    indptr,
    indices,
    data,
    rows,
    n_passes,
    targets,
    costs,
    norms,
    unit,
    tolerance,
    duals,
    weights,
    bias,
    moves,
    losses,
    values,
):
    """Some passes over these rows, in this order and then in others; see :func:`svm_pass`.

    All but the last visit only rows that had a gradient above 20 times the tolerance when last
    visited. ``losses`` and ``values`` are those of the last pass.
    """
    state = np.uint64(rows[0]) if rows.size else np.uint64(0)
    order, visited = rows.copy(), np.empty(rows.size, np.int64)
    for left in range(n_passes - 1, -1, -1):
        n_visited = np.int64(0)
        for i in order:
            visited[n_visited] = i
            n_visited += left == 0 or moves[i] > np.float32(20) * tolerance
        svm_pass(
            indptr,
            indices,
            data,
            visited[:n_visited],
            targets,
            costs,
            norms,
            unit,
            tolerance,
            duals,
            weights,
            bias,
            moves,
            losses,
            values,
        )
        state = _shuffle(order, state)


@kernel
def is_sparse(duals, few):
    """Whether some, but fewer than ``few``, of the dual variables are positive."""
    count = np.int64(0)
    for i in range(duals.shape[0] if few > 0 else 0):
        own, positive = duals[i], np.int32(0)
        for j in range(own.size):
            positive += own[j] > 0
        count += positive
        if count >= few:
            break
    return 0 < count < few


@kernel
def support_passes(
    indptr,
    indices,
    data,
    rows,
    n_passes,
    unsolved,
    targets,
    costs,
    norms,
    unit,
    tolerance,
    duals,
    weights,
    bias,
):
    """Passes for each unsolved edge over the rows with a positive dual variable alone.

    Where these are few, such a pass costs little; but as it takes one edge at a time, it needs the
    edge's weights and rows side by side. So both are copied, the weights of some edges at a time.
    """
    n_edges, n_features = bias.size, weights.shape[0]
    starts = np.zeros(n_edges + 1, np.int64)
    for i in rows:
        for j in range(n_edges):
            starts[j + 1] += unsolved[j] and duals[i, j] > 0
    for j in range(n_edges):
        starts[j + 1] += starts[j]
    members, ends = np.empty(starts[-1], np.int64), starts[:-1].copy()
    for i in rows:
        for j in range(n_edges):
            if unsolved[j] and duals[i, j] > 0:
                members[ends[j]] = i
                ends[j] += 1
    own = np.empty((min(_SIDE, n_edges), n_features), np.float32)
    for first in range(0, n_edges, _SIDE):
        last = min(first + _SIDE, n_edges)
        for k in range(n_features):
            for j in range(first, last):
                own[j - first, k] = weights[k, j]
        for j in range(first, last):
            mine = members[starts[j] : starts[j + 1]]
            if mine.size:
                bias[j] = _descend_alone(
                    indptr, indices, data, mine, n_passes, targets, costs, norms, unit, tolerance,
                    duals, j, own[j - first], bias[j],
                )  # fmt: skip
        for k in range(n_features):
            for j in range(first, last):
                weights[k, j] = own[j - first, k]


@kernel
def squared_lengths(weights, bias, unit, squares):
    """Squared length of each edge's weights, that of the constant feature among them."""
    n_edges = bias.size
    run = np.empty(n_edges, np.float32)
    for j in range(n_edges):
        squares[j] = np.float64(bias[j]) * bias[j] / unit
    for first in range(0, weights.shape[0], _RUN):
        run[:] = 0
        for k in range(first, min(first + _RUN, weights.shape[0])):
            for j in range(n_edges):
                run[j] += weights[k, j] * weights[k, j]
        for j in range(n_edges):
            squares[j] += run[j]


@part
def _descend_alone(
    indptr, indices, data, rows, n_passes, targets, costs, norms, unit, tolerance, duals, j, w, b
):
    """Passes over the rows of edge j, whose weights and bias are w and b; returns the bias.

    The steps are those of :func:`svm_pass`; passes end when no gradient is above the tolerance.
    Most of them visit only the rows that had a large gradient when last visited.
    """
    ends = np.empty(rows.size + 1, np.int64)
    ends[0] = 0
    for m in range(rows.size):
        ends[m + 1] = ends[m] + indptr[rows[m] + 1] - indptr[rows[m]]
    features = np.empty(ends[-1], indices.dtype)
    values = np.empty(ends[-1], np.float32)
    signs = np.full(rows.size, np.float32(-1))
    variables = np.empty(rows.size, np.float32)
    for m in range(rows.size):
        i = rows[m]
        features[ends[m] : ends[m + 1]] = indices[indptr[i] : indptr[i + 1]]
        values[ends[m] : ends[m + 1]] = data[indptr[i] : indptr[i + 1]]
        variables[m] = duals[i, j]
        for t in targets[i]:
            if t == j:
                signs[m] = 1
    latest = np.full(rows.size, np.float32(np.inf))  # gradient of each row when last visited
    least = enough = tolerance
    for turn in range(n_passes):
        is_whole = turn % _TURNS == 0
        largest = np.float32(0)
        for m in range(rows.size):
            if not is_whole and latest[m] < least:
                continue
            i, start, stop = rows[m], ends[m], ends[m + 1]
            margin = b + _margin(features, values, start, stop, w)
            ridge = np.float32(0.5) / costs[i]
            curve = norms[i] + ridge
            before = variables[m]
            short = np.float32(1) - signs[m] * margin - ridge * before
            after = max(before + short / curve, np.float32(0))
            latest[m] = abs(after - before) * curve
            largest = max(largest, latest[m])
            if latest[m] > tolerance:
                variables[m] = after
                step = signs[m] * (after - before)
                b += unit * step
                for p in range(start, stop):
                    w[features[p]] += step * values[p]
        least = max(_STILL * largest, tolerance)
        if turn == 0:
            enough = max(_ENOUGH * largest, tolerance)
        if is_whole and largest <= enough:
            break
    for m in range(rows.size):
        duals[rows[m], j] = variables[m]
    return b


@part(fastmath=SUMS)
def _margin(features, values, start, stop, w):
    total = np.float32(0)
    for p in range(start, stop):
        total += values[p] * w[features[p]]
    return total
