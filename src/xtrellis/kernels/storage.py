"""Kernels that lay out weights: entries of a finished block, and the directory of features.

The weights of a feature in a block are stored in full, a value per column, if more than a share of
them is not zero; else as a list of columns and values.
"""

import numpy as np

from ._jit import kernel
from .lazy import hash_feature


@kernel
def count_entries(weights, threshold, full_above, counts):
    """Number of entries that each feature's weights above the threshold take; their sum."""
    n_columns = weights.shape[1]
    total = 0
    for k in range(weights.shape[0]):
        count = 0
        for j in range(n_columns):
            count += abs(weights[k, j]) > threshold
        counts[k] = n_columns if count > full_above * n_columns else count
        total += counts[k]
    return total


@kernel
def take_entries(weights, threshold, order, counts, columns, values):
    """The entries of the features in this order."""
    n_columns = weights.shape[1]
    e = 0
    for k in order:
        full = counts[k] == n_columns
        for j in range(n_columns):
            large = abs(weights[k, j]) > threshold
            if large or full:
                columns[e] = j
                values[e] = weights[k, j] if large else np.float32(0)
                e += 1


@kernel
def prune_entries(
    feature_starts,
    column_starts,
    entry_starts,
    columns,
    values,
    threshold,
    full_above,
    new_feature_starts,
    kept,
    new_entry_starts,
    new_columns,
    new_values,
):
    """Copy the entries above the threshold; ``kept`` takes the features that still have any.

    Returns the number of features and of entries that are left.
    """
    n_kept, e = 0, 0
    for block in range(column_starts.size - 1):
        width = column_starts[block + 1] - column_starts[block]
        new_feature_starts[block] = n_kept
        for k in range(feature_starts[block], feature_starts[block + 1]):
            low, high = entry_starts[k], entry_starts[k + 1]
            count = 0
            for p in range(low, high):
                count += abs(values[p]) > threshold
            if count == 0:
                continue
            new_entry_starts[n_kept] = e
            kept[n_kept] = k
            n_kept += 1
            full = high - low == width and count > full_above * width
            for p in range(low, high):
                large = abs(values[p]) > threshold
                if large or full:
                    new_columns[e] = columns[p]
                    new_values[e] = values[p] if large else np.float32(0)
                    e += 1
    new_feature_starts[column_starts.size - 1] = n_kept
    new_entry_starts[n_kept] = e
    return n_kept, e


@kernel
def rank_features(features, slots, seen, ranks):
    """Number the distinct features in the order in which they appear; returns how many.

    ``slots`` is a hash table of a power of two of entries, all -1; ``seen[r]`` is the feature with
    rank r.
    """
    mask = slots.size - 1
    n_seen = 0
    for p in range(features.size):
        slot = hash_feature(features[p]) & mask
        while slots[slot] >= 0 and seen[slots[slot]] != features[p]:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = n_seen
            seen[n_seen] = features[p]
            n_seen += 1
        ranks[p] = slots[slot]
    return n_seen


@kernel
def fill_directory(ranks, feature_starts, first, last, homes, spots, table):
    """List the blocks of every feature, in order.

    The list of feature r starts at ``first[r]``, where ``last[r]`` is, too, to begin with; one
    whose ``last`` is -1 has a line of the table, from ``first[r]`` on, with a place for each block.
    """
    for block in range(feature_starts.size - 1):
        for p in range(feature_starts[block], feature_starts[block + 1]):
            rank = ranks[p]
            if last[rank] < 0:
                table[first[rank] + block] = p
            else:
                homes[last[rank]] = block
                spots[last[rank]] = p
                last[rank] += 1
