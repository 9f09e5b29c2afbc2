"""Learners: what is trained for every edge.

Section 7 of the paper trains one binary linear learner an edge. A :class:`Learner` trains the
edges of one :class:`Block` together, as they share its rows. It knows nothing of graphs: for
every row and edge it is told whether the row is a positive or a negative example, and gives back
weights whose sign should say which. That is the whole contract:

* ``start(block)`` makes the state to train, for example zero weights;
* ``step(block, state, order)`` visits the rows in the given order once and returns the sum of the
  losses it met; it is called once an epoch;
* ``converged(state)`` says whether another epoch would be idle (never, by default);
* ``finish(block, state)`` returns the weights, (n_features, n_edges), and biases, (n_edges,).

Here are AROW, the paper's; a linear SVM; the averaged perceptron; and a wrapper for any
scikit-learn classifier.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from .._arrays import Float32Array, IntArray
from .._checks import check_positive


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
    """Trains the edges of a block; the contract is told at the top of this module.

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
    bytes_a_weight, bytes_a_row : int
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
    bytes_a_weight: int = 8
    bytes_a_row: int = 0

    @abstractmethod
    def start(self, block: Block) -> Any:
        """State before the first row."""

    @abstractmethod
    def step(self, block: Block, state: Any, order: IntArray) -> float:
        """Visit the rows in this order; return the sum of the losses."""

    def converged(self, state: Any) -> bool:
        """Whether further epochs would change nothing."""
        return False

    @abstractmethod
    def finish(self, block: Block, state: Any) -> tuple[Any, Any]:
        """Weights and biases of the block's edges."""

    def passes(self, work: float) -> int:
        """How many epochs to train for, unless the user says; ``work`` is that of one of them."""
        return self.epochs

    def resume(self, block: Block, weights: Float32Array, bias: Float32Array) -> Any:
        """State to go on from, given finished weights; online learners only."""
        raise TypeError(f"{type(self).__name__} does not learn online")


@dataclass
class _SVMState:
    weights: Float32Array
    bias: Float32Array
    duals: Float32Array
    norms: Float32Array
    costs: Float32Array
    moves: Float32Array
    losses: Float32Array
    n_passes: int = 0


