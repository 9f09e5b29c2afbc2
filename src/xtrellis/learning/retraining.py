"""Training some vertices again, and putting their blocks among those that stay as they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..graph.trellis import Trellis
from ..model.finished_block import FinishedBlock
from ..model.weights import EdgeWeights
from .blocks import BlockResult, plan_blocks
from .learners import Learner
from .rows import TrainingRows
from .training import block_seed, constant_margins, gathered, train_block
from .workers import in_parallel

Vertex = tuple[int, int]  # slice (-1: the source) and number there


def retrain(
    trellis: Trellis,
    weights: EdgeWeights,
    rows: TrainingRows,
    vertices: set[Vertex],
    learner: Learner,
    epochs: int | None,
    n_jobs: int | None,
    seed: int,
    floor: float = 0.0,
    threshold: float = 0.0,
) -> tuple[EdgeWeights, int]:
    """The weights of a locally trained model with those of some vertices learned anew.

    Also the number of blocks that were trained. The rows must be all that pass these vertices. Of
    the new weights, small ones are dropped, as in :func:`train_block`.
    """
    plans = [
        plan for plan in plan_blocks(trellis, rows, "local", learner) if plan.vertex in vertices
    ]
    epochs = epochs or learner.passes(sum(plan.work for plan in plans) or 1.0)
    results: dict[int, BlockResult] = dict(
        in_parallel(
            train_block,
            rows,
            plans,
            lambda index: (learner, epochs, block_seed(seed, index), floor, threshold),
            n_jobs,
        )
    )
    touched = np.concatenate([trellis.vertex_edges(*vertex) for vertex in sorted(vertices)])
    kept = [block for block in _blocks(weights) if not np.isin(block.edges[0], touched)]
    trained = [results[index].finished for index in range(len(plans))]
    constants = constant_margins(trellis, rows)
    return gathered(trellis, "local", kept + trained, constants, weights.n_features), len(plans)


def _blocks(weights: EdgeWeights) -> Iterator[FinishedBlock]:
    """Weights as the blocks that they were made of."""
    for block in range(len(weights.column_starts) - 1):
        columns = slice(*weights.column_starts[block : block + 2])
        features = slice(*weights.feature_starts[block : block + 2])
        starts = weights.entry_starts[features.start : features.stop + 1]
        entries = slice(starts[0], starts[-1])
        yield FinishedBlock(
            weights.edges[columns],
            weights.bias[columns],
            weights.features[features].astype(np.int64),
            np.diff(starts).astype(np.int32),
            weights.columns[entries],
            weights.values[entries],
        )
