"""Kernels that lay out weights: entries of a finished block, and the directory of features.

The weights of a feature in a block are stored in full, a value per column, if more than a share of
them is not zero; else as a list of columns and values.
"""

import numpy as np

from ._jit import kernel
from .blocks import (
    FIRST_SPAN,
    GAP_BITS,
    HIGH,
    LOW,
    SLOT_WORDS,
    SPAN_BITS,
    TOP_BITS,
    hash_feature,
)

MOST = 65535  # the code of the largest weight
MOST_GAP = 32767  # that of the largest gap


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
def join_entries(
    feature_starts,
    features,
    entry_starts,
    columns,
    values,
    offsets,
    full_above,
    joined_features,
    joined_counts,
    joined_columns,
    joined_values,
):
    """Merge blocks side by side: the columns of block b become those from ``offsets[b]``.

    Features ascend in each block. Returns the number of features, and of entries. If there is no
    room for entries (an empty ``joined_columns``), they are only counted.
    """
    n_blocks, width = feature_starts.size - 1, offsets[-1]
    n_features, e = np.int64(0), np.int64(0)
    at = feature_starts[:-1].copy()
    while True:
        feature = np.int64(-1)  # the next one of all blocks
        for b in range(n_blocks):
            if at[b] < feature_starts[b + 1] and (feature < 0 or features[at[b]] < feature):
                feature = np.int64(features[at[b]])
        if feature < 0:
            return n_features, e
        count = np.int64(0)
        for b in range(n_blocks):
            if at[b] < feature_starts[b + 1] and features[at[b]] == feature:
                for p in range(entry_starts[at[b]], entry_starts[at[b] + 1]):
                    count += values[p] != 0
        is_full = count > full_above * width
        if joined_columns.size and count:
            joined_features[n_features] = feature
            joined_counts[n_features] = width if is_full else count
            for j in range(width if is_full else 0):
                joined_columns[e + j] = j
                joined_values[e + j] = 0
        k = e
        for b in range(n_blocks):
            if at[b] < feature_starts[b + 1] and features[at[b]] == feature:
                for p in range(entry_starts[at[b]], entry_starts[at[b] + 1]):
                    if values[p] != 0 and joined_columns.size:
                        column = offsets[b] + columns[p]
                        k = e + column if is_full else k
                        joined_columns[k] = column
                        joined_values[k] = values[p]
                        k += 1
                at[b] += 1
        n_features += count > 0  # weights that were rounded may all be zero
        e += width if is_full else count


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

    ``slots`` is a hash table with a power of two of slots, whose first words are -1; ``seen[r]``
    takes the slot of the feature with rank r.
    """
    mask = slots.size // SLOT_WORDS - 1
    n_seen = 0
    for p in range(features.size):
        slot = hash_feature(features[p]) & mask
        while slots[slot * SLOT_WORDS] >= 0 and slots[slot * SLOT_WORDS] != features[p]:
            slot = (slot + 1) & mask
        if slots[slot * SLOT_WORDS] < 0:
            slots[slot * SLOT_WORDS] = features[p]
            slots[slot * SLOT_WORDS + LOW] = n_seen  # for now
            seen[n_seen] = slot
            n_seen += 1
        ranks[p] = slots[slot * SLOT_WORDS + LOW]
    return n_seen


@kernel
def fill_directory(
    ranks,
    seen,
    in_table,
    first,
    feature_starts,
    entry_starts,
    column_starts,
    values,
    top_unit,
    gap_unit,
    slots,
    homes,
    table,
    table_tops,
):
    """List the blocks of every feature, in order, and its largest weight in each.

    The list of feature r starts at ``first[r]``, or its line of the table does if ``in_table[r]``.
    Largest weights are in multiples of ``top_unit``, rounded up, and at least 1; and so is how far
    they are above the mean of the block, in multiples of ``gap_unit``.
    """
    for r in range(seen.size):
        slot = seen[r] * SLOT_WORDS
        slots[slot + LOW] = first[r]
        slots[slot + HIGH] = -1 if in_table[r] else first[r]
    for block in range(feature_starts.size - 1):
        width = column_starts[block + 1] - column_starts[block]
        for p in range(feature_starts[block], feature_starts[block + 1]):
            rank = ranks[p]
            slot = seen[rank] * SLOT_WORDS
            span = (entry_starts[p] << SPAN_BITS) + (entry_starts[p + 1] - entry_starts[p])
            if block == 0:
                slots[slot + FIRST_SPAN] = span
                continue
            top, total = np.float32(0), 0.0
            for e in range(entry_starts[p], entry_starts[p + 1]):
                top = values[e] if values[e] > top else top
                total += np.float64(values[e])
            code = np.int64(np.ceil(top / top_unit)) if top > 0 else np.int64(1)
            code = code if code < MOST else np.int64(MOST)
            above = np.float64(top) - total / width
            gap = np.int64(np.ceil(above / gap_unit)) if above > 0 else np.int64(1)
            gap = gap if gap < MOST_GAP else np.int64(MOST_GAP)
            code += gap << GAP_BITS
            if in_table[rank]:
                table[first[rank] + block] = span
                table_tops[first[rank] + block] = code
            else:
                at = slots[slot + HIGH]
                homes[2 * at] = (code << TOP_BITS) + block
                homes[2 * at + 1] = span
                slots[slot + HIGH] = at + 1
