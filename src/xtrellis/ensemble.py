"""An ensemble: several trellises that differ in their seed, and the mean of their probabilities.

Each trellis has an order of the classes of its own, so each mixes up other classes; where one errs,
the others outvote it. With p_i(c | x) the probability of class c by trellis i of M,

    p(c | x) = (p_1(c | x) + ... + p_M(c | x)) / M.

Its k best classes are found exactly without looking at all K, by Fagin's threshold algorithm: each
trellis names its m best classes, and every class named is looked up in all trellises. A class that
none has named is, with each trellis, at most as probable as the m-th that this one has named, so

    p(c | x) <= tau = mean over i of (m-th largest p_i).

Once k of the classes named are above tau no other can be among the k best; until then m doubles.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._arrays import FloatArray, IntArray, canonical_csr
from ._checks import check_integer, check_pruning
from ._nested import DefaultEstimatorMixin
from ._threads import in_threads
from .base import RowClassifier, TrellisPredictor, accuracy_above, all_or_nothing
from .classifier import TrellisClassifier
from .decoding.paths import checked_costs, checked_k, k_shortest_paths, log_probabilities
from .graph.assignment import PathAssignment
from .graph.trellis import Trellis
from .learning.pruning import Pruning, prune_models

Result = TypeVar("Result")
Floats = npt.NDArray[np.float64]

_LEAST = 1e-290  # probabilities below are compared by their logarithms: they run out of digits
_SLACK = 1e-9  # what rounding may do to a probability, as a share of it
_ENTRIES = 2**20  # classes that are looked up at once, over all rows and trellises


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
    pruning_: Pruning

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

    _nested = "estimator"  # the parameter whose own parameters can be set even if it is None

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train all trellises on rows X with labels y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type that sorts.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        with all_or_nothing(self):
            members = self._new_members()
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32)
            rows = canonical_csr(X)
            for member in members:
                member.fit(rows, y, sample_weight)
                member.classes_ = members[0].classes_  # the same labels: held once
            self.estimators_, self.classes_ = members, members[0].classes_
            self.__dict__.pop("pruning_", None)  # of an earlier fit
        return self

    def _new_members(self) -> list[Any]:
        """Clones of the estimator, each with a seed of its own."""
        check_integer("n_estimators", self.n_estimators, 1)
        estimator = TrellisClassifier() if self.estimator is None else self.estimator
        if not isinstance(estimator, TrellisPredictor):
            raise TypeError(
                f"estimator must be a TrellisClassifier or an LTLSClassifier, got {estimator!r}"
            )
        rng = check_random_state(self.random_state)
        settings: dict[str, Any] = {} if self.n_jobs is None else {"n_jobs": self.n_jobs}
        return [
            clone(estimator).set_params(random_state=int(rng.randint(2**31)), **settings)
            for _ in range(self.n_estimators)
        ]

    # ------------------------------------------------------------------ prediction

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of the largest mean probability of each row; of equal ones, the first."""
        rows = self._checked_rows(X)
        return self.classes_[self._codes_above(rows)]

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], Floats]:
        """The k best classes of each row, best first, and their mean probabilities.

        They are exact, and found in O(log K) a row.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
        probabilities : ndarray of shape (n_samples, k)
        """
        rows = self._checked_rows(X)
        k = checked_k(k, len(self.classes_))
        parts = self._by_chunks(rows, lambda views: best_of_mean(views, k))
        codes, probabilities = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return self.classes_[codes], probabilities

    def predict_proba(self, X: Any) -> Floats:
        """Mean probabilities of all K classes, (n_samples, n_classes)."""
        return self._of_all_classes(X, mean_probabilities)

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the mean probabilities of all K classes."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """Logarithms of the mean probabilities; of two classes, the log-odds of the second."""
        scores = self._of_all_classes(X, log_mean_probabilities)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _of_all_classes(self, X: Any, mean: Callable[[Floats], Floats]) -> Floats:
        """Some mean over the trellises for every class."""
        rows = self._checked_rows(X)
        every = np.arange(len(self.classes_))[np.newaxis]
        parts = self._by_chunks(rows, lambda views: mean(look_up(views, every)), per_row=every.size)
        return np.concatenate(parts)

    def _codes_above(self, rows: Any, threshold: float = 0.0) -> IntArray:
        """Classes of checked rows, as if weights of at most the threshold were zero."""
        parts = self._by_chunks(rows, lambda views: best_of_mean(views, 1)[0][:, 0], threshold)
        return np.concatenate(parts)

    def _by_chunks(
        self,
        rows: Any,
        function: Callable[[list[View]], Result],
        threshold: float = 0.0,
        per_row: int = 0,
    ) -> list[Result]:
        """Results of a function of what all trellises say of some rows, chunk by chunk."""
        n_edges = max(member.trellis_.n_edges for member in self.estimators_)
        size = max(64, 2**18 // max(n_edges, per_row))
        n_chunks = max(1, -(-rows.shape[0] // size))
        cuts = np.linspace(0, rows.shape[0], n_chunks + 1).astype(int)

        def of_chunk(cut: tuple[int, int]) -> Result:
            chunk = rows if n_chunks == 1 else canonical_csr(rows[cut[0] : cut[1]])
            return function([view_of(member, chunk, threshold) for member in self.estimators_])

        n_jobs = self.estimators_[0].n_jobs if self.n_jobs is None else self.n_jobs
        return in_threads(of_chunk, pairwise(cuts), n_jobs)

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
        """Set small weights of all trellises to zero, at one threshold for all.

        Parameters are those of :meth:`TrellisClassifier.prune`; accuracies, and what may be lost
        of them, are those of the ensemble.
        """
        check_is_fitted(self)
        check_pruning(max_drop, threshold)
        with all_or_nothing(self):
            self.estimators_ = [copy.copy(member) for member in self.estimators_]
            accuracy = None
            if X is not None and y is not None:
                rows = self._checked_rows(X)
                accuracy = accuracy_above(
                    lambda least: self._codes_above(rows, least),
                    *(self.classes_, rows, y, sample_weight),
                )
            self.pruning_ = prune_models(self.estimators_, accuracy, max_drop, threshold, half)
        return self


# ---------------------------------------------------------------------- what one trellis says


class View(NamedTuple):
    """What a trellis says of some rows: ``p(path) ~ exp(-cost)``, and which class is which path."""

    trellis: Trellis
    assignment: PathAssignment
    costs: FloatArray  # (n_rows, n_edges)


def view_of(member: TrellisPredictor, rows: Any, threshold: float = 0.0) -> View:
    """What a fitted classifier says of checked rows, without weights up to the threshold."""
    margins = member.weights_.margins(rows, threshold)
    costs = checked_costs(member.trellis_, margins, member.probability_loss_)
    return View(member.trellis_, member.assignment_, costs)


def look_up(views: Sequence[View], codes: IntArray) -> Floats:
    """Log-probabilities of given classes, (n_rows, c) or (1, c), by each: (n_views, n_rows, c)."""
    return np.stack(
        [
            log_probabilities(trellis, costs, assignment.path_of_class[codes])
            for trellis, assignment, costs in views
        ]
    )


def mean_probabilities(log_p: Floats) -> Floats:
    """Mean over the first axis of ``exp(log_p)``, added up in order: the same bits everywhere."""
    total = np.exp(log_p[0])
    for each in log_p[1:]:
        total += np.exp(each)
    return total / len(log_p)


def log_mean_probabilities(log_p: Floats) -> Floats:
    """Logarithm of the same, finite even where the mean is too small for a number."""
    return np.logaddexp.reduce(log_p, axis=0) - np.log(len(log_p))


# ---------------------------------------------------------------------- the best of the mean


def best_of_mean(views: Sequence[View], k: int) -> tuple[IntArray, Floats]:
    """The k classes of largest mean probability of each row, best first, and these means.

    Of classes with the same mean, the one with the lowest number comes first.
    """
    n_rows, n_classes = len(views[0].costs), views[0].trellis.n_classes
    codes, means = np.empty((n_rows, k), np.int64), np.empty((n_rows, k))
    waiting, m = np.arange(n_rows), max(2 * k, 4)
    while len(waiting):
        m = min(m, n_classes)
        size = max(1, _ENTRIES // (len(views) * len(views) * m))
        late = []
        for start in range(0, len(waiting), size):
            rows = waiting[start : start + size]
            some = views if len(rows) == n_rows else [_rows_of(view, rows) for view in views]
            codes[rows], means[rows], certain = _best_of_named(some, k, m)
            late.append(rows[~certain])
        waiting, m = np.concatenate(late), 2 * m
    return codes, means


def _best_of_named(
    views: Sequence[View], k: int, m: int
) -> tuple[IntArray, Floats, npt.NDArray[np.bool_]]:
    """The k best of the classes that views name, m each; and whether they are the best of all."""
    n_rows, n_classes = len(views[0].costs), views[0].trellis.n_classes
    if len(views) * m >= n_classes:  # looking all of them up is less work
        log_p = look_up(views, np.arange(n_classes)[np.newaxis])
        codes = np.broadcast_to(np.arange(n_classes), (n_rows, n_classes))
        best, means, _ = _first_k(codes, log_p, k)
        return best, means, np.ones(n_rows, bool)
    codes = np.concatenate([_named(view, m) for view in views], axis=1)
    log_p = look_up(views, codes)
    best, means, least = _first_k(codes, log_p, k)
    last = np.stack([own[:, (i + 1) * m - 1] for i, own in enumerate(log_p)])  # each one's m-th
    bound = _ranks(last, mean_probabilities(last))
    # Above, not at it: a class not named that is as probable may come first by its number.
    return best, means, least > bound + _SLACK * np.abs(bound)


def _named(view: View, m: int) -> IntArray:
    """The m best classes of a view, best first."""
    paths, _ = k_shortest_paths(view.trellis, view.costs, m)
    return view.assignment.class_of_path[paths]


def _first_k(codes: IntArray, log_p: Floats, k: int) -> tuple[IntArray, Floats, Floats]:
    """The k best of given classes, of which some may be given twice; means; the k-th one's rank."""
    means = mean_probabilities(log_p)
    ranks = _ranks(log_p, means)
    order = np.lexsort((codes, -ranks), axis=-1)
    codes = np.take_along_axis(codes, order, axis=1)
    means, ranks = (np.take_along_axis(each, order, axis=1) for each in (means, ranks))
    first = np.ones(codes.shape, bool)
    first[:, 1:] = codes[:, 1:] != codes[:, :-1]
    taken = first & (np.cumsum(first, axis=1) <= k)
    shape = len(codes), k
    return codes[taken].reshape(shape), means[taken].reshape(shape), ranks[taken][k - 1 :: k]


def _ranks(log_p: Floats, means: Floats) -> Floats:
    """Numbers in the order of the means: these themselves, or of tiny ones their logarithms.

    All probabilities are positive, all logarithms of tiny ones negative.
    """
    tiny = means < _LEAST
    if not tiny.any():
        return means
    ranks = means.copy()
    ranks[tiny] = log_mean_probabilities(log_p[:, tiny])
    return ranks


def _rows_of(view: View, rows: IntArray) -> View:
    return view._replace(costs=view.costs[rows])
