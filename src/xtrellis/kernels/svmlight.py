"""The svmlight format, parsed one block of lines at a time.

One pass over the bytes, strict: what is not exactly ``label index:value index:value ...`` stops it
with a code and the place. Values come out as ``float32(float(text))`` gives them.
"""

import numpy as np

from ._jit import kernel

# What stopped the parser.
FINE = 0
NO_LABEL = 1
SEVERAL_LABELS = 2
NO_PAIR = 3
BAD_INDEX = 4
LARGE_INDEX = 5
UNORDERED = 6
BAD_VALUE = 7
LARGE_VALUE = 8

# What the labels are.
TEXT = 0
INTEGER = 1
LONG_INTEGER = 2

MAX_INDEX = 2**31 - 1
_MAX_DIGITS = 18  # of an integer label: every such number fits 64 bits

_TAB, _NEWLINE, _RETURN, _SPACE = 9, 10, 13, 32
_HASH, _PLUS, _COMMA, _MINUS, _POINT = 35, 43, 44, 45, 46
_ZERO, _NINE, _COLON = 48, 57, 58
_POWERS = 10.0 ** np.arange(23)  # these powers of ten are exact
_MARGIN = 2.0**-48  # relative: more than the rounding of a decimal number in double precision
_HALF_MORE_THAN_MAX = 3.4028235677973366e38  # what float32 rounds to infinity


@kernel
def parse(text, labelled, indices, values, row_stops, row_lines, labels, label_kinds, names, stops,
          unsure):  # fmt: skip
    """Rows of a block that ends with a newline.

    Row i has the values up to ``row_stops[i]`` and comes from line ``row_lines[i]`` of the block.
    Its label as a number is ``labels[i]`` if ``label_kinds[i]`` says so; as text it is
    ``names[stops[i - 1] : stops[i]]``. ``unsure`` takes, in pairs, the values that must be rounded
    with more digits than we have here, and where their text starts.

    Returns the numbers of rows, values and unsure ones; and the code, the line and the place of
    what stopped it.
    """
    n_rows, n_values, n_unsure, n_names, line, p = 0, 0, 0, 0, 0, 0
    while p < text.size:
        p = _after_blanks(text, p)
        start = p
        if (text[p] == _NEWLINE and labelled) or text[p] == _HASH:  # not a row
            p = _line_end(text, p) + 1
            line += 1
            continue
        # The label, up to a blank. Without one, the first word has a colon.
        colon = False
        while not _ends_word(text[p]):
            colon = colon or text[p] == _COLON
            p += 1
        if colon and labelled:
            return n_rows, n_values, n_unsure, NO_LABEL, line, start
        label_end = start if colon else p
        value, kind = _label(text, start, label_end)
        if kind < 0:
            return n_rows, n_values, n_unsure, SEVERAL_LABELS, line, start
        labels[n_rows], label_kinds[n_rows] = value, kind
        for q in range(start, label_end):
            names[n_names] = text[q]
            n_names += 1
        stops[n_rows] = n_names
        p = _after_query(text, _after_blanks(text, label_end))

        previous = -1
        while text[p] != _NEWLINE and text[p] != _HASH:
            start = p
            index = 0
            while _ZERO <= text[p] <= _NINE:
                index = min(10 * index + (np.int64(text[p]) - _ZERO), 2 * MAX_INDEX)
                p += 1
            if text[p] != _COLON or p == start:
                return n_rows, n_values, n_unsure, _not_index(text, start), line, start
            if index > MAX_INDEX:
                return n_rows, n_values, n_unsure, LARGE_INDEX, line, start
            if index <= previous:
                return n_rows, n_values, n_unsure, UNORDERED, line, start
            value_start = p + 1
            p, x, sure = _number(text, value_start)
            if p < 0:
                return n_rows, n_values, n_unsure, BAD_VALUE, line, start
            if abs(x) >= _HALF_MORE_THAN_MAX:
                return n_rows, n_values, n_unsure, LARGE_VALUE, line, start
            if not sure:
                unsure[n_unsure, 0], unsure[n_unsure, 1] = n_values, value_start
                n_unsure += 1
            indices[n_values], values[n_values] = index, x
            previous = index
            n_values += 1
            p = _after_blanks(text, p)
        row_stops[n_rows], row_lines[n_rows] = n_values, line
        n_rows += 1
        p = _line_end(text, p) + 1
        line += 1
    return n_rows, n_values, n_unsure, FINE, line, p


