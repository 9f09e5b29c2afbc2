"""Newton's method for linear SVMs: the optimum, whatever the weights of the rows.

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

A step needs the active rows alone, which often are one in a hundred. All rows are needed only for
their margins, which are computed for several edges at once: that reads the rows once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_TOGETHER = 16  # edges whose margins are computed at once
_MAX_PRODUCTS = 1000  # with the Hessian, per Newton step
_LEAST_SHARE = 0.2  # of the model's decrease so far that an average product has to add
_FLATTER = 0.1  # the slope that a line search ends with, as a share of the first
_LONGEST = 4.0  # times the Newton step that a line search goes


@dataclass(eq=False)
class Edge:
    """One edge: which rows are its positive examples, and what is known of its solution.

    Attributes
    ----------
    signs : ndarray of int8, shape (n_rows,)
        +1 for positive examples, -1 for negative ones.
    weights : ndarray of float64
        The bias is the last one.
    gap : float
        An estimate of P's gap, as a share of P.
    loss : float
        The sum of losses in P.
    """

    signs: npt.NDArray[np.int8]
    weights: Vector
    gap: float = np.inf
    loss: float = np.nan


def solve(X: Any, edges: Sequence[Edge], costs: Vector, tolerance: float, n_steps: int) -> None:
    """Minimise P for each edge, from its weights, until its gap is estimated at a share of P.

    Parameters
    ----------
    X : csr_matrix of shape (n_rows, n_features)
        Without the constant feature of 1, whose weight is the bias.
    edges : sequence of Edge
        Weights, gaps and losses are replaced.
    costs : ndarray of shape (n_rows,)
    tolerance : float
        Estimated gap to stop at, as a share of P.
    n_steps : int
        Maximum number of steps; 0 only estimates the gaps.
    """
    X = X.astype(np.float64)
    for first in range(0, len(edges), _TOGETHER):
        _solve_together(X, edges[first : first + _TOGETHER], costs, tolerance, n_steps)


def _solve_together(
    X: Any, edges: Sequence[Edge], costs: Vector, tolerance: float, n_steps: int
) -> None:
    """Steps of some edges, side by side; ``margins`` are multiplied by the rows' signs."""
    unsolved = list(zip(edges, _signed_products(X, edges, [e.weights for e in edges]), strict=True))
    for n_left in range(n_steps, -1, -1):
        steps = []
        for edge, margins in unsolved:
            step = _next_step(X, edge, margins, costs, tolerance, n_left)
            if step is not None:
                steps.append((edge, margins, step))
        slopes = _signed_products(X, [each[0] for each in steps], [each[2] for each in steps])
        for (edge, margins, step), slope in zip(steps, slopes, strict=True):
            length = _line_search(costs, margins, slope, edge.weights, step)
            edge.weights = edge.weights + length * step
            margins += length * slope
        unsolved = [(edge, margins) for edge, margins, _ in steps]


def _signed_products(X: Any, edges: Sequence[Edge], vectors: Sequence[Vector]) -> Iterator[Vector]:
    """Products of all rows, with their constant feature, and a vector per edge, times its signs."""
    if not edges:
        return
    columns = np.array(vectors).T
    products = X @ np.ascontiguousarray(columns[:-1]) + columns[-1]
    for edge, product in zip(edges, np.ascontiguousarray(products.T), strict=True):
        product *= edge.signs
        yield product


def _next_step(
    X: Any, edge: Edge, margins: Vector, costs: Vector, tolerance: float, n_left: int
) -> Vector | None:
    """The Newton step of an edge; None if it is solved, or no steps are left."""
    active = np.flatnonzero(margins < 1)
    hinges, doubled = 1 - margins[active], 2 * costs[active]
    rows, features = _occurring(X[active])
    gradient = edge.weights.copy()
    gradient[features] -= _backward(rows, doubled * hinges * edge.signs[active])
    edge.loss = _dot(doubled, hinges**2) / 2
    objective = _dot(edge.weights, edge.weights) / 2 + edge.loss
    edge.gap = min(edge.gap, _dot(gradient, gradient) / 2 / objective)
    if edge.gap <= tolerance or n_left == 0:
        return None
    # Where no active row has a feature, the Hessian is the identity.
    step, lone = -gradient, np.delete(gradient, features)
    step[features], left = _newton_step(
        rows, doubled, gradient[features], tolerance * objective, _dot(lone, lone) / 2
    )
    edge.gap = left / objective
    return step


def _occurring(rows: Any) -> tuple[Any, npt.NDArray[np.int64]]:
    """Rows over the features that occur in them; these features, the constant one last."""
    n_features = rows.shape[1]
    place = np.zeros(n_features + 1, np.int32)
    place[rows.indices] = 1
    place[-1] = 1
    features = np.flatnonzero(place)
    place[features] = np.arange(len(features))
    shape = rows.shape[0], len(features) - 1
    return type(rows)((rows.data, place[rows.indices], rows.indptr), shape), features


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
    rows: Any, doubled: Vector, gradient: Vector, enough: float, gain: float = 0.0
) -> tuple[Vector, float]:
    """Step towards the minimum of the quadratic model, and how far P may lie above that one.

    ``gain`` is what the model falls by in other directions.

    Far from the optimum the model is not worth much work: stop when products no longer pay. Where
    it promises less than ``enough``, solve it, so that the promise can be believed.
    """
    squares = rows.multiply(rows).T @ doubled
    # A hundredth of the diagonal is the better preconditioner, as in LIBLINEAR.
    scale = 1 / (1 + 0.01 * np.append(squares, doubled.sum()))
    step, residual = np.zeros_like(gradient), -gradient
    direction = scale * residual
    reach, norm = _dot(residual, direction), _dot(residual, residual)
    for n_products in range(1, _MAX_PRODUCTS + 1):
        if not reach > 0:  # nothing is left, as far as numbers can tell
            break
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
    costs: Vector, margins: Vector, slopes: Vector, weights: Vector, step: Vector
) -> float:
    """How far along the step P is least: its derivative rises, and is linear between kinks."""
    drift, square = _dot(weights, step), _dot(step, step)
    # Rows that have a positive hinge somewhere on the way; no others count.
    some = np.flatnonzero(margins + _LONGEST * np.minimum(slopes, 0) < 1)
    margins, slopes, doubled = margins[some], slopes[some], 2 * costs[some]

    def derivatives(length: float) -> tuple[float, float]:
        hinges = np.maximum(1 - margins - length * slopes, 0)
        pulls = doubled * slopes
        first = drift + length * square - _dot(pulls, hinges)
        return first, square + _dot(pulls, slopes * (hinges > 0))

    flat = _FLATTER * abs(derivatives(0.0)[0])
    low, high, length = 0.0, 2 * _LONGEST, 1.0
    for _ in range(50):
        first, second = derivatives(length)
        if abs(first) <= flat:
            break
        low, high = (low, length) if first > 0 else (length, high)
        length -= first / second
        if not low < length < high:
            length = (low + high) / 2
    return min(length, _LONGEST)
