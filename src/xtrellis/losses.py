"""Losses of the margin, and the edge costs that turn loss-based decoding into a shortest path.

Section 5 of the paper, in a shorter form. The total loss of path P, whose codeword M has +1 on
P's edges and -1 elsewhere, is

    sum_j L(M_j f_j)  =  sum_j L(-f_j)  +  sum_{j in P} [L(f_j) - L(-f_j)].

The first sum is the same for every path, so the class of least loss is the shortest path under

    c_j = L(f_j) - L(-f_j),

for any loss, any K, and without the sets S(e) of the paper's equations (2), (5) and (6).

Local training has a ternary code: an edge is trained only on rows whose path visits its tail
vertex, and is 0 in the codewords of all other paths. Then the total loss is |E| L(0) plus, for
every edge e of the path, with the edges s that leave the same vertex,

    c_e = L(f_e) - L(0) + sum_{s != e} [L(-f_s) - L(0)],

again a shortest path. Two more costs suit local training: the path's own cubed hinge, and the
negative log of a softmax over the edges that leave each vertex.

Every cost is finite and keeps the order of the margins up to |f| = 1e4, in float32 too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .codebook import Code, codewords
from .trellis import Trellis

FloatArray = npt.NDArray[np.floating[Any]]
Function = Callable[[FloatArray], FloatArray]

# exp() of more than this would leave no room to add up a path in float32 or float64.
_EXP_LIMIT = {np.dtype(np.float32): 60.0, np.dtype(np.float64): 680.0}


class DecodingLoss(Protocol):
    """What a decoder needs: a cost for every edge, and the loss that a path is judged by."""

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """Costs whose shortest path is the path of least total loss; (n, n_edges)."""

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """Total loss of one path a row, by its definition; (n,)."""


# ---------------------------------------------------------------------- L(z) and L(f) - L(-f)


def _exponential(z: FloatArray) -> FloatArray:
    """e^-z, continued by its tangent's slope where it would overflow."""
    limit = _EXP_LIMIT[z.dtype]
    if z.size and z.min() < -limit:
        z = z.astype(np.float64)
        limit = _EXP_LIMIT[z.dtype]
    bounded = np.maximum(z, -limit)
    return np.exp(-bounded) * (1 + (bounded - z))


def _exponential_difference(f: FloatArray) -> FloatArray:
    """e^-f - e^f = -2 sinh f, continued by a straight line where it would overflow."""
    limit = _EXP_LIMIT[f.dtype]
    if f.size and max(f.max(), -f.min()) > limit:
        f = f.astype(np.float64)
        bounded = np.clip(f, -_EXP_LIMIT[f.dtype], _EXP_LIMIT[f.dtype])
        return _minus_two_sinh(bounded) * (1 + np.abs(f - bounded))
    return _minus_two_sinh(f)


def _minus_two_sinh(f: FloatArray) -> FloatArray:
    """-2 sinh f from one exp, several times faster than ``np.sinh``."""
    power = np.exp(f)
    # The difference of two numbers near 1 loses the digits of a small f: Taylor's series there.
    square = f * f
    series = 1 + square / 110
    for factor in (72, 42, 20, 6):
        series = 1 + square / factor * series
    return np.where(square < 0.0625, -2 * f * series, 1 / power - power)


def _squared(z: FloatArray) -> FloatArray:
    return (1 - z) ** 2


def _squared_difference(f: FloatArray) -> FloatArray:
    return -4 * f


def _log(z: FloatArray) -> FloatArray:
    return np.logaddexp(0, -z)


def _log_difference(f: FloatArray) -> FloatArray:
    return -f


def _hinge(z: FloatArray) -> FloatArray:
    return np.maximum(0, 1 - z)


def _hinge_difference(f: FloatArray) -> FloatArray:
    return -(f + np.clip(f, -1, 1))


def _squared_hinge(z: FloatArray) -> FloatArray:
    return np.maximum(0, 1 - z) ** 2


def _squared_hinge_difference(f: FloatArray) -> FloatArray:
    return -(f + np.clip(f, -1, 1)) * (1 + np.maximum(1, np.abs(f)))


# ---------------------------------------------------------------------- the paper's code


