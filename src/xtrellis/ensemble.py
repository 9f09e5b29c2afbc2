"""An ensemble: several trellises that differ in their seed, and the mean of their probabilities.

Each trellis has an order of the classes of its own, so each mixes up other classes; where one errs,
the others outvote it. With p_i(c | x) the probability of class c by trellis i of M,

    p(c | x) = (p_1(c | x) + ... + p_M(c | x)) / M.

A trellis votes with the probabilities of its five best classes; what they leave it divides evenly
among all others. So the best classes of the mean are among those that some trellis has named.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._arrays import Float32Array, Float64Array, IntArray, SparseRows, canonical_csr
from ._changing import built_aside
from ._checks import check_integer, check_jobs, clamped_k
from ._memory import empty_table
from ._nested import DefaultEstimatorMixin
from ._threads import in_threads
from .answers import answered, check_otherwise, checked_row
from .base import RowClassifier, TrellisPredictor, check_feature_names
from .classifier import TrellisClassifier
from .learning.checkpoint import emptying_later, in_subfolder
from .prediction import TrellisModel
from .selection.default_width import FEW_CLASSES, default_slice_width
from .votes import Votes, best_of_mean, log_mean, votes_of

_ROWS = 4096  # that are predicted together


class TrellisEnsemble(DefaultEstimatorMixin, RowClassifier):
    """Several trellises that differ in their seed; predictions by their mean probability.

    Model and training take ``n_estimators`` times as much as of one trellis, and any prediction the
    time of as many calls of its ``predict_top_k``.

    Parameters
    ----------
    estimator : TrellisClassifier, LTLSClassifier or None, default=None
        What is cloned and trained; None is ``TrellisClassifier()``.
    n_estimators : int, default=3
        Number of trellises.
    n_jobs : int or None, default=None
        Threads, in place of the estimator's own number; None leaves that as it is. The trellises
        are trained one after the other. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        What the seeds of the trellises are drawn from, in place of the estimator's own.

    Attributes
    ----------
    estimators_ : list of the fitted trellis classifiers
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X was a data frame.
    pruning_ : Pruning
        After :meth:`prune`: what it did, weights of all trellises counted together.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import TrellisClassifier, TrellisEnsemble
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TrellisEnsemble(TrellisClassifier(), random_state=0).fit(X[:1500] / 16, y[:1500])
    >>> clf.score(X[1500:] / 16, y[1500:]) > 0.8
    True
    >>> labels, probabilities = clf.predict_top_k(X[1500:1502] / 16, k=3)
    >>> labels.shape, bool((probabilities.sum(axis=1) <= 1).all())
    ((2, 3), True)
    """

    classes_: npt.NDArray[Any]
    estimators_: list[TrellisPredictor]
    n_features_in_: int

    _saved: ClassVar[dict[str, Any]] = {
        "n_features_in_": int,
        "classes_": np.ndarray,  # shared by the members: stored once
        "estimators_": list[TrellisPredictor],
    }
    _saved_if_set: ClassVar[dict[str, Any]] = TrellisPredictor._saved_if_set

    def _check_parts(self) -> None:
        check_jobs(self.n_jobs)
        check_feature_names(self)
        if not self.estimators_:
            raise ValueError("an ensemble needs members")
        for member in self.estimators_:
            check_is_fitted(member)
            if member.n_features_in_ != self.n_features_in_:
                raise ValueError("n_features_in_ must be the same for all members")
            if not np.array_equal(member.classes_, self.classes_):
                raise ValueError("classes_ must be the same for all members")

    def __init__(
        self,
        estimator: TrellisPredictor | None = None,
        n_estimators: int = 3,
        *,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    # The parameter whose own parameters can be set even if it is None, and what None stands for.
    _nested, _default = "estimator", TrellisClassifier

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, may_hold_out: Any = None) -> Self:
        """Train all trellises on rows X with labels y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type that sorts.
        sample_weight : array-like of shape (n_samples,), default=None
        may_hold_out : array-like of bool, shape (n_samples,), default=None
            Rows that may be held out to choose settings and to calibrate; None means all.
        """
        with built_aside(self, fresh=True) as new:
            members = self._new_members()
            X, y = validate_data(new, X, y, accept_sparse="csr", dtype=np.float32)
            rows = canonical_csr(X)
            _keep_them_different(members, len(np.unique(y)))
            with emptying_later():
                for member in members:
                    member.fit(rows, y, sample_weight, may_hold_out=may_hold_out)
                    # The same labels: held once.
                    member.model_ = replace(member.model_, classes=members[0].classes_)
            new.estimators_, new.classes_ = members, members[0].classes_
        return self

    def _new_members(self) -> list[Any]:
        """Clones of the estimator, each with a seed of its own."""
        check_integer("n_estimators", self.n_estimators, 1)
        estimator = self._default() if self.estimator is None else self.estimator
        if not isinstance(estimator, TrellisPredictor):
            raise TypeError(
                f"estimator must be a TrellisClassifier or an LTLSClassifier, got {estimator!r}"
            )
        rng = check_random_state(self.random_state)
        settings: dict[str, Any] = {} if self.n_jobs is None else {"n_jobs": self.n_jobs}
        return [
            in_subfolder(
                clone(estimator).set_params(random_state=int(rng.randint(2**31)), **settings),
                str(number),
            )
            for number in range(self.n_estimators)
        ]

    # ------------------------------------------------------------------ prediction

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def predict(
        self, X: Any, *, min_probability: float | None = None, otherwise: Any = None
    ) -> npt.NDArray[Any]:
        """Class of the largest mean probability of each row.

        If ``min_probability`` is given, rows without a class of at least this probability get
        ``otherwise`` instead.
        """
        now, rows = self._checked_rows(X)
        if min_probability is None:
            check_otherwise(otherwise)
            return now.classes_[now._classify(now._models(), rows)]
        encoded, probabilities = now._best(now._models(), rows, 1)
        labels = now.classes_[encoded[:, 0]]
        return answered(labels, probabilities[:, 0], min_probability, otherwise)

    def row_predictor(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], Any]:
        """Function that classifies one sparse row at a time, without the checks of ``predict``.

        See :meth:`TrellisClassifier.row_predictor`.
        """
        now = copy.copy(self)
        check_is_fitted(now)
        return checked_row(now._checked_row_predictor(), now.n_features_in_)

    def _checked_row_predictor(self) -> Callable[[npt.NDArray[Any], Float32Array], Any]:
        """The same for rows that are known to be sound, with features in ascending order."""
        models, shape = self._models(), (1, self.n_features_in_)
        finders = [(model.row_finder(), model.assignment.class_of_path) for model in models]

        def classify(features: npt.NDArray[Any], values: Float32Array) -> Any:
            named = {int(class_of[find(features, values)]) for find, class_of in finders}
            if len(named) == 1:
                return self.classes_[named.pop()]
            row = canonical_csr(SparseRows.one(features, values, shape).matrix())
            return self.classes_[self._best(models, row, 1)[0][0, 0]]

        return classify

    def predict_set(self, X: Any, coverage: float = 0.9, **options: Any) -> Any:
        """Not for ensembles: each trellis holds out rows of its own, so none are left for all."""
        raise ValueError(
            "sets need rows that no trellis was trained on, and an ensemble has none: "
            "train one trellis instead"
        )

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], Float64Array]:
        """The k best classes of each row, best first, and their mean probabilities.

        If there are fewer than k classes, all of them are returned.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
        probabilities : ndarray of shape (n_samples, k)
        """
        now, rows = self._checked_rows(X)
        k = clamped_k(k, len(now.classes_))
        encoded, probabilities = now._best(now._models(), rows, k)
        return now.classes_[encoded], probabilities

    def predict_proba(self, X: Any) -> Float64Array:
        """Mean probabilities of all K classes, (n_samples, n_classes)."""
        now, rows = self._checked_rows(X)
        return now._mean(now._models(), rows)

    def predict_log_proba(self, X: Any) -> Float64Array:
        """Logarithms of the mean probabilities of all K classes."""
        now, rows = self._checked_rows(X)
        models = now._models()
        table = now._mean(models, rows)
        vanished = np.flatnonzero((table == 0).any(axis=1))
        with np.errstate(divide="ignore"):
            np.log(table, out=table)
        for start in range(0, len(vanished), _ROWS):
            part = vanished[start : start + _ROWS]
            table[part] = log_mean(models, canonical_csr(rows[part]))
        return table

    def _mean(self, models: Sequence[TrellisModel], rows: Any) -> Float64Array:
        """Mean probabilities of all classes for checked rows."""
        table = empty_table(rows.shape[0], models[0].n_classes)

        def fill(votes: list[Votes], part: slice) -> None:
            table[part] = np.sum([vote.others for vote in votes], axis=0)[:, np.newaxis]
            for vote in votes:
                own = np.take_along_axis(table[part], vote.classes, axis=1)
                own += vote.probabilities - vote.others[:, np.newaxis]
                np.put_along_axis(table[part], vote.classes, own, axis=1)
            table[part] /= len(votes)

        self._by_parts(models, rows, fill)
        return table

    def decision_function(self, X: Any) -> Float64Array:
        """Logarithms of the mean probabilities; of two classes, the log-odds of the second."""
        scores = self.predict_log_proba(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _models(self) -> list[TrellisModel]:
        return [member.model_ for member in self.estimators_]

    def _set_models(self, models: Sequence[TrellisModel]) -> None:
        self.estimators_ = [copy.copy(member) for member in self.estimators_]
        for member, model in zip(self.estimators_, models, strict=True):
            member.model_ = model

    def _classify(self, models: Sequence[TrellisModel], rows: Any) -> IntArray:
        """Numbers of the best classes of checked rows.

        A class that is the best of every trellis has the largest mean: only rows that the trellises
        disagree about need their probabilities.
        """
        n_jobs = self.estimators_[0].n_jobs if self.n_jobs is None else self.n_jobs
        best = np.stack([model.classify(rows, n_jobs) for model in models])
        unsure = np.flatnonzero((best != best[0]).any(axis=0))
        if len(unsure):
            best[0, unsure] = self._best(models, canonical_csr(rows[unsure]), 1)[0][:, 0]
        return best[0]

    def _best(
        self, models: Sequence[TrellisModel], rows: Any, k: int
    ) -> tuple[IntArray, Float64Array]:
        """The k best classes of checked rows, and their mean probabilities."""
        encoded = np.empty((rows.shape[0], k), np.int64)
        probabilities = np.empty((rows.shape[0], k))

        def fill(votes: list[Votes], part: slice) -> None:
            encoded[part], probabilities[part] = best_of_mean(votes, models[0].n_classes, k)

        self._by_parts(models, rows, fill)
        return encoded, probabilities

    def _by_parts(
        self,
        models: Sequence[TrellisModel],
        rows: Any,
        use: Callable[[list[Votes], slice], None],
    ) -> None:
        """Call a function with the votes of all trellises on some rows, and which rows they are."""
        cuts = [*range(0, rows.shape[0], _ROWS), rows.shape[0]]

        def of_part(cut: tuple[int, int]) -> None:
            part = rows if len(cuts) == 2 else canonical_csr(rows[cut[0] : cut[1]])
            use([votes_of(model, part) for model in models], slice(*cut))

        n_jobs = self.estimators_[0].n_jobs if self.n_jobs is None else self.n_jobs
        in_threads(of_part, pairwise(cuts), n_jobs)


def _keep_them_different(members: list[Any], n_classes: int) -> None:
    """Give members the width of a trellis where they would be one-vs-rest: all alike."""
    for member in members if 1 < n_classes <= FEW_CLASSES else ():
        settings = member.get_params(deep=False)
        ours = settings.get("slice_width", 0) is None and settings["max_classes"] is None
        if ours:  # room for more classes means a trellis anyway
            member.slice_width = default_slice_width(n_classes)