@kernel
def _ends_word(c):
    return c in (_SPACE, _NEWLINE, _TAB, _RETURN, _HASH)


@kernel
def _after_blanks(text, p):
    while text[p] == _SPACE or text[p] == _TAB or text[p] == _RETURN:
        p += 1
    return p


@kernel
def _line_end(text, p):
    while text[p] != _NEWLINE:
        p += 1
    return p


@kernel
def _after_query(text, p):
    """Place after ``qid:12``, if that is there; queries are of no use to us."""
    if text.size - p > 4 and text[p] == 113 and text[p + 1] == 105 and text[p + 2] == 100:
        q = p + 4
        while _ZERO <= text[q] <= _NINE:
            q += 1
        if text[p + 3] == _COLON and q > p + 4 and _ends_word(text[q]):
            return _after_blanks(text, q)
    return p


@kernel
def _not_index(text, start):
    """Code of a word that should be a pair: one without a colon, or with a wrong index."""
    p = start
    while not _ends_word(text[p]):
        if text[p] == _COLON:
            return BAD_INDEX
        p += 1
    return NO_PAIR


@kernel
def _label(text, start, end):
    """Value and kind of a label; the kind is -1 if it is a list of numbers."""
    p = start
    if p < end and (text[p] == _PLUS or text[p] == _MINUS):
        p += 1
    first, value = p, 0
    while p < end and _ZERO <= text[p] <= _NINE:
        if p - first < _MAX_DIGITS:
            value = 10 * value + (np.int64(text[p]) - _ZERO)
        p += 1
    n_digits = p - first
    if p < end and text[p] == _POINT:  # 3.0 is an integer, too
        p += 1
        while p < end and text[p] == _ZERO:
            p += 1
    if p == end and n_digits:
        if n_digits > _MAX_DIGITS:
            return 0, LONG_INTEGER
        return (-value if text[start] == _MINUS else value), INTEGER
    commas, others = 0, 0
    for q in range(start, end):
        c = text[q]
        if c == _COMMA:
            commas += 1
        elif not (_ZERO <= c <= _NINE or c in (_PLUS, _MINUS, _POINT)):
            others += 1
    return 0, (-1 if commas and not others else TEXT)


@kernel
def _number(text, p):
    """Place after a decimal number, its value, and whether float32 rounds that rightly.

    The place is -1 if there is no number, or more than one.
    """
    negative = text[p] == _MINUS
    if negative or text[p] == _PLUS:
        p += 1
    digits, exponent, n_digits, point = np.uint64(0), 0, 0, False
    while True:
        c = text[p]
        if _ZERO <= c <= _NINE:
            n_digits += 1
            if digits < np.uint64(10**18):
                digits = np.uint64(10) * digits + np.uint64(c - _ZERO)
                exponent -= point
            else:  # more digits than count
                exponent += not point
        elif c == _POINT and not point:
            point = True
        else:
            break
        p += 1
    if n_digits == 0:
        return -1, 0.0, True
    if text[p] == 101 or text[p] == 69:  # e, E
        p += 1
        down = text[p] == _MINUS
        if down or text[p] == _PLUS:
            p += 1
        power, first = 0, p
        while _ZERO <= text[p] <= _NINE:
            power = min(10 * power + (np.int64(text[p]) - _ZERO), 2**30)
            p += 1
        if p == first:
            return -1, 0.0, True
        exponent += -power if down else power
    if not _ends_word(text[p]):
        return -1, 0.0, True
    x = _scaled(float(digits), exponent)
    sure = np.float32(x * (1 - _MARGIN)) == np.float32(x * (1 + _MARGIN))
    return p, (-x if negative else x), sure


@kernel
def _scaled(digits, exponent):
    """``digits * 10 ** exponent``, but for rounding; infinite or zero far out of range."""
    if digits == 0 or exponent < -90:
        return 0.0
    if exponent > 60:
        return np.inf
    while exponent > 22:
        digits *= 1e22
        exponent -= 22
    while exponent < -22:
        digits /= 1e22
        exponent += 22
    return digits * _POWERS[exponent] if exponent >= 0 else digits / _POWERS[-exponent]
