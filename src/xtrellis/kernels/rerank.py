"""Cosines of sparse rows and centroids of classes, the order of paths by them, and their bounds.

A path of cost c ends at ``c - strength cosine``, and higher if the class's own SVM is against it
(``rivals``). So a path that was found is proved to stay before
all that were not, if these cost so much that the largest cosine of any class would not be enough.
That cosine is bounded without looking at all classes. Let ``u_f`` be the entries for feature f that
the centroids have at unit length. All but the few largest of them are at most some ``t_f``, hence

    cos(x, u) <= (sum_f x_f t_f + max_u sum_f x_f max(0, u_f - t_f)) / |x|,    f with x_f > 0,

where the sums over excesses need the few largest entries only. They are added up in buckets, of
which each has several classes: that can only make the bound larger.
"""

import numpy as np

from ._jit import kernel, part
from .blocks import HIGH, LOW, slot_of
from .rivals import rivalry

N_BUCKETS = 2048  # that excesses are added up in
_ROUNDING = 2.0**-22  # relative error of a term of a bound: larger than float32's
NO_COSINE = 1 + _ROUNDING  # no cosine is as large, not even one that is rounded


@kernel
def cosines(indptr, indices, data, starts, features, codes, classes, out):
    """Cosine of every row with the centroids of its classes; both lists of features ascend."""
    for i in range(indptr.size - 1):
        length = squared_length(data, indptr[i], indptr[i + 1])
        for c in range(classes.shape[1]):
            out[i, c] = cosine(
                indices, data, indptr[i], indptr[i + 1], length, starts, features, codes,
                classes[i, c],
            )  # fmt: skip


@kernel
def rerank(
    indptr, indices, data, c, strength, r, rival_strength, class_of_path, paths, costs, logs, n
):
    """Order each row's first n paths by their costs as re-ranked, equal ones as before.

    Costs become the new ones; ``logs`` are only brought into the same order.
    """
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        length = squared_length(data, start, stop)
        for at in range(n):
            cost = costs[i, at] + extra_cost(
                indices, data, start, stop, length, c, strength, r, rival_strength,
                class_of_path[paths[i, at]],
            )  # fmt: skip
            insert(paths, costs, logs, i, at, paths[i, at], cost, logs[i, at])


@part
def extra_cost(indices, data, start, stop, length, c, strength, r, rival_strength, number):
    """What re-ranking adds to the cost of a path whose class has this number."""
    extra = 0.0
    if strength != 0:
        extra -= strength * cosine(
            indices, data, start, stop, length, c.starts, c.features, c.codes, number
        )
    if rival_strength != 0:
        extra += rival_strength * rivalry(indices, data, start, stop, r, number)
    return extra


@part
def squared_length(data, start, stop):
    """Sum of the squares of a row's values."""
    total = 0.0
    for p in range(start, stop):
        total += np.float64(data[p]) * data[p]
    return total


@part
def cosine(indices, data, start, stop, length, starts, features, codes, number):
    """Cosine of a row, of given squared length, with the centroid of a class."""
    p, q, last = start, starts[number], starts[number + 1]
    size, total = np.int64(0), 0.0
    for e in range(q, last):
        size += np.int64(codes[e]) * np.int64(codes[e])
    while p < stop and q < last:
        if indices[p] < features[q]:
            p += 1
        elif indices[p] > features[q]:
            q += 1
        else:
            total += data[p] * np.float64(codes[q])
            p += 1
            q += 1
    return total / np.sqrt(length * size) if length * size > 0 else 0.0


@part
def insert(paths, costs, logs, i, n, path, cost, log):
    """Insert a path into the first n of row i, which are sorted; behind those of equal cost.

    If there is no room for one more, the last one is dropped.
    """
    room = costs.shape[1]
    at = n if n < room else room
    while at > 0 and costs[i, at - 1] > cost:
        if at < room:
            paths[i, at], costs[i, at] = paths[i, at - 1], costs[i, at - 1]
            logs[i, at] = logs[i, at - 1]
        at -= 1
    if at < room:
        paths[i, at], costs[i, at], logs[i, at] = path, cost, log


@part
def largest_cosine(indices, data, start, stop, length, slots, buckets, excesses, sums):
    """Bound of a row's cosine with any centroid; ``sums`` is scratch, of N_BUCKETS.

    A slot says where the list of a feature starts and stops. The first of its excesses is ``t_f``.
    """
    for b in range(sums.size):
        sums[b] = 0
    base, best = np.float32(0), np.float32(0)
    for p in range(start, stop):
        x = data[p]
        if x > 0:
            slot = slot_of(indices[p], slots)
            low, high = np.uint64(slots[slot + LOW]), np.uint64(slots[slot + HIGH])
            if low < high:
                base += x * excesses[low]
                for q in range(low + np.uint64(1), high):
                    total = sums[buckets[q]] + x * excesses[q]
                    sums[buckets[q]] = total
                    best = total if total > best else best
    if length <= 0:
        return 0.0
    bound = (np.float64(base) + best) / np.sqrt(length)
    bound *= 1 + (stop - start + 4) * _ROUNDING
    return bound if bound < NO_COSINE else NO_COSINE
