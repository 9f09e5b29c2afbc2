"""Terms of texts, as scikit-learn's vectorisers find them: words, n-grams of words, of characters.

Texts are UTF-8. The words of a text are copied to a buffer, one space between them, where every
n-gram is a run of bytes. That run is hashed (by MurmurHash3, as scikit-learn does), and either the
hash is its column, or it is looked up in a table, where its bytes are compared with the term's.
"""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ._jit import kernel, part

WORD = 1  # of a character's class: \w of regular expressions
SPACE = 2  # \s
OF_WORDS, OF_CHARACTERS = 0, 1  # kinds of terms

_LOW = 0xFFFFFFFF  # 32 bits
_RADIX_BITS = 7  # of a digit, when columns are sorted
_RADIX = 1 << _RADIX_BITS
_SHORT = 48  # columns, which are sorted faster by comparing them


class Table(NamedTuple):
    """A hash table of terms, or room for one; open addressing, at most half full.

    Term i has the bytes ``content[starts[i] : starts[i + 1] - 1]``, and a newline after them.
    """

    slots: Any  # int32: number of a term, or -1
    hashes: Any  # uint32, of the term in the slot: most others are told apart without looking
    content: Any  # uint8
    starts: Any  # int64
    kinds: Any  # uint8
    frequencies: Any  # int64: number of texts that the term occurs in; only when learning
    seen: Any  # int64: last of these texts


# ---------------------------------------------------------------------- texts to numbers of terms


@kernel
def find_terms(
    text, stops, first, words, characters, classes, n_hashed, learns, table, n_terms, buffer, marks,
    ids, id_stops
):  # fmt: skip
    """Numbers of the terms of texts, from text ``first`` on until one might not fit.

    Text i ends at ``stops[i]``, its numbers at ``id_stops[i]``. Terms have ``words[0]`` to
    ``words[1]`` words, or as many characters; none if that is 0. Numbers are hashes if ``n_hashed``
    is positive; or else places in the table, where new terms are added if it ``learns``. There is
    room for two bytes and two marks for each byte of the longest text, and four more.

    Returns the first text that is left, and the numbers of ids and of terms in the table.
    """
    slots, hashes, content, starts, kinds, frequencies, seen = table
    n_lengths = words[1] - words[0] + 1 + characters[1] - characters[0] + 1
    longest_term = words[1] + characters[1]
    last_slot, n_ids = slots.size - 1, 0
    is_power = n_hashed & (n_hashed - 1) == 0
    for row in range(first, stops.size):
        p, stop = (stops[row - 1] if row else 0), stops[row]
        n_most = n_lengths * (2 * (stop - p) + 2)
        if n_ids + n_most > ids.size or (
            learns
            and (
                n_terms + n_most > kinds.size
                or starts[n_terms] + n_most * longest_term * 2 > content.size
            )
        ):
            return row, n_ids, n_terms
        before = n_ids
        kind, least, most, count = OF_WORDS, words[0], words[1], 0
        if words[1]:
            count = _split_words(text, p, stop, classes, buffer, marks)
            most = most if most < count else count
        while True:
            # Items, which are words or the characters of one word, start and end at the marks.
            for n in range(least, most + 1):
                n_grams = count - n + 1 if count > n else 1
                for i in range(n_grams):
                    a, b = marks[2 * i], marks[2 * (i + n if i + n < count else count) - 1]
                    h = _murmur(buffer, a, b, np.int64(0 if n_hashed else kind))
                    if n_hashed:  # the sign is dropped, as scikit-learn does
                        h = 0x100000000 - h if h > 0x80000000 else h
                        if h == 0x80000000:
                            h = 0x7FFFFFFF - (n_hashed - 1)
                        # Dividing takes longer than hashing; most sizes are powers of two.
                        ids[n_ids] = h & (n_hashed - 1) if is_power else h % n_hashed
                        n_ids += 1
                        continue
                    slot, k = h & last_slot, -1
                    while slots[slot] >= 0:
                        if np.int64(hashes[slot]) == h:
                            k = np.int64(slots[slot])
                            q = starts[k]
                            if kinds[k] == kind and starts[k + 1] - 1 - q == b - a:
                                c = a
                                while c < b and buffer[c] == content[q]:
                                    c += 1
                                    q += 1
                                if c == b:
                                    break
                            k = -1
                        slot = (slot + 1) & last_slot
                    if k < 0:
                        if not learns:
                            continue
                        k, q = n_terms, starts[n_terms]
                        slots[slot], hashes[slot], kinds[k] = k, h, kind
                        for c in range(a, b):
                            content[q] = buffer[c]
                            q += 1
                        content[q] = 10
                        n_terms += 1
                        starts[n_terms] = q + 1
                    ids[n_ids] = k
                    n_ids += 1
                if kind == OF_CHARACTERS and count <= n:  # a short word counts once
                    break
            if characters[1] == 0:
                break
            kind, least, most = OF_CHARACTERS, characters[0], characters[1]
            p, count = _pad_word(text, p, stop, classes, buffer, marks)
            if count == 0:
                break
        id_stops[row] = n_ids
        if learns:
            for q in range(before, n_ids):
                if seen[ids[q]] != row:
                    seen[ids[q]] = row
                    frequencies[ids[q]] += 1
    return stops.size, n_ids, n_terms


