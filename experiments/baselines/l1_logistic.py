"""Sparse logistic regression for the many small binary problems of FastXML's nodes.

    min_w  ‖w‖₁ + Σ_i C_i log(1 + exp(−δ_i ⟨w, x_i⟩))

Coordinate descent with one-dimensional Newton steps (Yuan, Chang, Hsieh and Lin, 2010). LIBLINEAR
solves the same problem, but its set-up would take most of the time in a small node.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def l1_logistic(starts, members, values, sign, cost, tolerance, max_passes):
    """Weights of the columns, and the margins ⟨w, x_i⟩ of the rows.

    Column j holds rows ``members[starts[j]:starts[j + 1]]`` with their values. The descent stops
    when the sum of violations in a pass is below ``tolerance`` times that of the first pass.
    """
    n_columns = len(starts) - 1
    w, margins = np.zeros(n_columns), np.zeros(len(sign))
    wrong = np.full(
        len(sign), 0.5
    )  # probability of the other sign; stored, since few steps change it
    active = np.arange(n_columns)
    first, shrink = -1.0, np.inf
    for _ in range(max_passes):
        total, largest, kept = 0.0, 0.0, 0
        for j in active:
            column = slice(starts[j], starts[j + 1])
            rows, x = members[column], values[column]
            gradient, curvature = _derivatives(rows, x, sign, cost, wrong)
            violation = _violation(w[j], gradient)
            if w[j] == 0 and abs(gradient) < 1 - shrink:
                continue  # far from moving: skipped until the others have converged
            active[kept] = j
            kept += 1
            total, largest = total + violation, max(largest, violation)
            if violation > 0:
                w[j] += _step(rows, x, sign, cost, margins, wrong, w[j], gradient, curvature)
        if first < 0:
            first = total
        if total <= tolerance * first:
            if kept == n_columns or shrink == np.inf:
                break
            active, shrink = np.arange(n_columns), np.inf  # once more over all columns
        else:
            active, shrink = active[:kept], largest / len(sign)
    return w, margins


@numba.njit(cache=True, nogil=True)
def _derivatives(rows, x, sign, cost, wrong):
    """First and second derivative of the loss with respect to one weight."""
    gradient, curvature = 0.0, 1e-12
    for p in range(len(rows)):
        i = rows[p]
        gradient -= cost[i] * sign[i] * x[p] * wrong[i]
        curvature += cost[i] * x[p] * x[p] * wrong[i] * (1 - wrong[i])
    return gradient, curvature


@numba.njit(cache=True, nogil=True)
def _violation(w, gradient):
    """Distance of zero from the subgradient of the objective."""
    if w > 0:
        return abs(gradient + 1)
    if w < 0:
        return abs(gradient - 1)
    return max(0.0, abs(gradient) - 1)


@numba.njit(cache=True, nogil=True)
def _step(rows, x, sign, cost, margins, wrong, w, gradient, curvature):
    """Newton step of one weight, halved until the objective falls enough; updates the rows."""
    if gradient + 1 <= curvature * w:
        step = -(gradient + 1) / curvature
    elif gradient - 1 >= curvature * w:
        step = -(gradient - 1) / curvature
    else:
        step = -w
    step = min(max(step, -10.0), 10.0)
    promised = gradient * step + abs(w + step) - abs(w)
    for _ in range(20):
        change = abs(w + step) - abs(w)
        for p in range(len(rows)):
            i = rows[p]
            before = sign[i] * margins[i]
            change += cost[i] * (_loss(before + sign[i] * step * x[p]) - _loss(before))
        if change <= 0.01 * promised:
            for p in range(len(rows)):
                i = rows[p]
                margins[i] += step * x[p]
                wrong[i] = 1 / (1 + np.exp(sign[i] * margins[i]))
            return step
        step, promised = step / 2, promised / 2
    return 0.0


@numba.njit(cache=True, nogil=True)
def _loss(z):
    """log(1 + exp(−z)), without overflow."""
    return np.log1p(np.exp(-z)) if z > 0 else np.log1p(np.exp(z)) - z