@dataclass(frozen=True)
class Loss:
    """A loss of the margin, decoded with the paper's code of -1 and +1.

    Parameters
    ----------
    name : str
        What to call it.
    function : callable
        ``L(z)`` of an array of margins times signs, element by element.
    difference : callable, optional
        ``L(f) - L(-f)`` in a form exact for tiny and huge f; by default the difference itself.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis import Trellis, get_loss
    >>> get_loss("hinge")(np.array([-1.0, 0.0, 2.0]))
    array([2., 1., 0.])
    >>> get_loss("squared").edge_costs(Trellis(2, 2), np.array([[1.0, -1.0, 0.5, 0.0, 2.0]]))
    array([[-4.,  4., -2., -0., -8.]])
    """

    name: str
    function: Function
    difference: Function | None = field(default=None, repr=False)

    def __call__(self, z: npt.ArrayLike) -> FloatArray:
        """L(z), element by element."""
        values = _as_floats(z)
        result = np.asarray(self.function(values))
        if result.shape != values.shape:
            raise ValueError(
                f"loss {self.name!r} must return one value an element: "
                f"got shape {result.shape} for input of shape {values.shape}"
            )
        return result

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """``c_j = L(f_j) - L(-f_j)``: the cost of putting edge j on the path."""
        margins = _as_floats(margins)
        if self.difference is None:
            return self(margins) - self(-margins)
        return self.difference(margins)

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """``sum_j L(M_j f_j)`` of one path a row, equation (1) of the paper."""
        return self(codewords(trellis, paths) * margins).sum(axis=1, dtype=np.float64)


_LOSSES = {
    loss.name: loss
    for loss in (
        Loss("exponential", _exponential, _exponential_difference),
        Loss("squared", _squared, _squared_difference),
        Loss("log", _log, _log_difference),
        Loss("hinge", _hinge, _hinge_difference),
        Loss("squared_hinge", _squared_hinge, _squared_hinge_difference),
    )
}


# ---------------------------------------------------------------------- local training's code


@dataclass(frozen=True)
class LocalLoss:
    """A loss of the margin, decoded with the ternary code of local training.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis import Trellis, get_loss
    >>> loss = get_loss("hinge", code="ternary")
    >>> loss.edge_costs(Trellis(2, 2), np.array([[2.0, -1.0, 0.5, 0.0, 1.0]]))
    array([[-2. ,  3. , -0.5,  0. , -1. ]])
    """

    loss: Loss

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """``c_e``: the loss of all edges that leave e's tail when e is taken, less L(0) each."""
        chosen, refused = self.loss(margins), self.loss(-margins)
        at_zero = float(self.loss(np.zeros(1))[0])
        costs = np.empty_like(chosen)
        for vertices in _vertex_edges(trellis):
            others = vertices.gather(refused, fill=0)
            own = vertices.gather(chosen, fill=0) - at_zero * vertices.degrees[:, np.newaxis]
            vertices.scatter(own + _sums_of_others(others), into=costs)
        return costs

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """``sum_j L(M_j f_j)`` of one path a row, with L(0) where M_j = 0."""
        words = codewords(trellis, paths, code="ternary")
        return self.loss(words * margins).sum(axis=1, dtype=np.float64)


@dataclass(frozen=True)
class PathHinge:
    """The path's own hinge, ``sum_{e in P} max(0, 1 - f_e) ** power``: for local training.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis import PathHinge, Trellis
    >>> PathHinge().edge_costs(Trellis(2, 2), np.array([[2.0, -1.0, 0.5, 0.0, 1.0]]))
    array([[0.   , 8.   , 0.125, 1.   , 0.   ]])
    """

    power: int = 3

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """``max(0, 1 - f_e) ** power``."""
        return np.asarray(np.maximum(0, 1 - margins) ** self.power)

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """Sum of the costs of the path's edges."""
        return _path_sums(trellis, self.edge_costs(trellis, margins), paths)


@dataclass(frozen=True)
class VertexSoftmax:
    """At each vertex a softmax over the edges that leave it: for local training.

    ``c_e = -log( exp(f_e / temperature) / sum_s exp(f_s / temperature) )``, s over the edges that
    leave e's tail. The cost of a path is the negative log of its probability, and the
    probabilities of all K paths sum to one with no further normalising.

    Parameters
    ----------
    temperature : float, default=0.25
        Below 1 sharpens the distribution, above 1 flattens it.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis import Trellis, VertexSoftmax
    >>> softmax = VertexSoftmax(temperature=1.0)
    >>> costs = softmax.edge_costs(Trellis(2, 2), np.array([[np.log(3), 0, 5, -7, 1]]))
    >>> np.exp(-costs)
    array([[0.75, 0.25, 1.  , 1.  , 1.  ]])
    """

    temperature: float = 0.25

    def __post_init__(self) -> None:
        if not (np.isfinite(self.temperature) and self.temperature > 0):
            raise ValueError(f"temperature must be positive and finite, got {self.temperature}")

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """``log sum_s exp(f_s / temperature) - f_e / temperature``."""
        # A Python float leaves float32 margins in float32.
        scaled = margins * float(1 / self.temperature)
        costs = np.empty_like(scaled)
        for vertices in _vertex_edges(trellis):
            scores = vertices.gather(scaled, fill=-np.inf)
            below_top = scores.max(axis=-1, keepdims=True) - scores
            norm = np.log(np.exp(-below_top).sum(axis=-1, keepdims=True))
            vertices.scatter(below_top + norm, into=costs)
        return costs

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """Negative log-probability of the path."""
        return _path_sums(trellis, self.edge_costs(trellis, margins), paths)


