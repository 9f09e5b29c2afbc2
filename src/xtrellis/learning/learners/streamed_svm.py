"""The linear SVM of a block whose rows are on disk: block minimisation.

Yu, Hsieh, Chang and Lin, "Large linear classification when data cannot fit in memory" (2010): the
dual variables of all rows and the weights stay in memory, the rows do not. One part of them after
the other is read, some passes of coordinate descent are made over its rows, and its variables wait
for the next sweep. This minimises the dual objective over the variables of one part at a time, so
it ends at the optimum of rows in memory; when that is reached is told by the same duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..._arrays import Float32Array, IntArray
from .learner import Block
from .svm import CSR, MAX_ROUNDS, LinearSVM
from .svm_state import SVMState


class Parts(Protocol):
    """Rows in parts that are read one at a time."""

    @property
    def starts(self) -> IntArray:
        """Number of the first row of each part, and the number of all rows."""

    def read(self, number: int) -> CSR:
        """The rows of one part."""


@dataclass(frozen=True)
class StreamedBlock(Block):
    """A block whose rows are read part by part.

    ``data`` holds only the value of the largest size, and ``indptr`` and ``indices`` nothing.
    """

    parts: Any = None
    norms: Float32Array = field(default_factory=lambda: np.empty(0, np.float32))
    seed: int = 0


@dataclass
class StreamedSVM(LinearSVM):
    """As :class:`LinearSVM`, for a :class:`StreamedBlock`.

    There are no Newton steps, each of which would read all rows many times: what so many passes of
    coordinate descent leave unsolved is left as it is, and reported as a shortfall.

    Parameters
    ----------
    rounds : int
        How many rounds of three passes there are at most.
    """

    rounds: int = MAX_ROUNDS

    def _norms(self, block: Block) -> Float32Array:
        assert isinstance(block, StreamedBlock)
        return block.norms

    def _round(
        self, block: Block, state: SVMState, rows: IntArray, n_passes: int, tolerance: float
    ) -> npt.NDArray[np.float64]:
        """Losses and dual values of the edges, in two rows.

        A pass is a sweep over all parts. Several passes over a part while it is in memory would
        read less, but fit the weights to its rows alone: it then takes three times as many passes
        to reach the same gap, and the gap cannot be estimated on the way.
        """
        assert isinstance(block, StreamedBlock)
        rng = np.random.default_rng([block.seed, state.n_rounds, n_passes])
        starts = block.parts.starts
        for left in range(n_passes - 1, -1, -1):
            losses = np.zeros((2, len(state.edges)))
            for number in rng.permutation(len(starts) - 1):
                own = slice(starts[number], starts[number + 1])
                first, last = np.searchsorted(rows, [own.start, own.stop])
                here = rows[first:last].astype(np.int64) - own.start
                if left:  # as rows in memory: the last pass alone visits all
                    here = here[state.moves[own][here] > 20 * tolerance]
                if len(here):
                    csr, here = block.parts.read(number), rng.permutation(here)
                    losses += self._visit(csr, own, state, here, 1, tolerance)
        return losses

    def _hand_over(self, block: Block, state: SVMState, leaves: npt.NDArray[np.bool_]) -> None:
        """Nothing: coordinate descent is all there is."""

    def _newton(self, block: Block, state: SVMState, order: IntArray, n_steps: int = 0) -> None:
        """Nothing, likewise: there is nothing left to do once all edges are solved."""

    def converged(self, state: SVMState) -> bool:
        """Whether every edge is solved, or has had its passes."""
        solved = bool((state.gaps <= self.tolerance).all())
        return solved or state.n_rounds >= self.rounds
