"""DaskTrellisClassifier: the estimator for Dask collections."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import dask.array as da
import distributed
import numpy as np
from dask.base import compute, is_dask_collection
from dask.delayed import delayed
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._checks import check_integer, clamped_k
from .._online_method import OnlineMethod
from ..classifier import TrellisClassifier
from ..learning.cluster import check_versions
from .on_workers import Learned, answer, fit_from_disk, fit_in_memory
from .partitions import Kinds, partitions_of


class DaskTrellisClassifier(TrellisClassifier):
    """A :class:`~xtrellis.TrellisClassifier` trained on a Dask cluster, bit for bit the same.

    Parameters
    ----------
    slice_width : int, "auto" or None, default=None
        As for :class:`~xtrellis.TrellisClassifier`.
    client : distributed.Client or None, default=None
        Client of the cluster; None uses the current one.
    **parameters
        As for :class:`~xtrellis.TrellisClassifier`; ``n_jobs`` are the threads of the leading
        worker.

    Attributes
    ----------
    model_, classes_, history_, ...
        As those of :class:`~xtrellis.TrellisClassifier`.

    Notes
    -----
    A worker is sent the rows of the blocks that it trains. The edges that leave the source of the
    trellis learn from every row, so a worker that trains some of them needs memory for all rows,
    and the leading one for several copies of them; unless ``fit`` is told how much memory there is.

    Examples
    --------
    See :mod:`xtrellis.dask`.
    """

    def __init__(
        self, slice_width: int | str | None = None, *, client: Any = None, **parameters: Any
    ) -> None:
        super().__init__(slice_width, **parameters)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*TrellisClassifier._get_param_names(), "client"])

    def __sklearn_clone__(self) -> Self:
        return type(self)(client=self.client, **clone(self._unfitted()).get_params(deep=False))

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(vars(self))  # with the client, which a pickled one has not
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        return {**state, "client": None}  # a connection cannot be sent or stored

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        may_hold_out: Any = None,
        memory: int | None = None,
    ) -> Self:
        """Train on the partitions of Dask collections.

        The model is the one that :class:`~xtrellis.TrellisClassifier` learns from the same rows in
        memory. If it fails or is interrupted, the classifier stays as it was.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame
            Rows; the blocks of an array may be SciPy's sparse matrices.
        y : dask.array.Array or dask.dataframe.Series
            Labels, in the partitions of X.
        sample_weight, may_hold_out : dask.array.Array or dask.dataframe.Series, default=None
            As for :meth:`~xtrellis.TrellisClassifier.fit`.
        memory : int or None, default=None
            Bytes that the leading worker may work with, for rows that do not fit a worker: it
            fetches one partition after the other, writes them to its disk, and learns from there,
            as :meth:`~xtrellis.TrellisClassifier.fit_shards` does.
        """
        client = self._connected()
        check_versions(client)
        parts = partitions_of(X, y, sample_weight, may_hold_out)
        if memory is None:
            futures = [client.compute(list(each)) for each in parts]
            leading = client.submit(fit_in_memory, self._unfitted(), *futures, pure=False)
        else:
            check_integer("memory", memory, 1)
            for name, each in (("sample_weight", sample_weight), ("may_hold_out", may_hold_out)):
                if each is not None:
                    raise ValueError(f"{name} needs all rows in memory: leave out memory=")
            import cloudpickle

            arguments = self._unfitted(), cloudpickle.dumps(parts[:2]), int(memory)
            leading = client.submit(fit_from_disk, *arguments, pure=False)
        fitted, messages = self._result(client, leading)
        for category, message in messages:
            warnings.warn(message, category, stacklevel=2)
        self.__dict__ = {**fitted.__dict__, "client": self.client}
        return self

    @OnlineMethod
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one partition after the other, each row visited once.

        This is :meth:`~xtrellis.TrellisClassifier.partial_fit` called for each partition, bit for
        bit. No worker needs all rows: what is learned goes from worker to worker, or the next
        partition comes to it, whichever is smaller. If it fails or is interrupted, nothing was
        learned. For rows in memory, it learns in this process.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        classes : array-like, default=None
            All classes there will be; needed at the first call, unless there is ``max_classes``.
        """
        if not is_dask_collection(X):
            super().partial_fit(X, y, classes, sample_weight)
            return self
        client = self._connected()
        check_versions(client)
        rows, labels, weights = partitions_of(X, y, sample_weight)
        learned: Any = Learned(self._unfitted(), Kinds())
        if hasattr(self, "model_"):  # large; two copies, in case that a worker dies
            fitted = Learned(self.to_local(), Kinds())
            learned = client.scatter(fitted, broadcast=2, hash=False)
        task = delayed(Learned.after, pure=False)
        for number, (part, own) in enumerate(zip(rows, labels, strict=True)):
            weight = weights[number] if weights else None
            learned = task(learned, number, part, own, weight, classes)
        found = self._result(client, client.compute(learned)).classifier
        if not hasattr(found, "model_"):
            raise ValueError("X has no rows in any partition")
        self.__dict__ = {**found.__dict__, "client": self.client}
        return self

    @staticmethod
    def _result(client: Any, future: Any) -> Any:
        """Result of a task, which is cancelled if we are interrupted."""
        try:
            return future.result()
        except BaseException:
            client.cancel(future)
            raise

    def to_local(self) -> TrellisClassifier:
        """The fitted classifier for rows in memory, without a cluster."""
        check_is_fitted(self)
        local = self._unfitted()
        local.__dict__ = {name: value for name, value in vars(self).items() if name != "client"}
        return local

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the fitted model to one file, which is loaded as a ``TrellisClassifier``."""
        return self.to_local().save(path)

    def _unfitted(self) -> TrellisClassifier:
        parameters = self.get_params(deep=False)
        del parameters["client"]
        return TrellisClassifier(**parameters)

    def _connected(self) -> Any:
        if self.client is not None:
            return self.client
        try:
            return distributed.get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client: make one, distributed.Client(address), or pass client="
            ) from None

    # ------------------------------------------------------------------ prediction

    def predict(
        self, X: Any, *, min_probability: float | None = None, otherwise: Any = None
    ) -> Any:
        """Most likely class of each row: lazily, a Dask array of X's partitions.

        For rows in memory, an array in memory; as for all predictions here. The options are for
        rows in memory.
        """
        if not is_dask_collection(X):
            return super().predict(X, min_probability=min_probability, otherwise=otherwise)
        if min_probability is not None:
            raise ValueError(
                "min_probability needs rows in memory: "
                "compare the probabilities of predict_top_k(X, 1) with it"
            )
        check_is_fitted(self)
        return self._lazily("predict", X, [((), self.classes_.dtype)])[0]

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[Any, Any]:
        """The k best classes of each row and their probabilities: lazily, two Dask arrays.

        Compute them together, ``dask.compute(labels, probabilities)``: each partition is then
        decoded once.
        """
        if not is_dask_collection(X):
            return super().predict_top_k(X, k)
        check_is_fitted(self)
        k = clamped_k(k, len(self.classes_))
        kinds = [((k,), self.classes_.dtype), ((k,), np.dtype(np.float64))]
        labels, probabilities = self._lazily("predict_top_k", X, kinds, k)
        return labels, probabilities

    def predict_log_proba(self, X: Any) -> Any:
        """Log-probabilities of all K classes: lazily, a Dask array of X's partitions."""
        if not is_dask_collection(X):
            return super().predict_log_proba(X)
        check_is_fitted(self)
        kinds = [((len(self.classes_),), np.dtype(np.float64))]
        return self._lazily("predict_log_proba", X, kinds)[0]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of all K classes: lazily, a Dask array of X's partitions."""
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose class is right, computed on the cluster."""
        from sklearn.metrics import accuracy_score

        client = self._connected() if is_dask_collection(X) else None
        # In partitions: Dask warns of data frames that are computed together with arrays.
        given = [[y], [sample_weight] if sample_weight is not None else []]
        parts = [[part for each in column for part in _delayed(each)] for column in given]
        predicted, labels, weights = compute(self.predict(X), *parts, scheduler=client)
        known, weight = (np.concatenate(each) if each else None for each in (labels, weights))
        return float(accuracy_score(known, predicted, sample_weight=weight))

    def _lazily(
        self, method: str, X: Any, kinds: Sequence[tuple[tuple[int, ...], Any]], *arguments: Any
    ) -> list[Any]:
        """Results of a method, partition by partition: one Dask array for each kind."""
        check_is_fitted(self)
        (parts,) = partitions_of(X)
        sizes = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(parts)
        # Sent once, to every worker; with the graph, it would go by way of the scheduler.
        client = self._connected()
        check_versions(client)  # a worker without the package would wait for the model for ever
        model = client.scatter(self.to_local(), broadcast=True, hash=False)
        task: Callable[..., Any] = delayed(answer, nout=len(kinds))
        answers = [task(model, method, part, *arguments) for part in parts]
        return [
            da.concatenate(
                [
                    da.from_delayed(each[place], (size, *shape), dtype)
                    for each, size in zip(answers, sizes, strict=True)
                ]
            )
            for place, (shape, dtype) in enumerate(kinds)
        ]


def _delayed(column: Any) -> list[Any]:
    """Partitions of labels or weights; those in memory are one."""
    return list(np.ravel(column.to_delayed())) if is_dask_collection(column) else [column]