def get_loss(
    loss: str | Function | DecodingLoss, code: Code = "binary"
) -> Loss | LocalLoss | PathHinge | VertexSoftmax | DecodingLoss:
    """Decoding loss by name, or made of a function of the margin.

    Parameters
    ----------
    loss : str, callable or decoding loss
        ``"exponential"``, ``"squared"``, ``"log"``, ``"hinge"`` or ``"squared_hinge"``; with the
        ternary code also ``"cubed_hinge"`` and ``"softmax"``; or a vectorised function L(z). A
        decoding loss, an object with ``edge_costs`` and ``total_loss``, is returned as it is.
    code : {"binary", "ternary"}, default="binary"
        The paper's code, or that of local training.

    Examples
    --------
    >>> from xtrellis import get_loss
    >>> get_loss("exponential").name
    'exponential'
    >>> get_loss("softmax", code="ternary")
    VertexSoftmax(temperature=0.25)
    >>> get_loss(lambda z: (1 - z) ** 4).name
    '<lambda>'
    """
    if code not in ("binary", "ternary"):
        raise ValueError(f"code must be 'binary' or 'ternary', got {code!r}")
    if not isinstance(loss, str):
        if hasattr(loss, "edge_costs") and hasattr(loss, "total_loss"):
            return loss
        if not callable(loss):
            raise ValueError(f"loss must be a name or a function of the margin, got {loss!r}")
        found = Loss(getattr(loss, "__name__", "custom"), loss)
    elif code == "ternary" and loss == "cubed_hinge":
        return PathHinge()
    elif code == "ternary" and loss == "softmax":
        return VertexSoftmax()
    elif loss not in _LOSSES:
        names = [*_LOSSES, *(["cubed_hinge", "softmax"] if code == "ternary" else [])]
        raise ValueError(f"loss must be one of {', '.join(names)}; or a function; got {loss!r}")
    else:
        found = _LOSSES[loss]
    return LocalLoss(found) if code == "ternary" else found


# ---------------------------------------------------------------------- edges by their tail


@dataclass(frozen=True)
class _VertexEdges:
    """The edges that leave one slice (or the source), as a table: a row a vertex, exits last."""

    inner: slice
    exits: slice
    n_vertices: int
    n_heads: int

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """Number of edges that leave each vertex."""
        n_exits = self.exits.stop - self.exits.start
        return self.n_heads + (np.arange(self.n_vertices) < n_exits)

    def gather(self, values: FloatArray, fill: float) -> FloatArray:
        """Values of the edges, (n, n_vertices, n_heads + 1); ``fill`` where there is no exit."""
        table = np.full((len(values), self.n_vertices, self.n_heads + 1), fill, values.dtype)
        table[..., :-1] = values[:, self.inner].reshape(len(values), self.n_vertices, self.n_heads)
        table[:, : self.exits.stop - self.exits.start, -1] = values[:, self.exits]
        return table

    def scatter(self, table: FloatArray, into: FloatArray) -> None:
        """Write such a table back to the columns of the edges."""
        into[:, self.inner] = table[..., :-1].reshape(len(into), self.n_vertices * self.n_heads)
        into[:, self.exits] = table[:, : self.exits.stop - self.exits.start, -1]


def _vertex_edges(trellis: Trellis) -> list[_VertexEdges]:
    """Tables of the source and of every slice."""
    sizes = (1, *trellis.slice_sizes, 0)
    digits = (0, *trellis.digits)
    tables = []
    for step, (size, heads, exits) in enumerate(zip(sizes[:-1], sizes[1:], digits, strict=True)):
        inner, leave = trellis.inner_start(step - 1), trellis.exit_start(step - 1)
        tables.append(
            _VertexEdges(
                slice(inner, inner + size * heads), slice(leave, leave + exits), size, heads
            )
        )
    return tables


def _sums_of_others(values: FloatArray) -> FloatArray:
    """For each entry the sum of all others of the last axis, with nothing subtracted.

    The total less the entry itself would lose all digits where one entry dwarfs the others.
    """
    sums = np.zeros_like(values)
    np.cumsum(values[..., :-1], axis=-1, out=sums[..., 1:])
    sums[..., :-1] += np.cumsum(values[..., :0:-1], axis=-1)[..., ::-1]
    return sums


def _path_sums(trellis: Trellis, costs: FloatArray, paths: npt.ArrayLike) -> FloatArray:
    """Cost of one path a row."""
    edges = trellis.path_edges(paths)
    on_path = np.take_along_axis(costs, np.maximum(edges, 0), axis=1)
    return np.where(edges >= 0, on_path, 0).sum(axis=1, dtype=np.float64)


def _as_floats(values: npt.ArrayLike) -> FloatArray:
    """As a float32 array if it is one, else as float64."""
    array = np.asarray(values)
    return array if array.dtype == np.float32 else array.astype(np.float64)
