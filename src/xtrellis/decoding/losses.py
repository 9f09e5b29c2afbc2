"""Losses of the margin, and the edge costs that turn loss-based decoding into a shortest path.

Section 5 of the paper, in a shorter form. The total loss of path P, whose codeword M has +1 on
P's edges and -1 elsewhere, is

    sum_j L(M_j f_j)  =  sum_j L(-f_j)  +  sum_{j in P} [L(f_j) - L(-f_j)].

The first sum is the same for every path, so the class of least loss is the shortest path under

    c_j = L(f_j) - L(-f_j),

for any loss, any K, and without the sets S(e) of the paper's equations (2), (5) and (6).

The losses for local training are in ``vertex_losses.py``.

Every cost is finite and keeps the order of the margins up to |f| = 1e4, in float32 too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray
from .._checks import check_positive
from ..graph.codebook import Code, codewords
from ..graph.trellis import Trellis
from .vertex_losses import LocalLoss, PathHinge, VertexSoftmax

Function = Callable[[FloatArray], FloatArray]

# exp() of more than this would leave no room to add up a path in float32 or float64; in float64 not
# even if it is continued as far as the largest margins of float32.
_EXP_LIMIT = {np.dtype(np.float32): 60.0, np.dtype(np.float64): 600.0}


@runtime_checkable
class DecodingLoss(Protocol):
    """What a decoder needs: a cost for every edge, and the loss that a path is judged by."""

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """Costs whose shortest path is the path of least total loss; (n, n_edges)."""

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """Total loss of one path per row, by its definition; (n,)."""


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
    function: Function = field(repr=False)
    difference: Function | None = field(default=None, repr=False)

    def __call__(self, z: npt.ArrayLike) -> FloatArray:
        """L(z), element by element."""
        values = _as_floats(z)
        result = _as_floats(self.function(values), f"values of loss {self.name!r}")
        if result.shape != values.shape:
            raise ValueError(
                f"loss {self.name!r} must return one value per element: "
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
        """``sum_j L(M_j f_j)`` of one path per row, equation (1) of the paper."""
        return self(codewords(trellis, paths) * margins).sum(axis=1, dtype=np.float64)

    def to_parts(self) -> dict[str, str]:
        """Parts of a model file: the name, of a loss of the library's own."""
        if _LOSSES.get(self.name) != self:
            raise ValueError(
                f"decoding by {self.name} cannot be saved, as it is code: "
                f"use one of the library's own losses"
            )
        return {"name": self.name}

    @classmethod
    def from_parts(cls, name: str) -> Loss:
        """Loss of the parts of a model file."""
        if name not in _LOSSES:
            raise ValueError(f"there is no loss {name!r}")
        return _LOSSES[name]

    def __reduce__(self) -> Any:
        if _LOSSES.get(self.name) == self:  # so that pickles hold no name of a private function
            return Loss.from_parts, (self.name,)
        return super().__reduce__()


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


# ---------------------------------------------------------------------- any code


@dataclass(frozen=True)
class Tempered:
    """A decoding loss whose costs are divided by a temperature; its order of paths is the same."""

    loss: DecodingLoss
    temperature: float

    def __post_init__(self) -> None:
        check_positive(temperature=self.temperature)

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """Costs of the loss, divided by the temperature."""
        return self.temper(self.loss.edge_costs(trellis, margins))

    def temper(self, costs: FloatArray) -> FloatArray:
        """Costs of the loss within, divided by the temperature."""
        return costs * float(1 / self.temperature)

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """Total loss, divided by the temperature."""
        return self.loss.total_loss(trellis, margins, paths) / self.temperature


def get_loss(
    loss: str | Function | DecodingLoss, code: Code = "independent"
) -> Loss | LocalLoss | PathHinge | VertexSoftmax | DecodingLoss:
    """Decoding loss by name, or made of a function of the margin.

    Parameters
    ----------
    loss : str, callable or decoding loss
        ``"exponential"``, ``"squared"``, ``"log"``, ``"hinge"`` or ``"squared_hinge"``; with the
        local code also ``"cubed_hinge"`` and ``"softmax"``; or a vectorised function L(z). A
        decoding loss, an object with ``edge_costs`` and ``total_loss``, is returned as it is.
    code : {"independent", "local"}, default="independent"
        The paper's code, or that of local training.

    Examples
    --------
    >>> from xtrellis.decoding import get_loss
    >>> get_loss("exponential").name
    'exponential'
    >>> get_loss("softmax", code="local")
    VertexSoftmax(temperature=0.25, power=0, normalisation=1.0)
    >>> get_loss(lambda z: (1 - z) ** 4).name
    '<lambda>'
    """
    if code not in ("independent", "local"):
        raise ValueError(f"code must be 'independent' or 'local', got {code!r}")
    if isinstance(loss, type):
        raise ValueError(f"loss must be a loss, not a class: try {loss.__name__}()")
    if not isinstance(loss, str):
        if isinstance(loss, Loss):
            return LocalLoss(loss) if code == "local" else loss
        if hasattr(loss, "edge_costs") and hasattr(loss, "total_loss"):
            return loss
        if not callable(loss):
            raise ValueError(f"loss must be a name or a function of the margin, got {loss!r}")
        found = Loss(getattr(loss, "__name__", "custom"), loss)
    elif code == "local" and loss == "cubed_hinge":
        return PathHinge()
    elif code == "local" and loss == "softmax":
        return VertexSoftmax()
    elif loss not in _LOSSES:
        names = [*_LOSSES, *(["cubed_hinge", "softmax"] if code == "local" else [])]
        raise ValueError(f"loss must be one of {', '.join(names)}; or a function; got {loss!r}")
    else:
        found = _LOSSES[loss]
    return LocalLoss(found) if code == "local" else found


def _as_floats(values: npt.ArrayLike, name: str = "margins") -> FloatArray:
    """As a float32 array if it is one, else as float64."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
