"""Lazy decoding: the best paths of a row, from the margins of as few vertices as can prove them.

Weights are stored block by block, and the blocks of a vertex hold the weights of the edges that
leave it. A :class:`~xtrellis.model.weights.WeightArrays` says where a feature's weights in a block
are. The search is Dijkstra's with a twist: margins are computed when a vertex is first reached by
the cheapest open path, and of its edges only the cheapest that was not yet followed is kept open.

Costs must not be negative. They are rounded to whole multiples of 2^-16, which float64 adds up
without error: the cost of a path is the same number in whatever order it is summed, so this search
and one that looks at all edges agree on every row, ties included.
"""

import numpy as np

from ._jit import kernel
from .costs import _exp, _log

# No sum may be reordered: a cost must be the same number in every kernel.
_FIXED = {"contract", "nsz", "nnan"}

RESOLUTION = 65536.0  # costs are whole multiples of one over this
_NEVER = 1e300  # more than any cost
_HIGHEST = 2.0**46  # of a rounded cost: sixty of them add up without error

# ---------------------------------------------------------------------- where weights are


@kernel(fastmath=_FIXED)
def find_features(indices, start, stop, weights, lows, highs):
    """Where the directory lists the blocks of each of a row's features: nowhere if unseen.

    A high of -1 stands for a feature with a line of the table.
    """
    mask = weights.slots.size - 1
    for p in range(start, stop):
        feature = indices[p]
        slot = hash_feature(feature) & mask
        lows[p - start] = highs[p - start] = 0
        while weights.slots[slot] >= 0:
            rank = weights.slots[slot]
            if weights.seen[rank] == feature:
                lows[p - start] = weights.first[rank]
                highs[p - start] = weights.last[rank]
                break
            slot = (slot + 1) & mask


@kernel(fastmath=_FIXED, inline="always")
def hash_feature(feature):
    """Scrambled number of a feature; neighbours end far apart."""
    return np.int64((np.uint64(feature) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32))


@kernel(fastmath=_FIXED, inline="always")
def _find_spot(weights, low, high, block):
    """Where a feature's weights in a block are; -1 if it has none there."""
    if high < 0:
        return weights.table[low + block]
    while high - low > 8:
        middle = (low + high) >> 1
        if weights.homes[middle] <= block:
            low = middle
        else:
            high = middle
    for q in range(low, high):
        if weights.homes[q] == block:
            return weights.spots[q]
    return np.int32(-1)


@kernel(fastmath=_FIXED)
def block_margins(data, start, n, lows, highs, weights, block, margins, at):
    """Margins of one block's edges for a row: ``bias + x W``, into ``margins[at:]``."""
    first = weights.column_starts[block]
    width = weights.column_starts[block + 1] - first
    for j in range(width):
        margins[at + j] = weights.bias[first + j]
    if weights.feature_starts[block] == weights.feature_starts[block + 1]:
        return
    for p in range(n):
        spot = _find_spot(weights, lows[p], highs[p], block)
        if spot < 0:
            continue
        low, high = weights.entry_starts[spot], weights.entry_starts[spot + 1]
        x = data[start + p]
        if high - low == width:
            for j in range(width):
                margins[at + j] += x * weights.values[low + j]
        else:
            for e in range(low, high):
                margins[at + weights.columns[e]] += x * weights.values[e]


@kernel(fastmath=_FIXED)
def all_margins(indptr, indices, data, weights, out):
    """Margins of all edges for all rows."""
    lows, highs = row_buffers(indptr)
    widest = 0
    for block in range(weights.column_starts.size - 1):
        widest = max(widest, weights.column_starts[block + 1] - weights.column_starts[block])
    margins = np.empty(widest, np.float32)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        find_features(indices, start, stop, weights, lows, highs)
        for block in range(weights.column_starts.size - 1):
            block_margins(
                data, start, stop - start, lows, highs, weights, block, margins, np.int64(0)
            )
            first = weights.column_starts[block]
            for j in range(weights.column_starts[block + 1] - first):
                out[i, weights.edges[first + j]] = margins[j]


