"""The contract: a learner trains the edges of a block of rows.

Section 7 of the paper trains one binary linear learner per edge. A :class:`Learner` trains the
edges of one :class:`Block` together, because they share its rows. It knows nothing of graphs: for
every row and edge it is told whether the row is a positive or a negative example, and returns
weights whose sign should say which. That is the whole contract:

* ``start(block)`` makes the state to train, for example zero weights;
* ``step(block, state, order)`` visits the rows in the given order once and returns the sum of the
  losses it met; it is called once per epoch;
* ``converged(state)`` says whether another epoch would be idle (never, by default);
* ``shortfall(block, state)`` says how far the objective is from its optimum, if that is known;
* ``finish(block, state)`` returns the weights, (n_features, n_edges), and biases, (n_edges,).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from ..._arrays import Float32Array, IntArray


@dataclass(frozen=True)
class Block:
    """Rows and edges that are trained together.

    Attributes
    ----------
    indptr, indices, data : ndarray
        The rows, a float32 CSR matrix with ``n_features`` columns.
    targets : ndarray of int32, shape (n_rows, s)
        The edges, from 0 to ``n_edges - 1``, that each row is a positive example of, filled up
        with -1. It is a negative example of all the others.
    row_weights : ndarray of float32, shape (n_rows,)
        How much each row counts.
    """

    indptr: npt.NDArray[np.integer[Any]]
    indices: npt.NDArray[np.integer[Any]]
    data: Float32Array
    targets: npt.NDArray[np.int32]
    row_weights: Float32Array
    n_features: int
    n_edges: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.row_weights)

    @property
    def csr(self) -> Any:
        """The rows as a SciPy matrix."""
        from scipy import sparse

        shape = (self.n_rows, self.n_features)
        return sparse.csr_matrix((self.data, self.indices, self.indptr), shape)

    def signs(self, edge: int) -> npt.NDArray[np.int64]:
        """+1 for the positive examples of one edge, -1 for the negative ones."""
        return np.where((self.targets == edge).any(axis=1), 1, -1)


class Learner(BaseEstimator, ABC):
    """Trains the edges of a block; the contract is at the top of this module.

    Parameters of ``__init__`` are as in scikit-learn: kept under their names, so that clones have
    them and ``GridSearchCV`` reaches them, as ``learner__C``.

    Attributes
    ----------
    epochs : int
        How often ``step`` is called unless the user says otherwise.
    online : bool
        Whether ``step`` may be given new rows at any time, as in ``partial_fit``.
    merges_rows : bool
        Whether n equal rows and one row that counts n times are the same to it.
    is_quick : bool
        Whether it may train several times, each time without other rows, where few are held out.
    bytes_per_weight, bytes_per_row : int
        Memory of the state for each weight, and for each row of each edge.

    Examples
    --------
    The regularised least squares of each edge, in a single step:

    >>> import numpy as np
    >>> from xtrellis.learning import Learner
    >>> from xtrellis import TrellisClassifier
    >>> class Ridge(Learner):
    ...     epochs = 1
    ...
    ...     def start(self, block):
    ...         return {}
    ...
    ...     def step(self, block, state, order):
    ...         X = block.csr[order].toarray()
    ...         Y = np.stack([block.signs(j)[order] for j in range(block.n_edges)], axis=1)
    ...         ridge = X.T @ X + np.eye(block.n_features)
    ...         state["weights"] = np.linalg.solve(ridge, X.T @ Y)
    ...         return float(((X @ state["weights"] - Y) ** 2).sum())
    ...
    ...     def finish(self, block, state):
    ...         return state["weights"], np.zeros(block.n_edges)
    >>> X, y = np.eye(4).repeat(5, axis=0), np.arange(4).repeat(5)
    >>> TrellisClassifier(learner=Ridge(), random_state=0).fit(X, y).score(X, y)
    1.0
    """

    epochs: int = 10
    online: bool = False
    merges_rows: bool = False
    is_quick: bool = False
    bytes_per_weight: int = 8
    bytes_per_row: int = 0

    @abstractmethod
    def start(self, block: Block) -> Any:
        """State before the first row."""

    @abstractmethod
    def step(self, block: Block, state: Any, order: IntArray) -> float:
        """Visit the rows in this order; return the sum of the losses."""

    def converged(self, state: Any) -> bool:
        """Whether further epochs would change nothing."""
        return False

    def rough(self) -> Learner:
        """A learner that comes near to what this one learns, in less time; by default, itself."""
        return self

    def shortfall(self, block: Block, state: Any) -> float:
        """Share of the block's objective that further epochs could still remove; 0 if unknown."""
        return 0.0

    @abstractmethod
    def finish(self, block: Block, state: Any) -> tuple[Any, Any]:
        """Weights and biases of the block's edges."""

    def passes(self, work: float) -> int:
        """How many epochs to train for, unless the user says; ``work`` is that of one of them."""
        return self.epochs

    def resume(self, block: Block, weights: Float32Array, bias: Float32Array) -> Any:
        """State to go on from, given finished weights; online learners only."""
        raise TypeError(f"{type(self).__name__} does not learn online")


def finite(
    block: Block, weights: Float32Array, bias: Float32Array
) -> tuple[Float32Array, Float32Array]:
    """These weights and biases, or a ValueError if training overflowed, or their margins would."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = _largest(weights) * _largest(block.data)
    if not (np.isfinite(largest) and np.isfinite(bias).all()):
        raise ValueError(too_large(block))
    return weights, bias


def too_large(block: Block) -> str:
    """What to say when numbers of this block overflow."""
    largest = _largest(block.data)
    heaviest = block.row_weights.max(initial=0)
    if largest >= heaviest:
        return (
            f"features as large as {largest:.3g} overflow; scale them, e.g. with "
            f"sklearn.preprocessing.MaxAbsScaler"
        )
    return f"row weights as large as {heaviest:.3g} overflow; divide sample_weight by their mean"


def _largest(values: Float32Array) -> np.float32:
    """Largest absolute value; NaN if there is one."""
    return np.maximum(values.max(initial=0), -values.min(initial=0))
