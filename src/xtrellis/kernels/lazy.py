"""Lazy decoding: the best paths of a row, from the margins of as few vertices as can prove them.

The blocks of a vertex hold the weights of the edges that leave it (``blocks``). The search is
Dijkstra's with a twist: margins are computed when a vertex is first reached by the cheapest open
path, and of its edges only the cheapest that was not yet followed is kept open. Where that would
open many vertices, bounds of what is still ahead join the costs of the source's edges
(``bounds``), which makes it an A* search: vertices that cannot have one of the best paths stay
closed.

Costs must not be negative. They are rounded to whole multiples of 2^-16, which float64 adds up
without error: the cost of a path is the same number in whatever order it is summed, so this search
and one that looks at all edges agree on every row, ties included.
"""

import numpy as np

from ._jit import FIXED, kernel, part
from .blocks import block_margins, find_features, longest_row
from .bounds import RESOLUTION, least_costs
from .costs import _exp, _log, score
from .rerank import (
    N_BUCKETS,
    NO_COSINE,
    extra_cost,
    insert,
    largest_cosine,
    squared_length,
)

_NEVER = 1e300  # more than any cost
_LONGEST = 1e60  # squared length of a row
_HIGHEST = 2.0**46  # of a rounded cost: sixty of them add up without error
# Bounds take longer the more vertices there are, and opening one takes longer the more edges it
# has. Where there are so many times as many vertices as edges of each, one more is opened first.
_CHEAP = 8

# ---------------------------------------------------------------------- costs of a vertex
#
# Elsewhere conditions stand in place of min and max, of which Numba compiles one for each pair of
# types; in loops over edges these are faster.


@kernel(fastmath=FIXED, inline="always")
def _rounded(cost):
    """A cost as a whole multiple of 1 / RESOLUTION, and within its limits."""
    return min(max(np.floor(cost * RESOLUTION + 0.5), 0.0), _HIGHEST)


@part(fastmath=FIXED)
def vertex_costs(margins, n, scale, power, normalisation, scores, powers, costs, at):
    """Costs ``normalisation log sum_s exp(z_s) - z_e`` of a vertex's edges, into ``costs[at:]``.

    Returns the log of the sum.
    """
    for j in range(n):
        scores[j] = score(margins[j], scale, power)
    top = np.float32(-3e38)
    for j in range(n):
        top = scores[j] if scores[j] > top else top
    for j in range(n):
        below = scores[j] - top
        powers[j] = _exp(below if below > np.float32(-87) else np.float32(-87))
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
    to = np.uint64(at)
    for j in range(np.uint64(n)):
        costs[to + j] = _rounded(norm - np.float64(scores[j]))
    return log_sum


# ---------------------------------------------------------------------- open paths
#
# An open path has got to a vertex, and waits to take one of its edges.

_EXIT, _NO_EDGE = -1, -2  # in place of a head's number


@part(fastmath=FIXED)
def _next_edge(costs, at, n_heads, has_exit, last_cost, last):
    """Cheapest edge that comes after the last one: its cost and head, or ``_NO_EDGE``.

    Edges are ordered by cost, and equal ones by number: the exit first, then the heads.
    """
    best, head, first = _NEVER, np.int64(_NO_EDGE), np.uint64(at)
    after = np.uint64(last + 1 if last >= 0 else 0)
    for j in range(after):
        cost = costs[first + j]
        best = min(best, cost if cost > last_cost else _NEVER)
    for j in range(after, np.uint64(n_heads)):
        cost = costs[first + j]
        best = min(best, cost if cost >= last_cost else _NEVER)
    if has_exit and last_cost < costs[at + n_heads] <= best:
        return costs[at + n_heads], np.int64(_EXIT)
    if best < _NEVER:
        for j in range(after if best == last_cost else np.uint64(0), np.uint64(n_heads)):
            if costs[first + j] == best:
                head = np.int64(j)
                break
    return best, head


@kernel(inline="always")
def _before(keys, numbers, a, b):
    """Whether open path a comes before b: by cost, then by number."""
    return keys[a] < keys[b] or (keys[a] == keys[b] and numbers[a] < numbers[b])


@part
def _sift_up(heap, at, keys, numbers):
    """Restore the order of a heap whose item here may come too late."""
    item = heap[at]
    while at > 0 and _before(keys, numbers, item, heap[(at - 1) >> 1]):
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = item


@part
def _sift_down(heap, size, keys, numbers):
    """Restore the order of a heap whose first item may come too early."""
    item, at = heap[0], 0
    while 2 * at + 1 < size:
        down = 2 * at + 1
        if down + 1 < size and _before(keys, numbers, heap[down + 1], heap[down]):
            down += 1
        if not _before(keys, numbers, heap[down], item):
            break
        heap[at] = heap[down]
        at = down
    heap[at] = item


