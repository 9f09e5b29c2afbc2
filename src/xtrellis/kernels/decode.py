"""Shortest paths, k shortest paths and path sums on the trellis: one recursion told three ways.

All three walk the slices from the last to the first. With c the edge costs and D(v) the value of
vertex v, what remains from there to the sink,

    D(v) = op( c(exit of v),  op over w in the next slice of  c(v, w) + D(w) ),

with op = min for the best path, min with all alternatives kept in order for the k best, and
-log sum exp(-.) for the log-partition. Each reads every edge once: O(|E|) a row.

Costs come as one row a sample, edges numbered as in ``trellis.py``; ``digits`` and
``path_counts`` are the trellis's A and T. Of paths that cost the same, the one with the lowest
number comes first: at every vertex the exit is tried before the next slice, and there the
vertices in order; only a strictly smaller cost wins.
"""

import numpy as np

from ._jit import MINIMA, kernel


@kernel(fastmath=MINIMA, inline="always")
def _lowest(values, start, stop, lowest):
    for j in range(start, stop):
        lowest = min(lowest, values[j])
    return lowest


@kernel(fastmath=MINIMA)
def level_costs(costs, width, digits, levelled):
    """Subtract from each slice's edges their lowest cost; return the sum of what was subtracted.

    A path takes one edge out of every slice up to its exit. Exits also pay for the slices that
    they spare, so all paths lose the same amount and their order is unchanged. Then no cost is
    negative: adding them up keeps all digits, where -1e30 + 1 would have lost the 1. (Of a slice
    that some paths spare, a positive lowest cost stays, as those paths do without it.)
    """
    last = digits.size - 1
    stop = width + (last - 1) * width * width + width * digits[last]  # end of the inner edges
    exit_start = stop
    first_exit = 0  # the first slice with an exit: every path takes an edge out of it
    while digits[first_exit] == 0:
        first_exit += 1
    later = 0.0  # sum of what was taken off the slices behind this one
    for i in range(last, -1, -1):
        start = width + i * width * width if i < last else stop
        exit_stop = exit_start + digits[i]
        nearest = costs[start] if i < last else costs[exit_start]
        nearest = _lowest(costs, start, stop, nearest)
        nearest = _lowest(costs, exit_start, exit_stop, nearest)
        lowest = np.float64(nearest)
        if i > first_exit:
            lowest = min(lowest, 0.0)
        for j in range(start, stop):
            levelled[j] = costs[j] - lowest
        for j in range(exit_start, exit_stop):
            levelled[j] = (costs[j] - lowest) - later
        later += lowest
        stop, exit_start = start, exit_stop
    lowest = np.float64(_lowest(costs, 0, width, costs[0]))
    for j in range(width):
        levelled[j] = costs[j] - lowest
    return later + lowest


# ---------------------------------------------------------------------- the best path


@kernel(fastmath=MINIMA)
def _values(costs, width, digits, values):
    """Fill ``values[i, v]``: the least cost from vertex v of slice i to the sink."""
    last = digits.size - 1
    exit_start = width + (last - 1) * width * width + width * digits[last]
    for v in range(digits[last]):
        values[last, v] = costs[exit_start + v]
    exit_start += digits[last]
    for i in range(last - 1, -1, -1):
        size = width if i + 1 < last else digits[last]
        for v in range(width):
            start = width + i * width * width + v * size
            # Two running minima, as one would wait for itself at every step.
            even = costs[start] + values[i + 1, 0]
            odd = even
            for w in range(1, size - 1, 2):
                even = min(even, costs[start + w] + values[i + 1, w])
                odd = min(odd, costs[start + w + 1] + values[i + 1, w + 1])
            if size % 2 == 0:
                even = min(even, costs[start + size - 1] + values[i + 1, size - 1])
            lowest = min(even, odd)
            if v < digits[i]:
                lowest = min(lowest, costs[exit_start + v])
            values[i, v] = lowest
        exit_start += digits[i]


@kernel
def _trace(costs, width, digits, path_counts, values):
    """Number of the path that ``values`` promise, walked from the source."""
    last = digits.size - 1
    exit_stop = costs.size
    v = 0
    lowest = costs[0] + values[0, 0]
    for w in range(1, width):
        if costs[w] + values[0, w] < lowest:
            lowest = costs[w] + values[0, w]
            v = w
    number = v * path_counts[1] + min(v, digits[0])
    for i in range(last):
        size = width if i + 1 < last else digits[last]
        start = width + i * width * width + v * size
        w_best = 0
        lowest = costs[start] + values[i + 1, 0]
        for w in range(1, size):
            if costs[start + w] + values[i + 1, w] < lowest:
                lowest = costs[start + w] + values[i + 1, w]
                w_best = w
        exit_start = exit_stop - digits[i]
        if v < digits[i]:
            if costs[exit_start + v] <= lowest:
                return number
            number += 1
        exit_stop = exit_start
        v = w_best
        number += v * path_counts[i + 2] + min(v, digits[i + 1])
    return number


