"""Training: every block of edges is trained by itself, and their weights are put together.

Blocks share nothing that they write: threads train them side by side, and the result has the same
bits for any number of them. Only the blocks under way are held densely; of a finished block
only the non-zero weights are kept. (Joint training, which predicts whole paths, is in ``ltls.py``.)
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._arrays import Float32Array, IntArray
from .._checks import check_memory
from ..graph.trellis import Trellis
from ..model.weights import EdgeWeights, FinishedBlock, finish_block, join_blocks
from .blocks import MAX_EDGES, Plan, Training, make_block, plan_blocks, twin_edges, vertex_edges
from .learners import Block, Learner
from .rows import TrainingRows, visiting_order

BLOCK_BYTES = 96 * 2**20  # state of one block under way, if memory allows
MAX_SHORTFALL = 0.05  # of the objective; accuracy hardly changes below
SAMPLE_MARGINS = 16_000_000  # margins of held-out rows that are kept for calibration


# ---------------------------------------------------------------------- training a block


@dataclass(frozen=True)
class BlockResult:
    """What training a block gives: its weights, and the losses and seconds of each epoch.

    ``shortfall`` is the share of its objective that more epochs could still have removed.
    """

    finished: FinishedBlock
    losses: list[float]
    seconds: list[float]
    shortfall: float = 0.0


def train_block(
    rows: TrainingRows,
    plan: Plan,
    n_edges: int,
    learner: Learner,
    epochs: int,
    seed: int,
    sample: IntArray,
    sample_margins: Float32Array,
) -> BlockResult:
    """Train the edges of one block for some epochs.

    If rows are held out, the first epochs do without them; the margins of a sample of them are
    put into ``sample_margins``, a column an edge of the trellis, and then training goes on (or, for
    an online learner, starts again) with all rows.
    """
    block, features = make_block(rows, plan, n_edges)
    rng = np.random.default_rng(seed)
    held_out = rows.held_out if plan.rows is None else rows.held_out[plan.rows]
    state = learner.start(block)
    if len(sample):
        _run(block, learner, state, np.flatnonzero(~held_out), epochs, rng)
        margins = np.empty((len(sample), block.n_edges), np.float32)
        _sample_margins(rows, features, sample, *learner.finish(block, state), margins)
        sample_margins[:, plan.edges] = margins
        if learner.online:
            state = learner.start(block)
    losses, seconds = _run(block, learner, state, np.arange(block.n_rows), epochs, rng)
    finished = finish_block(plan.edges, rows.features[features], *learner.finish(block, state))
    return BlockResult(finished, losses, seconds, learner.shortfall(block, state))


def _sample_margins(
    rows: TrainingRows,
    features: IntArray,
    sample: IntArray,
    weights: Any,
    bias: Any,
    margins: Float32Array,
) -> None:
    """Margins of the sampled rows, which need not be rows of the block."""
    from ..kernels import margins as kernels

    if isinstance(weights, list):
        X = rows.X[sample][:, features]
        for j, estimator in enumerate(weights):
            constant = isinstance(estimator, float)
            margins[:, j] = estimator if constant else estimator.decision_function(X)
        return
    place = np.full(rows.X.shape[1], -1, np.int32)
    place[features] = np.arange(len(features))
    kernels.block_margins(
        rows.X.indptr,
        rows.X.indices,
        rows.X.data,
        sample,
        place,
        np.ascontiguousarray(weights, np.float32),
        np.asarray(bias, np.float32),
        margins,
    )


def _run(
    block: Block,
    learner: Learner,
    state: Any,
    rows: IntArray,
    epochs: int,
    rng: np.random.Generator,
) -> tuple[list[float], list[float]]:
    """Epochs over some rows; losses and seconds of each."""
    losses, seconds = [], []
    for _ in range(epochs):
        start = time.perf_counter()
        losses.append(learner.step(block, state, visiting_order(rows, rng)))
        seconds.append(time.perf_counter() - start)
        if learner.converged(state):
            break
    return losses, seconds


# ---------------------------------------------------------------------- training all of them


@dataclass
class History:
    """What training went through.

    Attributes
    ----------
    loss : list of float
        For each epoch, the average loss of a row and edge met on the way, before the update.
    seconds : list of float
        For each epoch, the time spent in it, added up over all blocks and workers.
    training_error : list of float
        Share of training rows whose class is wrong, where it was measured.
    validation_accuracy : list of float
        With early stopping: accuracy on the validation rows after each epoch.
    """

    loss: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    training_error: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class TrainedEdges:
    """Weights of all edges, the history, and the margins of some rows that were held out."""

    weights: EdgeWeights
    history: History
    sample: IntArray
    sample_margins: Float32Array


def train_edges(
    trellis: Trellis,
    rows: TrainingRows,
    training: Training,
    learner: Learner,
    epochs: int | None,
    n_jobs: int | None,
    seed: int,
    n_features: int,
    max_memory: float | None = None,
    report: Callable[[float, float], None] | None = None,
) -> TrainedEdges:
    """Train every edge of the trellis.

    ``report`` is called after each block with its share of the work and its loss an epoch.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    block_bytes, n_workers = _block_budget(rows, learner, effective_n_jobs(n_jobs), max_memory)
    plans = plan_blocks(trellis, rows, training, learner, block_bytes)
    total_work = sum(plan.work for plan in plans) or 1.0
    epochs = epochs or learner.passes(total_work)
    # Largest first, so that no worker is left with a large one at the end.
    order = sorted(range(len(plans)), key=lambda index: -plans[index].work)
    sample = _calibration_sample(trellis, rows, max_memory)
    margins = np.empty((len(sample), trellis.n_edges), np.float32)
    results: list[BlockResult | None] = [None] * len(plans)
    kept_bytes = 0
    parallel = Parallel(n_jobs=n_workers, require="sharedmem", return_as="generator")
    jobs = (
        delayed(train_block)(
            rows,
            plans[index],
            trellis.n_edges,
            learner,
            epochs,
            _block_seed(seed, index),
            sample,
            margins,
        )
        for index in order
    )
    for index, result in zip(order, parallel(jobs), strict=True):
        results[index] = result
        kept_bytes += result.finished.nbytes
        if max_memory is not None and rows.nbytes + kept_bytes > max_memory:
            raise MemoryError(
                f"finished weights have grown to {kept_bytes / 2**20:.0f} MB: with the training "
                f"rows more than max_memory ({max_memory / 2**20:.0f} MB); use a smaller "
                f"slice_width, fewer features or a larger max_memory"
            )
        if report is not None:
            members = plans[index].rows
            n_rows = len(rows.weights) if members is None else len(members)
            pairs = max(n_rows * len(plans[index].edges), 1)
            report(plans[index].work / total_work, result.losses[-1] / pairs)
    done = [result for result in results if result is not None]
    warn_if_unconverged(learner, [(r.shortfall, len(r.finished.edges)) for r in done], epochs)
    weights = join_blocks([result.finished for result in done], n_features, trellis.n_edges, n_jobs)
    _set_constants(weights, trellis, rows, training, plans)
    constant = np.ones(trellis.n_edges, bool)
    for plan in plans:
        constant[plan.edges] = False
    margins[:, constant] = weights.bias[constant]
    margins[:, weights.twins[0]] = margins[:, weights.twins[1]]
    return TrainedEdges(weights, _history(plans, done, rows), sample, margins)