@kernel(fastmath=FIXED)
def k_best(
    indptr,
    indices,
    data,
    w,
    width,
    digits,
    counts,
    scales,
    power,
    normalisation,
    log_sums_at_rest,
    c,
    strength,
    r,
    rival_strength,
    n_reranked,
    class_of_path,
    n_openable,
    last_paths,
    paths,
    path_costs,
    path_logs,
    n_opened,
):
    """The k cheapest paths of every row, cheapest first, with their costs.

    If there are centroids ``c`` and rivals ``r``, the first ``n_reranked`` paths are ordered anew
    by those of their classes, and the search ends as soon as no other can be among the k best.
    (None is a type of its own: the kernel for it is compiled without all that.) If there are
    ``last_paths``, one for each row, it ends when it has found this path, too. After ``n_openable``
    vertices no other is opened: paths that need one are not found.

    Vertices of the last slice have one edge, whose margin does not depend on the row: a path that
    reaches one is complete. ``width``, ``digits`` and ``counts`` are b, A and T of the trellis;
    ``scales`` holds one over the temperature of the source and of each slice;
    ``log_sums_at_rest`` is for the bounds; ``path_logs`` takes the log-probability of each path as
    a product of softmaxes, ``n_opened`` the number of vertices whose margins were computed.
    """
    k = paths.shape[1]
    n_sought = k if k > n_reranked else n_reranked
    last_slice = digits.size - 1
    vertex_starts, column_starts, bias = w.vertex_starts, w.column_starts, w.bias
    slots, homes, table = w.slots, w.homes, w.table
    columns, values = w.columns, w.values
    if c is not None:
        lists, buckets, excesses = c.slots, c.buckets, c.excesses
        sums = np.empty(N_BUCKETS, np.float32)
    n_vertices = vertex_starts.size - 1
    longest = longest_row(indptr)
    lows, highs = np.empty(longest, np.int64), np.empty(longest, np.int64)
    spans = np.empty(longest, np.int64)
    widest = 0
    for v in range(n_vertices):
        n_columns = column_starts[vertex_starts[v + 1]] - column_starts[vertex_starts[v]]
        widest = n_columns if n_columns > widest else widest
    margins, scores = np.empty(widest, np.float32), np.empty(widest, np.float32)
    powers = np.empty(widest, np.float32)
    # Costs of opened vertices one after the other, so that those of a row stay in the caches.
    costs, seats = np.empty((1 + last_slice * width) * widest), np.empty(n_vertices, np.int64)
    log_sums = np.empty(n_vertices)
    visits, opened = np.empty(n_vertices, np.int64), np.empty(n_vertices, np.int64)
    for v in range(n_vertices):
        visits[v] = 0
    exit_costs, exit_logs = np.empty(digits[-1]), np.empty(digits[-1])  # of the last slice
    for v in range(digits[-1]):  # one edge each: the log of the sum is its z
        margin = bias[column_starts[vertex_starts[1 + last_slice * width + v]]]
        exit_logs[v] = np.float64(score(margin, scales[-1], power))
        exit_costs[v] = _rounded(normalisation * exit_logs[v] - exit_logs[v])
    # A vertex is reached by at most as many open paths as are sought, and each is the beginning of
    # a path of its own.
    n_most = 1 + n_sought * n_vertices
    if counts[0] * digits.size < n_most:
        n_most = 1 + counts[0] * digits.size
    spent, logs = np.empty(n_most), np.empty(n_most)  # of open paths: cost, log-probability
    edge_costs, keys = np.empty(n_most), np.empty(n_most)  # cost of the edge to take; of both
    places, slices = np.empty(n_most, np.int64), np.empty(n_most, np.int64)  # vertex and slice
    passed, numbers = np.empty(n_most, np.int64), np.empty(n_most, np.int64)  # path numbers: up to
    # the vertex, and with the edge, whose head is in ``edges``
    edges, heap = np.empty(n_most, np.int64), np.empty(n_most, np.int64)
    n_unbounded = 2 + width // (_CHEAP * digits[-1])  # vertices to open before there are bounds
    ahead = np.empty(width)  # least cost beyond each edge of the source, as far as it is known
    tops = np.empty(column_starts.size - 1, np.float32)
    for i in range(indptr.size - 1):
        start, n_features = indptr[i], indptr[i + 1] - indptr[i]
        find_features(indices, start, start + n_features, slots, lows, highs, spans)
        n_open, size, n_items, found = 0, 0, 1, 0
        # The path that waits at the source, without an edge yet.
        places[0], slices[0], passed[0] = 0, -1, 0
        spent[0] = logs[0] = 0.0
        item, is_new, waiting = 0, True, -1
        length = squared_length(data, start, start + n_features)
        if length > _LONGEST:  # its margins may overflow: it gets no path
            n_opened[i] = 0
            continue
        nearest, is_known = NO_COSINE, strength == 0  # bound of the cosine with any class
        is_bounded = last_slice == 0 or (normalisation >= 1 and power != 0)  # bounds would be zero
        for v in range(width):
            ahead[v] = 0.0
        while found < n_sought:
            vertex, slice_ = places[item], slices[item]
            if is_new:
                if visits[vertex] == 0:
                    seats[vertex] = n_open * widest
                    n_columns = 0
                    for block in range(vertex_starts[vertex], vertex_starts[vertex + 1]):
                        n_columns += block_margins(
                            data,
                            start,
                            n_features,
                            lows,
                            highs,
                            spans,
                            column_starts,
                            bias,
                            homes,
                            table,
                            columns,
                            values,
                            block,
                            margins,
                            n_columns,
                        )
                    scale = scales[slice_ + 1]
                    at = seats[vertex]
                    log_sums[vertex] = vertex_costs(
                        margins, n_columns, scale, power, normalisation, scores, powers, costs, at
                    )
                    if slice_ + 1 == last_slice:
                        for j in range(np.uint64(digits[-1])):
                            costs[np.uint64(at) + j] += exit_costs[j]
                    opened[n_open] = vertex
                    n_open += 1
                visits[vertex] += 1
                edge_costs[item], edges[item] = -1.0, _NO_EDGE
            n_heads = width if slice_ + 1 < last_slice else digits[-1]
            has_exit = slice_ >= 0 and vertex - 1 - slice_ * width < digits[slice_]
            at = seats[vertex]
            cost, head = _next_edge(costs, at, n_heads, has_exit, edge_costs[item], edges[item])
            if head != _NO_EDGE:
                edge_costs[item], edges[item] = cost, head
                keys[item] = spent[item] + cost
                numbers[item] = passed[item]
                if head >= 0:
                    numbers[item] += head * counts[slice_ + 2]
                    n_exits = digits[slice_ + 1] if head > digits[slice_ + 1] else head
                    numbers[item] += n_exits + has_exit
                if is_new:
                    heap[size] = item
                    size += 1
                    _sift_up(heap, size - 1, keys, numbers)
            elif not is_new:
                size -= 1
                heap[0] = heap[size]
            if not is_new:
                _sift_down(heap, size, keys, numbers)
            if is_new and waiting >= 0:
                item, is_new, waiting = waiting, False, -1
                continue
            if size == 0:
                break
            if c is not None and found >= k:
                key = keys[heap[0]] / RESOLUTION
                proved = key - strength * nearest >= path_costs[i, k - 1]
                if not proved and not is_known:
                    nearest, is_known = largest_cosine(
                        indices, data, start, start + n_features, length, lists, buckets,
                        excesses, sums,
                    ), True  # fmt: skip
                    proved = key - strength * nearest >= path_costs[i, k - 1]
                if proved:
                    break
            # Follow the cheapest edge of all: to the sink, or to a vertex that may be new.
            item, is_new = heap[0], False
            head, slice_ = edges[item], slices[item]
            if slice_ < 0 and n_open >= n_unbounded and not is_bounded:
                is_bounded = True
                if least_costs(
                    data, start, n_features, lows, highs, w, width, scales[1], power,
                    normalisation, log_sums_at_rest, tops, ahead,
                ):  # fmt: skip
                    for j in range(width):
                        cost = costs[j]
                        is_behind = cost < edge_costs[item]
                        is_behind |= cost == edge_costs[item] and j < head
                        costs[j] = _NEVER if is_behind else cost + ahead[j]
                    edge_costs[item], edges[item] = -1.0, _NO_EDGE
                    continue
            beyond = ahead[head] if slice_ < 0 else 0.0  # in the key, but not paid yet
            log = logs[item] - (edge_costs[item] - beyond) / RESOLUTION
            log -= (1 - normalisation) * log_sums[places[item]]
            if head >= 0 and slice_ + 1 == last_slice:
                log -= (1 - normalisation) * exit_logs[head]
                head = _EXIT
            if head == _EXIT:
                cost = keys[item] / RESOLUTION
                if found < k:
                    paths[i, found], path_costs[i, found] = numbers[item], cost
                    path_logs[i, found] = log
                if c is not None and found < n_reranked:
                    cost += extra_cost(
                        indices, data, start, start + n_features, length, c, strength, r,
                        rival_strength, class_of_path[numbers[item]],
                    )  # fmt: skip
                    insert(paths, path_costs, path_logs, i, found, numbers[item], cost, log)
                found += 1
                if i < last_paths.size and numbers[item] == last_paths[i]:
                    break
                continue
            reached = 1 + (slice_ + 1) * width + head
            if visits[reached] == n_sought or (visits[reached] == 0 and n_open >= n_openable):
                continue
            places[n_items], slices[n_items] = reached, slice_ + 1
            passed[n_items], spent[n_items] = numbers[item], keys[item] - beyond
            logs[n_items] = log
            waiting = item
            item, is_new = n_items, True
            n_items += 1
        n_opened[i] = n_open
        for v in range(n_open):
            visits[opened[v]] = 0
