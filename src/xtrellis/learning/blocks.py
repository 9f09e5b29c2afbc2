"""Blocks: which edges are trained together, on which rows.

* ``independent`` (the paper): every edge learns from every row, +1 if it is on the path of the
  row's class and -1 if not. Blocks are runs of edges.
* ``local`` (ours): an edge learns only from rows whose path visits its tail vertex, +1 if the path
  takes it and -1 if it takes another edge there. One block per vertex, or several if it is wide.

Edges with nothing to learn are in no block: those that all their rows take, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._arrays import IntArray
from ..graph.trellis import Trellis
from ..model.finished_block import FinishedBlock
from .learners import Block, Learner
from .rows import TrainingRows

Training = Literal["independent", "local"]

BLOCK_BYTES = 48 * 2**20  # state of one block in training,
TIMES_ROWS = 2  # or so many times the bytes of the rows, if that is more,
MOST_BLOCK_BYTES = 2**30  # but not more than that
MAX_EDGES = 256  # of a block: wider ones gain nothing
MAX_SHARE = 0.6  # of all the work in one block, whatever the number of workers


@dataclass(frozen=True)
class Plan:
    """A block to come: its edges, and which rows they learn from (None: all of them).

    ``vertex`` is the one that the edges leave, if it is one: its slice (-1: the source) and its
    number there.
    """

    edges: IntArray
    rows: IntArray | None = None
    work: float = 0.0
    vertex: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Job:
    """Blocks to train: ``function(rows, plan, *settings(number))`` for each plan and its number."""

    function: Callable[..., Any]
    rows: TrainingRows
    plans: Sequence[Plan]
    settings: Callable[[int], tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class BlockResult:
    """What training a block gives.

    Attributes
    ----------
    finished : FinishedBlock
    before : FinishedBlock or None
        The same, trained without the rows that are held out, if there are any.
    losses, seconds : list of float
        Of each epoch over all rows.
    shortfall : float
        Share of the objective that further epochs could still remove.
    """

    finished: FinishedBlock
    before: FinishedBlock | None
    losses: list[float]
    seconds: list[float]
    shortfall: float

    def __sizeof__(self) -> int:
        """What a cluster plans its memory by."""
        return self.finished.nbytes + (self.before.nbytes if self.before is not None else 0)


def plan_blocks(
    trellis: Trellis, rows: TrainingRows, training: Training, learner: Learner
) -> list[Plan]:
    """Blocks of all edges that have something to learn.

    The state of a block grows with its rows, features and edges. Blocks of few edges take several
    times as long for each of them, so where there are many rows, states may be larger.
    """
    row_bytes = rows.X.data.nbytes + rows.X.indices.nbytes
    block_bytes = max(BLOCK_BYTES, min(TIMES_ROWS * row_bytes, MOST_BLOCK_BYTES))
    if training == "independent":
        return list(_independent_blocks(trellis, rows, learner, block_bytes))
    plans = list(_local_blocks(trellis, rows, learner, block_bytes))
    # All rows pass the source: its block alone would keep one worker busy when others are done.
    most = sum(plan.work for plan in plans) * MAX_SHARE
    return [part for plan in plans for part in _split(plan, most)]


def _split(plan: Plan, most: float) -> list[Plan]:
    """A block as several with at most this much work each, or with eight edges."""
    n_parts = min(int(np.ceil(plan.work / max(most, 1.0))), -(-len(plan.edges) // 8))
    return [
        replace(plan, edges=edges, work=plan.work * len(edges) / len(plan.edges))
        for edges in np.array_split(plan.edges, max(n_parts, 1))
    ]


def _independent_blocks(
    trellis: Trellis, rows: TrainingRows, learner: Learner, block_bytes: float
) -> Iterator[Plan]:
    """Runs of edges, each trained on all rows."""
    n_rows, n_features = rows.X.shape
    positives = np.bincount(rows.path_edges[rows.path_edges >= 0], minlength=trellis.n_edges)
    twins, _ = trellis.twin_edges()
    wanted = (positives > 0) & (positives < n_rows)
    wanted[twins] = False
    edges = np.flatnonzero(wanted)
    for part in edge_parts(edges, n_features, n_rows, learner, block_bytes):
        yield Plan(part, None, work=rows.X.nnz * len(part))


def _local_blocks(
    trellis: Trellis, rows: TrainingRows, learner: Learner, block_bytes: float
) -> Iterator[Plan]:
    """For every vertex with a choice, its edges, on the rows that pass it."""
    lengths = np.diff(rows.X.indptr)
    for i, v, members in vertex_rows(trellis, rows):
        taken = rows.path_edges[members, i + 1]
        if (taken == taken[0]).all():
            continue  # nothing to distinguish
        n_nonzeros = int(lengths[members].sum())
        n_features = min(n_nonzeros, rows.X.shape[1])
        edges = trellis.vertex_edges(i, v)
        for part in edge_parts(edges, n_features, len(members), learner, block_bytes):
            yield Plan(part, members, n_nonzeros * len(part), (i, v))


def vertex_rows(trellis: Trellis, rows: TrainingRows) -> Iterator[tuple[int, int, IntArray]]:
    """For every vertex that a row passes: its slice (-1: the source), its number there, the rows.

    Slice by slice, and in each slice vertex by vertex.
    """
    for i in range(-1, trellis.n_slices):
        here = rows.path_vertices[:, i] if i >= 0 else np.zeros(len(rows.paths), np.int32)
        by_vertex = np.argsort(here, kind="stable")
        size = trellis.slice_sizes[i] if i >= 0 else 1
        cuts = np.searchsorted(here[by_vertex], np.arange(size + 1))
        for v, (start, stop) in enumerate(pairwise(cuts)):
            if stop > start:
                yield i, v, by_vertex[start:stop]


def sees_all(rows: TrainingRows, plan: Plan) -> bool:
    """Whether a planned block learns from all rows."""
    return plan.rows is None or len(plan.rows) == len(rows.paths)


def block_rows(rows: TrainingRows, plan: Plan) -> TrainingRows:
    """The rows of a planned block alone, over the features that they contain.

    A block trained on them is bit for bit that trained on all rows: features are numbered as they
    are met, here and in :func:`make_block`.
    """
    from scipy import sparse

    members = plan.rows
    if members is None or sees_all(rows, plan):
        return rows
    (indptr, indices, data), features = _gathered(rows.X, members)
    X = sparse.csr_matrix((len(members), len(features)), dtype=np.float32)
    X.indptr, X.indices, X.data = indptr, indices, data
    return replace(
        rows,
        X=X,
        features=rows.features[features],
        paths=rows.paths[members],
        path_edges=rows.path_edges[members],
        path_vertices=rows.path_vertices[members],
        sample_weight=rows.sample_weight[members],
        held_out=rows.held_out[members],
        holds_out=rows.holds_out,
    )


def all_edge_groups(trellis: Trellis, training: Training) -> list[IntArray]:
    """All edges, in the groups that learn together: those of a vertex, or runs of them."""
    if training == "independent":
        return np.array_split(np.arange(trellis.n_edges), -(-trellis.n_edges // MAX_EDGES))
    sizes = (1, *trellis.slice_sizes)
    return [trellis.vertex_edges(i - 1, v) for i, size in enumerate(sizes) for v in range(size)]


def edge_parts(
    edges: IntArray, n_features: int, n_rows: int, learner: Learner, block_bytes: float
) -> list[IntArray]:
    """The edges in equal parts, each with a state of at most ``block_bytes``, or one edge."""
    an_edge = n_features * learner.bytes_per_weight + n_rows * learner.bytes_per_row
    width = int(np.clip(block_bytes // max(an_edge, 1), 1, MAX_EDGES))
    return np.array_split(edges, -(-len(edges) // width)) if len(edges) else []


def make_block(
    rows: TrainingRows, plan: Plan, *, own_features: bool = True
) -> tuple[Block, IntArray]:
    """Rows and targets of a planned block, and which of the rows' features it has.

    They are those that occur in the block's rows, unless ``own_features`` is False.
    """
    targets = _targets(rows, plan)
    every = np.arange(rows.X.shape[1])
    if plan.rows is None or np.array_equal(plan.rows, np.arange(len(rows.paths))):
        X, weights = rows.X, rows.sample_weight  # not copied: there may be many
        csr, features = (X.indptr, X.indices, X.data), every
    else:
        weights = rows.sample_weight[plan.rows]
        if own_features:
            csr, features = _gathered(rows.X, plan.rows)
        else:
            X = rows.X[plan.rows]
            csr, features = (X.indptr, X.indices, X.data), every
    return Block(*csr, targets, weights, len(features), len(plan.edges)), features


def _targets(rows: TrainingRows, plan: Plan) -> npt.NDArray[np.int32]:
    """Columns of the block that each row is a positive example of, filled up with -1."""
    column = np.full(rows.n_edges + 1, -1, np.int32)  # the last one stands for "no edge"
    column[plan.edges] = np.arange(len(plan.edges))
    if plan.rows is not None:  # of the edges that leave a vertex, a path takes one
        return column[rows.path_edges[plan.rows]].max(axis=1, keepdims=True)
    targets = np.sort(column[rows.path_edges], axis=1)[:, ::-1]
    used = max(1, int((targets >= 0).sum(axis=1).max(initial=0)))
    return np.ascontiguousarray(targets[:, :used])


def _gathered(X: Any, members: IntArray) -> tuple[tuple[Any, Any, Any], IntArray]:
    """Some rows of a CSR matrix over the features they contain, and these features."""
    from ..kernels import margins as kernels

    n_nonzeros = int((X.indptr[members + 1] - X.indptr[members]).sum())
    indptr = np.empty(len(members) + 1, np.int64)
    indices, data = np.empty(n_nonzeros, np.int32), np.empty(n_nonzeros, np.float32)
    features = np.empty(min(n_nonzeros, X.shape[1]), np.int64)
    local = np.full(X.shape[1], -1, np.int32)
    n_features = kernels.gather_rows(
        X.indptr, X.indices, X.data, members, local, indptr, indices, data, features
    )
    return (indptr, indices, data), features[:n_features]
