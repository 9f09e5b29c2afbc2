"""AROW: adaptive regularisation of weights, the paper's learner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._arrays import Float32Array, IntArray
from ..._checks import check_positive
from .learner import Block, Learner, finite


@dataclass
class Arow(Learner):
    """Adaptive regularisation of weights, with diagonal covariance: the paper's learner.

    Online, with squared hinge and no bias. Weights seen often change less.

    Parameters
    ----------
    r : float, default=1.0
        Regulariser: small values learn faster.

    Examples
    --------
    >>> from xtrellis.learning import Arow
    >>> Arow(r=0.1)
    Arow(r=0.1)
    """

    r: float = 1.0

    epochs = 5
    online = True
    is_quick = True
    bytes_per_weight = 8

    def __post_init__(self) -> None:
        check_positive(r=self.r)

    def start(self, block: Block) -> tuple[Float32Array, ...]:
        """Zero weights with a variance of 1, and no bias."""
        weights = np.zeros((block.n_features, block.n_edges), np.float32)
        return np.zeros(block.n_edges, np.float32), weights, np.ones_like(weights)

    def resume(
        self, block: Block, weights: Float32Array, bias: Float32Array
    ) -> tuple[Float32Array, ...]:
        """These weights, with a variance of 1 again; the bias stays as it is."""
        return bias, np.ascontiguousarray(weights), np.ones_like(weights)

    def step(self, block: Block, state: tuple[Float32Array, ...], order: IntArray) -> float:
        """One online pass."""
        from ...kernels import arow as kernels

        # A row that counts twice is as if its r were half.
        regularisers = np.float32(self.r) / block.row_weights
        return float(
            kernels.arow_pass(
                block.indptr, block.indices, block.data, order, block.targets, regularisers, *state
            )
        )

    def finish(
        self, block: Block, state: tuple[Float32Array, ...]
    ) -> tuple[Float32Array, Float32Array]:
        """The means; variances are for training only."""
        return finite(block, state[1], state[0])