@kernel
def best_paths(costs, width, digits, path_counts, paths):
    """Number of the path of least cost in each row."""
    levelled = np.empty(costs.shape[1], np.float64)
    values = np.empty((digits.size, width), np.float64)
    for row in range(costs.shape[0]):
        level_costs(costs[row], width, digits, levelled)
        _values(levelled, width, digits, values)
        paths[row] = _trace(levelled, width, digits, path_counts, values)


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
def _sums(costs, width, digits, values, sums):
    """Fill ``sums[i, v]``, S of vertex v of slice i; return D and S of the source."""
    last = digits.size - 1
    sums[last, : digits[last]] = 0.0
    exit_start = width + (last - 1) * width * width + width * digits[last] + digits[last]
    for i in range(last - 1, -1, -1):
        size = width if i + 1 < last else digits[last]
        for v in range(width):
            start = width + i * width * width + v * size
            total = np.exp(values[i, v] - costs[exit_start + v]) if v < digits[i] else 0.0
            for w in range(size):
                detour = costs[start + w] + values[i + 1, w] - values[i, v]
                total += np.exp(sums[i + 1, w] - detour)
            sums[i, v] = np.log(total)
        exit_start += digits[i]
    best = costs[0] + values[0, 0]
    for v in range(1, width):
        best = min(best, costs[v] + values[0, v])
    total = 0.0
    for v in range(width):
        total += np.exp(sums[0, v] - (costs[v] + values[0, v] - best))
    return best, np.log(total)


@kernel
def log_partition(costs, width, digits, log_sums):
    """Log of the sum over all paths of exp(-cost), for each row."""
    levelled = np.empty(costs.shape[1], np.float64)
    values = np.empty((digits.size, width), np.float64)
    sums = np.empty((digits.size, width), np.float64)
    for row in range(costs.shape[0]):
        shift = level_costs(costs[row], width, digits, levelled)
        _values(levelled, width, digits, values)
        best, log_sum = _sums(levelled, width, digits, values, sums)
        log_sums[row] = log_sum - best - shift


@kernel
def path_log_probabilities(costs, width, digits, vertices, edges, log_probabilities):
    """Log of exp(-cost) of the given paths of each row over the sum of all paths' exp(-cost).

    ``vertices`` (rows, paths a row, slices) and ``edges`` (one more) are filled up with -1; if
    they hold one row only, its paths are meant for all.
    """
    levelled = np.empty(costs.shape[1], np.float64)
    values = np.empty((digits.size, width), np.float64)
    sums = np.empty((digits.size, width), np.float64)
    for row in range(costs.shape[0]):
        level_costs(costs[row], width, digits, levelled)
        _values(levelled, width, digits, values)
        best, log_sum = _sums(levelled, width, digits, values, sums)
        which = row if edges.shape[0] > 1 else 0
        for k in range(edges.shape[1]):
            ahead, ahead_sum = best, log_sum
            total = 0.0
            for step in range(edges.shape[2]):
                edge = edges[which, k, step]
                if edge < 0:
                    break
                v = vertices[which, k, step] if step < digits.size else -1
                next_value = values[step, v] if v >= 0 else 0.0
                next_sum = sums[step, v] if v >= 0 else 0.0
                detour = levelled[edge] + next_value - ahead
                total += next_sum - ahead_sum - detour
                ahead, ahead_sum = next_value, next_sum
            log_probabilities[row, k] = min(total, 0.0)


# ---------------------------------------------------------------------- the k best paths
#
# Every path but the best leaves its best continuation somewhere. Call (step, rank) the last
# place where a path takes not the best option but the one ranked so, best again from there on.
# Its children: the next rank at that step, or rank 1 at any later step. So each path has one
# parent, no dearer than itself, and a heap that holds the children of all paths given out so
# far yields the paths in order. After the recursion, the k best paths cost O(k L log(k L)),
# and the sorting of the options of the vertices they visit.
#
# A decision, "step" s, is taken at the source (s = 0) or at a vertex of slice s - 1. Its options
# are 0, the exit, and w + 1, vertex w of the next slice. Option tables are ragged, one stretch a
# vertex, found by ``_options_start``.


@kernel
def _options_start(step, v, width, digits):
    """Start of the option table of vertex ``v`` at this step."""
    last = digits.size - 1
    if step == 0:
        return 0
    if step < last:
        return (width + 1) * (1 + (step - 1) * width + v)
    before = (width + 1) * (1 + (last - 1) * width)
    if step == last:
        return before + v * (digits[last] + 1)
    return before + width * (digits[last] + 1) + v


@kernel
def _fill_options(costs, step, v, width, digits, values, ranked, worth):
    """Rank the options of a vertex by cost; return how many there are."""
    last = digits.size - 1
    begin = _options_start(step, v, width, digits)
    count = 0
    if step > 0 and v < digits[step - 1]:
        exit_start = costs.size
        for i in range(step):
            exit_start -= digits[i]
        ranked[begin] = 0
        worth[begin] = costs[exit_start + v]
        count = 1
    if step <= last:
        size = width if step < last else digits[last]
        start = 0 if step == 0 else width + (step - 1) * width * width + v * size
        for w in range(size):
            ranked[begin + count] = w + 1
            worth[begin + count] = costs[start + w] + values[step, w]
            count += 1
    order = np.argsort(worth[begin : begin + count], kind="mergesort")  # stable: ties in order
    ranked[begin : begin + count] = ranked[begin : begin + count][order]
    worth[begin : begin + count] = worth[begin : begin + count][order]
    return count