@part
def _split_words(text, p, stop, classes, buffer, marks):
    """Copy the words of a text, a space after each; word i is at ``marks[2 * i : 2 * i + 2]``."""
    n_words, n, inside = 0, 0, False
    while p < stop:
        c, after = _character(text, p)
        if classes[c] & WORD:
            if not inside:
                marks[2 * n_words] = n
                inside = True
            for q in range(p, after):
                buffer[n] = text[q]
                n += 1
        elif inside:
            marks[2 * n_words + 1] = n
            buffer[n] = 32
            n, n_words, inside = n + 1, n_words + 1, False
        p = after
    if inside:
        marks[2 * n_words + 1] = n
        n_words += 1
    return n_words


@part
def _pad_word(text, p, stop, classes, buffer, marks):
    """Copy the next run without spaces, a space before and after it.

    Returns the place after it, and the number of characters; number i is at
    ``marks[2 * i : 2 * i + 2]``.
    """
    buffer[0] = 32
    marks[0], marks[1] = 0, 1
    n, count = 1, 1
    while p < stop:
        c, after = _character(text, p)
        if classes[c] & SPACE == 0:
            marks[2 * count] = n
            for q in range(p, after):
                buffer[n] = text[q]
                n += 1
            marks[2 * count + 1] = n
            count += 1
        elif count > 1:
            break
        p = after
    if count == 1:
        return p, 0
    buffer[n] = 32
    marks[2 * count], marks[2 * count + 1] = n, n + 1
    return p, count + 1


@part
def _character(text, p):
    """Number of the character at a place, and the place after it."""
    c, n_more = np.int64(text[p]), 0
    if c >= 0xF0:
        c, n_more = c & 0x07, 3
    elif c >= 0xE0:
        c, n_more = c & 0x0F, 2
    elif c >= 0x80:
        c, n_more = c & 0x1F, 1
    for q in range(p + 1, p + 1 + n_more):
        c = c << 6 | (np.int64(text[q]) & 0x3F)
    return c, p + 1 + n_more


# ---------------------------------------------------------------------- the table


@part
def _murmur(content, a, b, seed):
    """MurmurHash3 of bytes, 32 bits; by Austin Appleby, in the public domain."""
    h, p = seed, a
    while p + 4 <= b:
        low = np.int64(content[p]) | np.int64(content[p + 1]) << 8
        k = low | np.int64(content[p + 2]) << 16 | np.int64(content[p + 3]) << 24
        k = k * 0xCC9E2D51 & _LOW
        k = (k << 15 | k >> 17) & _LOW
        h ^= k * 0x1B873593 & _LOW
        h = (h << 13 | h >> 19) & _LOW
        h = h * 5 + 0xE6546B64 & _LOW
        p += 4
    if p < b:
        k = np.int64(content[p])
        for q in range(p + 1, b):
            k |= np.int64(content[q]) << 8 * (q - p)
        k = k * 0xCC9E2D51 & _LOW
        k = (k << 15 | k >> 17) & _LOW
        h ^= k * 0x1B873593 & _LOW
    h ^= b - a
    h ^= h >> 16
    h = h * 0x85EBCA6B & _LOW
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _LOW
    return h ^ h >> 16


