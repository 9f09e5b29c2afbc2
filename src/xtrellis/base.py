"""What every fitted trellis estimator can do, however it was trained.

Estimators check what they are given and hand it to their :class:`TrellisModel`, which answers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from ._arrays import Float32Array, IntArray, SparseRows, canonical_csr
from ._checks import (
    check_jobs,
    check_shape,
    clamped_k,
    known_labels,
)
from .answers import AnswersMixin, answered, check_otherwise, checked_row
from .decoding.losses import DecodingLoss
from .graph.assignment import PathAssignment
from .graph.codebook import Code
from .graph.trellis import Trellis
from .learning.pruning import Pruning
from .learning.training import History
from .model.model_file import SavableMixin
from .model.weights import EdgeWeights
from .prediction import TrellisModel
from .prunable import PrunableRowsMixin
from .selection import diagnostics
from .sets import likely_sets, sets_of

# ---------------------------------------------------------------------- estimators


class RowClassifier(PrunableRowsMixin, AnswersMixin, SavableMixin, ClassifierMixin, BaseEstimator):
    """Base of all estimators that take rows of features."""

    def _checked_rows(self, X: Any) -> tuple[Self, Any]:
        """The estimator as it is now, and rows that were checked against it.

        The copy is made in one step, so that another thread that fits cannot come between the
        check and the prediction.
        """
        now = copy.copy(self)
        check_is_fitted(now)
        if isinstance(X, SparseRows):  # of a few texts: made by us, so there is nothing to check
            return now, X
        X = validate_data(now, X, accept_sparse="csr", dtype=np.float32, reset=False)
        return now, canonical_csr(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class TrellisPredictor(RowClassifier):
    """Base of the estimators with one trellis. All that was learned is in ``model_``."""

    model_: TrellisModel
    n_features_in_: int
    _online: Any
    n_jobs: int | None

    _saved: ClassVar[dict[str, Any]] = {
        "n_features_in_": int,
        "model_": TrellisModel,
        "history_": History,
    }
    _saved_if_set: ClassVar[dict[str, Any]] = {
        "feature_names_in_": np.ndarray,
        "pruning_": Pruning,
        "first_feature_": int,  # number of the first feature in svmlight rows, 0 or 1
    }

    def _check_parts(self) -> None:
        check_jobs(self.n_jobs)
        self.model_.check()
        if self.model_.weights.n_features != self.n_features_in_:
            raise ValueError("n_features_in_ must be the number of features of the weights")
        check_feature_names(self)
        if getattr(self, "first_feature_", 0) not in (0, 1):
            raise ValueError("first_feature_ must be 0 or 1")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _models(self) -> list[TrellisModel]:
        return [self.model_]

    def _set_models(self, models: Sequence[TrellisModel]) -> None:
        (self.model_,) = models
        self._online = None  # states of online learners belong to the old weights

    def _classify(self, models: Sequence[TrellisModel], rows: Any) -> IntArray:
        return models[0].classify(rows, self.n_jobs)

    # ------------------------------------------------------------------ parts of the model

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Labels, sorted."""
        return self.model_.classes

    @property
    def trellis_(self) -> Trellis:
        """The graph."""
        return self.model_.trellis

    @property
    def assignment_(self) -> PathAssignment:
        """Which class is which path."""
        return self.model_.assignment

    @property
    def weights_(self) -> EdgeWeights:
        """Weights of all edges."""
        return self.model_.weights

    @property
    def loss_(self) -> DecodingLoss:
        """Loss that paths are compared by."""
        return self.model_.loss

    @property
    def calibration_(self) -> Any:
        """Loss that probabilities are computed from."""
        return self.model_.calibration

    @property
    def temperature_(self) -> float:
        """What path costs are divided by before they become probabilities."""
        return self.model_.temperature

    @property
    def code_(self) -> Code:
        """The paper's code, "independent", or that of local training, "local"."""
        return self.model_.code

    # ------------------------------------------------------------------ prediction

    def predict(
        self, X: Any, *, min_probability: float | None = None, otherwise: Any = None
    ) -> npt.NDArray[Any]:
        """Most likely class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        min_probability : float, default=None
            Lowest probability at which a class is returned.
        otherwise : default=None
            What to return for rows without such a class: a label for "none of these".
        """
        now, rows = self._checked_rows(X)
        if min_probability is None:
            check_otherwise(otherwise)
            return now.model_.classes[now.model_.classify(rows, now.n_jobs)]
        encoded, log_p = now.model_.top_k(rows, 1, now.n_jobs)
        labels = now.model_.classes[encoded[:, 0]]
        return answered(labels, np.exp(log_p[:, 0]), min_probability, otherwise)

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        allow_empty: bool = True,
        return_proba: bool = False,
    ) -> Any:
        """Small sets of classes that contain the true class as often as asked.

        They are calibrated on rows that were held out in :meth:`fit`, so that the coverage holds
        however good the model is. A doubtful row has a large set, and a row unlike any class an
        empty one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            Fraction of rows whose set is to contain the true class.
        allow_empty : bool, default=True
            False puts the most likely class into sets that would otherwise be empty. More rows than
            asked for are then covered if the accuracy of the model is above ``coverage``.
        return_proba : bool, default=False
            Whether to return the probabilities of the classes, too.

        Returns
        -------
        sets : list of ndarray
            The labels of each set, most likely first.
        probabilities : list of ndarray
            Their probabilities; only if ``return_proba`` is True.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.model_selection import train_test_split
        >>> from xtrellis import TrellisClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> X, X_test, y, y_test = train_test_split(X / 16, y, random_state=0)
        >>> clf = TrellisClassifier(random_state=0).fit(X, y)
        >>> sets = clf.predict_set(X_test, coverage=0.95)
        >>> sum(label in own for label, own in zip(y_test, sets)) > 0.9 * len(sets)
        True
        """
        now, rows = self._checked_rows(X)
        sets = sets_of(now.model_, rows, coverage, now.n_jobs)
        if not allow_empty and (empty := [i for i, own in enumerate(sets) if not len(own)]):
            best = now.model_.classify(canonical_csr(rows[empty]), now.n_jobs)
            for i, encoded in zip(empty, best, strict=True):
                sets[i] = np.array([encoded])
        if not return_proba:
            return [now.model_.classes[own] for own in sets]
        sets, probabilities = likely_sets(now.model_, rows, sets, now.n_jobs)
        return [now.model_.classes[own] for own in sets], probabilities

    def margins(self, X: Any) -> Float32Array:
        """Margin of every edge's learner for every row, (n_samples, n_edges)."""
        now, rows = self._checked_rows(X)
        return now.model_.margins(rows)

    def row_predictor(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], Any]:
        """Function that classifies one sparse row at a time, without the checks of ``predict``.

        It takes the row's feature numbers and their values, and returns the label: for services
        that answer one request after the other. It keeps the model as it is now.

        >>> import numpy as np
        >>> from xtrellis import TrellisClassifier
        >>> X, y = np.tile(np.eye(4), (3, 1)), [0, 1, 2, 3] * 3
        >>> clf = TrellisClassifier(random_state=0).fit(X, y)
        >>> classify = clf.row_predictor()
        >>> classify([2], [1.0]) == clf.predict([[0, 0, 1, 0]])[0]
        np.True_
        """
        now = copy.copy(self)
        check_is_fitted(now)
        return checked_row(now._checked_row_predictor(), now.n_features_in_)

    def _checked_row_predictor(self) -> Callable[[npt.NDArray[Any], Float32Array], Any]:
        """The same for rows that are known to be sound, with features in ascending order."""
        label_of_path = self.model_.classes[self.model_.assignment.class_of_path]
        find_path = self.model_.row_finder()
        return lambda features, values: label_of_path[find_path(features, values)]

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """The k best classes of each row, best first, and their probabilities.

        It takes O(log K) per row. If there are fewer than k classes, all of them are returned.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
        probabilities : ndarray of shape (n_samples, k)
        """
        now, rows = self._checked_rows(X)
        return now.model_.best_labels(rows, clamped_k(k, now.model_.n_classes))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities of all K classes, (n_samples, n_classes); see :meth:`predict_top_k`."""
        table = self.predict_log_proba(X)
        return np.exp(table, out=table)

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Log-probabilities of all K classes, (n_samples, n_classes)."""
        now, rows = self._checked_rows(X)
        return now.model_.log_probabilities(rows)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Log-probabilities of all classes; of two classes, the log-odds of the second."""
        scores = self.predict_log_proba(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

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
        now, rows = self._checked_rows(X)
        y = np.asarray(y)
        check_consistent_length(rows, y)
        model = now.model_
        paths = model.assignment.path_of_class[known_labels(model.classes, y)]
        margins = model.margin_batches(rows)
        return diagnostics.diagnose(model.trellis, model.weights, margins, paths, loss, model.code)


def check_feature_names(estimator: Any) -> None:
    """Raise a ValueError if an estimator's feature names are not one text for each feature."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return
    check_shape("feature_names_in_", names, (estimator.n_features_in_,))
    if names.dtype.kind not in "UO":
        raise ValueError(f"feature_names_in_ must be texts, got {names.dtype}")
