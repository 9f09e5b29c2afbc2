"""Rivals: an SVM for each class, on the few rows that may be taken for its own; and its margins.

All classes share one dense vector of weights, which is zero between them. A row is visited by
``|row|`` steps, so that a class costs what its rows cost, however many features there are.
"""

import numpy as np

from ._jit import SUMS, kernel, part

_LAST = 3  # passes in which no row rests, if they run out


@kernel
def group_by_class(own, listed, starts, rows, signs):
    """The rows that each class is trained on: +1 for its own, -1 for others that list it.

    A row whose own class is -1 is left out. ``starts`` has a place for each class and one more, and
    is filled with where its rows start; ``rows`` and ``signs`` may be longer than is needed.
    """
    n_classes = starts.size - 1
    for k in range(n_classes + 1):
        starts[k] = 0
    for i in range(own.size):
        if own[i] >= 0:
            starts[own[i]] += 1
            for c in range(listed.shape[1]):
                if listed[i, c] >= 0 and listed[i, c] != own[i]:
                    starts[listed[i, c]] += 1
    total = 0
    for k in range(n_classes):
        total += starts[k]
        starts[k] = total - starts[k]
    starts[n_classes] = total
    for i in range(own.size):
        if own[i] >= 0:
            rows[starts[own[i]]], signs[starts[own[i]]] = i, 1
            starts[own[i]] += 1
            for c in range(listed.shape[1]):
                k = listed[i, c]
                if k >= 0 and k != own[i]:
                    rows[starts[k]], signs[starts[k]] = i, -1
                    starts[k] += 1
    for k in range(n_classes, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


@part(fastmath=SUMS)
def _product(indices, data, start, stop, weights):
    """Product of a row with dense weights."""
    total = np.float32(0)
    for p in range(start, stop):
        total += data[p] * weights[indices[p]]
    return total


@part
def _descend(
    indptr, indices, data, rows, signs, costs, norms, square, duals, active, weights, passes, gap
):
    """Dual coordinate descent on ``|w|^2 / 2 + sum_i cost_i max(0, 1 - y_i f_i)^2``: the bias.

    It ends when no slope is steeper than ``gap``, or after so many passes. Rows that are farther on
    the right side than any row was on the wrong side in the last pass rest until the others are
    done. ``duals`` and ``active`` are as long as the rows.
    """
    bias, steepest, n_active = np.float32(0), np.float32(np.inf), rows.size
    for m in range(rows.size):
        duals[m], active[m] = 0, m
    for n_left in range(passes - 1, -1, -1):
        worst, at = np.float32(0), 0
        while at < n_active:
            m = active[at]
            i, sign = rows[m], np.float32(signs[m])
            start, stop = indptr[i], indptr[i + 1]
            margin = sign * (_product(indices, data, start, stop, weights) + bias)
            slack = np.float32(0.5) / costs[i]
            slope = margin - np.float32(1) + slack * duals[m]
            if duals[m] == 0 and slope >= 0:
                if slope > steepest:
                    n_active -= 1
                    active[at], active[n_active] = active[n_active], m
                else:
                    at += 1
                continue
            at += 1
            worst = max(worst, abs(slope))
            step = slope / (norms[i] + square + slack)
            new = max(duals[m] - step, np.float32(0))
            change = sign * (new - duals[m])
            duals[m] = new
            for p in range(start, stop):
                weights[indices[p]] += change * data[p]
            bias += change * square
        steepest = worst
        if worst < gap and n_active == rows.size:
            break
        if worst < gap or n_left <= _LAST:  # once more, with those that rest
            n_active, steepest = rows.size, np.float32(np.inf)
    return bias


@part
def _collect(indptr, indices, rows, weights, features, values):
    """Features of some rows with their weights, which are zeroed; returns how many there are."""
    n = 0
    for i in rows:
        for p in range(indptr[i], indptr[i + 1]):
            f = indices[p]
            if weights[f] != 0:
                features[n], values[n] = f, weights[f]
                weights[f] = 0
                n += 1
    return n


@kernel
def train(
    indptr, indices, data, starts, rows, signs, costs, norms, square, first, last, n_most, passes,
    gap, weights, found_starts, found_features, found_codes, units, biases,
):  # fmt: skip
    """SVMs of the classes from ``first`` up to ``last``, of at most ``n_most`` weights each.

    ``square`` is that of the constant feature, ``norms`` are the squared lengths of the rows, and
    ``weights`` is scratch: zeros, one per feature. What is found of class k goes to ``units[k]``,
    ``biases[k]`` and, one class after the other, to the three arrays of what is found: features
    ascend, and a code is a weight in units of 1 / 127 of the largest. A class without rivals has a
    margin of 1.
    """
    longest, most = 0, 0
    for k in range(first, last):
        most = max(most, starts[k + 1] - starts[k])
        n_values = 0
        for m in range(starts[k], starts[k + 1]):
            n_values += indptr[rows[m] + 1] - indptr[rows[m]]
        longest = max(longest, n_values)
    longest = min(longest, weights.size)
    features, values = np.empty(longest, np.int64), np.empty(longest, np.float32)
    duals, active = np.empty(most, np.float32), np.empty(most, np.int64)
    n_found = 0
    for k in range(first, last):
        own = rows[starts[k] : starts[k + 1]]
        if (signs[starts[k] : starts[k + 1]] > 0).all():  # no row was ever mistaken for its own
            units[k], biases[k], found_starts[k - first + 1] = 0, 1, n_found
            continue
        biases[k] = _descend(
            indptr, indices, data, own, signs[starts[k] : starts[k + 1]], costs, norms, square,
            duals, active, weights, passes, gap,
        )  # fmt: skip
        n = _collect(indptr, indices, own, weights, features, values)
        sizes = np.abs(values[:n])
        largest = sizes.max() if n else np.float32(0)
        units[k] = largest / 127
        least = np.partition(sizes, n - n_most)[n - n_most] if n > n_most else np.float32(0)
        n_left = n_most
        for j in range(n):  # as many of those that are just large enough as there is room for
            n_left -= sizes[j] > least
        order = np.argsort(features[:n], kind="mergesort")
        for j in order:
            if sizes[j] > least or (sizes[j] == least and n_left > 0):
                n_left -= sizes[j] == least
                code = np.rint(values[j] / units[k])
                if code != 0:
                    found_features[n_found], found_codes[n_found] = features[j], code
                    n_found += 1
        found_starts[k - first + 1] = n_found


# ---------------------------------------------------------------------- margins


@part
def rival_margin(indices, data, start, stop, r, number):
    """Margin of a class's own SVM; both lists of features ascend, and the class's may be longer."""
    features, codes = r.features, r.codes
    at, last = r.starts[number], r.starts[number + 1]
    total = 0.0
    for p in range(start, stop):
        if at == last:
            break
        wanted, reach = indices[p], 1
        while at + reach < last and features[at + reach] < wanted:
            reach *= 2
        low, high = at + reach // 2, min(at + reach, last)
        while low < high:
            middle = (low + high) // 2
            if features[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        at = low
        if at < last and features[at] == wanted:
            total += np.float64(data[p]) * codes[at]
            at += 1
    return total * r.units[number] + r.biases[number]


@part
def rivalry(indices, data, start, stop, r, number):
    """Squared hinge of that margin."""
    short = 1 - rival_margin(indices, data, start, stop, r, number)
    return short * short if short > 0 else 0.0


@kernel
def margins(indptr, indices, data, r, classes, out):
    """Margins of every row at each of its classes."""
    for i in range(indptr.size - 1):
        for c in range(classes.shape[1]):
            out[i, c] = rival_margin(indices, data, indptr[i], indptr[i + 1], r, classes[i, c])
