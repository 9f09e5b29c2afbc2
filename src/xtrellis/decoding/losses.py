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
from numbers import Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray
from ..graph.codebook import Code, codewords
from ..graph.trellis import Trellis

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
    from ..kernels import costs as kernels

    if f.dtype == np.float32:
        costs = np.empty(f.shape, np.float32)
        limit = _EXP_LIMIT[f.dtype]
        if f.size == 0 or max(f.max(), -f.min()) <= limit:
            kernels.exponential(np.ravel(f), np.ravel(costs))
            return costs
        # Only the rows with such margins go to float64: what else is in a batch changes no row.
        rows = f.reshape(len(f), -1)
        large = np.abs(rows).max(axis=1) > limit
        mixed = np.empty(rows.shape)
        mixed[large] = _exponential_difference(rows[large].astype(np.float64))
        mixed[~large] = _exponential_difference(rows[~large])
        return mixed.reshape(f.shape)
    bounded = np.clip(f, -_EXP_LIMIT[f.dtype], _EXP_LIMIT[f.dtype])
    return -2 * np.sinh(bounded) * (1 + np.abs(f - bounded))


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
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.decoding import get_loss
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
        result = _as_floats(self.function(values), f"values of loss {self.name!r}")
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
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.decoding import get_loss
    >>> loss = get_loss("hinge", code="ternary")
    >>> loss.edge_costs(Trellis(2, 2), np.array([[2.0, -1.0, 0.5, 0.0, 1.0]]))
    array([[-2. ,  3. , -0.5,  0. , -1. ]])
    """

    loss: Loss

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """``c_e``: the loss of all edges that leave e's tail when e is taken, less L(0) each."""
        margins = _as_floats(margins).astype(np.float64, copy=False)  # many terms are added up
        at_zero = self.loss(np.zeros(1))[0]
        chosen, refused = self.loss(margins) - at_zero, self.loss(-margins) - at_zero
        costs = np.empty_like(chosen)
        for vertices in _vertex_edges(trellis):
            others = _sums_of_others(vertices.gather(refused, fill=0))
            vertices.scatter(vertices.gather(chosen, fill=0) + others, into=costs)
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
    >>> from xtrellis.decoding import PathHinge
    >>> from xtrellis.graph import Trellis
    >>> PathHinge().edge_costs(Trellis(2, 2), np.array([[2.0, -1.0, 0.5, 0.0, 1.0]]))
    array([[0.   , 8.   , 0.125, 1.   , 0.   ]])
    """

    power: float = 3

    def __post_init__(self) -> None:
        if not (isinstance(self.power, Real) and np.isfinite(self.power) and self.power > 0):
            raise ValueError(f"power must be positive and finite, got {self.power!r}")

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """``max(0, 1 - f_e) ** power``."""
        return np.asarray(np.maximum(0, 1 - margins) ** self.power)

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """Sum of the costs of the path's edges."""
        return _path_sums(trellis, self.edge_costs(trellis, margins), paths)


@dataclass(frozen=True)
class VertexSoftmax:
    """At each vertex a softmax over the edges that leave it: for local training.

    With scores ``z = f / T``, and s over the edges that leave e's tail,
    ``c_e = -log( exp(z_e) / sum_s exp(z_s) )``. The cost of a path is the negative log of its
    probability, and the probabilities of all K paths sum to one with no further normalising.

    Parameters
    ----------
    temperature : float or sequence of float, default=0.25
        T: below 1 sharpens the distribution, above 1 flattens it. A sequence has one for the
        source and one for each slice.
    power : {0, 2, 3}, default=0
        2 and 3 make the score ``-max(0, 1 - f) ** power / T``: beyond a margin of 1, which the
        learners aim for, a larger one says nothing more.
    normalisation : float, default=1.0
        Share of the ``log sum`` that is subtracted. A little less than 1 lets a path make good
        for one doubtful edge by the others; probabilities are then normalised over all paths.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.decoding import VertexSoftmax
    >>> softmax = VertexSoftmax(temperature=1.0)
    >>> costs = softmax.edge_costs(Trellis(2, 2), np.array([[np.log(3), 0, 5, -7, 1]]))
    >>> np.exp(-costs)
    array([[0.75, 0.25, 1.  , 1.  , 1.  ]])
    """

    temperature: float | tuple[float, ...] = 0.25
    power: int = 0
    normalisation: float = 1.0

    def __post_init__(self) -> None:
        value: Any
        for value in np.ravel(np.asarray(self.temperature, dtype=object)):
            if not (isinstance(value, Real) and 0 < float(value) < np.inf):
                raise ValueError(f"temperature must be positive and finite, got {value!r}")
        if self.power not in (0, 2, 3):
            raise ValueError(f"power must be 0, 2 or 3, got {self.power!r}")
        if not (isinstance(self.normalisation, Real) and 0 <= self.normalisation <= 1):
            raise ValueError(f"normalisation must be from 0 to 1, got {self.normalisation!r}")

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """``normalisation * log sum_s exp(z_s) - z_e``."""
        scale = self.edge_scale(trellis)
        if margins.dtype == np.float32:
            return self._float32_costs(trellis, margins, scale)
        if self.power:
            scores = -(np.maximum(0, 1 - margins) ** self.power) * scale
        else:
            scores = margins * scale
        costs = np.empty_like(scores)
        for vertices in _vertex_edges(trellis):
            table = vertices.gather(scores, fill=-np.inf)
            top = table.max(axis=-1, keepdims=True)
            log_sum = top + np.log(np.exp(table - top).sum(axis=-1, keepdims=True))
            vertices.scatter(self.normalisation * log_sum - table, into=costs)
        return costs

    def _float32_costs(
        self, trellis: Trellis, margins: FloatArray, scale: FloatArray
    ) -> FloatArray:
        """The same by a kernel, for prediction."""
        from ..kernels import costs as kernels

        costs = np.empty(margins.shape, np.float32)
        kernels.vertex_softmax(
            np.ascontiguousarray(margins),
            trellis.arrays,
            scale.astype(np.float32),
            self.power,
            np.float32(self.normalisation),
            costs,
        )
        return costs

    def edge_scale(self, trellis: Trellis) -> FloatArray:
        """One over the temperature of each edge."""
        steps = np.ravel(self.temperature)
        if len(steps) not in (1, trellis.n_slices + 1):
            raise ValueError(
                f"temperature must be one number, or {trellis.n_slices + 1} for the source and "
                f"each slice; got {len(steps)}"
            )
        scale = np.empty(trellis.n_edges)
        for step, table in enumerate(_vertex_edges(trellis)):
            scale[table.inner] = scale[table.exits] = 1 / steps[step if len(steps) > 1 else 0]
        return scale

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """Sum of the costs of the path's edges."""
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
    >>> from xtrellis.decoding import get_loss
    >>> get_loss("exponential").name
    'exponential'
    >>> get_loss("softmax", code="ternary")
    VertexSoftmax(temperature=0.25, power=0, normalisation=1.0)
    >>> get_loss(lambda z: (1 - z) ** 4).name
    '<lambda>'
    """
    if code not in ("binary", "ternary"):
        raise ValueError(f"code must be 'binary' or 'ternary', got {code!r}")
    if isinstance(loss, type):
        raise ValueError(f"loss must be a loss, not a class: try {loss.__name__}()")
    if not isinstance(loss, str):
        if isinstance(loss, Loss):
            return LocalLoss(loss) if code == "ternary" else loss
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


def _as_floats(values: npt.ArrayLike, name: str = "margins") -> FloatArray:
    """As a float32 array if it is one, else as float64."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
