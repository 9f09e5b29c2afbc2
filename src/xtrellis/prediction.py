"""A trained trellis, and everything it can answer.

Data flows one way: rows to margins (``weights``), margins to edge costs (``loss``), costs to paths
(``decoding``), paths to classes (``assignment``). A :class:`TrellisModel` never changes. Estimators
hold one reference to it and replace it as a whole, so that a thread that predicts while another one
fits works with the old model or with the new one, never with a mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import Float32Array, Float64Array, IntArray, SparseRows, canonical_csr
from ._checks import check_shape
from ._memory import empty_table
from ._threads import in_threads, thread_count
from .decoding.calibration import Tempered
from .decoding.confidence import N_BEST, BestPaths
from .decoding.conformal import Conformal
from .decoding.lazy import is_bounded, log_sums, normalised, search_settings
from .decoding.losses import DecodingLoss, get_loss
from .decoding.paths import checked_costs, k_shortest_paths, log_probabilities, shortest_paths
from .decoding.reranking import N_RERANKED, Centroids
from .decoding.rivals import Rivals
from .decoding.vertex_losses import VertexSoftmax
from .graph.assignment import PathAssignment
from .graph.codebook import Code
from .graph.trellis import Trellis
from .model.packed_arrays import Counts
from .model.weights import EdgeWeights

_ROWS = 1_024  # that lazy decoding works on at once: there are buffers to make each time
NO_PATHS = np.empty(0, np.int64)
NO_LIMIT = 2**62  # of vertices that may be opened
TOO_LARGE = "margins must be finite: the weights or the rows are too large"
_ROUNDING = 1e-5  # of sums of products of softmaxes, whose margins are of 32 bits
_NEGLIGIBLE = 1e-4  # error of a probability
_CHUNK = 2**18  # margins, or classes, that are worked on at once: they fit the processor's caches


@lru_cache
def _bounds(length: int) -> IntArray:
    """Where the one row of a matrix begins and ends; making it takes longer than looking it up."""
    return np.array([0, length])


@dataclass(frozen=True, eq=False)
class TrellisModel:
    """A trained trellis. Its methods take rows that :func:`canonical_csr` has made.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    trellis : Trellis
    assignment : PathAssignment
        Which class is which path.
    weights : EdgeWeights
    loss : decoding loss
        What paths are compared by.
    calibration : BestPaths or Tempered
        How costs become probabilities: those of the best paths, or of all.
    code : {"independent", "local"}
        The paper's code, or that of local training.
    centroids : Centroids or None
        Of the classes, if the best ones are re-ranked by them.
    rivals : Rivals or None
        One SVM per class, if the best classes are re-ranked by them.
    conformal : Conformal or None
        How sets of classes are made, if there were rows to find out.
    class_sizes : Counts or None
        Training rows of each class, if they are known.
    """

    classes: npt.NDArray[Any]
    trellis: Trellis
    assignment: PathAssignment
    weights: EdgeWeights
    loss: DecodingLoss
    calibration: BestPaths | Tempered
    code: Code
    centroids: Centroids | None = None
    rivals: Rivals | None = None
    conformal: Conformal | None = None
    class_sizes: Counts | None = None

    def __post_init__(self) -> None:
        n_edges, assignment = self.trellis.n_edges, self.assignment
        check_shape("classes", self.classes, assignment.path_of_class.shape)
        check_shape("assignment", assignment.class_of_path, (self.trellis.n_classes,))
        if assignment.n_free and not self.is_lazy:
            raise ValueError("free paths need local training and a decoding loss that is lazy")
        if self.weights.n_edges != n_edges:
            raise ValueError(f"weights must be of {n_edges} edges, got {self.weights.n_edges}")

    def check(self) -> None:
        """Raise a ValueError if the parts do not fit each other in ways that kernels rely on."""
        for loss in (self.loss, getattr(self.calibration, "loss", None)):
            if isinstance(loss, VertexSoftmax):
                loss.edge_scale(self.trellis)
        if self.class_sizes is not None:
            check_shape("class_sizes", self.class_sizes.values(self.n_classes), (self.n_classes,))
        for name, each in (("centroids", self.centroids), ("rivals", self.rivals)):
            if each is not None:
                check_shape(name, each.starts, (self.n_classes + 1,))
        if not self.is_lazy:
            if self.reranks:
                raise ValueError("only paths that are found lazily can be re-ranked")
            if isinstance(self.calibration, BestPaths):
                raise ValueError("calibration must be of all paths, as the loss is")
            return
        tails, _ = self.trellis.endpoints()
        starts = np.searchsorted(np.sort(tails), np.arange(self.trellis.n_vertices))
        weights = self.weights
        if not (
            np.array_equal(weights.edges, np.argsort(tails, kind="stable"))
            and np.array_equal(weights.column_starts[weights.vertex_starts], starts)
        ):
            raise ValueError("weights must be of the edges that leave each vertex, in order")

    @property
    def n_classes(self) -> int:
        """Number of classes, K; the trellis may have more paths."""
        return len(self.classes)

    @property
    def temperature(self) -> float:
        """What path costs are divided by before they become probabilities."""
        return self.calibration.temperature

    # ------------------------------------------------------------------ margins

    def margins(self, X: Any) -> Float32Array:
        """Margin of every edge for every row, (n, n_edges)."""
        return self.weights.margins(X)

    def margin_batches(self, X: Any, per_row: int = 0) -> Iterator[Float32Array]:
        """The same, some rows at a time; ``per_row`` numbers will be computed for each row."""
        for part in self._row_chunks(X, per_row):
            yield self.weights.margins(part)

    def _row_chunks(self, X: Any, per_row: int = 0) -> Iterator[Any]:
        size = max(64, _CHUNK // max(self.trellis.n_edges, per_row))
        if X.shape[0] <= size:
            yield X
            return
        for start in range(0, X.shape[0], size):
            yield canonical_csr(X[start : start + size])

    # ------------------------------------------------------------------ the best path

    def classify(self, X: Any, n_jobs: int | None = None) -> IntArray:
        """Number of the best class of each row."""
        return self.assignment.class_of_path[self.paths(X, n_jobs)]

    def paths(self, X: Any, n_jobs: int | None = None) -> IntArray:
        """Best path of each row."""
        find = self.path_finder()
        n_threads = 1 if isinstance(X, SparseRows) else thread_count(n_jobs)
        if n_threads == 1:
            return find(X)
        cuts = np.linspace(0, X.shape[0], min(4 * n_threads, X.shape[0]) + 1).astype(int)
        found = in_threads(
            lambda cut: find(canonical_csr(X[cut[0] : cut[1]])), pairwise(cuts), n_jobs
        )
        return np.concatenate(found)

    def row_finder(self) -> Callable[[npt.NDArray[Any], Float32Array], int]:
        """Function that finds the path of one row, given its features and their values."""
        find, shape = self.path_finder(), (1, self.weights.n_features)
        if not self.is_lazy or self.assignment.n_free:
            return lambda features, values: find(SparseRows.one(features, values, shape))[0]
        from .kernels import lazy
        from .kernels._jit import for_types_of

        arguments = *self._search_arguments(self.reranks), NO_PATHS
        none, unused = np.full((1, 1), -1, np.int64), (np.empty((1, 1)), np.empty(1, np.int64))
        compiled: dict[Any, Callable[..., Any]] = {}  # for features of a type

        def search(features: npt.NDArray[Any], values: Float32Array) -> int:
            found, costs = none.copy(), np.empty((1, 1))
            row = _bounds(len(features)), features, values
            everything = *row, *arguments, found, costs, *unused
            if features.dtype not in compiled:
                compiled[features.dtype] = for_types_of(lazy.k_best, *everything)
            compiled[features.dtype](*everything)
            path = found.item()
            if path < 0:
                raise ValueError(TOO_LARGE)
            return path

        return search

    def path_finder(self) -> Callable[[Any], IntArray]:
        """Function that finds the paths of rows: lazily, or in one kernel, or step by step."""
        if self.is_lazy:
            return lambda X: self.ranked(X, 1)[0][:, 0]
        if self.loss == get_loss("exponential") and not self.weights.nonlinear:
            return self._exponential_paths
        return self._paths_step_by_step

    @property
    def is_lazy(self) -> bool:
        """Whether paths are found from the margins of a few vertices; see ``kernels.lazy``."""
        return self.code == "local" and is_bounded(self.loss) and not self.weights.nonlinear

    @property
    def reranks(self) -> bool:
        """Whether the best paths are ordered once more, by centroids or rivals."""
        return self.centroids is not None or self.rivals is not None

    def k_best(self, X: Any, k: int) -> tuple[IntArray, Float64Array, Float64Array]:
        """The k best paths of each row, their costs, and their logs as products of softmaxes."""
        return self._search(X, k)[:3]

    def ranked(self, X: Any, k: int) -> tuple[IntArray, Float64Array, Float64Array]:
        """The same, the best of them re-ranked if there are centroids or rivals."""
        return self._ranked(X, k)[:3]

    def opened(self, X: Any, k: int = 1) -> IntArray:
        """Number of vertices whose margins are computed to find these paths of each row."""
        return self._ranked(X, k)[3]

    def _ranked(self, X: Any, k: int) -> tuple[IntArray, Any, Any, IntArray]:
        if not self.reranks:
            return self._search(X, k)
        if not self.assignment.n_free:
            return self.search(X, k, reranked=True)
        paths, costs, logs, opened = self._search(X, max(k, min(N_RERANKED, self.n_classes)))
        self.rerank(X, paths, costs, logs)
        return paths[:, :k], costs[:, :k], logs[:, :k], opened

    def rerank(self, X: Any, paths: IntArray, costs: Float64Array, logs: Float64Array) -> None:
        """Order the best ten paths of each row anew, in place; equal ones stay as they were.

        Costs become the new ones.
        """
        from .kernels import rerank

        n, classes = min(N_RERANKED, self.n_classes), self.assignment.class_of_path
        rows = X.indptr, X.indices, X.data
        rerank.rerank(*rows, *self._reranking_arguments, classes, paths, costs, logs, n)

    def _search_arguments(self, reranked: bool, n_openable: int = NO_LIMIT) -> tuple[Any, ...]:
        """What the search takes of the model, and of centroids and rivals if it is to re-rank."""
        by, n_reranked = (None, 0.0, None, 0.0), 0
        if reranked:
            by, n_reranked = self._reranking_arguments, min(N_RERANKED, self.n_classes)
        return *self._graph_arguments, *by, n_reranked, self.assignment.class_of_path, n_openable

    @cached_property
    def _reranking_arguments(self) -> tuple[Any, ...]:
        """Centroids, rivals and how much they count; empty ones stand for what is missing."""
        centroids = self.centroids or Centroids.none(self.n_classes)
        rivals = self.rivals or Rivals.none(self.n_classes)
        return centroids.arrays, centroids.strength, rivals.arrays, rivals.strength

    @cached_property
    def _graph_arguments(self) -> tuple[Any, ...]:
        """What the search takes of weights, graph and loss."""
        graph = self.trellis.arrays
        shape = graph.slice_width, graph.digits, graph.path_counts
        settings = search_settings(self.loss, self.trellis)
        weights = self.weights
        firsts = weights.column_starts[weights.vertex_starts[1 : 2 + self.trellis.slice_width]]
        return weights.arrays, *shape, *settings, log_sums(weights.bias, firsts, *settings[:2])

    def _search(self, X: Any, k: int) -> tuple[IntArray, Any, Any, IntArray]:
        """The k best paths that classes have, with their costs and logs; vertices opened."""
        if not self.assignment.n_free:
            return self.search(X, k)
        found = [np.empty((X.shape[0], k), dtype) for dtype in (np.int64, float, float)]
        opened = np.empty(X.shape[0], np.int64)
        X = canonical_csr(X.matrix()) if isinstance(X, SparseRows) and X.shape[0] > 1 else X
        left, n_asked = np.arange(X.shape[0]), 2 * k + 4
        while len(left):  # rows among whose best paths too many are free: search on
            n_asked = min(n_asked, self.trellis.n_classes)
            rows = X if len(left) == X.shape[0] else canonical_csr(X[left])
            *results, n_opened = self.search(rows, n_asked)
            used = self.assignment.class_of_path[results[0]] >= 0
            enough = used.sum(axis=1) >= k
            first = np.argsort(~used[enough], axis=1, kind="stable")[:, :k]
            for into, result in zip(found, results, strict=True):
                into[left[enough]] = np.take_along_axis(result[enough], first, axis=1)
            opened[left[enough]] = n_opened[enough]
            left, n_asked = left[~enough], 4 * n_asked
        return found[0], found[1], found[2], opened

    def search(
        self,
        X: Any,
        k: int,
        *,
        reranked: bool = False,
        until: IntArray = NO_PATHS,
        n_openable: int = NO_LIMIT,
    ) -> tuple[IntArray, Any, Any, IntArray]:
        """The same of all paths, those that are free included: see ``kernels.lazy``.

        The best paths may be re-ranked; then none may be free. A row's search ends at its path in
        ``until``, if there are such, and after ``n_openable`` vertices; what is not found is -1.
        """
        from .kernels import lazy

        n_rows = X.shape[0]
        paths, opened = np.full((n_rows, k), -1, np.int64), np.empty(n_rows, np.int64)
        costs, logs = np.empty((n_rows, k)), np.empty((n_rows, k))
        arguments = *self._search_arguments(reranked, n_openable), until
        lazy.k_best(X.indptr, X.indices, X.data, *arguments, paths, costs, logs, opened)
        needed = paths[:, :1] if len(until) else paths
        if n_openable == NO_LIMIT and needed.min(initial=0) < 0:
            raise ValueError(TOO_LARGE)
        return paths, costs, logs, opened

    def _exponential_paths(self, X: Any) -> IntArray:
        """Paths of least exponential loss, the paper's choice, in one kernel."""
        from .kernels import predict

        found = np.empty(X.shape[0], np.int64)
        weights = self.weights.arrays, *self.weights.twins
        predict.exponential_paths(X.indptr, X.indices, X.data, *weights, self.trellis.arrays, found)
        for row in np.flatnonzero(found < 0):  # margins too extreme for the kernel
            found[row] = self._paths_step_by_step(SparseRows.one_of(X, int(row)))[0]
        return found

    def _paths_step_by_step(self, X: Any) -> IntArray:
        """Margins, then costs, then paths."""
        X = self._as_learners_take(X)
        batches = [self.weights.margins(X)] if isinstance(X, SparseRows) else self.margin_batches(X)
        found = [
            shortest_paths(self.trellis, checked_costs(self.trellis, margins, self.loss))
            for margins in batches
        ]
        return np.concatenate(found)

    def _as_learners_take(self, X: Any) -> Any:
        """Rows as they are, or as the matrix that learners of scikit-learn take."""
        if isinstance(X, SparseRows) and self.weights.nonlinear:
            return canonical_csr(X.matrix())
        return X

    # ------------------------------------------------------------------ probabilities

    def best_classes(self, X: Any, k: int, n_jobs: int | None = None) -> IntArray:
        """Numbers of the k best classes of each row, best first, without their probabilities.

        Those need more paths than these.
        """
        if not self.is_lazy:
            return self.top_k(X, k, n_jobs)[0]
        cuts = [*range(0, X.shape[0], _ROWS), X.shape[0]]
        parts = in_threads(
            lambda cut: self.ranked(canonical_csr(X[slice(*cut)]), k)[0], pairwise(cuts), n_jobs
        )
        return self.assignment.class_of_path[np.concatenate(parts)]

    def top_k(self, X: Any, k: int, n_jobs: int | None = None) -> tuple[IntArray, Float64Array]:
        """Numbers of the k best classes of each row, best first, and their log-probabilities."""
        n_rows = X.shape[0]
        paths, log_p = np.empty((n_rows, k), np.int64), np.empty((n_rows, k))
        find = self._best_few if isinstance(self.calibration, BestPaths) else self.best_of_all

        def fill(cut: tuple[int, int]) -> None:
            part = slice(*cut)
            rows = X if len(cuts) == 2 else canonical_csr(X[part])
            paths[part], log_p[part] = find(rows, k)

        size = _ROWS if self.is_lazy else max(64, _CHUNK // self.trellis.n_edges)
        cuts = [*range(0, n_rows, size), n_rows]
        in_threads(fill, pairwise(cuts), n_jobs)
        return self.assignment.class_of_path[paths], log_p

    def best_labels(self, X: Any, k: int) -> tuple[npt.NDArray[Any], Float64Array]:
        """Labels of the k best classes of each row, best first, and their probabilities."""
        n_listed = k
        if self.reranks and k > N_BEST:  # any re-ranked one may be likelier
            n_listed = max(k, N_RERANKED)
        encoded, log_p = self.top_k(X, min(n_listed, self.n_classes))
        return self.classes[encoded[:, :k]], np.exp(log_p[:, :k])

    def _best_few(self, X: Any, k: int) -> tuple[IntArray, Float64Array]:
        """Best paths and their log-probabilities, from a few vertices."""
        assert isinstance(self.calibration, BestPaths)
        n_listed = max(k, min(N_BEST, self.n_classes))
        paths, costs, logs = self.ranked(X, n_listed)
        log_p = self.calibration.log_probabilities(costs, logs, self.n_classes)
        if N_BEST < n_listed < self.n_classes:
            unsure = self._unsure(log_p, logs)
            if len(unsure):
                log_p[unsure] = self._log_probabilities_of(X, unsure, paths[unsure])
        if k > N_BEST:  # of those beyond, cost and probability may differ
            order = np.argsort(-log_p, axis=1, kind="stable")
            paths = np.take_along_axis(paths, order, axis=1)
            log_p = np.take_along_axis(log_p, order, axis=1)
        return paths[:, :k], log_p[:, :k]

    def _unsure(self, log_p: Float64Array, logs: Float64Array) -> IntArray:
        """Rows in which the listed paths do not tell what all classes beyond the five best weigh.

        It is 1 less the weights of these five, unless paths are free, or these five have so much of
        the weight that the difference is mostly rounding.
        """
        if self.assignment.n_free:
            return np.arange(len(log_p))
        beyond = 1 - np.exp(logs[:, :N_BEST]).sum(axis=1)
        left = 1 - np.exp(log_p[:, :N_BEST]).sum(axis=1)
        return np.flatnonzero(left * _ROUNDING > _NEGLIGIBLE * np.maximum(beyond, _ROUNDING))

    def _log_probabilities_of(self, X: Any, rows: IntArray, paths: IntArray) -> Float64Array:
        """Log-probabilities of given paths of some rows, among those of all classes."""
        X = X.matrix() if isinstance(X, SparseRows) else X
        classes, found, start = self.assignment.class_of_path[paths], np.empty(paths.shape), 0
        for part in self._row_chunks(canonical_csr(X[rows]), per_row=self.n_classes):
            own = slice(start, start + part.shape[0])
            start = own.stop
            every = self.log_probabilities(part)
            found[own] = np.take_along_axis(every, classes[own], axis=1)
        return found

    def best_of_all(self, X: Any, k: int) -> tuple[IntArray, Float64Array]:
        """Best paths and their log-probabilities, from the margins of all edges."""
        assert isinstance(self.calibration, Tempered)
        margins = self.weights.margins(self._as_learners_take(X))
        costs = checked_costs(self.trellis, margins, self.loss)
        paths, _ = k_shortest_paths(self.trellis, costs, k)
        if self.calibration.loss == self.loss:
            costs = costs * float(1 / self.calibration.temperature)
        else:
            costs = checked_costs(self.trellis, margins, self.calibration)
        return paths, log_probabilities(self.trellis, costs, paths)

    def log_probabilities(self, X: Any) -> Float64Array:
        """Log-probabilities of all classes, (n, n_classes)."""
        table = empty_table(X.shape[0], self.n_classes)
        start = 0
        for part in self._row_chunks(X, per_row=self.n_classes):
            rows = slice(start, start + part.shape[0])
            start = rows.stop
            if isinstance(self.calibration, BestPaths):
                self._fill_from_best(part, table[rows])
            else:
                costs = checked_costs(self.trellis, self.weights.margins(part), self.calibration)
                every = self.assignment.path_of_class[np.newaxis]
                table[rows] = log_probabilities(self.trellis, costs, every)
        return table

    def _fill_from_best(self, X: Any, table: Float64Array) -> None:
        """Log-probabilities of all classes: the best by their costs, the others share the rest."""
        assert isinstance(self.calibration, BestPaths)
        paths, costs, _ = self.ranked(X, min(N_BEST, self.n_classes))
        softmax = normalised(self.loss)
        edge_costs = checked_costs(self.trellis, self.weights.margins(X), softmax)
        every = self.assignment.path_of_class[np.newaxis]
        table[:] = log_probabilities(self.trellis, edge_costs, every)
        self.calibration.complete(table, self.assignment.class_of_path[paths], costs)