@kernel
def _best_options(costs, width, digits, path_counts, values, best, suffix):
    """Best option of each vertex, and what the best way on adds to a path's number."""
    last = digits.size - 1
    for v in range(digits[last]):
        best[last, v] = 0
        suffix[last, v] = 0
    exit_start = width + (last - 1) * width * width + width * digits[last] + digits[last]
    for i in range(last - 1, -1, -1):
        size = width if i + 1 < last else digits[last]
        for v in range(width):
            start = width + i * width * width + v * size
            option = 1
            for w in range(1, size):
                if costs[start + w] + values[i + 1, w] < (
                    costs[start + option - 1] + values[i + 1, option - 1]
                ):
                    option = w + 1
            lowest = costs[start + option - 1] + values[i + 1, option - 1]
            if v < digits[i] and costs[exit_start + v] <= lowest:
                option = 0
            best[i, v] = option
            suffix[i, v] = _way_on(i + 1, v, option, digits, path_counts, suffix)
        exit_start += digits[i]


@kernel
def _way_on(step, v, option, digits, path_counts, suffix):
    """What this option, and the best way on from there, adds to a path's number."""
    if option == 0:
        return 0
    passed_exit = 1 if step > 0 and v < digits[step - 1] else 0
    w = option - 1
    return passed_exit + w * path_counts[step + 1] + min(w, digits[step]) + suffix[step, w]


@kernel
def _before(cost, number, a, b):
    return cost[a] < cost[b] or (cost[a] == cost[b] and number[a] < number[b])


@kernel
def _push(heap, size, cost, number, item):
    """Add an item to a binary heap ordered by cost, then by path number."""
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
    """Take the first item off a heap of ``size`` items."""
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
    return first


@kernel
def k_best_paths(costs, width, digits, path_counts, paths, path_costs):
    """Numbers of the k paths of least cost in each row, and how much they cost above the best."""
    n, k = paths.shape
    n_slices = digits.size
    n_options = _options_start(n_slices, digits[-1], width, digits)
    levelled = np.empty(costs.shape[1], np.float64)
    values = np.empty((n_slices, width), np.float64)
    best = np.empty((n_slices, width), np.int64)
    suffix = np.empty((n_slices, width), np.int64)
    counts = np.empty((n_slices + 1, width), np.int64)  # options of a vertex, 0 = not ranked yet
    ranked = np.empty(n_options, np.int64)
    worth = np.empty(n_options, np.float64)
    n_items = 1 + k * (n_slices + 1)  # every path pushes at most one child a step
    heap = np.empty(n_items, np.int64)
    cost = np.empty(n_items, np.float64)
    number = np.empty(n_items, np.int64)
    parent = np.empty(n_items, np.int64)  # which path given out this one was derived from
    place = np.empty((n_items, 2), np.int64)  # its (step, rank)
    choices = np.empty((k, n_slices + 1), np.int64)  # the option taken at each step

    for row in range(n):
        level_costs(costs[row], width, digits, levelled)
        _values(levelled, width, digits, values)
        _best_options(levelled, width, digits, path_counts, values, best, suffix)
        counts[:] = 0
        counts[0, 0] = _fill_options(levelled, 0, 0, width, digits, values, ranked, worth)
        cost[0] = 0.0
        number[0] = _way_on(0, 0, ranked[0], digits, path_counts, suffix)
        parent[0] = -1
        place[0, 0] = 0
        place[0, 1] = 0
        _push(heap, 0, cost, number, 0)
        size, made = 1, 1
        for found in range(k):
            item = _pop(heap, size, cost, number)
            size -= 1
            paths[row, found] = number[item]
            path_costs[row, found] = cost[item]
            step_left, rank_left = place[item, 0], place[item, 1]
            v, count_before = 0, 0
            for step in range(n_slices + 1):
                if step < step_left:
                    choices[found, step] = choices[parent[item], step]
                else:
                    if counts[step, v] == 0:
                        counts[step, v] = _fill_options(
                            levelled, step, v, width, digits, values, ranked, worth
                        )
                    begin = _options_start(step, v, width, digits)
                    rank = rank_left if step == step_left else 0
                    choices[found, step] = ranked[begin + rank]
                    if rank + 1 < counts[step, v]:
                        worse = worth[begin + rank + 1] - worth[begin + rank]
                        option = ranked[begin + rank + 1]
                        cost[made] = cost[item] + worse
                        number[made] = count_before + _way_on(
                            step, v, option, digits, path_counts, suffix
                        )
                        parent[made] = found
                        place[made, 0] = step
                        place[made, 1] = rank + 1
                        _push(heap, size, cost, number, made)
                        size += 1
                        made += 1
                option = choices[found, step]
                if option == 0:
                    break
                w = option - 1
                if step > 0 and v < digits[step - 1]:
                    count_before += 1
                count_before += w * path_counts[step + 1] + min(w, digits[step])
                v = w