@dataclass
class LinearSVM(Learner):
    """L2-regularised linear SVM with squared hinge, by dual coordinate descent.

    Each edge minimises ``|w|^2 / 2 + C sum_i max(0, 1 - y_i w.x_i)^2``; the bias is the weight of a
    constant feature of 1, as in LIBLINEAR.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the regulariser.
    tolerance : float, default=1e-3
        Stop when no dual variable has a gradient above this in a pass over all rows.

    Examples
    --------
    >>> from xtrellis.learning import LinearSVM
    >>> LinearSVM(C=3.0)
    LinearSVM(C=3.0, tolerance=0.001)
    """

    C: float = 1.0
    tolerance: float = 1e-3

    epochs = 10
    merges_rows = True
    bytes_a_weight = 4
    bytes_a_row = 4

    def __post_init__(self) -> None:
        check_positive(C=self.C, tolerance=self.tolerance)

    def start(self, block: Block) -> _SVMState:
        """Zero weights and dual variables."""
        from ..kernels import learn

        norms = np.empty(block.n_rows, np.float32)
        learn.squared_norms(block.indptr, block.data, norms)
        return _SVMState(
            weights=np.zeros((block.n_features, block.n_edges), np.float32),
            bias=np.zeros(block.n_edges, np.float32),
            duals=np.zeros((block.n_rows, block.n_edges), np.float32),
            norms=norms,
            costs=np.float32(self.C) * block.row_weights,
            moves=np.full(block.n_rows, np.inf, np.float32),
            losses=np.zeros(block.n_rows, np.float32),
        )

    def step(self, block: Block, state: _SVMState, order: IntArray) -> float:
        """One pass of exact minimisations, a dual variable at a time.

        Rows whose variables had next to no gradient when last visited are passed over, but for
        every fifth pass.
        """
        from ..kernels import learn

        visited = order
        if state.n_passes % 5:
            visited = order[state.moves[order] > 20 * self.tolerance]
        state.n_passes += 1
        learn.svm_pass(
            block.indptr,
            block.indices,
            block.data,
            visited,
            block.targets,
            state.costs,
            state.norms,
            np.float32(self.tolerance * 0.02),
            state.duals,
            state.weights,
            state.bias,
            state.moves,
            state.losses,
        )
        return float(state.losses[order].sum(dtype=np.float64))

    def converged(self, state: _SVMState) -> bool:
        """Whether no dual variable of a visited row had a gradient above the tolerance."""
        visited = state.moves[np.isfinite(state.moves)]
        return bool(visited.size == 0 or visited.max() <= self.tolerance)

    def passes(self, work: float) -> int:
        """Ten, or as many as a tenth of a second allows: small data sets converge."""
        return int(np.clip(100_000_000 // max(work, 1.0), self.epochs, 1000))

    def finish(self, block: Block, state: _SVMState) -> tuple[Float32Array, Float32Array]:
        """The weights as they are."""
        return state.weights, state.bias


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
    bytes_a_weight = 8

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
        from ..kernels import learn

        # A row that counts twice is as if its r were half.
        regularisers = np.float32(self.r) / block.row_weights
        return float(
            learn.arow_pass(
                block.indptr, block.indices, block.data, order, block.targets, regularisers, *state
            )
        )

    def finish(
        self, block: Block, state: tuple[Float32Array, ...]
    ) -> tuple[Float32Array, Float32Array]:
        """The means; variances are for training only."""
        return state[1], state[0]


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
    bytes_a_weight = 12

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
        from ..kernels import learn

        mistakes, state.clock = learn.perceptron_pass(
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
        return (
            (state.weights - mean[:-1]).astype(np.float32),
            (state.bias - mean[-1]).astype(np.float32),
        )


class SklearnLearner(Learner):
    """Any scikit-learn binary classifier with ``decision_function``, one clone an edge.

    Linear ones (with ``coef_`` and ``intercept_``) are folded into the weight matrix; others are
    kept as they are and asked one by one at prediction.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from xtrellis.learning import SklearnLearner
    >>> SklearnLearner(LogisticRegression()).estimator
    LogisticRegression()
    """

    epochs = 1

    def __init__(self, estimator: Any) -> None:
        for method in ("fit", "decision_function"):
            if not hasattr(estimator, method):
                raise TypeError(f"learner {estimator!r} has no method {method!r}")
        self.estimator = estimator

    def start(self, block: Block) -> list[Any]:
        """No estimators yet."""
        return []

    def step(self, block: Block, state: list[Any], order: IntArray) -> float:
        """Fit one clone for each edge."""
        from sklearn.base import clone
        from sklearn.utils.validation import has_fit_parameter

        X, weights = block.csr[order], block.row_weights[order]
        seed = int(np.random.default_rng(order[:64]).integers(2**30))  # the order is seeded
        state.clear()
        for edge in range(block.n_edges):
            signs = block.signs(edge)[order]
            if (signs == signs[0]).all():
                state.append(float(signs[0]))
                continue
            estimator = clone(self.estimator)
            if estimator.get_params().get("random_state", 0) is None:
                estimator.set_params(random_state=seed + edge)
            if has_fit_parameter(estimator, "sample_weight"):
                estimator.fit(X, signs, sample_weight=weights)
            else:
                estimator.fit(X, signs)
            state.append(estimator)
        return 0.0

    def converged(self, state: list[Any]) -> bool:
        """Always: fitting the clones again would change nothing."""
        return True

    def finish(self, block: Block, state: list[Any]) -> tuple[Any, Any]:
        """Weights of linear estimators; the estimators themselves if one is not linear."""
        if not all(isinstance(e, float) or hasattr(e, "coef_") for e in state):
            return list(state), np.zeros(block.n_edges, np.float32)
        weights = np.zeros((block.n_features, block.n_edges), np.float32)
        bias = np.zeros(block.n_edges, np.float32)
        for edge, estimator in enumerate(state):
            if isinstance(estimator, float):
                bias[edge] = estimator
            else:
                coef = estimator.coef_
                weights[:, edge] = np.ravel(coef.toarray() if hasattr(coef, "toarray") else coef)
                bias[edge] = np.ravel(estimator.intercept_)[0]
        return weights, bias


def get_learner(learner: Any, C: float = 1.0, r: float = 1.0) -> Learner:
    """Learner by name (``"svm"``, ``"arow"``, ``"perceptron"``), or made of an estimator.

    >>> get_learner("arow", r=0.5)
    Arow(r=0.5)
    """
    if isinstance(learner, Learner):
        return learner
    if not isinstance(learner, str):
        return SklearnLearner(learner)
    if learner == "svm":
        return LinearSVM(C=C)
    if learner == "arow":
        return Arow(r=r)
    if learner == "perceptron":
        return AveragedPerceptron()
    raise ValueError(
        f"learner must be 'svm', 'arow', 'perceptron', a Learner or a scikit-learn classifier, "
        f"got {learner!r}"
    )
