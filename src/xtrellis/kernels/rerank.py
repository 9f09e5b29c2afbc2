"""Cosines of sparse rows and centroids of classes, and the order of paths by them."""

import numpy as np

from ._jit import kernel


@kernel
def cosines(indptr, indices, data, starts, features, codes, classes, out):
    """Cosine of every row with the centroids of its classes; both lists of features ascend."""
    for i in range(indptr.size - 1):
        length = _squared_length(data, indptr[i], indptr[i + 1])
        for c in range(classes.shape[1]):
            out[i, c] = _cosine(
                indices, data, indptr[i], indptr[i + 1], length, starts, features, codes,
                classes[i, c],
            )  # fmt: skip


@kernel
def rerank(
    indptr, indices, data, starts, features, codes, strength, class_of_path, paths, costs, logs, n
):
    """Order each row's first n paths by cost less strength times cosine, equal ones as before.

    Costs become the new ones; ``logs`` are only brought into the same order.
    """
    for i in range(indptr.size - 1):
        length = _squared_length(data, indptr[i], indptr[i + 1])
        for c in range(n):
            path, log = paths[i, c], logs[i, c]
            cosine = _cosine(
                indices, data, indptr[i], indptr[i + 1], length, starts, features, codes,
                class_of_path[path],
            )  # fmt: skip
            cost = costs[i, c] - strength * cosine
            at = c
            while at > 0 and costs[i, at - 1] > cost:
                paths[i, at], costs[i, at], logs[i, at] = (
                    paths[i, at - 1], costs[i, at - 1], logs[i, at - 1]
                )  # fmt: skip
                at -= 1
            paths[i, at], costs[i, at], logs[i, at] = path, cost, log


@kernel
def _squared_length(data, start, stop):
    total = 0.0
    for p in range(start, stop):
        total += np.float64(data[p]) * data[p]
    return total


@kernel
def _cosine(indices, data, start, stop, length, starts, features, codes, number):
    """Cosine of a row, of given squared length, with the centroid of a class."""
    p, q, last = start, starts[number], starts[number + 1]
    size, total = 0.0, 0.0
    for e in range(q, last):
        size += np.float64(codes[e]) * codes[e]
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
