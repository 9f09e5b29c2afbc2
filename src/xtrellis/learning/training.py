"""The training engine: from rows with paths to the weights of every edge.

``blocks`` plans which edges are trained together on which rows. :func:`train_block` trains one such
block from its plan alone: a pure function, which writes to nothing that another block reads. So
blocks can be trained in any order, by any number of workers, and the result is the same bit for
bit. Of a finished block only the non-zero weights are kept; only blocks in training are dense.

Everything that trains goes through :func:`run_epochs`: blocks here, all of them side by side for
early stopping (:class:`ResidentBlocks`), and joint training in ``ltls``. Batches of ``partial_fit``
are in ``online``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._arrays import Float32Array, IntArray
from ..graph.trellis import Trellis
from ..model.finished_block import FinishedBlock, finish_block
from ..model.weights import EdgeWeights, gather_blocks
from .blocks import (
    BlockResult,
    Plan,
    Training,
    all_edge_groups,
    make_block,
    plan_blocks,
)
from .learners import Block, Learner
from .rows import TrainingRows, visiting_order
from .workers import in_parallel

MAX_SHORTFALL = 0.05  # of the objective; accuracy hardly changes below

Report = Callable[[float, float], None]


@dataclass
class History:
    """What training went through.

    Attributes
    ----------
    loss : list of float
        For each epoch, the average loss per row and edge met on the way, before the update.
    seconds : list of float
        For each epoch, the time spent in it, added up over all blocks and workers; empty in a
        model that was loaded, as equal models have equal files.
    training_error : list of float
        Share of training rows whose class is wrong, where it was measured.
    validation_accuracy : list of float
        With early stopping: accuracy on the validation rows after each epoch.
    """

    loss: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    training_error: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)

    def to_parts(self) -> dict[str, list[float]]:
        """All but the seconds, for a model file."""
        return {name: values for name, values in vars(self).items() if name != "seconds"}


def run_epochs(
    step: Callable[[], float], n_epochs: int, stop: Callable[[float], bool]
) -> tuple[list[float], list[float]]:
    """Losses and seconds of up to ``n_epochs`` calls of ``step``.

    ``step`` trains for one epoch and returns its loss; ``stop`` is called with it afterwards, and
    says whether that was enough.
    """
    losses, seconds = [], []
    for _ in range(n_epochs):
        start = time.perf_counter()
        losses.append(step())
        seconds.append(time.perf_counter() - start)
        if stop(losses[-1]):
            break
    return losses, seconds


# ---------------------------------------------------------------------- one block


@dataclass
class RunningBlock:
    """A block in training: its rows, and the learner's state."""

    plan: Plan
    block: Block
    features: IntArray  # columns of the training rows that are the block's features
    learner: Learner
    state: Any
    rng: np.random.Generator

    @classmethod
    def start(cls, rows: TrainingRows, plan: Plan, learner: Learner, seed: int) -> RunningBlock:
        """A planned block before its first epoch."""
        block, features = make_block(rows, plan)
        rng = np.random.default_rng(seed)
        return cls(plan, block, features, learner, learner.start(block), rng)

    def run(
        self, members: IntArray, n_epochs: int, learner: Learner | None = None
    ) -> tuple[list[float], list[float]]:
        """Epochs over some rows of the block; losses and seconds of each."""
        learner = learner or self.learner
        return run_epochs(
            lambda: learner.step(self.block, self.state, visiting_order(members, self.rng)),
            n_epochs,
            lambda loss: learner.converged(self.state),
        )

    def start_again(self) -> None:
        """Forget what was learned."""
        self.state = self.learner.start(self.block)

    def finish_before(self, rows: TrainingRows, n_epochs: int, floor: float) -> FinishedBlock:
        """The weights after epochs without the held-out rows, near enough to judge them by."""
        held_out = rows.held_out if self.plan.rows is None else rows.held_out[self.plan.rows]
        self.run(np.flatnonzero(~held_out), n_epochs, self.learner.rough())
        return self.finish(rows, floor)

    def finish(
        self, rows: TrainingRows, floor: float = 0.0, threshold: float = 0.0
    ) -> FinishedBlock:
        """The weights as they are now, under the caller's numbers of features.

        Weights of at most the threshold, or ``floor`` times the largest, are dropped.
        """
        weights, bias = self.learner.finish(self.block, self.state)
        if floor and not isinstance(weights, list):
            threshold = max(threshold, floor * float(np.abs(weights).max(initial=0)))
        return finish_block(self.plan.edges, rows.features[self.features], weights, bias, threshold)


