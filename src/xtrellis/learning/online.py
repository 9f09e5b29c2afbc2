"""Online training: blocks that learn from one batch of rows after another, for ``partial_fit``.

A batch touches the blocks of the vertices that its paths pass (or, for independent training, all of
them). Only their states are copied, trained and finished; everything else is shared with the blocks
as they were before the batch. So a batch is learned completely or, if it fails or is interrupted,
not at all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._arrays import IntArray
from ..graph.trellis import Trellis
from ..model.finished_block import FinishedBlock, finish_block
from ..model.weights import EdgeWeights
from .blocks import Plan, Training, all_edge_groups, make_block, vertex_rows
from .learners import Block, Learner
from .rows import TrainingRows
from .training import gathered

Key = tuple[int, int]  # the first and the last edge of a block


@dataclass(frozen=True, eq=False)
class OnlineBlocks:
    """Blocks between two batches.

    Which features will come is not known, so every state is over all features: in total, features
    x edges x ``bytes_per_weight``. A state is made when the first row of its block arrives.

    Attributes
    ----------
    fitted : EdgeWeights or None
        Weights to continue from.
    states : dict
        State of each block that has learned.
    finished : dict
        Weights of these blocks, and of those that were not touched since ``fitted``.
    """

    trellis: Trellis
    training: Training
    learner: Learner
    n_features: int
    fitted: EdgeWeights | None = None
    states: dict[Key, Any] = field(default_factory=dict)
    finished: dict[Key, FinishedBlock] = field(default_factory=dict)

    def after(self, rows: TrainingRows) -> tuple[OnlineBlocks, float]:
        """The blocks after visiting each row once, and the average loss per row and edge."""
        states, finished = dict(self.states), dict(self.finished)
        loss, pairs = 0.0, 0
        for plan in self._plans(rows):
            block, features = make_block(rows, plan, own_features=False)
            key = _key(plan.edges)
            state = self._state(key, plan.edges, block)
            loss += self.learner.step(block, state, np.arange(block.n_rows))
            pairs += block.n_rows * block.n_edges
            states[key] = state
            weights, bias = self.learner.finish(block, state)
            finished[key] = finish_block(plan.edges, features, weights, bias)
        if self.fitted is not None:
            finished.update(self._untouched(finished))
        return replace(self, states=states, finished=finished), loss / max(pairs, 1)

    def weights(self) -> EdgeWeights:
        """Weights of all edges; one without rows has a margin of -1.

        An edge that is the only one to leave its vertex has nothing to learn: it has +1.
        """
        constants = np.full(self.trellis.n_edges, -1, np.float32)
        if self.training == "local":
            groups = all_edge_groups(self.trellis, self.training)
            constants[[edges[0] for edges in groups if len(edges) == 1]] = 1
        blocks = list(self.finished.values())
        return gathered(self.trellis, self.training, blocks, constants, self.n_features)

    def _plans(self, rows: TrainingRows) -> Iterator[Plan]:
        """Blocks that have rows in a batch."""
        if self.training == "independent":
            for edges in all_edge_groups(self.trellis, self.training):
                yield Plan(edges)
            return
        for i, v, members in vertex_rows(self.trellis, rows):
            edges = self.trellis.vertex_edges(i, v)
            if len(edges) > 1:
                yield Plan(edges, members)

    def _state(self, key: Key, edges: IntArray, block: Block) -> Any:
        """State of a block to train: a copy, or a new one."""
        if key in self.states:
            return copy.deepcopy(self.states[key])
        if self.fitted is None:
            return self.learner.start(block)
        return self.learner.resume(block, *self.fitted.dense_columns(edges))

    def _untouched(self, finished: dict[Key, FinishedBlock]) -> dict[Key, FinishedBlock]:
        """The fitted weights of blocks that are not in ``finished`` yet."""
        assert self.fitted is not None
        features = np.arange(self.n_features)
        return {
            _key(edges): finish_block(edges, features, *self.fitted.dense_columns(edges))
            for edges in all_edge_groups(self.trellis, self.training)
            if _key(edges) not in finished
        }


def _key(edges: IntArray) -> Key:
    return int(edges[0]), int(edges[-1])
