"""The averaged perceptron: LTLS's learner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._arrays import Float32Array, IntArray
from .learner import Block, Learner, finite


@dataclass
class _PerceptronState:
    weights: Float32Array
    bias: Float32Array
    lags: npt.NDArray[np.float64]
    clock: float = 1.0


@dataclass
class AveragedPerceptron(Learner):
    """The perceptron, its weights averaged over all rows visited.

    Examples
    --------
    >>> from xtrellis.learning import AveragedPerceptron
    >>> AveragedPerceptron()
    AveragedPerceptron()
    """

    epochs = 5
    online = True
    is_quick = True
    bytes_per_weight = 12

    def start(self, block: Block) -> _PerceptronState:
        """Zero weights."""
        shape = (block.n_features, block.n_edges)
        lags = np.zeros((block.n_features + 1, block.n_edges))
        return _PerceptronState(
            np.zeros(shape, np.float32), np.zeros(block.n_edges, np.float32), lags
        )

    def resume(self, block: Block, weights: Float32Array, bias: Float32Array) -> _PerceptronState:
        """These weights, their average so far taken as one row's."""
        state = self.start(block)
        state.weights, state.bias = np.ascontiguousarray(weights), bias
        return state

    def step(self, block: Block, state: _PerceptronState, order: IntArray) -> float:
        """One online pass; the loss is the number of mistakes."""
        from ...kernels import perceptron as kernels

        mistakes, state.clock = kernels.perceptron_pass(
            block.indptr,
            block.indices,
            block.data,
            order,
            block.targets,
            block.row_weights,
            state.clock,
            state.weights,
            state.bias,
            state.lags,
        )
        return float(mistakes)

    def finish(self, block: Block, state: _PerceptronState) -> tuple[Float32Array, Float32Array]:
        """Average over time: the final weights less how late each update came."""
        mean = state.lags / state.clock
        return finite(
            block,
            (state.weights - mean[:-1]).astype(np.float32),
            (state.bias - mean[-1]).astype(np.float32),
        )
