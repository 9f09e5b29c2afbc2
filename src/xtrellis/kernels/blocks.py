"""Margins of blocks: where a row's features have weights, and the sums of these.

Weights are stored block by block; :class:`~xtrellis.model.weights.WeightArrays` describes the
arrays. A span is where a feature's entries in a block are: their start times 2^17 plus their
number, or 0 if there are none. All spans of a block are looked up before the first entry is read,
so that the processor fetches several at once instead of waiting for each.

Places in arrays are unsigned where a loop is to go to SIMD: a negative one counts from the end, and
Numba asks at every step whether it is one.
"""

import numpy as np

from ._jit import FIXED, kernel, part

SPAN_BITS = 17  # of a span, for the number of entries: at most 2^16
_COUNT = 2**SPAN_BITS - 1  # the bits of that number
TOP_BITS = 32  # of a word of the directory, for the number of a block; above them is its top
BLOCK_MASK = 2**TOP_BITS - 1
GAP_BITS = 16  # of a top, for the largest weight; above them is how far it is above the mean
FEATURE, LOW, HIGH, FIRST_SPAN, SLOT_WORDS = 0, 1, 2, 3, 4  # words of a slot of the directory


@kernel(inline="always")
def hash_feature(feature):
    """Scrambled number of a feature; neighbours end far apart."""
    return np.int64((np.uint64(feature) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32))


@kernel(inline="always")
def slot_of(feature, slots):
    """Where a feature's slot starts in a hash table, or an empty slot does if it has none."""
    mask = slots.size // SLOT_WORDS - 1
    slot = hash_feature(feature) & mask
    while slots[slot * SLOT_WORDS] != feature and slots[slot * SLOT_WORDS] >= 0:
        slot = (slot + 1) & mask
    return slot * SLOT_WORDS


@kernel(inline="always")
def find_features(indices, start, stop, slots, lows, highs, spans):
    """Where the directory lists the blocks of each of a row's features; their spans in block 0.

    A high of -1 stands for a feature with a line of the table. One without weights has an empty
    list.
    """
    for p in range(start, stop):
        slot = slot_of(indices[p], slots)
        lows[p - start] = slots[slot + LOW]
        highs[p - start] = slots[slot + HIGH]
        spans[p - start] = slots[slot + FIRST_SPAN]


@kernel(inline="always")
def find_spans(n, lows, highs, homes, table, block, spans):
    """Spans of a row's n features in any block but the first."""
    for p in range(n):
        low, high = lows[p], highs[p]
        span = np.int64(0)
        if high < 0:
            span = table[low + block]
        else:
            while high - low > 8:
                middle = (low + high) >> 1
                if homes[2 * middle] & BLOCK_MASK <= block:
                    low = middle
                else:
                    high = middle
            for q in range(low, high):
                if homes[2 * q] & BLOCK_MASK == block:
                    span = homes[2 * q + 1]
        spans[p] = span


@kernel(fastmath=FIXED, inline="always")
def add_entries(data, start, n, spans, columns, values, width, margins, at):
    """Add the weights of a row's features in a block, times their values, to its margins."""
    to = np.uint64(at)
    for p in range(n):
        first, count = np.uint64(spans[p] >> SPAN_BITS), spans[p] & _COUNT
        x = data[start + p]
        if count == width:
            for j in range(np.uint64(width)):
                margins[to + j] += x * values[first + j]
        else:
            for j in range(np.uint64(count)):
                margins[to + columns[first + j]] += x * values[first + j]


@part(fastmath=FIXED)
def block_margins(
    data,
    start,
    n,
    lows,
    highs,
    spans,
    column_starts,
    bias,
    homes,
    table,
    columns,
    values,
    block,
    margins,
    at,
):
    """Margins of one block's edges for a row: ``bias + x W``, into ``margins[at:]``; their number.

    (Named tuples would be tidier. But a tuple's arrays are counted in and out at every call.)
    """
    first, to = np.uint64(column_starts[block]), np.uint64(at)
    width = column_starts[block + 1] - column_starts[block]
    for j in range(np.uint64(width)):
        margins[to + j] = bias[first + j]
    if block > 0:
        find_spans(n, lows, highs, homes, table, block, spans)
    add_entries(data, start, n, spans, columns, values, width, margins, at)
    return width


@part(fastmath=FIXED)
def row_margins(indices, data, start, stop, w, first, last, lows, highs, spans, margins):
    """Margins of the blocks from ``first`` up to ``last`` for one row, one after the other.

    ``lows``, ``highs`` and ``spans`` are scratch. Returns the number of margins.
    """
    find_features(indices, start, stop, w.slots, lows, highs, spans)
    at = np.int64(0)
    for block in range(first, last):
        at += block_margins(
            data,
            start,
            stop - start,
            lows,
            highs,
            spans,
            w.column_starts,
            w.bias,
            w.homes,
            w.table,
            w.columns,
            w.values,
            block,
            margins,
            at,
        )
    return at


@kernel(inline="always")
def longest_row(indptr):
    """Number of features of the longest row, but at least one."""
    longest = 1
    for i in range(indptr.size - 1):
        if indptr[i + 1] - indptr[i] > longest:
            longest = indptr[i + 1] - indptr[i]
    return longest


@kernel(fastmath=FIXED)
def all_margins(indptr, indices, data, w, out):
    """Margins of all edges for all rows."""
    longest, n_blocks = longest_row(indptr), w.column_starts.size - 1
    lows, highs = np.empty(longest, np.int64), np.empty(longest, np.int64)
    spans = np.empty(longest, np.int64)
    margins = np.empty(w.bias.size, np.float32)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        row_margins(indices, data, start, stop, w, 0, n_blocks, lows, highs, spans, margins)
        for j in range(margins.size):
            out[i, w.edges[j]] = margins[j]


@kernel(fastmath=FIXED)
def vertex_margins(indptr, indices, data, w, vertices, out):
    """Margins of one vertex's edges for each row; beyond its last edge, ``out`` stays as it is."""
    longest = longest_row(indptr)
    lows, highs = np.empty(longest, np.int64), np.empty(longest, np.int64)
    spans = np.empty(longest, np.int64)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        first, last = w.vertex_starts[vertices[i]], w.vertex_starts[vertices[i] + 1]
        row_margins(indices, data, start, stop, w, first, last, lows, highs, spans, out[i])
