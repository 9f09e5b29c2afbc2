"""Shortest paths, k shortest paths and path sums on the trellis: one recursion in three forms.

All three walk the slices from the last to the source. With c the edge costs and D(v) the value of
vertex v, what remains from there to the sink,

    D(v) = op( c(exit of v),  op over w in the next slice of  c(v, w) + D(w) ),

with op = min for the best path, min with all alternatives kept in order for the k best, and
-log sum exp(-.) for the log-partition. Each reads every edge once: O(|E|) per row.

Costs have one row per sample; ``g`` is the trellis, ``slices`` its table (``graph.py``). Tables of
vertices have one row per slice, the source's first: ``values[i + 1, v]`` belongs to vertex v of
slice i.

Of paths that cost the same, the one with the lowest number comes first: at every vertex the exit is
tried before the next slice, and there the vertices in order; only a strictly smaller cost wins.
"""

import numpy as np

from ._jit import MINIMA, kernel
from .graph import (
    exit_edge,
    first_edge,
    first_exit,
    n_exits,
    n_heads,
    n_slices,
    n_vertices,
    paths_before,
)


@kernel(fastmath=MINIMA, inline="always")
def _lowest(values, start, stop, lowest):
    for j in range(start, stop):
        lowest = min(lowest, values[j])
    return lowest


@kernel(fastmath=MINIMA, inline="always")
def _fill_slice(costs, slices, i, values):
    """Fill ``values[i + 1, v]``: the least cost from vertex v of slice i to the sink."""
    start, size = first_edge(slices, i, 0), n_heads(slices, i)
    leaving, n_leaving = first_exit(slices, i), n_exits(slices, i)
    for v in range(n_vertices(slices, i)):
        # Two running minima, as one would wait for itself at every step.
        even = np.float64(costs[leaving + v]) if v < n_leaving else np.inf
        odd = np.inf
        for w in range(0, size - 1, 2):
            even = min(even, costs[start + w] + values[i + 2, w])
            odd = min(odd, costs[start + w + 1] + values[i + 2, w + 1])
        if size % 2 == 1:
            odd = min(odd, costs[start + size - 1] + values[i + 2, size - 1])
        values[i + 1, v] = min(even, odd)
        start += size


@kernel(fastmath=MINIMA)
def fill_values(costs, slices, values):
    """Fill ``values`` from costs that need no levelling."""
    for i in range(n_slices(slices) - 1, -2, -1):
        _fill_slice(costs, slices, i, values)


@kernel(fastmath=MINIMA)
def level_and_fill(costs, slices, levelled, values):
    """Subtract from each slice's edges their lowest cost, then fill ``values``.

    Returns the sum of what was subtracted.

    A path takes one edge out of every slice up to its exit. Exits also pay for the slices that
    they spare, so all paths lose the same amount and their order is unchanged. Then no cost is
    negative: adding them up keeps all digits, where -1e30 + 1 would have lost the 1. (Of a slice
    that some paths spare, a positive lowest cost stays, as those paths do without it.)
    """
    shortest = 0  # the first slice with an exit: every path takes an edge out of it
    while n_exits(slices, shortest) == 0:
        shortest += 1
    later = 0.0  # sum of what was taken off the slices behind this one
    for i in range(n_slices(slices) - 1, -2, -1):
        start, exit_start = first_edge(slices, i, 0), first_exit(slices, i)
        stop = start + n_vertices(slices, i) * n_heads(slices, i)
        exit_stop = exit_start + n_exits(slices, i)
        nearest = costs[start] if start < stop else costs[exit_start]
        nearest = _lowest(costs, start, stop, nearest)
        nearest = _lowest(costs, exit_start, exit_stop, nearest)
        lowest = np.float64(nearest)
        if i > shortest:
            lowest = min(lowest, 0.0)
        for j in range(start, stop):
            levelled[j] = costs[j] - lowest
        for j in range(exit_start, exit_stop):
            levelled[j] = (costs[j] - lowest) - later
        later += lowest
        _fill_slice(levelled, slices, i, values)
    return later


# ---------------------------------------------------------------------- the best path


@kernel(inline="always")
def best_option(costs, slices, i, v, values):
    """How the best way goes on from a vertex: 0 for its exit, w + 1 for vertex w of the next slice.

    Not for the last slice, which has exits only.
    """
    start = first_edge(slices, i, v)
    best, lowest = 1, costs[start] + values[i + 2, 0]
    for w in range(1, n_heads(slices, i)):
        cost = costs[start + w] + values[i + 2, w]
        if cost < lowest:
            lowest, best = cost, w + 1
    if v < n_exits(slices, i) and costs[first_exit(slices, i) + v] <= lowest:
        best = 0
    return best


@kernel
def best_path(costs, slices, values):
    """Number of the path that ``values`` promise, walked from the source."""
    number, v = 0, 0
    for i in range(-1, n_slices(slices) - 1):
        option = best_option(costs, slices, i, v, values)
        if option == 0:
            break
        number += (v < n_exits(slices, i)) + paths_before(slices, i + 1, option - 1)
        v = option - 1
    return number