@kernel
def fill_slots(table, n_terms):
    """Enter terms, all of them different, in the slots of a table that has the rest."""
    slots, hashes, content, starts, kinds, _, _ = table
    for k in range(n_terms):
        h = _murmur(content, starts[k], starts[k + 1] - 1, np.int64(kinds[k]))
        slot = h & (slots.size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot], hashes[slot] = k, h


# ---------------------------------------------------------------------- numbers to weights


@kernel
def count_terms(id_stops, ids, columns, n, stops, indices, data):
    """Sorted columns of each text, and how often each occurs, from place n on; returns the end.

    ``columns`` are those of all ids, -1 for one without a column; if it is empty, ids are columns.
    Sorting overwrites ``ids``.
    """
    digits = np.empty(_RADIX, np.int64)
    for row in range(id_stops.size):
        start, first = n, (id_stops[row - 1] if row else 0)
        for p in range(first, id_stops[row]):
            indices[n] = columns[ids[p]] if columns.size else ids[p]
            n += indices[n] >= 0
        if n - start < _SHORT:
            _sort_short(indices, start, n)
        else:
            _sort_by_digits(indices, start, n, ids, first, digits)
        end = start
        for p in range(start, n):
            if end > start and indices[end - 1] == indices[p]:
                data[end - 1] += 1
            else:
                indices[end], data[end] = indices[p], 1
                end += 1
        n = end
        stops[row] = n
    return n


@part
def _sort_short(numbers, start, stop):
    """Sort numbers in place by Shell's method."""
    gap = stop - start
    while gap > 1:
        gap = 5 * gap // 11 if gap > 4 else 1
        for p in range(start + gap, stop):
            number, q = numbers[p], p
            while q >= start + gap and numbers[q - gap] > number:
                numbers[q] = numbers[q - gap]
                q -= gap
            numbers[q] = number


@part
def _sort_by_digits(numbers, start, stop, spare, first, digits):
    """Sort numbers digit by digit, the lowest first; ``spare`` has room for them at ``first``."""
    largest = np.int64(0)
    for p in range(start, stop):
        largest = max(largest, np.int64(numbers[p]))
    shift = 0
    while largest >> shift:
        digits[:] = 0
        for p in range(start, stop):
            digits[(numbers[p] >> shift) & (_RADIX - 1)] += 1
        place = first
        for digit in range(_RADIX):
            place, digits[digit] = place + digits[digit], place
        for p in range(start, stop):
            digit = (numbers[p] >> shift) & (_RADIX - 1)
            spare[digits[digit]] = numbers[p]
            digits[digit] += 1
        for p in range(stop - start):
            numbers[start + p] = spare[first + p]
        shift += _RADIX_BITS


@kernel
def weigh_terms(indptr, indices, data, rarity, n_words, word_share):
    """Counts to weights: logarithms, times the rarity of columns, in rows of norm 1.

    The first ``n_words`` columns are words. They make up ``word_share`` of a row's squared norm if
    it has other columns, too; or as much as it happens to be, if that is negative.
    """
    for row in range(indptr.size - 1):
        of_words, of_others = 0.0, 0.0
        for p in range(indptr[row], indptr[row + 1]):
            if data[p] > 1:
                data[p] = 1 + log(np.float64(data[p]))
            if rarity.size:
                data[p] *= rarity[indices[p]]
            square = np.float64(data[p]) * np.float64(data[p])
            if word_share >= 0 and indices[p] < n_words:
                of_words += square
            else:
                of_others += square
        if of_words > 0 and of_others > 0:
            of_words, of_others = of_words / word_share, of_others / (1 - word_share)
        word_norm, norm = np.float32(sqrt(of_words)), np.float32(sqrt(of_others))
        for p in range(indptr[row], indptr[row + 1]):
            data[p] /= word_norm if word_share >= 0 and indices[p] < n_words else norm
