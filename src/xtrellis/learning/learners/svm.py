"""The linear SVM: many edges by coordinate descent, the stubborn ones by Newton's method.

All edges of a block descend together at first, in rounds of three passes over the rows; a few
rounds bring most of them to their optimum. The last pass of a round measures each edge's duality
gap. Where few dual variables are positive, the first passes of later rounds give way to more passes
of each edge over the rows of its own positive variables alone, which are cheap. Edges that are
solved rest while the others go on, which costs less the fewer they are.

Variables with a small gradient stay as they are. But many small ones add up: where the gaps of many
edges no longer fall, smaller ones count, too. An edge whose gap does not fall even so is
ill-conditioned, for example because heavy rows contradict each other. It leaves the others for good
and is solved by itself, by Newton's method on the primal objective, which takes a few steps
whatever the weights of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arrays import Float32Array, IntArray
from ..._checks import check_positive
from .learner import Block, Learner, finite, too_large
from .svm_state import Columns, SVMState, in_order

CSR = tuple[npt.NDArray[Any], npt.NDArray[Any], Float32Array]  # indptr, indices and data

PASSES = 3  # per round
JUDGED = 4  # rounds in which a gap has to fall to SLOW of what it was
SLOW = 0.7
SPARSE = 1 / 32  # of the dual variables are positive: fewer are descended on by themselves,
SPARSE_IF_HARD = 1 / 8  # the same if the mean gap is above HARD, or after JUDGED rounds,
SUPPORT_PASSES = 20  # in so many passes at most
HARD = 0.5
MAX_ROUNDS = 20  # of coordinate descent before Newton's method solves what is left
RESTING = 1 / 3  # of the edges in descent: as soon as so many are solved, they rest
LEAST_GAP = 1e-5  # that sums in single precision can tell
MAX_DUAL = 1e3  # single precision holds weights to about 1e-7 of the largest dual variable
NEWTON_STEPS = 20  # per edge and round
NEWTON_ROUNDS = 5
MANY = 1 / 4  # of the edges: if the gaps of more no longer fall, smaller gradients count,
CLOSER = 16  # by this factor,
LEAST_MOVE = 1e-3  # as long as they are larger than this share of the tolerance
ROUGH = 2  # times the tolerance, for judging settings
FAR = 0.3  # gap of an edge that even then must be solved


@dataclass
class LinearSVM(Learner):
    """L2-regularised linear SVM with squared hinge, solved to a given precision.

    An epoch is three passes over the rows; or one, and twenty over the few that support an edge.

    Each edge minimises ``|w|^2 / 2 + C sum_i max(0, 1 - y_i w.x_i)^2``; the bias is the weight of a
    constant feature of 1, as in LIBLINEAR. If there is a ``unit``, this is the problem of the rows
    ``x_i / unit``; the weights returned are those for the rows as they are.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the regulariser.
    tolerance : float, default=0.03
        Stop when each edge's duality gap is within this share of its objective. The objective is
        then nearer to its optimum: a third as far, or less.
    unit : float, default=1.0
        Length that rows are measured in. If it is that of a typical row, then a value of C means
        the same whatever the features are measured in.

    Examples
    --------
    >>> from xtrellis.learning import LinearSVM
    >>> LinearSVM(C=3.0)
    LinearSVM(C=3.0, tolerance=0.03, unit=1.0)
    """

    C: float = 1.0
    tolerance: float = 0.03
    unit: float = 1.0

    epochs = 35
    merges_rows = True
    is_quick = True
    bytes_per_weight = 4
    bytes_per_row = 4
    newton_rounds = NEWTON_ROUNDS

    def __post_init__(self) -> None:
        check_positive(C=self.C, tolerance=self.tolerance, unit=self.unit)

    def start(self, block: Block) -> SVMState:
        """Zero weights and dual variables."""
        norms = self._norms(block) + np.float32(self.unit**2)
        n_edges, n_features = block.n_edges, block.n_features
        return SVMState(
            costs=self._costs(block, norms),
            norms=norms,
            active=Columns(
                np.arange(n_edges),
                np.zeros((n_features, n_edges), np.float32),
                np.zeros(n_edges, np.float32),
                np.zeros((block.n_rows, n_edges), np.float32),
            ),
            targets=block.targets,
            resting=[],
            newton_edges=np.empty(0, np.int64),
            newton_weights=np.empty((0, n_features), np.float32),
            newton_bias=np.empty(0, np.float32),
            gaps=np.full(n_edges, np.inf),
            losses=np.zeros(n_edges),
            earlier=np.full(n_edges, np.inf),
            moves=np.full(block.n_rows, np.inf, np.float32),
        )

    def _norms(self, block: Block) -> Float32Array:
        """Squared length of each row."""
        from scipy import sparse

        with np.errstate(over="ignore"):
            squares = sparse.csr_matrix(
                (block.data * block.data, block.indices, block.indptr),
                (block.n_rows, block.n_features),
            )
            return np.asarray(squares @ np.ones(block.n_features, np.float32))

    def _costs(self, block: Block, norms: Float32Array) -> Float32Array:
        """C times the weight of each row, or a ValueError if the curvature overflows."""
        with np.errstate(over="ignore"):
            costs = np.float32(self.C / self.unit**2) * block.row_weights
            curvatures = np.float32(4) * costs * norms
        if not np.isfinite(curvatures).all():
            raise ValueError(too_large(block))
        return costs

    def step(self, block: Block, state: SVMState, order: IntArray) -> float:
        """A round of coordinate descent; when that is over, Newton steps for what is left."""
        if (len(order), self.tolerance) != (state.n_rows, state.tolerance):
            state.restart(block, len(order), self.tolerance)
        if (state.gaps[state.edges] > self.tolerance).any():
            self._descend(block, state, order)
        else:
            self._newton(block, state, order)
        return float(state.losses.sum() / self.C * self.unit**2)

    def _descend(self, block: Block, state: SVMState, order: IntArray) -> None:
        """A round over these rows; then see which edges it solved, and which it will not."""
        state.n_rounds += 1
        losses = self._round(block, state, order, PASSES, state.least_move)
        state.losses[state.edges] = losses[0]
        self._measure(state, losses)
        if state.n_rounds % JUDGED == 0 or state.n_rounds >= MAX_ROUNDS:
            self._judge(block, state)
        self._rest(block, state, order)

    def _judge(self, block: Block, state: SVMState) -> None:
        """Hand over the edges that descent does not solve, but look closer if they are many."""
        stubborn = self._stubborn(state)
        ends = state.n_rounds >= MAX_ROUNDS or state.least_move < LEAST_MOVE * self.tolerance
        if stubborn.mean() > MANY and not ends:
            state.least_move /= CLOSER
        else:
            self._hand_over(block, state, stubborn)

    def _rest(self, block: Block, state: SVMState, order: IntArray) -> None:
        """Let the edges rest that are solved, if they are many."""
        solved = state.gaps[state.edges] <= self.tolerance
        if not len(solved) or solved.mean() < RESTING:
            return
        # The weights moved while the losses were added up: once more, at rest.
        self._measure(state, self._round(block, state, order, 1, np.inf))
        solved = state.gaps[state.edges] <= self.tolerance
        if state.n_rounds >= MAX_ROUNDS:
            self._hand_over(block, state, ~solved)
        elif RESTING <= solved.mean() < 1:
            resting, state.active = state.active.parted(solved)
            state.resting.append(resting)
            state.renumber(block)

    def _measure(self, state: SVMState, losses: npt.NDArray[np.float64]) -> None:
        """Relative duality gap of each edge, from the losses and dual values of a pass."""
        from ...kernels import svm as kernels

        squares = np.empty(len(state.edges))
        kernels.squared_lengths(state.active.weights, state.active.bias, self.unit**2, squares)
        gaps = (squares + losses[0] - losses[1]) / (0.5 * squares + losses[0])
        state.gaps[state.edges] = np.maximum(gaps, LEAST_GAP)

    def _round(
        self, block: Block, state: SVMState, rows: IntArray, n_passes: int, tolerance: float
    ) -> npt.NDArray[np.float64]:
        """Losses and dual values of the edges, in two rows."""
        csr = block.indptr, block.indices, block.data
        return self._visit(csr, slice(None), state, rows, n_passes, tolerance)

    def _visit(
        self,
        csr: CSR,
        own: slice,
        state: SVMState,
        rows: IntArray,
        n_passes: int,
        tolerance: float,
    ) -> npt.NDArray[np.float64]:
        """The same for rows that are at ``own`` in the state; ``rows`` counts from there."""
        from ...kernels import svm as kernels

        indptr, indices, data = csr
        losses = np.empty((2, len(state.edges)))
        given = indptr, _unsigned(indices), data, rows
        shared = (
            state.targets[own],
            state.costs[own],
            state.norms[own],
            np.float32(self.unit**2),
            np.float32(tolerance),
            state.active.duals[own],
            state.active.weights,
            state.active.bias,
        )
        few = self._few(state) if n_passes > 1 else 0
        # A kernel of its own: easy problems do without it, and need not wait until it is compiled.
        if few and kernels.is_sparse(state.active.duals[own], few):
            unsolved = state.gaps[state.edges] > self.tolerance
            kernels.support_passes(*given, SUPPORT_PASSES, unsolved, *shared)
            n_passes = 1
        kernels.svm_round(*given, n_passes, *shared, state.moves[own], losses[0], losses[1])
        return losses

    def _few(self, state: SVMState) -> int:
        """Number of positive dual variables that are few: each edge descends on its own then."""
        if state.n_rounds == 1:  # dual variables are zero, or those of other rows
            return 0
        is_hard = state.n_rounds > JUDGED or state.gaps[state.edges].mean() > HARD
        return int((SPARSE_IF_HARD if is_hard else SPARSE) * state.active.duals.size)

    def _stubborn(self, state: SVMState) -> npt.NDArray[np.bool_]:
        """Which of the edges in coordinate descent it does not solve in time."""
        gaps = state.gaps[state.edges]
        unsolved = gaps > self.tolerance
        if state.n_rounds >= MAX_ROUNDS:
            return unsolved
        most = MAX_DUAL / self.unit**2
        too_large: npt.NDArray[np.bool_] = state.active.duals.max(axis=0, initial=0) > most
        slow = unsolved & (gaps > SLOW * state.earlier[state.edges])
        state.earlier[state.edges] = gaps
        return too_large | slow

    def _hand_over(self, block: Block, state: SVMState, leaves: npt.NDArray[np.bool_]) -> None:
        """Leave these of the edges in coordinate descent to Newton's method."""
        if not leaves.any():
            return
        state.gaps[state.edges[leaves]] = np.inf  # to be measured again
        leaving, state.active = state.active.parted(leaves)
        state.newton_edges = np.append(state.newton_edges, leaving.edges)
        state.newton_weights = np.vstack([state.newton_weights, leaving.weights.T])
        state.newton_bias = np.append(state.newton_bias, leaving.bias)
        state.renumber(block)

    def rough(self) -> LinearSVM:
        """For judging settings: half as precise, in less than half the time."""
        return RoughSVM(self.C, ROUGH * self.tolerance, self.unit)

    def _newton(
        self, block: Block, state: SVMState, order: IntArray, n_steps: int = NEWTON_STEPS
    ) -> None:
        """Some Newton steps for each edge that is not solved yet."""
        from .newton import Edge, solve

        state.n_newton += 1
        whole = len(order) == block.n_rows
        X = (block.csr if whole else block.csr[order]) * np.float32(1 / self.unit)
        costs = (state.costs if whole else state.costs[order]) * np.float64(self.unit**2)
        places = np.flatnonzero(~(state.gaps[state.newton_edges] <= self.tolerance))
        scaled = state.newton_weights[places] * np.float32(self.unit)
        weights = np.column_stack([scaled, state.newton_bias[places]])
        edges = []
        for number, start in zip(state.newton_edges[places], weights, strict=True):
            signs = block.signs(number) if whole else block.signs(number)[order]
            edges.append(Edge(signs.astype(np.int8), start.astype(np.float64)))
        solve(X, edges, costs, self.tolerance, n_steps)
        for place, edge in zip(places, edges, strict=True):
            number = state.newton_edges[place]
            state.gaps[number], state.losses[number] = edge.gap, edge.loss / self.unit**2
            state.newton_weights[place], state.newton_bias[place] = (
                edge.weights[:-1] / self.unit,
                edge.weights[-1],
            )

    def converged(self, state: SVMState) -> bool:
        """Whether every edge's objective is within the tolerance of its optimum.

        Or as close as it gets: what some rounds of Newton's method do not solve, more will not.
        """
        return state.n_newton >= self.newton_rounds or bool((state.gaps <= self.tolerance).all())

    def shortfall(self, block: Block, state: SVMState) -> float:
        """Mean over the edges of the duality gap as a share of the objective."""
        if (state.gaps <= self.tolerance).all():
            return 0.0
        rows = np.arange(block.n_rows)
        if np.isinf(state.gaps[state.edges]).any():
            self._measure(state, self._round(block, state, rows, 1, np.inf))
        if np.isinf(state.gaps[state.newton_edges]).any():
            self._newton(block, state, rows, n_steps=0)
        return float(np.minimum(state.gaps, 1.0).mean())

    def finish(self, block: Block, state: SVMState) -> tuple[Float32Array, Float32Array]:
        """The weights as they are."""
        descended = [state.active, *state.resting]
        if np.array_equal(state.edges, np.arange(block.n_edges)):
            return finite(block, state.active.weights, state.active.bias)
        edges = [*(part.edges for part in descended), state.newton_edges]
        weights = in_order(edges, [*(part.weights for part in descended), state.newton_weights.T])
        bias = np.empty(block.n_edges, np.float32)
        bias[np.concatenate(edges)] = np.concatenate(
            [*(part.bias for part in descended), state.newton_bias]
        )
        return finite(block, weights, bias)


@dataclass
class RoughSVM(LinearSVM):
    """As :class:`LinearSVM`, but edges that coordinate descent does not solve soon are left.

    Unless they are nowhere near their optimum: then they have one round of Newton's method, too.
    """

    newton_rounds = 1

    def _hand_over(self, block: Block, state: SVMState, leaves: npt.NDArray[np.bool_]) -> None:
        """Leave hopeless edges to Newton's method, and others as they are."""
        far = leaves & (state.gaps[state.edges] > FAR)
        left = (leaves & ~far)[~far]
        super()._hand_over(block, state, far)
        if left.any():
            state.gaps[state.edges[left]] = self.tolerance
            resting, state.active = state.active.parted(left)
            state.resting.append(resting)
            state.renumber(block)


def _unsigned(indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers as unsigned ones, which need no test for negative indices."""
    return indices.view(np.uint32) if indices.dtype == np.int32 else indices