@kernel
def best_paths(costs, g, paths):
    """Number of the path of least cost in each row."""
    slices = g.slices
    levelled = np.empty(g.n_edges, np.float64)
    values = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    for row in range(costs.shape[0]):
        level_and_fill(costs[row], slices, levelled, values)
        paths[row] = best_path(levelled, slices, values)


# ---------------------------------------------------------------------- the sum over all paths
#
# The sum over all ways from v to the sink is kept relative to the best one: with D(v) its cost,
#
#     S(v) = log sum_w exp( D(v) - c(v, w) - D(w) + S(w) ),
#
# a number between 0 and log K however large the costs are. The probability of going on from v to
# w is exp( D(v) - c(v, w) - D(w) + S(w) - S(v) ), and these sum to one at every vertex. D(v) is the
# least of the sums c(v, w) + D(w): subtracted from just those, it leaves 0 for the best, and not a
# rounding error of huge costs, which exp would blow up.


@kernel
def _fill_sums(costs, slices, values, sums):
    """Fill ``sums[i + 1, v]``, S of vertex v of slice i."""
    for i in range(n_slices(slices) - 1, -2, -1):
        size = n_heads(slices, i)
        for v in range(n_vertices(slices, i)):
            start, leaving = first_edge(slices, i, v), exit_edge(slices, i, v)
            total = np.exp(values[i + 1, v] - costs[leaving]) if leaving >= 0 else 0.0
            for w in range(size):
                detour = costs[start + w] + values[i + 2, w] - values[i + 1, v]
                total += np.exp(sums[i + 2, w] - detour)
            sums[i + 1, v] = np.log(total)


@kernel
def log_partition(costs, g, log_sums):
    """Log of the sum over all paths of exp(-cost), for each row."""
    slices = g.slices
    levelled = np.empty(g.n_edges, np.float64)
    values = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    sums = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    for row in range(costs.shape[0]):
        shift = level_and_fill(costs[row], slices, levelled, values)
        _fill_sums(levelled, slices, values, sums)
        log_sums[row] = sums[0, 0] - values[0, 0] - shift


@kernel
def path_log_probabilities(costs, g, vertices, edges, log_probabilities):
    """Log of exp(-cost) of the given paths of each row over the sum of all paths' exp(-cost).

    ``vertices`` (rows, paths per row, slices) and ``edges`` (one more) are filled up with -1; if
    they hold one row only, its paths are meant for all.
    """
    slices = g.slices
    levelled = np.empty(g.n_edges, np.float64)
    values = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    sums = np.empty((g.digits.size + 1, g.slice_width), np.float64)
    for row in range(costs.shape[0]):
        level_and_fill(costs[row], slices, levelled, values)
        _fill_sums(levelled, slices, values, sums)
        which = row if edges.shape[0] > 1 else 0
        for k in range(edges.shape[1]):
            ahead, ahead_sum = values[0, 0], sums[0, 0]
            total = 0.0
            for step in range(edges.shape[2]):
                edge = edges[which, k, step]
                if edge < 0:
                    break
                v = vertices[which, k, step] if step < g.digits.size else -1
                next_value = values[step + 1, v] if v >= 0 else 0.0
                next_sum = sums[step + 1, v] if v >= 0 else 0.0
                detour = levelled[edge] + next_value - ahead
                total += next_sum - ahead_sum - detour
                ahead, ahead_sum = next_value, next_sum
            log_probabilities[row, k] = min(total, 0.0)


# ---------------------------------------------------------------------- the k best paths
#
# Every path but the best leaves its best continuation somewhere. Call (slice, rank) the last
# place where a path takes not the best option but the one ranked so, best again from there on.
# Its children: the next rank in that slice, or rank 1 in any later slice. So each path has one
# parent, no dearer than itself, and a heap that holds the children of all paths given out so
# far yields the paths in order. After the recursion, the k best paths cost O(k L log(k L)), and
# making heaps of the options of the vertices they visit.
#
# The options of a vertex are those of ``best_option``. Their heap has its own stretch of one array;
# the options taken off it lie behind it, the first one last.


@kernel
def _before(cost, number, a, b):
    return cost[a] < cost[b] or (cost[a] == cost[b] and number[a] < number[b])


@kernel
def _push(heap, size, cost, number, item):
    """Add an item to a binary heap ordered by cost, then by number."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if not _before(cost, number, item, heap[parent]):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


@kernel
def _pop(heap, size, cost, number):
    """Take the first item off a heap of ``size`` items, and put it behind the others."""
    first, item = heap[0], heap[size - 1]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and _before(cost, number, heap[child + 1], heap[child]):
            child += 1
        if not _before(cost, number, heap[child], item):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item
    heap[size - 1] = first
    return first


@kernel
def _fill_options(costs, slices, i, v, values, options, worth, in_order):
    """Make a heap of a vertex's options, by the cost of the best way on; return how many."""
    start, size, leaving = first_edge(slices, i, v), n_heads(slices, i), exit_edge(slices, i, v)
    count = np.int64(0)
    if leaving >= 0:
        options[0], worth[0], count = 0, costs[leaving], 1
    for w in range(size):
        worth[w + 1] = costs[start + w] + values[i + 2, w]
        _push(options, count, worth, in_order, w + 1)
        count += 1
    return count


