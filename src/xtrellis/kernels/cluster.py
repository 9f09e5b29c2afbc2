"""Spherical k-means with clusters of given sizes: which classes share a vertex."""

import numpy as np
from numba import njit

from .learn import _OPTIONS


@njit(**_OPTIONS)
def two_means(vectors, size, centres, n_rounds, first):
    """Mark in ``first`` one of two clusters, of ``size`` members, by spherical 2-means.

    ``centres`` holds the two to start from. In each round the ``size`` vectors that lean most to
    the first centre, ``(c2 - c1).x`` least, are its cluster; of equals, those that come first.
    """
    n, n_dimensions = vectors.shape
    everything = np.zeros(n_dimensions, np.float32)
    for i in range(n):
        for d in range(n_dimensions):
            everything[d] += vectors[i, d]
    direction = centres[1] - centres[0]
    leaning = np.empty(n, np.float32)
    own = np.empty(n_dimensions, np.float32)
    first[:] = False
    for _ in range(n_rounds):
        for i in range(n):
            total = np.float32(0)
            for d in range(n_dimensions):
                total += vectors[i, d] * direction[d]
            leaning[i] = total
        limit = np.partition(leaning, size - 1)[size - 1]
        n_equal = size
        for i in range(n):
            n_equal -= leaning[i] < limit
        moved = False
        own[:] = 0
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


@njit(**_OPTIONS)
def cluster_sums(vectors, cluster, sums):
    """Sum of the vectors of each cluster."""
    sums[:] = 0
    for i in range(cluster.size):
        c = cluster[i]
        for d in range(vectors.shape[1]):
            sums[c, d] += vectors[i, d]


@njit(**_OPTIONS)
def two_best(likeness, waiting, room, wish, lead):
    """For each row that waits, the cluster with room it is most like, and by how much more."""
    for q in range(waiting.size):
        i = waiting[q]
        best, second, at = np.float32(-2), np.float32(-2), -1  # below every cosine
        for c in range(room.size):
            value = likeness[i, c]
            if room[c] > 0 and value > second:
                if value > best:
                    best, second, at = value, best, c
                else:
                    second = value
        wish[q] = at
        lead[q] = best - second


@njit(**_OPTIONS)
def seat(waiting, turn, wish, room, cluster):
    """Give the rows, in turn, the cluster they wish if it has room; return how many still wait.

    Those are moved to the front of ``waiting``, in the order of their turns.
    """
    later = np.empty_like(waiting)
    n_later = 0
    for q in turn:
        i = waiting[q]
        if room[wish[q]] > 0:
            room[wish[q]] -= 1
            cluster[i] = wish[q]
        else:
            later[n_later] = i
            n_later += 1
    waiting[:n_later] = later[:n_later]
    return n_later
