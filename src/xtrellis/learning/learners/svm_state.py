"""Weights and dual variables of the linear SVMs of a block, on their way to the optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._arrays import Float32Array, IntArray
from .learner import Block

MOST_IGNORED = 0.006  # gradient that is not followed at first; or a tenth of the tolerance, if less
_ROWS = 1_024  # of a table, put into order at once


@dataclass
class Columns:
    """Edges in coordinate descent, and their weights and dual variables.

    Shapes are (n_features, n), (n,) and (n_rows, n).
    """

    edges: IntArray
    weights: Float32Array
    bias: Float32Array
    duals: Float32Array

    def parted(self, which: npt.NDArray[np.bool_]) -> tuple[Columns, Columns]:
        """Some of the columns, and the others; none are left here.

        So a table is never in memory twice together with the other one.
        """
        weights = _parted(self.given_up("weights"), which)
        duals = _parted(self.given_up("duals"), which)
        masks = which, ~which
        first, second = (
            Columns(self.edges[mask], weights[i], self.bias[mask], duals[i])
            for i, mask in enumerate(masks)
        )
        return first, second

    @staticmethod
    def together(parts: list[Columns]) -> Columns:
        """Columns of several parts, one part after the other; none are left in the parts."""
        if len(parts) == 1:
            return parts[0]
        return Columns(
            np.concatenate([part.edges for part in parts]),
            np.concatenate([part.given_up("weights") for part in parts], axis=1),
            np.concatenate([part.bias for part in parts]),
            np.concatenate([part.given_up("duals") for part in parts], axis=1),
        )

    def given_up(self, name: str) -> Float32Array:
        """A table, which is not kept here."""
        table: Float32Array = getattr(self, name)
        setattr(self, name, np.empty((0, 0), np.float32))
        return table


def _parted(table: Float32Array, which: npt.NDArray[np.bool_]) -> tuple[Float32Array, Float32Array]:
    """Some columns of a table, and the others; ``compress`` takes half the time of an index."""
    return table.compress(which, axis=1), table.compress(~which, axis=1)


@dataclass
class SVMState:
    """Weights of a block's edges on their way to the optimum.

    Attributes
    ----------
    costs, norms : ndarray of float32, shape (n_rows,)
        C times the weight of each row, and its squared length.
    active : Columns
        Edges in coordinate descent.
    targets : ndarray of int32
        The block's, renumbered to those.
    resting : list of Columns
        Edges that are solved.
    newton_edges, newton_weights, newton_bias
        The other edges; their weights are of shape (len(newton_edges), n_features).
    gaps, losses : ndarray of float64, shape (n_edges,)
        Relative duality gap, infinite if not measured, and weighted loss of each edge.
    earlier : ndarray of float64, shape (n_edges,)
        The gaps when they were last judged.
    moves : ndarray of float32, shape (n_rows,)
        Largest gradient of each row when last visited.
    n_rounds, n_newton, n_rows : int
        Rounds of descent, and of Newton's method, since the last restart; the number of rows.
    tolerance : float
        What "solved" means for these rows: a gap of at most so much.
    least_move : float
        Gradient above which a row's variables move. Many small ones add up to a large gap.
    """

    costs: Float32Array
    norms: Float32Array
    active: Columns
    targets: npt.NDArray[np.int32]
    resting: list[Columns]
    newton_edges: IntArray
    newton_weights: Float32Array
    newton_bias: Float32Array
    gaps: npt.NDArray[np.float64]
    losses: npt.NDArray[np.float64]
    earlier: npt.NDArray[np.float64]
    moves: Float32Array
    n_rounds: int = 0
    n_newton: int = 0
    n_rows: int = 0
    tolerance: float = 0.0
    least_move: float = 0.0

    @property
    def edges(self) -> IntArray:
        """Edges in coordinate descent."""
        return self.active.edges

    def restart(self, block: Block, n_rows: int, tolerance: float) -> None:
        """Go on from these weights with other rows, or more precisely: nothing is solved yet."""
        self.active = Columns.together([self.active, *self.resting])
        self.resting = []
        self.renumber(block)
        self.gaps[:] = self.earlier[:] = np.inf
        self.n_rounds, self.n_newton = 0, 0
        self.n_rows, self.tolerance = n_rows, tolerance
        self.least_move = min(0.1 * tolerance, MOST_IGNORED)

    def renumber(self, block: Block) -> None:
        """Targets as numbers of the edges in coordinate descent."""
        place = np.full(block.n_edges + 1, -1, np.int32)  # the last one stands for "no edge"
        place[self.edges] = np.arange(len(self.edges))
        self.targets = place[block.targets]


def in_order(edges: list[IntArray], tables: list[Float32Array]) -> Float32Array:
    """The columns of several tables, whose edges these are, in the order of the edges.

    Some rows at a time: to put columns at their places in the whole table takes twice as long.
    """
    order = np.argsort(np.concatenate(edges))
    whole = np.empty((len(tables[0]), len(order)), np.float32)
    for start in range(0, len(whole), _ROWS):
        rows = slice(start, start + _ROWS)
        side_by_side = np.concatenate([table[rows] for table in tables], axis=1)
        side_by_side.take(order, axis=1, out=whole[rows], mode="clip")
    return whole