def warn_if_unconverged(
    learner: Learner, shortfalls: Sequence[tuple[float, int]], epochs: int
) -> None:
    """Say so, once, if the edges' objectives are on average far from their optimum.

    ``shortfalls`` has each block's share of the objective that is left, and its number of edges.
    """
    n_edges = sum(count for _, count in shortfalls)
    mean = sum(share * count for share, count in shortfalls) / max(n_edges, 1)
    if mean > MAX_SHORTFALL:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{type(learner).__name__} stopped after {epochs} epochs before it converged: its "
            f"objective could still fall by up to {mean:.0%}; raise epochs or lower C",
            ConvergenceWarning,
            stacklevel=2,
        )


def _calibration_sample(
    trellis: Trellis, rows: TrainingRows, max_memory: float | None = None
) -> IntArray:
    """Held-out rows whose margins are kept, enough to fit a few numbers.

    If memory is bounded, no more than fit into an eighth of what the rows leave, but for fifty.
    """
    size = int(np.clip(SAMPLE_MARGINS // trellis.n_edges, 200, 2_000))
    if max_memory is not None:
        size = min(size, max(50, int((max_memory - rows.nbytes) / 8 // (4 * trellis.n_edges))))
    return np.flatnonzero(rows.held_out)[:size]


class ResidentBlocks:
    """Blocks that all stay in memory between epochs: for early stopping.

    Holds a dense state for every block at once, features x edges x ``bytes_a_weight``.
    """

    def __init__(
        self,
        trellis: Trellis,
        rows: TrainingRows,
        training: Training,
        learner: Learner,
        n_jobs: int | None,
        seed: int,
        n_features: int,
        max_memory: float | None = None,
    ) -> None:
        self.trellis, self.rows, self.training = trellis, rows, training
        self.learner, self.n_jobs, self.n_features = learner, n_jobs, n_features
        self.plans = plan_blocks(trellis, rows, training, learner, BLOCK_BYTES)
        self.blocks = [make_block(rows, plan, trellis.n_edges) for plan in self.plans]
        weights = sum(block.n_features * block.n_edges for block, _ in self.blocks)
        duals = sum(block.n_rows * block.n_edges for block, _ in self.blocks)
        check_memory(
            rows.nbytes + weights * learner.bytes_a_weight + duals * learner.bytes_a_row,
            max_memory,
            "early stopping, which keeps all blocks between epochs,",
        )
        self.states = [learner.start(block) for block, _ in self.blocks]
        seeds = [_block_seed(seed, index) for index in range(len(self.plans))]
        self.generators = [np.random.default_rng(block_seed) for block_seed in seeds]

    def step(self) -> float:
        """One epoch over all blocks; the average loss of a row and edge."""
        from joblib import Parallel, delayed

        def one(index: int) -> float:
            block, _ = self.blocks[index]
            order = visiting_order(np.arange(block.n_rows), self.generators[index])
            return self.learner.step(block, self.states[index], order)

        losses = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(one)(index) for index in range(len(self.blocks))
        )
        return sum(losses) / max(1, sum(block.n_rows * block.n_edges for block, _ in self.blocks))

    def weights(self) -> EdgeWeights:
        """Weights of all edges as they are now."""
        finished = [
            finish_block(
                plan.edges, self.rows.features[features], *self.learner.finish(block, state)
            )
            for plan, (block, features), state in zip(
                self.plans, self.blocks, self.states, strict=True
            )
        ]
        weights = join_blocks(finished, self.n_features, self.trellis.n_edges, self.n_jobs)
        _set_constants(weights, self.trellis, self.rows, self.training, self.plans)
        return weights


class OnlineBlocks:
    """Blocks that learn from one batch of rows after another: for ``partial_fit``.

    Which features and classes will come is not known, so every state is over all features: in all,
    features x edges x ``bytes_a_weight``. States are made when their first row arrives.
    """

    def __init__(
        self,
        trellis: Trellis,
        training: Training,
        learner: Learner,
        n_features: int,
        fitted: EdgeWeights | None = None,
    ) -> None:
        self.trellis, self.training = trellis, training
        self.learner, self.n_features = learner, n_features
        self.fitted = fitted  # weights to go on from
        self.untouched: dict[tuple[int, ...], FinishedBlock] = {}  # of those, not learned since
        self.states: dict[tuple[int, ...], tuple[Block, Any]] = {}

    def learn(self, rows: TrainingRows) -> float:
        """Visit each row once; the average loss of a row and edge."""
        loss, pairs = 0.0, 0
        for edges, members in self._blocks(rows):
            block = self._block(rows, edges, members)
            key = (int(edges[0]), int(edges[-1]))
            if key in self.states:
                state = self.states[key][1]
            elif self.fitted is None:
                state = self.learner.start(block)
            else:
                columns, biases = self.fitted.columns(edges), self.fitted.biases(edges)
                state = self.learner.resume(block, columns, biases)
                self.untouched.pop(key, None)
            self.states[key] = (block, state)
            loss += self.learner.step(block, state, np.arange(block.n_rows))
            pairs += block.n_rows * block.n_edges
        return loss / max(pairs, 1)

    def weights(self) -> EdgeWeights:
        """Weights of all edges as they are now; an edge without rows has a margin of -1."""
        features = np.arange(self.n_features)
        finished = [
            finish_block(np.asarray(self._edges[key]), features, *self.learner.finish(*pair))
            for key, pair in self.states.items()
        ]
        if self.fitted is not None:
            for key, edges in self._edges.items():
                if key not in self.states and key not in self.untouched:
                    columns, biases = self.fitted.columns(edges), self.fitted.biases(edges)
                    self.untouched[key] = finish_block(edges, features, columns, biases)
            finished += self.untouched.values()
        weights = join_blocks(finished, self.n_features, self.trellis.n_edges)
        if self.fitted is None:
            untrained = np.ones(self.trellis.n_edges, bool)
            for key in self.states:
                untrained[self._edges[key]] = False
            weights.bias[untrained] = -1
        return weights

    @property
    def _edges(self) -> dict[tuple[int, ...], IntArray]:
        return {(int(e[0]), int(e[-1])): e for e in self._all_edges()}

    def _all_edges(self) -> Iterator[IntArray]:
        if self.training == "independent":
            yield from np.array_split(
                np.arange(self.trellis.n_edges), -(-self.trellis.n_edges // MAX_EDGES)
            )
            return
        for i in range(-1, self.trellis.n_slices):
            for v in range(1 if i < 0 else self.trellis.slice_sizes[i]):
                yield vertex_edges(self.trellis, i, v)

    def _blocks(self, rows: TrainingRows) -> Iterator[tuple[IntArray, IntArray]]:
        if self.training == "independent":
            for edges in self._all_edges():
                yield edges, np.arange(len(rows.weights))
            return
        for i in range(-1, self.trellis.n_slices):
            here = np.zeros(len(rows.weights), np.int32) if i < 0 else rows.path_vertices[:, i]
            for v in np.unique(here[here >= 0]):
                yield vertex_edges(self.trellis, i, int(v)), np.flatnonzero(here == v)

    def _block(self, rows: TrainingRows, edges: IntArray, members: IntArray) -> Block:
        X = rows.X[members]
        local_edge = np.full(self.trellis.n_edges + 1, -1, np.int32)
        local_edge[edges] = np.arange(len(edges))
        targets = np.ascontiguousarray(local_edge[rows.path_edges[members]])
        return Block(
            X.indptr, X.indices, X.data, targets, rows.weights[members], self.n_features, len(edges)
        )


def _block_seed(seed: int, index: int) -> int:
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def _block_budget(
    rows: TrainingRows, learner: Learner, n_workers: int, max_memory: float | None
) -> tuple[float, int]:
    """Bytes that each block under way may take, and how many workers there is room for.

    The blocks, and so the result, do not depend on the number of workers.
    """
    n_rows, n_features = rows.X.shape
    one_edge = n_features * learner.bytes_a_weight + n_rows * learner.bytes_a_row
    if max_memory is None:
        return BLOCK_BYTES, n_workers
    left = max_memory - rows.nbytes
    if left < one_edge:
        needed = rows.nbytes + one_edge
        raise MemoryError(
            f"max_memory is {max_memory / 2**20:.1f} MB, but training takes at least "
            f"{needed / 2**20:.1f} MB: {rows.nbytes / 2**20:.1f} for the rows and "
            f"{one_edge / 2**20:.2f} for an edge; raise max_memory or use fewer features"
        )
    budget = max(min(BLOCK_BYTES, left / 4), one_edge)
    return budget, min(n_workers, max(1, int(left / 2 // budget)))


def _set_constants(
    weights: EdgeWeights,
    trellis: Trellis,
    rows: TrainingRows,
    training: Training,
    plans: Sequence[Plan],
) -> None:
    """Margins of edges that had nothing to learn: +1 if all their rows take them, else -1."""
    planned = np.zeros(trellis.n_edges, bool)
    for plan in plans:
        planned[plan.edges] = True
    if training == "independent":
        weights.twins = twin_edges(trellis)
        planned[weights.twins[0]] = True
    positives = np.bincount(rows.path_edges[rows.path_edges >= 0], minlength=trellis.n_edges)
    weights.bias[~planned] = np.where(positives[~planned] > 0, 1, -1)


def _history(plans: Sequence[Plan], results: Sequence[BlockResult], rows: TrainingRows) -> History:
    """Losses and times of all blocks, epoch by epoch."""
    history = History()
    for epoch in range(max((len(result.losses) for result in results), default=0)):
        loss, pairs, seconds = 0.0, 0, 0.0
        for plan, result in zip(plans, results, strict=True):
            n_rows = len(rows.weights) if plan.rows is None else len(plan.rows)
            # A block that converged earlier would have met its last loss again.
            loss += result.losses[min(epoch, len(result.losses) - 1)]
            pairs += n_rows * len(plan.edges)
            seconds += result.seconds[epoch] if epoch < len(result.seconds) else 0.0
        history.loss.append(loss / max(pairs, 1))
        history.seconds.append(seconds)
    return history
