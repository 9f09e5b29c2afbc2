"""Training from rows on disk: the model of rows in memory, in a part of their memory.

All rows pass the source. The SVMs of its edges are solved by block minimisation over the shards
(``learners.streamed_svm``), some edges at a time if the dual variables of all of them would take
too much memory. A vertex of a later slice sees a part of the rows only. These are spilled by vertex
once, and its block is then read whole and trained as in memory; a vertex with too many rows for
that is solved piece by piece, as the source is.

What is in memory at a time: one shard, the state of the blocks under way, finished blocks, and some
20 bytes per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray
from .._memory import release_memory
from ..graph.trellis import Trellis
from ..model.finished_block import FinishedBlock, finish_block
from ..model.weights import EdgeWeights
from .blocks import BLOCK_BYTES, BlockResult, Plan, edge_parts
from .checkpoint import Stage, stage_for
from .cluster import stop_if_unwanted
from .learners import LinearSVM
from .learners.streamed_svm import Parts, StreamedBlock, StreamedSVM
from .learners.svm import MAX_ROUNDS
from .room import FinishedBlocks, Room
from .rows import TrainingRows
from .stored_rows import SpilledParts, StoredRows, spill
from .training import (
    Report,
    TrainedEdges,
    block_seed,
    gathered,
    history_of,
    run_epochs,
    train_block,
    warn_if_unconverged,
)
from .workers import closed_quietly

_STATE = 10  # shares of the memory, for the state of one block
_WHOLE = 2  # for the rows of a block that is trained in memory
_ROWS = 24  # bytes per non-zero of a block in memory, with copies
_FINISHED = 12  # for finished blocks: joined, pruned and looked up they take some times as much


@dataclass(frozen=True, eq=False)
class DiskRows:
    """Rows on disk with what is known of each: its class, and whether it is held out.

    Attributes
    ----------
    stored : StoredRows
    y_encoded : ndarray of int64, shape (n,)
    class_weights : ndarray of float32, shape (n_classes,)
        How much a row of each class counts.
    held_out : ndarray of bool, shape (n,)
        Rows that the weights are first trained without.
    """

    stored: StoredRows
    y_encoded: IntArray
    class_weights: Float32Array
    held_out: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Setting:
    """How to train, and in how much memory."""

    learner: LinearSVM
    epochs: int | None
    n_jobs: int | None
    seed: int
    floor: float
    memory: int
    report: Report | None = None


def train_edges_from_disk(
    trellis: Trellis, rows: DiskRows, path_of_class: IntArray, setting: Setting
) -> tuple[TrainedEdges, float]:
    """Train every edge of a trellis locally, as :func:`~.training.train_edges` does in memory.

    Also the size up to which weights were dropped because they would have taken too much memory.
    Only for the SVM: its optimum does not depend on the order in which rows are visited.
    """
    job = _Job(trellis, rows, path_of_class, setting)
    job.train_source()
    for index in range(trellis.n_slices):
        job.train_slice(index)
    return job.trained(), max(job.after.threshold, job.before.threshold)


# ---------------------------------------------------------------------- blocks


class _Job:
    """One training: what is to be done, and what is finished."""

    def __init__(
        self, trellis: Trellis, rows: DiskRows, path_of_class: IntArray, setting: Setting
    ) -> None:
        self.trellis, self.rows, self.setting = trellis, rows, setting
        self.path_of_class = path_of_class
        self.edges_of_class = trellis.path_edges(path_of_class).astype(np.int32)
        self.vertices_of_class = trellis.path_vertices(path_of_class).astype(np.int32)
        self.class_sizes = np.bincount(rows.y_encoded, minlength=len(path_of_class))
        self.room = Room(setting.memory / 2)
        self.after = FinishedBlocks(setting.memory / _FINISHED)
        self.before = FinishedBlocks(setting.memory / _FINISHED)
        rounds = setting.epochs or MAX_ROUNDS
        svm = setting.learner
        self.streamed = StreamedSVM(svm.C, svm.tolerance, svm.unit, rounds=rounds)
        self.results: list[BlockResult] = []  # without their weights
        self.shortfalls: list[tuple[float, int]] = []
        self.n_pairs = 0
        self.n_blocks = 0
        n_trained = sum(bool((self.vertices_of_class[:, i] >= 0).any()) for i in self._slices())
        self.total_work = max(1.0, rows.stored.n_values) * trellis.slice_width * max(1, n_trained)
        self.epochs = setting.epochs or setting.learner.passes(self.total_work)

    def _slices(self) -> range:
        return range(self.trellis.n_slices)

    # .................................................................. the source

    def train_source(self) -> None:
        """The edges that leave the source, which learn from all rows."""
        edges = self.trellis.vertex_edges(-1, 0)
        stored = self.rows.stored
        if np.count_nonzero(self._rows_of_edges()[edges]) < 2:
            return
        parts = self._parts(edges, len(stored.features), stored.n_rows)
        work = float(stored.n_values)
        self._run([(part, work * len(part), self._source_task(part)) for part in parts])

    def _source_task(self, edges: IntArray) -> Callable[[], BlockResult]:
        seed, rows = self._next_seed(), self.rows
        n_bytes = self._state_bytes(len(edges), len(rows.stored.features), rows.stored.n_rows)

        def task() -> BlockResult:
            with self.room.taken(n_bytes):
                taken = self.edges_of_class[:, 0][rows.y_encoded]
                return self._streamed(edges, rows.stored, taken, None, seed)

        return task

    # .................................................................. later slices

    def train_slice(self, index: int) -> None:
        """The edges that leave the vertices of a slice."""
        vertex_of_class = self.vertices_of_class[:, index]
        size = self.trellis.slice_sizes[index]
        chosen = self._vertices_with_a_choice(index, size)
        if not chosen.any():
            return
        wanted = np.where(vertex_of_class >= 0, vertex_of_class, size).astype(np.int32)
        wanted = np.where(np.append(chosen, False)[wanted], wanted, -1).astype(np.int32)
        vertices = wanted[self.rows.y_encoded]
        spilled = spill(self.rows.stored, vertices, size)
        try:
            self._run(
                [
                    task
                    for vertex in np.flatnonzero(chosen).tolist()
                    for task in self._vertex_tasks(index, vertex, vertices, spilled.pieces(vertex))
                ]
            )
        finally:
            spilled.close()

    def _vertices_with_a_choice(self, index: int, size: int) -> npt.NDArray[np.bool_]:
        """Vertices whose rows do not all take the same edge."""
        counts = self._rows_of_edges()
        return np.array(
            [
                np.count_nonzero(counts[self.trellis.vertex_edges(index, vertex)]) > 1
                for vertex in range(size)
            ]
        )

    def _vertex_tasks(
        self, index: int, vertex: int, vertices: npt.NDArray[np.int32], parts: SpilledParts
    ) -> Iterator[tuple[IntArray, float, Callable[[], BlockResult]]]:
        stored = self.rows.stored
        own = vertices == vertex
        n_rows, n_values = int(own.sum()), int(stored.lengths[own].sum(dtype=np.int64))
        n_features = min(n_values, len(stored.features))
        edges = self.trellis.vertex_edges(index, vertex)
        whole = _ROWS * n_values <= self.setting.memory / _WHOLE
        for part in self._parts(edges, n_features, n_rows):
            seed = self._next_seed()
            n_bytes = self._state_bytes(len(part), n_features, n_rows) + _ROWS * n_values * whole

            def task(
                part: IntArray = part, seed: int = seed, n_bytes: float = n_bytes
            ) -> BlockResult:
                with self.room.taken(n_bytes):
                    members = np.flatnonzero(vertices == vertex)
                    if whole:
                        return self._in_memory(part, (index, vertex), parts, members, seed)
                    taken = self.edges_of_class[:, index + 1][self.rows.y_encoded[members]]
                    return self._streamed(part, parts, taken, members, seed)

            yield part, n_values * len(part), task

    # .................................................................. one block

    def _streamed(
        self,
        edges: IntArray,
        parts: Parts,
        taken: npt.NDArray[np.int32],
        members: IntArray | None,
        seed: int,
    ) -> BlockResult:
        """Train a block part by part; ``taken`` is the edge that each row takes."""
        rows, learner, stored = self.rows, self.streamed, self.rows.stored
        own = slice(None) if members is None else members
        column = np.full(self.trellis.n_edges, -1, np.int32)
        column[edges] = np.arange(len(edges))
        nothing = np.empty(0, np.int32)
        block = StreamedBlock(
            nothing,
            nothing,
            np.array([stored.largest], np.float32),
            column[taken][:, np.newaxis],
            rows.class_weights[rows.y_encoded[own]],
            len(stored.features),
            len(edges),
            parts,
            stored.norms[own],
            seed,
        )
        state = learner.start(block)

        def run(order: Any) -> tuple[list[float], list[float]]:
            return run_epochs(
                lambda: learner.step(block, state, order),
                self.epochs,
                lambda loss: learner.converged(state),
            )

        def finished() -> FinishedBlock:
            weights, bias = learner.finish(block, state)
            threshold = self.setting.floor * float(np.abs(weights).max(initial=0))
            return finish_block(edges, stored.features, weights, bias, threshold)

        before, held_out = None, rows.held_out[own]
        if rows.held_out.any():
            run(np.flatnonzero(~held_out).astype(np.int32))
            before = finished()
        losses, seconds = run(np.arange(block.n_rows, dtype=np.int32))
        shortfall = learner.shortfall(block, state)
        return BlockResult(finished(), before, losses, seconds, shortfall)

    def _in_memory(
        self,
        edges: IntArray,
        vertex: tuple[int, int],
        parts: SpilledParts,
        members: IntArray,
        seed: int,
    ) -> BlockResult:
        """Read the rows of a vertex, and train a block as ever."""
        from scipy import sparse

        rows, stored = self.rows, self.rows.stored
        indptr, indices, data = parts.whole()
        X = sparse.csr_matrix((len(members), len(stored.features)), dtype=np.float32)
        X.indptr, X.indices, X.data = indptr, indices, data
        classes = rows.y_encoded[members]
        held_out = rows.held_out[members]
        training = TrainingRows(
            X,
            stored.features,
            stored.shards.n_features,
            self.path_of_class[classes],
            self.edges_of_class[classes],
            self.vertices_of_class[classes],
            self.trellis.n_edges,
            rows.class_weights[classes],
            held_out,
            bool(held_out.any()),
        )
        order = np.random.default_rng([seed, 1]).permutation(len(members))
        plan = Plan(edges, order, vertex=vertex)
        setting = self.setting
        result = train_block(training, plan, setting.learner, self.epochs, seed, setting.floor)
        if rows.held_out.any() and result.before is None:  # no row of this vertex is held out
            result = replace(result, before=result.finished)
        return result

    # .................................................................. all blocks

    def _run(self, tasks: list[tuple[IntArray, float, Callable[[], BlockResult]]]) -> None:
        """Train blocks side by side, as far as there is room; those with most work first.

        They are kept in that order, too, so that the threads change nothing.
        """
        from joblib import Parallel, delayed

        ordered = sorted(range(len(tasks)), key=lambda number: -tasks[number][1])
        parallel = Parallel(n_jobs=self.setting.n_jobs, require="sharedmem", return_as="generator")
        counts, stage = self._rows_of_edges(), self._stage([edges for edges, _, _ in tasks])

        ready: dict[int, BlockResult] = {}  # not handed over by joblib, which would keep the last

        def train(number: int) -> int:
            result = stage.read(number) if stage is not None else None
            if result is None:
                result = tasks[number][2]()
                if stage is not None:
                    stage.write(number, result)
            ready[number] = result
            return number

        numbers = parallel(delayed(train)(number) for number in ordered)
        with closed_quietly(numbers):
            for number in numbers:
                stop_if_unwanted()
                edges, work, _ = tasks[number]
                pairs = int(counts[edges].sum()) * len(edges)
                self._keep(ready.pop(number), pairs, work / self.total_work)
                release_memory()

    def _stage(self, edges: list[IntArray]) -> Stage | None:
        """Where blocks are kept for a training that resumes this one; None if they are not."""
        setting, rows = self.setting, self.rows
        facts = [
            *("from disk", setting.learner, self.epochs, setting.seed, setting.floor),
            *(setting.memory, self.n_blocks, self.trellis.n_classes, self.trellis.slice_width),
        ]
        arrays = [self.path_of_class, rows.y_encoded, rows.held_out, rows.class_weights]
        return stage_for(edges, rows.stored.shards.n_features, facts, arrays)

    def _keep(self, result: BlockResult, n_pairs: int, share: float) -> None:
        self.after.add(result.finished)
        if result.before is not None:
            self.before.add(result.before)
        self.shortfalls.append((result.shortfall, len(result.finished.edges)))
        self.n_pairs += n_pairs
        nothing = FinishedBlock(*[np.empty(0, np.int64)] * 6)  # type: ignore[arg-type]
        self.results.append(BlockResult(nothing, None, result.losses, result.seconds, 0.0))
        if self.setting.report is not None:
            self.setting.report(share, result.losses[-1] / max(n_pairs, 1))

    def trained(self) -> TrainedEdges:
        """The weights of all edges, when everything is trained."""
        warn_if_unconverged(self.setting.learner, self.shortfalls, self.setting.epochs)
        weights = self._weights(self.after)
        before = self._weights(self.before) if self.rows.held_out.any() else None
        return TrainedEdges(weights, before, history_of(self.results, self.n_pairs))

    def _weights(self, finished: FinishedBlocks) -> EdgeWeights:
        constants = np.where(self._rows_of_edges() > 0, 1, -1).astype(np.float32)
        n_features = self.rows.stored.shards.n_features
        weights = gathered(self.trellis, "local", finished.blocks, constants, n_features)
        finished.blocks = []
        return weights

    # .................................................................. sizes

    def _rows_of_edges(self) -> IntArray:
        """Number of rows whose path takes each edge."""
        edges, sizes = self.edges_of_class, self.class_sizes
        used = edges >= 0
        repeated = np.broadcast_to(sizes[:, np.newaxis], edges.shape)
        counts = np.bincount(edges[used], repeated[used], minlength=self.trellis.n_edges)
        return counts.astype(np.int64)

    def _parts(self, edges: IntArray, n_features: int, n_rows: int) -> list[IntArray]:
        """The edges in parts whose state is small enough."""
        most = min(BLOCK_BYTES, self.setting.memory / _STATE)
        return edge_parts(edges, n_features, n_rows, self.setting.learner, most)

    def _state_bytes(self, n_edges: int, n_features: int, n_rows: int) -> float:
        """Of one block under way, with the copies that are made when edges rest."""
        return 2.0 * 4 * (n_features + n_rows) * n_edges

    def _next_seed(self) -> int:
        self.n_blocks += 1
        return block_seed(self.setting.seed, self.n_blocks - 1)