def train_block(
    rows: TrainingRows,
    plan: Plan,
    learner: Learner,
    epochs: int,
    seed: int,
    floor: float = 0.0,
    threshold: float = 0.0,
) -> BlockResult:
    """Train the edges of one block.

    If rows are held out, the first epochs do without them; then training continues (or, for an
    online learner, starts again) with all rows. Weights of at most the threshold, or ``floor``
    times the block's largest, are dropped.
    """
    running = RunningBlock.start(rows, plan, learner, seed)
    before = None
    if rows.holds_out:
        before = running.finish_before(rows, epochs, floor)
        if learner.online:
            running.start_again()
    losses, seconds = running.run(np.arange(running.block.n_rows), epochs)
    shortfall = learner.shortfall(running.block, running.state)
    finished = running.finish(rows, floor, threshold)
    return BlockResult(finished, before, losses, seconds, shortfall)


def train_block_before(
    rows: TrainingRows, plan: Plan, learner: Learner, epochs: int, seed: int, floor: float = 0.0
) -> FinishedBlock:
    """Train the edges of one block without the held-out rows."""
    return RunningBlock.start(rows, plan, learner, seed).finish_before(rows, epochs, floor)


# ---------------------------------------------------------------------- all blocks


@dataclass(frozen=True, eq=False)
class TrainedEdges:
    """Weights of all edges, and what is known of their training.

    Attributes
    ----------
    weights : EdgeWeights
    before : EdgeWeights or None
        The same, trained without the rows that are held out, if there are any.
    history : History
    """

    weights: EdgeWeights
    before: EdgeWeights | None
    history: History


def train_edges(
    trellis: Trellis,
    rows: TrainingRows,
    training: Training,
    learner: Learner,
    epochs: int | None,
    n_jobs: int | None,
    seed: int,
    report: Report | None = None,
    floor: float = 0.0,
) -> TrainedEdges:
    """Train every edge of the trellis.

    ``report`` is called after each block with its share of the work and its loss per epoch. Weights
    of at most ``floor`` times the largest of their block are dropped when the block is finished.
    """
    plans = plan_blocks(trellis, rows, training, learner)
    results = _train_blocks(rows, plans, learner, epochs, n_jobs, seed, report, floor)
    constants = constant_margins(trellis, rows)

    def weights_of(blocks: list[FinishedBlock]) -> EdgeWeights:
        weights = gathered(trellis, training, blocks, constants, rows.n_features)
        blocks.clear()  # so that no more than these are in memory twice
        return weights

    shortfalls = [(result.shortfall, len(result.finished.edges)) for result in results]
    warn_if_unconverged(learner, shortfalls, epochs)
    history = history_of(results, sum(_n_pairs(rows, plan) for plan in plans))
    finished = [result.finished for result in results]
    before = [result.before for result in results if result.before is not None]
    del results
    weights = weights_of(finished)
    return TrainedEdges(weights, weights_of(before) if before else None, history)


def warn_if_unconverged(
    learner: Learner, shortfalls: Sequence[tuple[float, int]], epochs: int | None
) -> None:
    """Say so, once, if the edges' objectives are on average far from their optimum.

    ``shortfalls`` has each block's share of the objective that is left, and its number of edges.
    """
    n_edges = sum(count for _, count in shortfalls)
    mean = sum(share * count for share, count in shortfalls) / max(n_edges, 1)
    if mean > max(MAX_SHORTFALL, getattr(learner, "tolerance", 0.0)):
        after = f" after {epochs} epochs" if epochs else ""
        warnings.warn(
            f"{type(learner).__name__} stopped{after} before it converged: its "
            f"objective could still fall by up to {mean:.0%}; raise epochs or lower C",
            ConvergenceWarning,
            stacklevel=2,
        )


def train_before(
    trellis: Trellis,
    rows: TrainingRows,
    training: Training,
    learner: Learner,
    epochs: int | None,
    n_jobs: int | None,
    seed: int,
    floor: float = 0.0,
) -> EdgeWeights:
    """Weights of every edge, trained without the held-out rows."""
    plans = plan_blocks(trellis, rows, training, learner)
    epochs = epochs or learner.passes(sum(plan.work for plan in plans) or 1.0)
    finished = in_parallel(
        train_block_before,
        rows,
        plans,
        lambda index: (learner, epochs, block_seed(seed, index), floor),
        n_jobs,
    )
    constants = constant_margins(trellis, rows)
    blocks = [block for _, block in finished]
    return gathered(trellis, training, blocks, constants, rows.n_features)


