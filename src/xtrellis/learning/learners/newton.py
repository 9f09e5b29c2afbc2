"""Newton's method for one linear SVM: the optimum, whatever the weights of the rows.

Coordinate descent crawls where dual variables are strongly coupled, as those of heavy rows that
are alike but differ in sign. The primal objective

    P(w) = |w|^2 / 2 + sum_i C_i max(0, 1 - y_i w.x_i)^2

is piecewise quadratic. Its generalised Hessian ``H = I + 2 sum_{i active} C_i x_i x_i'``, over the
rows with a positive hinge, gives the step ``d = -H^-1 g`` by conjugate gradients, as in LIBLINEAR's
trust-region method, and a line search along it is exact. All is in double precision.

With r what the conjugate gradients leave of ``g + H d``, the quadratic model lies at most
``-g.d / 2 + |r|^2 / 2`` above its minimum, because H is at least the identity; for the same reason
P itself lies at most ``|g|^2 / 2`` above its own. These say when an edge is solved. After a step,
the first is only an estimate of the gap of P, as other rows may have a positive hinge there; the
second, a bound, replaces it where it is smaller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_MAX_PRODUCTS = 1000  # with the Hessian, per Newton step
_LEAST_SHARE = 0.2  # of the model's decrease so far that an average product has to add
_FLATTER = 0.1  # the slope that a line search ends with, as a share of the first


class Solution(NamedTuple):
    """Weights (the bias last), an estimate of P's relative gap, and the sum of losses."""

    weights: Vector
    gap: float
    loss: float


def solve(
    X: Any, signs: Vector, costs: Vector, weights: Vector, tolerance: float, n_steps: int
) -> Solution:
    """Minimise P, starting from some weights, until its gap is estimated at a share of its value.

    Parameters
    ----------
    X : csr_matrix of shape (n_rows, n_features)
        Without the constant feature of 1, whose weight is the bias.
    signs, costs : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_features + 1,)
    tolerance : float
        Estimated gap to stop at, as a share of P.
    n_steps : int
        Maximum number of steps; 0 only estimates the gap.
    """
    margins, gap = _forward(X, weights), np.inf
    for n_left in range(n_steps, -1, -1):
        hinges = np.maximum(1 - signs * margins, 0)
        active = np.flatnonzero(hinges)
        rows, doubled = X[active].astype(np.float64), 2 * costs[active]
        gradient = weights - _backward(rows, doubled * hinges[active] * signs[active])
        loss = _dot(costs, hinges**2)
        objective = _dot(weights, weights) / 2 + loss
        gap = min(gap, _dot(gradient, gradient) / 2 / objective)
        if gap <= tolerance or n_left == 0:
            break
        step, left = _newton_step(rows, doubled, gradient, tolerance * objective)
        slopes = _forward(X, step)
        length = _line_search(signs, costs, margins, slopes, weights, step)
        weights = weights + length * step
        margins = margins + length * slopes
        gap = left / objective
    return Solution(weights, gap, loss)


def _forward(X: Any, vector: Vector) -> Vector:
    """Product of the rows, with their constant feature, and a vector."""
    return X @ vector[:-1] + vector[-1]


def _backward(X: Any, factors: Vector) -> Vector:
    """Sum of the rows, with their constant feature, times these factors."""
    return np.append(X.T @ factors, factors.sum())


def _dot(a: Vector, b: Vector) -> float:
    """Inner product. BLAS would start threads for it, which take longer and change the bits."""
    return float(np.einsum("i,i->", a, b))


def _newton_step(
    rows: Any, doubled: Vector, gradient: Vector, enough: float
) -> tuple[Vector, float]:
    """Step towards the minimum of the quadratic model, and how far P may lie above that one.

    Far from the optimum the model is not worth much work: stop when products no longer pay. Where
    it promises less than ``enough``, solve it, so that the promise can be believed.
    """
    squares = rows.multiply(rows).T @ doubled
    # A hundredth of the diagonal is the better preconditioner, as in LIBLINEAR.
    scale = 1 / (1 + 0.01 * np.append(squares, doubled.sum()))
    step, residual = np.zeros_like(gradient), -gradient
    direction = scale * residual
    reach, gain, norm = _dot(residual, direction), 0.0, np.inf
    for n_products in range(1, _MAX_PRODUCTS + 1):
        image = direction + _backward(rows, doubled * _forward(rows, direction))
        length = reach / _dot(direction, image)
        step += length * direction
        residual -= length * image
        more, norm = length * reach / 2, _dot(residual, residual)
        gain += more
        if norm <= enough or (gain > enough and n_products * more <= _LEAST_SHARE * gain):
            break
        renewed = _dot(residual, scale * residual)
        direction = scale * residual + renewed / reach * direction
        reach = renewed
    return step, gain + norm / 2


def _line_search(
    signs: Vector, costs: Vector, margins: Vector, slopes: Vector, weights: Vector, step: Vector
) -> float:
    """How far along the step P is least: its derivative rises, and is linear between kinks."""
    drift, square = _dot(weights, step), _dot(step, step)
    pulls = 2 * costs * slopes

    def derivatives(length: float) -> tuple[float, float]:
        hinges = np.maximum(1 - signs * (margins + length * slopes), 0)
        first = drift + length * square - _dot(pulls, signs * hinges)
        return first, square + _dot(pulls, slopes * (hinges > 0))

    flat = _FLATTER * abs(derivatives(0.0)[0])
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(50):
        first, second = derivatives(length)
        if abs(first) <= flat:
            break
        low, high = (low, length) if first > 0 else (length, high)
        length -= first / second
        if not low < length < high:
            length = (low + high) / 2
    return length
