"""Losses for local training, where each edge learns from the rows that visit its tail vertex.

An edge is 0 in the codewords of paths that do not visit its tail. Then the total loss is |E| L(0)
plus, for every edge e of the path, with the edges s that leave the same vertex,

    c_e = L(f_e) - L(0) + sum_{s != e} [L(-f_s) - L(0)],

again a shortest path: :class:`LocalLoss`. Two more costs suit local training: the path's own cubed
hinge, :class:`PathHinge`, and the negative log of a softmax over the edges that leave each vertex,
:class:`VertexSoftmax`, which also gives a distribution over all paths.

Every cost is finite and keeps the order of the margins up to |f| = 1e4, in float32 too.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray
from ..graph.codebook import codewords
from ..graph.trellis import Trellis

if TYPE_CHECKING:
    from .losses import Loss


@dataclass(frozen=True)
class LocalLoss:
    """A loss of the margin, decoded with the local code.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.decoding import get_loss
    >>> loss = get_loss("hinge", code="local")
    >>> loss.edge_costs(Trellis(2, 2), np.array([[2.0, -1.0, 0.5, 0.0, 1.0]]))
    array([[-2. ,  3. , -0.5,  0. , -1. ]])
    """

    loss: Loss

    def to_parts(self) -> dict[str, Any]:
        """Parts of a model file."""
        return {"loss": self.loss}

    @classmethod
    def from_parts(cls, loss: Any) -> LocalLoss:
        """Loss of the parts of a model file."""
        from .losses import Loss

        if not isinstance(loss, Loss):
            raise ValueError("loss must be a loss of the margin")
        return cls(loss)

    def edge_costs(self, trellis: Trellis, margins: FloatArray) -> FloatArray:
        """``c_e``: the loss of all edges that leave e's tail when e is taken, less L(0) each."""
        margins = np.asarray(margins, np.float64)  # many terms are added up
        at_zero = self.loss(np.zeros(1))[0]
        chosen, refused = self.loss(margins) - at_zero, self.loss(-margins) - at_zero
        costs = np.empty_like(chosen)
        for table in trellis.edge_tables:
            others = _sums_of_others(table.gather(refused, fill=0))
            table.scatter(table.gather(chosen, fill=0) + others, into=costs)
        return costs

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """``sum_j L(M_j f_j)`` of one path per row, with L(0) where M_j = 0."""
        words = codewords(trellis, paths, code="local")
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
        Share of the ``log sum`` that is subtracted. A little less than 1 lets a path make up
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
            # Its inverse must be finite in float32, too.
            if not (isinstance(value, Real) and 1e-30 <= float(value) <= 1e30):
                raise ValueError(
                    f"temperature must be positive and finite, got {value!r}: "
                    f"use one from 1e-30 to 1e30"
                )
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
        for table in trellis.edge_tables:
            z = table.gather(scores, fill=-np.inf)
            top = z.max(axis=-1, keepdims=True)
            log_sum = top + np.log(np.exp(z - top).sum(axis=-1, keepdims=True))
            table.scatter(self.normalisation * log_sum - z, into=costs)
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
        for step, table in enumerate(trellis.edge_tables):
            scale[table.inner] = scale[table.exits] = 1 / steps[step if len(steps) > 1 else 0]
        return scale

    def total_loss(self, trellis: Trellis, margins: FloatArray, paths: npt.ArrayLike) -> FloatArray:
        """Sum of the costs of the path's edges."""
        return _path_sums(trellis, self.edge_costs(trellis, margins), paths)


def _sums_of_others(values: FloatArray) -> FloatArray:
    """For each entry the sum of all others of the last axis, with nothing subtracted.

    The total less the entry itself would lose all digits where one entry dwarfs the others.
    """
    sums = np.zeros_like(values)
    np.cumsum(values[..., :-1], axis=-1, out=sums[..., 1:])
    sums[..., :-1] += np.cumsum(values[..., :0:-1], axis=-1)[..., ::-1]
    return sums


def _path_sums(trellis: Trellis, costs: FloatArray, paths: npt.ArrayLike) -> FloatArray:
    """Cost of one path per row."""
    edges = trellis.path_edges(paths)
    on_path = np.take_along_axis(costs, np.maximum(edges, 0), axis=1)
    return np.where(edges >= 0, on_path, 0).sum(axis=1, dtype=np.float64)