@kernel(fastmath=_FIXED)
def row_buffers(indptr):
    """Two buffers as long as the longest row."""
    longest = 1
    for i in range(indptr.size - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return np.empty(longest, np.int64), np.empty(longest, np.int64)


# ---------------------------------------------------------------------- costs of a vertex


@kernel(fastmath=_FIXED)
def vertex_costs(margins, n, scale, power, normalisation, scores, powers, costs, at):
    """Costs ``normalisation log sum_s exp(z_s) - z_e`` of a vertex's edges, into ``costs[at:]``.

    z is ``scale f``, or ``-scale max(0, 1 - f)^power``. Returns the log of the sum.
    """
    top = np.float32(-3e38)
    for j in range(n):
        short = max(np.float32(1) - margins[j], np.float32(0))
        z = -short * short * scale
        z *= short if power == 3 else np.float32(1)
        scores[j] = margins[j] * scale if power == 0 else z
    for j in range(n):
        top = max(top, scores[j])
    for j in range(n):
        powers[j] = _exp(max(scores[j] - top, np.float32(-87)))
    total = second = third = fourth = np.float32(0)  # one sum would wait for itself at every step
    for j in range(0, n - 3, 4):
        total += powers[j]
        second += powers[j + 1]
        third += powers[j + 2]
        fourth += powers[j + 3]
    for j in range(n // 4 * 4, n):
        total += powers[j]
    log_sum = np.float64(top) + np.float64(_log((total + second) + (third + fourth)))
    norm = normalisation * log_sum
    for j in range(n):
        cost = np.floor((norm - np.float64(scores[j])) * RESOLUTION + 0.5)
        costs[at + j] = min(max(cost, 0.0), _HIGHEST)
    return log_sum


# ---------------------------------------------------------------------- open paths
#
# An open path has got to a vertex, and waits to take one of its edges. It is a row of two tables:

SPENT, LOG, EDGE_COST, KEY = 0, 1, 2, 3  # of numbers: what the path cost, the edge's cost, both
VERTEX, SLICE, PASSED, EDGE, NUMBER = 0, 1, 2, 3, 4  # of integers: where, the edge, path numbers
_EXIT, _NO_EDGE = -1, -2  # in place of a head's number


@kernel(fastmath=_FIXED)
def _next_edge(costs, at, n_heads, has_exit, last_cost, last):
    """Cheapest edge that comes after the last one: its cost and head, or ``_NO_EDGE``.

    Edges are ordered by cost, and equal ones by number: the exit first, then the heads.
    """
    best, head = _NEVER, np.int64(_NO_EDGE)
    for j in range(min(last + 1, n_heads)):
        cost = costs[at + j]
        best = min(best, cost if cost > last_cost else _NEVER)
    for j in range(max(last + 1, 0), n_heads):
        cost = costs[at + j]
        best = min(best, cost if cost >= last_cost else _NEVER)
    if has_exit and last_cost < costs[at + n_heads] <= best:
        return costs[at + n_heads], np.int64(_EXIT)
    if best < _NEVER:
        first = last + 1 if best == last_cost else 0
        for j in range(max(first, 0), n_heads):
            if costs[at + j] == best:
                head = j
                break
    return best, head


@kernel(fastmath=_FIXED, inline="always")
def _before(numbers, integers, a, b):
    """Whether open path a comes before b: by cost, then by number."""
    return numbers[a, KEY] < numbers[b, KEY] or (
        numbers[a, KEY] == numbers[b, KEY] and integers[a, NUMBER] < integers[b, NUMBER]
    )


@kernel(fastmath=_FIXED)
def _sift_up(heap, at, numbers, integers):
    """Restore the order of a heap whose item here may come too late."""
    item = heap[at]
    while at > 0 and _before(numbers, integers, item, heap[(at - 1) >> 1]):
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = item


@kernel(fastmath=_FIXED)
def _sift_down(heap, size, numbers, integers):
    """Restore the order of a heap whose first item may come too early."""
    item, at = heap[0], 0
    while 2 * at + 1 < size:
        down = 2 * at + 1
        if down + 1 < size and _before(numbers, integers, heap[down + 1], heap[down]):
            down += 1
        if not _before(numbers, integers, heap[down], item):
            break
        heap[at] = heap[down]
        at = down
    heap[at] = item


@kernel(fastmath=_FIXED)
def k_best(
    indptr,
    indices,
    data,
    weights,
    graph,
    scales,
    power,
    normalisation,
    paths,
    path_costs,
    path_logs,
    n_opened,
):
    """The k cheapest paths of every row, cheapest first, with their costs.

    Vertices of the last slice have one edge, whose margin does not depend on the row: a path that
    reaches one is complete. ``scales`` holds one over the temperature of the source and of each
    slice; ``path_logs`` takes the log-probability of each path as a product of softmaxes,
    ``n_opened`` the number of vertices whose margins were computed.
    """
    k = paths.shape[1]
    width, digits, counts = graph.slice_width, graph.digits, graph.path_counts
    last_slice = digits.size - 1
    vertex_starts, column_starts = weights.vertex_starts, weights.column_starts
    n_vertices = vertex_starts.size - 1
    lows, highs = row_buffers(indptr)
    widest = 0
    for v in range(n_vertices):
        widest = max(widest, column_starts[vertex_starts[v + 1]] - column_starts[vertex_starts[v]])
    margins, scores = np.empty(widest, np.float32), np.empty(widest, np.float32)
    powers = np.empty(widest, np.float32)
    costs = np.empty(weights.bias.size, np.float64)
    log_sums = np.empty(n_vertices, np.float64)
    visits, opened = np.zeros(n_vertices, np.int64), np.empty(n_vertices, np.int64)
    exit_costs = np.empty(digits[-1], np.float64)  # of the last slice
    exit_logs = np.empty(digits[-1], np.float64)
    for v in range(digits[-1]):
        at = column_starts[vertex_starts[1 + last_slice * width + v]]
        margins[0] = weights.bias[at]
        exit_logs[v] = vertex_costs(
            margins, np.int64(1), scales[-1], power, normalisation, scores, powers, exit_costs, v
        )
    room = 64
    numbers, integers = np.empty((room, 4), np.float64), np.empty((room, 5), np.int64)
    heap = np.empty(room, np.int64)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        find_features(indices, start, stop, weights, lows, highs)
        n_open, size, n_items, found = 0, np.int64(0), np.int64(1), 0
        # The path that waits at the source, without an edge yet.
        integers[0, VERTEX], integers[0, SLICE], integers[0, PASSED] = 0, -1, 0
        numbers[0, SPENT] = numbers[0, LOG] = 0.0
        item, is_new, waiting = np.int64(0), True, np.int64(-1)
        while found < k:
            vertex, slice_ = integers[item, VERTEX], integers[item, SLICE]
            block = vertex_starts[vertex]
            at = column_starts[block]
            if is_new:
                if visits[vertex] == 0:
                    n_columns = np.int64(0)
                    for part in range(block, vertex_starts[vertex + 1]):
                        block_margins(
                            data,
                            start,
                            stop - start,
                            lows,
                            highs,
                            weights,
                            part,
                            margins,
                            n_columns,
                        )
                        n_columns += column_starts[part + 1] - column_starts[part]
                    scale = scales[slice_ + 1]
                    log_sums[vertex] = vertex_costs(
                        margins, n_columns, scale, power, normalisation, scores, powers, costs, at
                    )
                    if slice_ + 1 == last_slice:
                        for j in range(digits[-1]):
                            costs[at + j] += exit_costs[j]
                    opened[n_open] = vertex
                    n_open += 1
                visits[vertex] += 1
                numbers[item, EDGE_COST], integers[item, EDGE] = -1.0, _NO_EDGE
            n_heads = width if slice_ + 1 < last_slice else digits[-1]
            has_exit = slice_ >= 0 and vertex - 1 - slice_ * width < digits[slice_]
            cost, head = _next_edge(
                costs, at, n_heads, has_exit, numbers[item, EDGE_COST], integers[item, EDGE]
            )
            if head != _NO_EDGE:
                numbers[item, EDGE_COST], integers[item, EDGE] = cost, head
                numbers[item, KEY] = numbers[item, SPENT] + cost
                number = integers[item, PASSED]
                if head >= 0:
                    number += head * counts[slice_ + 2] + min(head, digits[slice_ + 1]) + has_exit
                integers[item, NUMBER] = number
                if is_new:
                    heap[size] = item
                    size += 1
                    _sift_up(heap, size - 1, numbers, integers)
                else:
                    _sift_down(heap, size, numbers, integers)
            elif not is_new:
                size -= 1
                heap[0] = heap[size]
                _sift_down(heap, size, numbers, integers)
            if is_new and waiting >= 0:
                item, is_new, waiting = waiting, False, -1
                continue
            if size == 0:
                break
            # Follow the cheapest edge of all: to the sink, or to a vertex that may be new.
            item = heap[0]
            is_new = False
            head, slice_ = integers[item, EDGE], integers[item, SLICE]
            log = numbers[item, LOG] - numbers[item, EDGE_COST] / RESOLUTION
            log -= (1 - normalisation) * log_sums[integers[item, VERTEX]]
            if head >= 0 and slice_ + 1 == last_slice:
                log -= (1 - normalisation) * exit_logs[head]
                head = np.int64(_EXIT)
            if head == _EXIT:
                paths[i, found] = integers[item, NUMBER]
                path_costs[i, found] = numbers[item, KEY] / RESOLUTION
                path_logs[i, found] = log
                found += 1
                continue
            reached = 1 + (slice_ + 1) * width + head
            if visits[reached] == k:
                continue
            if n_items == room:
                numbers, integers = _grown(numbers), _grown(integers)
                room *= 2
                longer = np.empty(room, np.int64)
                for q in range(size):
                    longer[q] = heap[q]
                heap = longer
            integers[n_items, VERTEX], integers[n_items, SLICE] = reached, slice_ + 1
            integers[n_items, PASSED] = integers[item, NUMBER]
            numbers[n_items, SPENT], numbers[n_items, LOG] = numbers[item, KEY], log
            waiting = item
            item, is_new = n_items, True
            n_items += 1
        n_opened[i] = n_open
        for v in range(n_open):
            visits[opened[v]] = 0


@kernel(fastmath=_FIXED)
def _grown(table):
    """A copy with room for twice as many rows."""
    larger = np.empty((2 * table.shape[0], table.shape[1]), table.dtype)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            larger[i, j] = table[i, j]
    return larger


@kernel(fastmath=_FIXED)
def vertex_margins(indptr, indices, data, weights, vertices, out):
    """Margins of one vertex's edges for each row; beyond its last edge, ``out`` stays as it is."""
    lows, highs = row_buffers(indptr)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        find_features(indices, start, stop, weights, lows, highs)
        n_columns = np.int64(0)
        for part in range(
            weights.vertex_starts[vertices[i]], weights.vertex_starts[vertices[i] + 1]
        ):
            block_margins(data, start, stop - start, lows, highs, weights, part, out[i], n_columns)
            n_columns += weights.column_starts[part + 1] - weights.column_starts[part]
