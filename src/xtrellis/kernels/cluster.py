"""Clustering of class vectors: average linkage, and spherical k-means with given sizes."""

import numpy as np

from ._jit import SUMS, kernel
from .learn import row_margins


@kernel(fastmath=SUMS)
def product(indptr, indices, data, start, stop, dense, zeros, out):
    """Rows ``start`` to ``stop`` of the product of a CSR matrix with a dense one."""
    for i in range(start, stop):
        row_margins(indices, data, indptr[i], indptr[i + 1], dense, zeros, out[i])


@kernel(fastmath=SUMS)
def linkage_order(distances, order):
    """Leaves of average linkage, from left to right: of two clusters the tighter one is left.

    Goes from a cluster to its nearest one, and on, until two are each other's nearest; these are
    merged, with ``d(a + b, c) = (n_a d(a, c) + n_b d(b, c)) / (n_a + n_b)``, and the way that led
    there is kept. A cluster has the number of one of its leaves, which are a linked list.
    ``distances`` is overwritten.
    """
    n = distances.shape[0]
    active, heads, tails = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    following, way, place = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    sizes, heights = np.empty(n, np.float32), np.empty(n, np.float32)
    for a in range(n):
        active[a] = heads[a] = tails[a] = a
        following[a] = place[a] = -1  # place: where on the way a is
        sizes[a], heights[a] = 1, 0
    length = 0
    a = b = 0
    for n_active in range(n, 1, -1):
        if length == 0:
            way[0], place[active[0]], length = active[0], 0, 1
        while True:
            a = way[length - 1]
            # If the one before is as near as any, it is the nearest, so that the way ends.
            b = way[length - 2] if length > 1 else active[1]
            least = distances[a, b]
            for q in range(n_active):
                c = active[q]
                if distances[a, c] < least and c != a:
                    least, b = distances[a, c], c
            if place[b] >= 0:
                break
            way[length], place[b] = b, length
            length += 1
        start = place[b]  # of the last two; earlier only if distances were rounded badly
        for q in range(start, length):
            place[way[q]] = -1
        length = start
        a_left = heights[a] < heights[b] or (heights[a] == heights[b] and a < b)
        left, right = (a, b) if a_left else (b, a)
        following[tails[left]] = heads[right]
        heads[a], tails[a] = heads[left], tails[right]
        heights[a] = distances[a, b]
        share = sizes[a] / (sizes[a] + sizes[b])
        sizes[a] += sizes[b]
        kept = 0
        for q in range(n_active):
            c = active[q]
            mean = share * distances[a, c] + (np.float32(1) - share) * distances[b, c]
            distances[a, c] = distances[c, a] = mean
            active[kept] = c
            kept += c != b
    leaf = heads[a] if n > 1 else 0
    for q in range(n):
        order[q] = leaf
        leaf = following[leaf]


@kernel  # exact: NaNs must compare as they should
def _kth_lowest(values, k):
    """The value that would be at place k if ``values``, which it rearranges, were sorted.

    Hoare's selection, which ends and stays within bounds even among NaNs, as long as they compare
    as they should. NumPy's in Numba would take five seconds to compile.
    """
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