def _train_blocks(
    rows: TrainingRows,
    plans: Sequence[Plan],
    learner: Learner,
    epochs: int | None,
    n_jobs: int | None,
    seed: int,
    report: Report | None,
    floor: float,
) -> list[BlockResult]:
    """All blocks, trained side by side."""
    total_work = sum(plan.work for plan in plans) or 1.0
    epochs = epochs or learner.passes(total_work)
    results: dict[int, BlockResult] = {}
    for index, result in in_parallel(
        train_block,
        rows,
        plans,
        lambda index: (learner, epochs, block_seed(seed, index), floor),
        n_jobs,
    ):
        results[index] = result
        if report is not None:
            pairs = max(_n_pairs(rows, plans[index]), 1)
            report(plans[index].work / total_work, result.losses[-1] / pairs)
    return [results[index] for index in range(len(plans))]


class ResidentBlocks:
    """Blocks that all stay in memory between epochs: for early stopping.

    Holds a dense state for every block at once, features x edges x ``bytes_per_weight``.
    """

    def __init__(
        self,
        trellis: Trellis,
        rows: TrainingRows,
        training: Training,
        learner: Learner,
        n_jobs: int | None,
        seed: int,
    ) -> None:
        self.trellis, self.rows, self.training, self.n_jobs = trellis, rows, training, n_jobs
        self.plans = plan_blocks(trellis, rows, training, learner)
        self.running = [
            RunningBlock.start(rows, plan, learner, block_seed(seed, index))
            for index, plan in enumerate(self.plans)
        ]
        self.n_pairs = sum(_n_pairs(rows, plan) for plan in self.plans)

    def step(self) -> float:
        """One epoch over all blocks; the average loss per row and edge."""
        from joblib import Parallel, delayed

        def one(running: RunningBlock) -> float:
            losses, _ = running.run(np.arange(running.block.n_rows), 1)
            return losses[0]

        losses = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(one)(running) for running in self.running
        )
        return sum(losses) / max(1, self.n_pairs)

    def weights(self) -> EdgeWeights:
        """Weights of all edges as they are now."""
        finished = [running.finish(self.rows) for running in self.running]
        constants = constant_margins(self.trellis, self.rows)
        return gathered(self.trellis, self.training, finished, constants, self.rows.n_features)


def gathered(
    trellis: Trellis,
    training: Training,
    finished: Sequence[FinishedBlock],
    constants: Float32Array,
    n_features: int,
) -> EdgeWeights:
    """Weights of all edges: finished blocks vertex by vertex, or run by run.

    Edges that are in no block have the margins of ``constants``; but of an independently trained
    edge with a twin, the twin's.
    """
    groups = all_edge_groups(trellis, training)
    if training == "local":
        return gather_blocks(finished, groups, n_features, constants)
    trained = [block.edges for block in finished]
    edges, originals = trellis.twin_edges()
    left = ~np.isin(edges, _concatenated(trained))
    twins = edges[left], originals[left]
    rest = np.setdiff1d(np.arange(trellis.n_edges), _concatenated([*trained, twins[0]]))
    return gather_blocks(finished, [_concatenated([*trained, rest])], n_features, constants, twins)


def _concatenated(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate([np.empty(0, np.int64), *parts])


def constant_margins(trellis: Trellis, rows: TrainingRows) -> Float32Array:
    """Margins of edges with nothing to learn: +1 if all their rows take them, else -1."""
    positives = np.bincount(rows.path_edges[rows.path_edges >= 0], minlength=trellis.n_edges)
    return np.where(positives > 0, 1, -1).astype(np.float32)


def block_seed(seed: int, index: int) -> int:
    """Seed of a block, given that of all."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def _n_pairs(rows: TrainingRows, plan: Plan) -> int:
    """Number of examples of a block: its rows times its edges."""
    n_rows = len(rows.paths) if plan.rows is None else len(plan.rows)
    return n_rows * len(plan.edges)


def history_of(results: Sequence[BlockResult], n_pairs: int) -> History:
    """Losses and times of all blocks, epoch by epoch; ``n_pairs`` is their rows times edges."""
    history = History()
    for epoch in range(max((len(result.losses) for result in results), default=0)):
        # A block that converged earlier would have met its last loss again.
        loss = sum(result.losses[min(epoch, len(result.losses) - 1)] for result in results)
        history.loss.append(loss / max(n_pairs, 1))
        history.seconds.append(sum(sum(result.seconds[epoch : epoch + 1]) for result in results))
    return history
