"""Prediction: what every fitted trellis model can do, however it was trained.

Data flows one way: rows to margins (``weights``), margins to costs (``losses``), costs to paths
(``decoding``), paths to classes (``path_assignment``).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from ._arrays import IntArray, canonical_csr
from ._checks import check_pruning, row_weights
from ._threads import in_threads
from .decoding.losses import DecodingLoss, get_loss
from .decoding.paths import layout, likely_paths, path_log_probabilities, shortest_paths
from .decoding.vertex_losses import VertexSoftmax
from .graph.assignment import PathAssignment
from .graph.codebook import Code
from .graph.trellis import Trellis
from .learning import pruning
from .learning.pruning import Pruning
from .model.model_file import SavableMixin
from .model.weights import EdgeWeights
from .selection import diagnostics


@dataclass(frozen=True)
class _Rows:
    """Rows as the kernels take them, without the cost of making a SciPy matrix."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    data: npt.NDArray[np.float32]
    shape: tuple[int, int]


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was if fitting it fails half-way."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


class RowClassifier(SavableMixin, ClassifierMixin, BaseEstimator):
    """Base of all estimators that take rows of features."""

    def _checked_rows(self, X: Any) -> Any:
        """Rows as the kernels take them."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        return canonical_csr(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class TrellisPredictor(RowClassifier):
    """Base of those with one trellis: predictions from its weights, assignment and losses."""

    classes_: npt.NDArray[Any]
    trellis_: Trellis
    assignment_: PathAssignment
    weights_: EdgeWeights
    loss_: DecodingLoss
    probability_loss_: DecodingLoss
    code_: Code
    n_features_in_: int
    pruning_: Pruning
    _online: Any
    n_jobs: int | None
    class_weight: Any = None  # of all that have no such parameter

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of each row."""
        rows = self._checked_rows(X)
        return self.classes_[self._codes(rows)]

    def row_predictor(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], Any]:
        """Function that classifies one sparse row at a time, without the checks of ``predict``.

        It takes the row's feature numbers and their values, and returns the label: for services
        that answer one request after the other. It goes on with the model as it is now.

        >>> import numpy as np
        >>> from xtrellis import TrellisClassifier
        >>> X, y = np.tile(np.eye(4), (3, 1)), [0, 1, 2, 3] * 3
        >>> clf = TrellisClassifier(random_state=0).fit(X, y)
        >>> classify = clf.row_predictor()
        >>> classify([2], [1.0]) == clf.predict([[0, 0, 1, 0]])[0]
        np.True_
        """
        check_is_fitted(self)
        classes = self.classes_[self.assignment_.class_of_path]
        n_features, find_paths = self.n_features_in_, copy.copy(self)._path_finder()

        def classify(indices: npt.ArrayLike, values: npt.ArrayLike) -> Any:
            features, data = np.asarray(indices, np.int32), np.asarray(values, np.float32)
            if features.ndim != 1 or features.shape != data.shape:
                raise ValueError(
                    f"indices and values must be two lists of one length, "
                    f"got shapes {features.shape} and {data.shape}"
                )
            if features.size and not (features.min() >= 0 and features.max() < n_features):
                raise ValueError(f"indices must be from 0 to {n_features - 1}")
            row = _Rows(np.array([0, len(features)], np.int64), features, data, (1, n_features))
            return classes[find_paths(row)[0]]

        return classify

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """The k best classes of each row, best first, and their probabilities; O(log K) a row.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
        probabilities : ndarray of shape (n_samples, k)
        """
        parts = []
        for margins in self._margins(self._checked_rows(X)):
            paths, log_p = likely_paths(
                self.trellis_, margins, k, self.loss_, self.probability_loss_
            )
            parts.append((self.assignment_.class_of_path[paths], np.exp(log_p)))
        codes, probabilities = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return self.classes_[codes], probabilities

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities of all K classes, (n_samples, n_classes); see :meth:`predict_top_k`."""
        return np.exp(self._log_probabilities(X))

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Log-probabilities of all K classes."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Log-probabilities of all classes; of two classes, the log-odds of the second."""
        scores = self._log_probabilities(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _log_probabilities(self, X: Any) -> npt.NDArray[np.float64]:
        """Log-probabilities of all classes."""
        rows = self._checked_rows(X)
        paths = self.assignment_.path_of_class[np.newaxis]
        parts = [
            path_log_probabilities(self.trellis_, margins, paths, self.probability_loss_)
            for margins in self._margins(rows, per_row=self.trellis_.n_classes)
        ]
        return np.concatenate(parts)

    def _codes(self, X: Any) -> IntArray:
        """Classes of checked rows, as numbers."""
        from joblib import effective_n_jobs

        n_jobs = effective_n_jobs(self.n_jobs)
        if n_jobs == 1:
            return self.assignment_.class_of_path[self._paths(X)]
        cuts = np.linspace(0, X.shape[0], min(4 * n_jobs, X.shape[0]) + 1).astype(int)
        paths = in_threads(
            lambda cut: self._paths(canonical_csr(X[cut[0] : cut[1]])), pairwise(cuts), n_jobs
        )
        return self.assignment_.class_of_path[np.concatenate(paths)]

    def _paths(self, X: Any) -> IntArray:
        """Paths of checked rows."""
        return self._path_finder()(X)

    def _path_finder(self) -> Callable[[Any], IntArray]:
        """What finds paths of checked rows: one kernel if the loss has one, else step by step."""
        kernel = fused_kernel(self.trellis_, self.loss_)
        if kernel is None or self.weights_.others:
            return self._paths_step_by_step
        run, settings = kernel
        fixed = (
            *self.weights_.arrays,
            *self.weights_.twins,
            *settings,
            *layout(self.trellis_),
        )

        def find(X: Any) -> IntArray:
            found = np.empty(X.shape[0], np.int64)
            run(X.indptr, X.indices, X.data, *fixed, found)
            for row in np.flatnonzero(found < 0):
                within = slice(X.indptr[row], X.indptr[row + 1])
                indptr = np.array([0, within.stop - within.start], np.int64)
                one = _Rows(indptr, X.indices[within], X.data[within], (1, X.shape[1]))
                found[row] = self._paths_step_by_step(one)[0]
            return found

        return find

    def _paths_step_by_step(self, X: Any) -> IntArray:
        """Paths of checked rows: margins, then costs, then paths."""
        if isinstance(X, _Rows) and not self.weights_.others:
            batches: Any = [self.weights_.margins(X)]
        elif isinstance(X, _Rows):
            matrix = sparse.csr_matrix((X.data, X.indices, X.indptr), X.shape)
            batches = self._margins(canonical_csr(matrix))
        else:
            batches = self._margins(X)
        paths = [
            shortest_paths(self.trellis_, self.loss_.edge_costs(self.trellis_, margins))
            for margins in batches
        ]
        return np.concatenate(paths)

    def _margins(self, X: Any, per_row: int = 0) -> Iterator[Any]:
        """Margins of the rows, a chunk at a time."""
        for part in self._row_chunks(X, per_row):
            yield self.weights_.margins(part)

    def _row_chunks(self, X: Any, per_row: int = 0) -> Iterator[Any]:
        """Rows in chunks whose margins fit the processor's caches."""
        size = max(64, 2**18 // max(self.trellis_.n_edges, per_row))
        if X.shape[0] <= size:
            yield X
            return
        for start in range(0, X.shape[0], size):
            yield canonical_csr(X[start : start + size])

    def _encode(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, IntArray, npt.NDArray[np.float32]]:
        """Checked rows as CSR, classes as numbers, and the weight of each row."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32)
        weights = row_weights(sample_weight, X.shape[0])
        if self.class_weight is not None:
            weights = weights * compute_sample_weight(self.class_weight, y).astype(np.float32)
        return self._encode_classes(canonical_csr(X), y, weights)

    def _encode_classes(
        self, X: Any, y: Any, weights: npt.NDArray[np.float32]
    ) -> tuple[Any, IntArray, npt.NDArray[np.float32]]:
        """Rows that count, their classes as numbers, and their weights; sets ``classes_``."""
        with warnings.catch_warnings():
            # Many classes with few rows each are what this library is for.
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            check_classification_targets(y)
        counted = weights > 0
        if not counted.any():
            raise ValueError("sample_weight is zero for every row: no row is left to train on")
        if not counted.all():
            X, y, weights = X[counted], y[counted], weights[counted]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have at least two classes, got one class only: {self.classes_.tolist()}"
            )
        return X, codes.astype(np.int64), np.ascontiguousarray(weights, np.float32)

    # ------------------------------------------------------------------ a smaller model

    def prune(
        self,
        X: Any = None,
        y: Any = None,
        *,
        max_drop: float = 0.01,
        threshold: float | None = None,
        half: bool = True,
        sample_weight: Any = None,
    ) -> Self:
        """Set small weights to zero and store the others sparse; Section 6.2 of the paper.

        Parameters
        ----------
        X, y, sample_weight
            Validation rows: rows that the model was not trained on.
        max_drop : float, default=0.01
            Accuracy on these rows that may be lost; 0.01 is one point.
        threshold : float, default=None
            Prune weights of at most this size, instead of searching for the largest threshold that
            loses no more than ``max_drop``. Validation rows, if given, are then only measured on.
        half : bool, default=True
            Round the weights to half precision: two bytes each in the model file.

        Returns
        -------
        self
            With ``pruning_`` telling what was done.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from xtrellis import TrellisClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = TrellisClassifier(random_state=0).fit(X[:1200] / 16, y[:1200])
        >>> clf.prune(X[1200:] / 16, y[1200:], max_drop=0.02).pruning_.n_after < 400
        True
        """
        with all_or_nothing(self):
            return self._prune(X, y, max_drop, threshold, half, sample_weight)

    def _prune(
        self,
        X: Any,
        y: Any,
        max_drop: float,
        threshold: float | None,
        half: bool,
        sample_weight: Any,
    ) -> Self:
        check_is_fitted(self)
        check_pruning(max_drop, threshold)
        accuracy = None
        if X is not None and y is not None:
            rows = self._checked_rows(X)
            accuracy = accuracy_above(
                lambda least: self._codes_above(rows, least), self.classes_, rows, y, sample_weight
            )
        self.pruning_ = pruning.prune_models([self], accuracy, max_drop, threshold, half)
        return self

    def _codes_above(self, X: Any, threshold: float) -> IntArray:
        """Classes of checked rows, as if weights of at most the threshold were zero."""
        paths = []
        for part in self._row_chunks(X):
            margins = self.weights_.margins(part, threshold)
            costs = self.loss_.edge_costs(self.trellis_, margins)
            paths.append(shortest_paths(self.trellis_, costs))
        return self.assignment_.class_of_path[np.concatenate(paths)]

    # ------------------------------------------------------------------ diagnostics

    def diagnose(self, X: Any, y: Any, loss: Any = "squared_hinge") -> diagnostics.Diagnosis:
        """The paper's diagnostics on given rows: average binary loss, bound, margin, non-zeros.

        >>> from sklearn.datasets import load_digits
        >>> from xtrellis import TrellisClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = TrellisClassifier.paper(4, random_state=0).fit(X / 16, y)
        >>> diagnosis = clf.diagnose(X / 16, y)
        >>> diagnosis.error <= diagnosis.error_bound
        True
        """
        rows = self._checked_rows(X)
        y = np.asarray(y)
        check_consistent_length(rows, y)
        paths = self.assignment_.path_of_class[self._known_codes(y)]
        return diagnostics.diagnose(
            self.trellis_, self.weights_, self._margins(rows), paths, loss, self.code_
        )

    def _known_codes(self, y: npt.NDArray[Any]) -> IntArray:
        """Numbers of labels, or an error that names one that is not among ``classes_``."""
        codes = codes_or_none(self.classes_, y)
        if (codes < 0).any():
            label = y[codes < 0][:1].tolist()[0]
            raise ValueError(f"y holds a label that is not in classes: {label!r}")
        return codes


def fused_kernel(
    trellis: Trellis, loss: DecodingLoss
) -> tuple[Callable[..., None], tuple[Any, ...]] | None:
    """Kernel that predicts with a loss in one go, and its settings; None if there is none."""
    if isinstance(loss, VertexSoftmax):
        from .kernels.predict import softmax_paths

        scale = loss.edge_scale(trellis).astype(np.float32)
        return softmax_paths, (scale, loss.power, np.float32(loss.normalisation))
    if loss is get_loss("exponential"):
        from .kernels.predict import exponential_paths

        return exponential_paths, ()
    return None


def accuracy_above(
    codes_above: Callable[[float], IntArray],
    classes: npt.NDArray[Any],
    rows: Any,
    y: Any,
    sample_weight: Any,
) -> Callable[[float], float]:
    """Accuracy on labelled rows, as a function of the threshold that small weights are under.

    ``codes_above`` gives the rows' classes, as numbers, for a threshold.
    """
    y = np.asarray(y)
    check_consistent_length(rows, y)
    truth = codes_or_none(classes, y)  # a label never seen, -1, is never right
    weights = row_weights(sample_weight, rows.shape[0])
    if not weights.any():
        raise ValueError("sample_weight is zero for every row: no row is left to measure on")

    def accuracy(threshold: float) -> float:
        return float(np.average(codes_above(threshold) == truth, weights=weights))

    return accuracy


def codes_or_none(classes: npt.NDArray[Any], y: npt.NDArray[Any]) -> IntArray:
    """Numbers of labels, -1 for one that is not among the sorted classes."""
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    return np.where(classes[codes] == y, codes, -1).astype(np.int64)
