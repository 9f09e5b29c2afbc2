"""Training: the edges are cut into blocks, and each block is trained by itself.

Three ways to train, one mechanism. A block is some edges and the rows they learn from:

* ``independent`` (the paper): every edge learns from every row, +1 if it is on the path of the
  row's class and -1 if not. Blocks are runs of edges.
* ``local`` (the default): an edge learns only from rows whose path visits its tail vertex, +1 if
  the path takes it and -1 if it takes another edge there. One block a vertex.

(The third, ``joint``, trains all edges by predicting whole paths: see ``ltls.py``.)

Blocks share nothing that they write: threads train them side by side, and the result has the same
bits for any number of them. Only the blocks under way are held densely; of a finished block
only the non-zero weights are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .learners import Block, Float32Array, Learner
from .trellis import IntArray, Trellis
from .weights import EdgeWeights, FinishedBlock, finish_block, join_blocks

Training = Literal["independent", "local"]

BLOCK_BYTES = 96 * 2**20  # state of one block under way, if memory allows
MAX_EDGES = 256  # of a block: wider ones gain nothing
_CHUNK = 64  # rows that are visited together; see visiting_order


# ---------------------------------------------------------------------- rows


@dataclass(frozen=True)
class TrainingRows:
    """Training rows as the blocks want them: shuffled, and over the features they contain.

    Attributes
    ----------
    X : csr_matrix of float32
        Rows in a random order; features renumbered, the most frequent first, so that the weights
        used most lie together.
    features : ndarray of int64
        What the features were called before.
    path_edges : ndarray of int32, shape (n, n_slices + 1)
        Edges of each row's path, filled up with -1.
    path_vertices : ndarray of int32, shape (n, n_slices)
    weights : ndarray of float32, shape (n,)
        How much each row counts.
    held_out : ndarray of bool, shape (n,)
        Rows whose margins are wanted from weights trained without them, to fit a temperature.
    """

    X: Any
    features: IntArray
    path_edges: npt.NDArray[np.int32]
    path_vertices: npt.NDArray[np.int32]
    weights: Float32Array
    held_out: npt.NDArray[np.bool_]

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""
        return int(
            self.X.data.nbytes
            + self.X.indices.nbytes
            + self.X.indptr.nbytes
            + self.path_edges.nbytes
            + self.path_vertices.nbytes
        )


def prepare_rows(
    trellis: Trellis,
    X: Any,
    paths: IntArray,
    weights: Float32Array,
    held_out: npt.NDArray[np.bool_],
    rng: np.random.RandomState,
) -> TrainingRows:
    """Shuffle the rows, drop features that no row has, and number the others by frequency."""
    from scipy import sparse

    shuffled = rng.permutation(X.shape[0])
    X = X[shuffled]
    paths = paths[shuffled]
    counts = np.bincount(X.indices, minlength=X.shape[1])
    features = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    place = np.zeros(X.shape[1], X.indices.dtype)
    place[features] = np.arange(len(features))
    renumbered = sparse.csr_matrix(
        (X.data, place[X.indices], X.indptr), (len(paths), len(features))
    )
    return TrainingRows(
        renumbered,
        features,
        trellis.path_edges(paths).astype(np.int32),
        trellis.path_vertices(paths).astype(np.int32),
        np.ascontiguousarray(weights[shuffled]),
        held_out[shuffled],
    )


def visiting_order(rows: IntArray, rng: np.random.Generator) -> IntArray:
    """These rows in a new random order, in which short runs of neighbours stay together.

    The rows lie in a random order already; moving chunks of them keeps the processor's caches
    warm, where a fresh permutation of single rows would take twice the time.
    """
    n_chunks = -(-len(rows) // _CHUNK)
    starts = _CHUNK * rng.permutation(n_chunks)
    order = (starts[:, np.newaxis] + rng.permutation(_CHUNK)).ravel()
    return rows[order[order < len(rows)]]


# ---------------------------------------------------------------------- blocks


@dataclass(frozen=True)
class Plan:
    """A block to come: its edges, and which rows they learn from (None: all of them)."""

    edges: IntArray
    rows: IntArray | None = None
    work: float = 0.0


def plan_blocks(
    trellis: Trellis, rows: TrainingRows, training: Training, learner: Learner, block_bytes: float
) -> list[Plan]:
    """Blocks of all edges that have something to learn."""
    if training == "independent":
        return list(_independent_blocks(trellis, rows, learner, block_bytes))
    return list(_local_blocks(trellis, rows, learner, block_bytes))


def _independent_blocks(
    trellis: Trellis, rows: TrainingRows, learner: Learner, block_bytes: float
) -> Iterator[Plan]:
    """Runs of edges, each trained on all rows."""
    n_rows, n_features = rows.X.shape
    positives = np.bincount(rows.path_edges[rows.path_edges >= 0], minlength=trellis.n_edges)
    twins, _ = twin_edges(trellis)
    wanted = (positives > 0) & (positives < n_rows)
    wanted[twins] = False
    edges = np.flatnonzero(wanted)
    for part in _parts(edges, n_features, n_rows, learner, block_bytes):
        yield Plan(part, None, work=rows.X.nnz * len(part))


def _local_blocks(
    trellis: Trellis, rows: TrainingRows, learner: Learner, block_bytes: float
) -> Iterator[Plan]:
    """For every vertex with a choice, its edges, on the rows that pass it."""
    sizes = (*trellis.slice_sizes, 0)
    lengths = np.diff(rows.X.indptr)
    for i in range(-1, trellis.n_slices):
        here = np.zeros(len(rows.weights), np.int32) if i < 0 else rows.path_vertices[:, i]
        by_vertex = np.argsort(here, kind="stable")
        cuts = np.searchsorted(here[by_vertex], np.arange((1 if i < 0 else sizes[i]) + 1))
        for v, (start, stop) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
            members = by_vertex[start:stop]
            taken = rows.path_edges[members, i + 1]
            if len(members) == 0 or (taken == taken[0]).all():
                continue  # nothing to tell apart
            edges = vertex_edges(trellis, i, v)
            n_nonzeros = int(lengths[members].sum())
            n_features = min(n_nonzeros, rows.X.shape[1])
            for part in _parts(edges, n_features, len(members), learner, block_bytes):
                yield Plan(part, members, work=n_nonzeros * len(part))


def vertex_edges(trellis: Trellis, index: int, vertex: int) -> IntArray:
    """Edges that leave one vertex of slice ``index`` (-1: the source), its exit last.

    >>> vertex_edges(Trellis(9, 2), 0, 0)
    array([ 2,  3, 13])
    """
    if index < 0:
        return np.arange(trellis.slice_width)
    size = (*trellis.slice_sizes, 0)[index + 1]
    edges = trellis.inner_start(index) + vertex * size + np.arange(size)
    if vertex < trellis.digits[index]:
        edges = np.append(edges, trellis.exit_start(index) + vertex)
    return edges


def twin_edges(trellis: Trellis) -> tuple[IntArray, IntArray]:
    """Edges with the same column in the coding matrix as another one, and those others.

    A vertex with one way in and one way out has twins on its two sides. There are such in slice
    0 of graphs where the second slice is the last and has one vertex: K < 2b, one-vs-rest above all.

    >>> twin_edges(Trellis(4, 4))
    (array([4, 5, 6, 7]), array([0, 1, 2, 3]))
    """
    if trellis.n_slices > 2 or trellis.digits[1] > 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    vertices = np.arange(trellis.digits[0], trellis.slice_width)
    return trellis.inner_start(0) + vertices, vertices


def _parts(
    edges: IntArray, n_features: int, n_rows: int, learner: Learner, block_bytes: float
) -> list[IntArray]:
    """The edges in equal parts, each with a state of at most ``block_bytes``, or one edge."""
    an_edge = n_features * learner.bytes_a_weight + n_rows * learner.bytes_a_row
    width = int(np.clip(block_bytes // max(an_edge, 1), 1, MAX_EDGES))
    return np.array_split(edges, -(-len(edges) // width)) if len(edges) else []


def make_block(rows: TrainingRows, plan: Plan, n_edges: int) -> tuple[Block, IntArray]:
    """Rows and targets of a planned block, and what its features are called in ``rows``."""
    from .kernels import margins as kernels

    X, members = rows.X, plan.rows
    local_edge = np.full(n_edges + 1, -1, np.int32)  # the last one stands for "no edge"
    local_edge[plan.edges] = np.arange(len(plan.edges))
    if members is None:
        targets = np.sort(local_edge[rows.path_edges], axis=1)[:, ::-1]
        used = max(1, int((targets >= 0).sum(axis=1).max()))
        targets = np.ascontiguousarray(targets[:, :used])
        features = np.arange(X.shape[1])
        indptr, indices, data, weights = X.indptr, X.indices, X.data, rows.weights
    else:
        targets = local_edge[rows.path_edges[members]].max(axis=1, keepdims=True)
        n_nonzeros = int((X.indptr[members + 1] - X.indptr[members]).sum())
        indptr = np.empty(len(members) + 1, np.int64)
        indices, data = np.empty(n_nonzeros, np.int32), np.empty(n_nonzeros, np.float32)
        features = np.empty(min(n_nonzeros, X.shape[1]), np.int64)
        local = np.full(X.shape[1], -1, np.int32)
        n_features = kernels.gather_rows(
            X.indptr, X.indices, X.data, members, local, indptr, indices, data, features
        )
        features, weights = features[:n_features], rows.weights[members]
    return Block(indptr, indices, data, targets, weights, len(features), len(plan.edges)), features


# ---------------------------------------------------------------------- training a block


@dataclass(frozen=True)
class BlockResult:
    """What training a block gives: its weights, its losses, and margins of rows held out."""

    finished: FinishedBlock
    losses: list[float]
    seconds: list[float]
    held_out_rows: IntArray
    held_out_margins: Float32Array


def train_block(
    rows: TrainingRows, plan: Plan, n_edges: int, learner: Learner, epochs: int, seed: int
) -> BlockResult:
    """Train the edges of one block for some epochs.

    If rows are held out, the first epochs do without them; their margins are taken, and then
    training goes on (or, for an online learner, starts again) with all rows.
    """
    from .kernels import margins as kernels

    block, features = make_block(rows, plan, n_edges)
    rng = np.random.default_rng(seed)
    everyone = np.arange(block.n_rows)
    members = everyone if plan.rows is None else plan.rows
    held_out = rows.held_out[members]
    rows_out = np.flatnonzero(held_out)
    margins = np.empty((len(rows_out), block.n_edges), np.float32)
    state = learner.start(block)
    if len(rows_out):
        _run(block, learner, state, np.flatnonzero(~held_out), epochs, rng)
        weights, bias = learner.finish(block, state)
        if isinstance(weights, list):
            for j, estimator in enumerate(weights):
                margins[:, j] = (
                    estimator
                    if isinstance(estimator, float)
                    else estimator.decision_function(block.csr[rows_out])
                )
        else:
            kernels.block_margins(
                block.indptr,
                block.indices,
                block.data,
                rows_out,
                np.ascontiguousarray(weights, np.float32),
                np.asarray(bias, np.float32),
                margins,
            )
        if learner.online:
            state = learner.start(block)
    losses, seconds = _run(block, learner, state, everyone, epochs, rng)
    finished = finish_block(plan.edges, rows.features[features], *learner.finish(block, state))
    return BlockResult(finished, losses, seconds, members[rows_out], margins)


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
    """Weights of all edges, the history, and the margins of rows that were held out."""

    weights: EdgeWeights
    history: History
    plans: list[Plan]
    results: list[BlockResult]


def train_edges(
    trellis: Trellis,
    rows: TrainingRows,
    training: Training,
    learner: Learner,
    epochs: int,
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

    n_workers = effective_n_jobs(n_jobs)
    block_bytes = _block_budget(rows, learner, n_workers, max_memory)
    plans = plan_blocks(trellis, rows, training, learner, block_bytes)
    total_work = sum(plan.work for plan in plans) or 1.0
    # Largest first, so that no worker is left with a large one at the end.
    order = sorted(range(len(plans)), key=lambda index: -plans[index].work)
    results: list[BlockResult | None] = [None] * len(plans)
    kept_bytes = 0
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    jobs = (
        delayed(train_block)(
            rows, plans[index], trellis.n_edges, learner, epochs, _block_seed(seed, index)
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
            report(plans[index].work / total_work, result.losses[-1] / max(plans[index].work, 1))
    done = [result for result in results if result is not None]
    weights = join_blocks(
        [result.finished for result in done], n_features, trellis.n_edges, max_memory or np.inf
    )
    _set_constants(weights, trellis, rows, training, plans)
    return TrainedEdges(weights, _history(plans, done, rows), plans, done)


def _block_seed(seed: int, index: int) -> int:
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def _block_budget(
    rows: TrainingRows, learner: Learner, n_workers: int, max_memory: float | None
) -> float:
    """Bytes that each block under way may take, or a MemoryError if even one edge is too many."""
    n_rows, n_features = rows.X.shape
    one_edge = n_features * learner.bytes_a_weight + n_rows * learner.bytes_a_row
    if max_memory is None:
        return BLOCK_BYTES
    left = max_memory - rows.nbytes
    if left < n_workers * one_edge:
        needed = rows.nbytes + n_workers * one_edge
        raise MemoryError(
            f"max_memory is {max_memory / 2**20:.1f} MB, but training takes at least "
            f"{needed / 2**20:.1f} MB: {rows.nbytes / 2**20:.1f} for the rows and "
            f"{one_edge / 2**20:.2f} for each of {n_workers} workers; raise max_memory or use "
            f"fewer workers or features"
        )
    return min(BLOCK_BYTES, left / 2 / n_workers)


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
