"""Rows of training: those of a block, and rows that are equal."""

import numpy as np

from ._jit import kernel

# ---------------------------------------------------------------------- rows of blocks


@kernel
def gather_rows(indptr, indices, data, rows, local, new_indptr, new_indices, new_data, features):
    """Copy rows into a CSR of their own, over the features that they contain only.

    ``local`` holds -1 for every feature; ``features`` takes the old number of each new one.
    Returns the number of features.
    """
    n_features, q = 0, 0
    for r in range(rows.size):
        new_indptr[r] = q
        for p in range(indptr[rows[r]], indptr[rows[r] + 1]):
            k = indices[p]
            if local[k] < 0:
                local[k] = n_features
                features[n_features] = k
                n_features += 1
            new_indices[q] = local[k]
            new_data[q] = data[p]
            q += 1
    new_indptr[rows.size] = q
    return n_features


# ---------------------------------------------------------------------- equal rows


@kernel
def hash_rows(indptr, indices, data_bits, labels, hashes):
    """64-bit hash of each row's features, values and label."""
    for i in range(labels.size):
        h = np.uint64(labels[i]) * np.uint64(0x9E3779B97F4A7C15)
        for p in range(indptr[i], indptr[i + 1]):
            word = (np.uint64(indices[p]) << np.uint64(32)) ^ np.uint64(data_bits[p])
            h = (h ^ word) * np.uint64(0xBF58476D1CE4E5B9)
            h ^= h >> np.uint64(29)
        hashes[i] = h


@kernel
def mark_first_rows(indptr, indices, data_bits, labels, hashes, order, first):
    """Mark, in an order by hash, the rows that differ from the first of those before them."""
    leader = -1
    for q in range(order.size):
        i = order[q]
        same = leader >= 0 and hashes[i] == hashes[leader] and labels[i] == labels[leader]
        length = indptr[i + 1] - indptr[i]
        if same:
            same = length == indptr[leader + 1] - indptr[leader]
        if same:
            for p in range(length):
                a, b = indptr[i] + p, indptr[leader] + p
                if indices[a] != indices[b] or data_bits[a] != data_bits[b]:
                    same = False
                    break
        first[q] = not same
        if not same:
            leader = i
