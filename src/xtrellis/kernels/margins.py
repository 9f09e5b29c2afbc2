"""Margins of rows: sparse rows times the learned weights, some dense, some sparse."""

import numpy as np

from ._jit import SUMS, kernel


@kernel(fastmath=SUMS)
def one_row(indices, data, start, stop, place, dense, starts, edges, values, bias, row):
    """Margins of one row, ``bias + x W``, a feature of W at a time.

    ``place[k]`` is the row of ``dense`` that holds feature k's weights; where it is -1, they are
    at ``starts[k]`` to ``starts[k + 1]`` of ``edges`` and ``values``.
    """
    for j in range(bias.size):
        row[j] = bias[j]
    for p in range(start, stop):
        x, k = data[p], indices[p]
        at = place[k]
        if at >= 0:
            for j in range(bias.size):
                row[j] += x * dense[at, j]
        else:
            for q in range(starts[k], starts[k + 1]):
                row[edges[q]] += x * values[q]


@kernel(fastmath=SUMS)
def all_rows(indptr, indices, data, place, dense, starts, edges, values, bias, out):
    """Margins of all rows."""
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        one_row(indices, data, start, stop, place, dense, starts, edges, values, bias, out[i])


@kernel(fastmath=SUMS)
def thresholded_rows(
    indptr, indices, data, place, dense, starts, edges, values, bias, threshold, out
):
    """Margins of all rows, as if weights of at most the threshold were zero."""
    for i in range(indptr.size - 1):
        for j in range(bias.size):
            out[i, j] = bias[j]
        for p in range(indptr[i], indptr[i + 1]):
            x, k = data[p], indices[p]
            at = place[k]
            if at >= 0:
                for j in range(bias.size):
                    weight = dense[at, j]
                    out[i, j] += x * (weight if abs(weight) > threshold else np.float32(0))
            else:
                for q in range(starts[k], starts[k + 1]):
                    if abs(values[q]) > threshold:
                        out[i, edges[q]] += x * values[q]


@kernel(fastmath=SUMS)
def block_margins(indptr, indices, data, rows, place, weights, bias, margins):
    """Margins of some rows for a block's edges; ``place[k]`` is feature k in the block, or -1."""
    for r in range(rows.size):
        for j in range(bias.size):
            margins[r, j] = bias[j]
        for p in range(indptr[rows[r]], indptr[rows[r] + 1]):
            x, k = data[p], place[indices[p]]
            if k >= 0:
                for j in range(bias.size):
                    margins[r, j] += x * weights[k, j]


# ---------------------------------------------------------------------- rows and weights of blocks


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


@kernel
def count_nonzeros(weights):
    """Number of weights that are not zero."""
    total = 0
    for k in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            total += weights[k, j] != 0
    return total


@kernel
def take_nonzeros(weights, features, edges, counts, out_edges, out_values):
    """Non-zero weights row by row: their edges and values, and how many each feature has."""
    q = 0
    for k in range(weights.shape[0]):
        first = q
        for j in range(weights.shape[1]):
            if weights[k, j] != 0:
                out_edges[q] = edges[j]
                out_values[q] = weights[k, j]
                q += 1
        counts[k] = q - first


@kernel
def merge_block(features, counts, columns, block_values, place, dense, at, edges, values):
    """Put a block's weights in their place: in ``dense``, or from ``at[k]`` on in the lists."""
    q = 0
    for k in range(features.size):
        row, stop = place[features[k]], q + counts[k]
        if row >= 0:
            for p in range(q, stop):
                dense[row, columns[p]] = block_values[p]
        else:
            shift = at[k] - q
            for p in range(q, stop):
                edges[shift + p] = columns[p]
                values[shift + p] = block_values[p]
        q = stop


@kernel
def count_above(place, dense, starts, values, threshold, counts):
    """Number of weights of each feature that are larger than the threshold."""
    for k in range(place.size):
        counts[k] = 0
        if place[k] >= 0:
            for j in range(dense.shape[1]):
                counts[k] += abs(dense[place[k], j]) > threshold
        for q in range(starts[k], starts[k + 1]):
            counts[k] += abs(values[q]) > threshold


@kernel
def take_above(
    place,
    dense,
    starts,
    edges,
    values,
    threshold,
    new_place,
    new_dense,
    new_starts,
    new_edges,
    new_values,
):
    """Copy the weights that are larger than the threshold, to a matrix of the same form."""
    for k in range(place.size):
        to, at = new_place[k], new_starts[k]
        if place[k] >= 0:
            for j in range(dense.shape[1]):
                weight = dense[place[k], j]
                if abs(weight) > threshold:
                    if to >= 0:
                        new_dense[to, j] = weight
                    else:
                        new_edges[at] = j
                        new_values[at] = weight
                        at += 1
        for q in range(starts[k], starts[k + 1]):
            if abs(values[q]) > threshold:
                if to >= 0:
                    new_dense[to, edges[q]] = values[q]
                else:
                    new_edges[at] = edges[q]
                    new_values[at] = values[q]
                    at += 1


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
