"""Blocks: which edges are trained together, on which rows.

* ``independent`` (the paper): every edge learns from every row, +1 if it is on the path of the
  row's class and -1 if not. Blocks are runs of edges.
* ``local`` (ours): an edge learns only from rows whose path visits its tail vertex, +1 if the path
  takes it and -1 if it takes another edge there. One block a vertex, or several if it is wide.

Edges with nothing to learn are in no block: those that all their rows take, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from .._arrays import IntArray
from ..graph.trellis import Trellis
from .learners import Block, Learner
from .rows import TrainingRows

Training = Literal["independent", "local"]

MAX_EDGES = 256  # of a block: wider ones gain nothing
MAX_SHARE = 0.6  # of all the work in one block, whatever the number of workers


@dataclass(frozen=True)
class Plan:
    """A block to come: its edges, and which rows they learn from (None: all of them).

    ``vertex`` tells blocks of the same vertex, which compete for its rows; -1 if there is none.
    """

    edges: IntArray
    rows: IntArray | None = None
    work: float = 0.0
    vertex: int = -1


def plan_blocks(
    trellis: Trellis, rows: TrainingRows, training: Training, learner: Learner, block_bytes: float
) -> list[Plan]:
    """Blocks of all edges that have something to learn."""
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
        for v, (start, stop) in enumerate(pairwise(cuts)):
            members = by_vertex[start:stop]
            taken = rows.path_edges[members, i + 1]
            if len(members) == 0 or (taken == taken[0]).all():
                continue  # nothing to tell apart
            edges = vertex_edges(trellis, i, v)
            n_nonzeros = int(lengths[members].sum())
            n_features = min(n_nonzeros, rows.X.shape[1])
            for part in _parts(edges, n_features, len(members), learner, block_bytes):
                vertex = 0 if i < 0 else 1 + i * trellis.slice_width + v
                yield Plan(part, members, n_nonzeros * len(part), vertex)


def vertex_edges(trellis: Trellis, index: int, vertex: int) -> IntArray:
    """As :meth:`Trellis.vertex_edges`."""
    return trellis.vertex_edges(index, vertex)


def twin_edges(trellis: Trellis) -> tuple[IntArray, IntArray]:
    """As :meth:`Trellis.twin_edges`."""
    return trellis.twin_edges()


def _parts(
    edges: IntArray, n_features: int, n_rows: int, learner: Learner, block_bytes: float
) -> list[IntArray]:
    """The edges in equal parts, each with a state of at most ``block_bytes``, or one edge."""
    an_edge = n_features * learner.bytes_a_weight + n_rows * learner.bytes_a_row
    width = int(np.clip(block_bytes // max(an_edge, 1), 1, MAX_EDGES))
    return np.array_split(edges, -(-len(edges) // width)) if len(edges) else []


def make_block(rows: TrainingRows, plan: Plan, n_edges: int) -> tuple[Block, IntArray]:
    """Rows and targets of a planned block, and what its features are called in ``rows``."""
    from ..kernels import margins as kernels

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