@kernel(fastmath=SUMS)
def two_means(vectors, size, centres, n_rounds, first):
    """Mark in ``first`` one of two clusters, of ``size`` members, by spherical 2-means.

    ``centres`` holds the two to start from. In each round the ``size`` vectors that lean most to
    the first centre, ``(c2 - c1).x`` least, are its cluster; of equals, those that come first.
    """
    n, n_dimensions = vectors.shape
    everything = np.zeros(n_dimensions, np.float32)
    direction = np.empty(n_dimensions, np.float32)
    for i in range(n):
        for d in range(n_dimensions):
            everything[d] += vectors[i, d]
    for d in range(n_dimensions):
        direction[d] = centres[1, d] - centres[0, d]
    leaning = np.empty(n, np.float32)
    scratch = np.empty(n, np.float32)
    own = np.empty(n_dimensions, np.float32)
    for i in range(n):
        first[i] = False
    for _ in range(n_rounds):
        for i in range(n):
            total = np.float32(0)
            for d in range(n_dimensions):
                total += vectors[i, d] * direction[d]
            leaning[i] = scratch[i] = total
        limit = _kth_lowest(scratch, size - 1)
        n_equal = size
        for i in range(n):
            n_equal -= leaning[i] < limit
        moved = False
        for d in range(n_dimensions):
            own[d] = 0
        for i in range(n):
            inside = leaning[i] < limit
            if leaning[i] == limit and n_equal > 0:
                inside = True
                n_equal -= 1
            moved = moved or inside != first[i]
            first[i] = inside
            if inside:
                for d in range(n_dimensions):
                    own[d] += vectors[i, d]
        if not moved:
            break
        own_square, other_square = np.float32(0), np.float32(0)
        for d in range(n_dimensions):
            other = everything[d] - own[d]
            own_square += own[d] * own[d]
            other_square += other * other
        # A cluster of zeros has no direction: its centre is zero.
        own_scale = np.float32(1) / np.sqrt(own_square) if own_square > 0 else np.float32(0)
        other_scale = np.float32(1) / np.sqrt(other_square) if other_square > 0 else np.float32(0)
        for d in range(n_dimensions):
            direction[d] = (everything[d] - own[d]) * other_scale - own[d] * own_scale


@kernel(fastmath=SUMS)
def cluster_sums(vectors, cluster, sums):
    """Sum of the vectors of each cluster."""
    for c in range(sums.shape[0]):
        for d in range(sums.shape[1]):
            sums[c, d] = 0
    for i in range(cluster.size):
        c = cluster[i]
        for d in range(vectors.shape[1]):
            sums[c, d] += vectors[i, d]


@kernel(fastmath=SUMS)
def two_best(likeness, waiting, capacity, preferred, gap):
    """For each waiting row the open cluster that it is most like, and the gap to the second one."""
    for q in range(waiting.size):
        i = waiting[q]
        best, second, at = np.float32(-2), np.float32(-2), -1  # below every cosine
        for c in range(capacity.size):
            value = likeness[i, c]
            if capacity[c] > 0 and value > second:
                if value > best:
                    best, second, at = value, best, c
                else:
                    second = value
        preferred[q] = at
        gap[q] = best - second


@kernel(fastmath=SUMS)
def highest(table, values, columns):
    """The highest values of each row of a table, and in which columns they are, highest first."""
    n = values.shape[1]
    for i in range(table.shape[0]):
        own, places = values[i], columns[i]
        for k in range(n):
            own[k], places[k] = np.float32(-2), -1  # below every cosine
        for c in range(table.shape[1]):
            value = table[i, c]
            if value > own[n - 1]:
                k = n - 1
                while k > 0 and own[k - 1] < value:
                    own[k], places[k] = own[k - 1], places[k - 1]
                    k -= 1
                own[k], places[k] = value, c


@kernel(fastmath=SUMS)
def two_best_of_few(likeness, few, waiting, capacity, preferred, gap):
    """As ``two_best``, of those that :func:`highest` found; -1 if none of them is open."""
    last = few.shape[1] - 1
    for q in range(waiting.size):
        i, at, best, second = waiting[q], -1, np.float32(0), likeness[waiting[q], last]
        for k in range(last + 1):
            c = few[i, k]
            if c >= 0 and capacity[c] > 0:
                if at >= 0:
                    second = likeness[i, k]
                    break
                best, at = likeness[i, k], c
        preferred[q] = at
        gap[q] = best - second


@kernel(fastmath=SUMS)
def assign(waiting, turn, preferred, capacity, cluster, later):
    """Assign the rows, in turn, to their preferred clusters; list the others in ``later``.

    Returns how many those are.
    """
    n_later = 0
    for q in turn:
        i = waiting[q]
        if capacity[preferred[q]] > 0:
            capacity[preferred[q]] -= 1
            cluster[i] = preferred[q]
        else:
            later[n_later] = i
            n_later += 1
    return n_later