@kernel
def _rest(costs, slices, i, v, values, rests, way):
    """What the best way on from a vertex adds to a path's number; -1 in ``rests`` until known."""
    top = i
    while rests[i + 1, v] < 0:
        way[i + 1] = v
        option = 0
        if i < n_slices(slices) - 1:
            option = best_option(costs, slices, i, v, values)
        if option == 0:
            rests[i + 1, v] = 0
        else:
            i, v = i + 1, option - 1
    while i > top:
        before = paths_before(slices, i, v) + rests[i + 1, v]
        i, v = i - 1, way[i]
        rests[i + 1, v] = before + (v < n_exits(slices, i))
    return rests[i + 1, v]


@kernel
def k_best_paths(costs, g, paths, path_costs):
    """Numbers of the k paths of least cost in each row, and how much they cost above the best."""
    n, k = paths.shape
    slices = g.slices
    n_steps = n_slices(slices) + 1  # decisions of a path: at the source and in every slice
    tables = np.empty(n_steps + 1, np.int64)  # where the options of each slice start
    tables[0] = 0
    for i in range(-1, n_steps - 1):
        tables[i + 2] = tables[i + 1] + n_vertices(slices, i) * (n_heads(slices, i) + 1)
    options = np.empty(tables[n_steps], np.int64)
    worth = np.empty(tables[n_steps], np.float64)
    in_order = np.empty(g.slice_width + 1, np.int64)
    for option in range(in_order.size):
        in_order[option] = option
    counts = np.empty((n_steps, g.slice_width), np.int64)  # options of each vertex, 0: not known
    ranked = np.empty((n_steps, g.slice_width), np.int64)  # how many of them are in order
    rests = np.empty((n_steps, g.slice_width), np.int64)
    way = np.empty(n_steps, np.int64)
    levelled = np.empty(g.n_edges, np.float64)
    values = np.empty((n_steps, g.slice_width), np.float64)
    n_items = 1 + k * n_steps  # every path pushes at most one child per step
    heap = np.empty(n_items, np.int64)
    cost = np.empty(n_items, np.float64)
    number = np.empty(n_items, np.int64)
    parent = np.empty(n_items, np.int64)  # which path given out this one was derived from
    place = np.empty((n_items, 2), np.int64)  # its (step, rank)
    choices = np.empty((k, n_steps), np.int64)  # the option taken at each step

    for row in range(n):
        level_and_fill(costs[row], slices, levelled, values)
        for step in range(n_steps):
            for v in range(g.slice_width):
                counts[step, v], rests[step, v] = 0, -1
        # Numbers that change are 64-bit from the start: a plain 0 would make Numba compile the
        # callees twice.
        size, made = np.int64(0), np.int64(0)
        heap[0], cost[0], parent[0], place[0, 0], place[0, 1] = 0, 0.0, -1, 0, 0
        number[0] = _rest(levelled, slices, np.int64(-1), np.int64(0), values, rests, way)
        size += 1
        made += 1
        for found in range(k):
            item = _pop(heap, size, cost, number)
            size -= 1
            paths[row, found] = number[item]
            path_costs[row, found] = cost[item]
            v, before = np.int64(0), np.int64(0)
            for step in range(n_steps):
                i = step - 1
                if step < place[item, 0]:
                    option = choices[parent[item], step]
                else:
                    begin = tables[step] + v * (n_heads(slices, i) + 1)
                    own, own_worth = options[begin : tables[step + 1]], worth[begin:]
                    if counts[step, v] == 0:
                        counts[step, v] = _fill_options(
                            levelled, slices, i, v, values, own, own_worth, in_order
                        )
                        ranked[step, v] = 0
                    count = counts[step, v]
                    rank = place[item, 1] if step == place[item, 0] else 0
                    while ranked[step, v] < min(rank + 2, count):
                        _pop(own, count - ranked[step, v], own_worth, in_order)
                        ranked[step, v] += 1
                    option = own[count - 1 - rank]
                    if rank + 1 < count:
                        other = own[count - 2 - rank]
                        cost[made] = cost[item] + (own_worth[other] - own_worth[option])
                        number[made] = before
                        if other > 0:
                            rest = _rest(levelled, slices, step, other - 1, values, rests, way)
                            passed = (v < n_exits(slices, i)) + paths_before(
                                slices, step, other - 1
                            )
                            number[made] += passed + rest
                        parent[made], place[made, 0], place[made, 1] = found, step, rank + 1
                        _push(heap, size, cost, number, made)
                        size += 1
                        made += 1
                choices[found, step] = option
                if option == 0:
                    break
                before += (v < n_exits(slices, i)) + paths_before(slices, step, option - 1)
                v = option - 1
