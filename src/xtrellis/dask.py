"""DaskTrellisClassifier: training and prediction on the partitions of Dask collections.

One task on the cluster, the leading one, receives the partitions from the other workers and does
what ``TrellisClassifier.fit`` does; the client never holds a row. It sends the prepared rows to
every worker once, and the blocks are tasks of their own (``learning.cluster``). Predictions are
made partition by partition, where the partitions are.

>>> import dask.array as da
>>> from distributed import Client
>>> from sklearn.datasets import load_digits
>>> from xtrellis.dask import DaskTrellisClassifier
>>> X, y = load_digits(return_X_y=True)
>>> X, y = da.from_array(X / 16, chunks=(500, -1)), da.from_array(y, chunks=500)
>>> with Client(processes=False, dashboard_address=":0") as client:
...     clf = DaskTrellisClassifier(client=client, random_state=0).fit(X, y)
...     clf.score(X, y) > 0.9
True
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import dask.array as da
import distributed
import numpy as np
import numpy.typing as npt
from dask.base import compute, is_dask_collection
from dask.delayed import delayed
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ._checks import clamped_k
from .classifier import TrellisClassifier
from .learning.cluster import check_versions, training_on

__all__ = ["DaskTrellisClassifier"]


class DaskTrellisClassifier(TrellisClassifier):
    """A :class:`~xtrellis.TrellisClassifier` trained on a Dask cluster, bit for bit the same.

    Parameters
    ----------
    slice_width : int, "auto" or None, default=None
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
    Each worker needs memory for all rows once, the leading one for several copies of them: the
    edges that leave the source of the trellis learn from every row.
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

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        return {**state, "client": None}  # a connection cannot be sent or stored

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, may_hold_out: Any = None) -> Self:
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
            As for :meth:`TrellisClassifier.fit <xtrellis.TrellisClassifier.fit>`.
        """
        client = self._connected()
        check_versions(client)
        parts = _partitions(X, y, sample_weight, may_hold_out)
        futures = [client.compute(list(each)) for each in parts]
        leading = client.submit(_fit_parts, self._unfitted(), *futures, pure=False)
        try:
            fitted, messages = leading.result()
        except BaseException:
            client.cancel(leading)
            raise
        for category, message in messages:
            warnings.warn(message, category, stacklevel=2)
        self.__dict__ = {**fitted.__dict__, "client": self.client}
        return self

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
        wanted = compute(self.predict(X), y, sample_weight, scheduler=client)
        return float(accuracy_score(wanted[1], wanted[0], sample_weight=wanted[2]))

    def _lazily(
        self, method: str, X: Any, kinds: Sequence[tuple[tuple[int, ...], Any]], *arguments: Any
    ) -> list[Any]:
        """Results of a method, partition by partition: one Dask array for each kind."""
        check_is_fitted(self)
        (parts,) = _partitions(X)
        sizes = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(parts)
        # Sent once, to every worker; with the graph, it would go by way of the scheduler.
        model = self._connected().scatter(self.to_local(), broadcast=True, hash=False)
        answer: Callable[..., Any] = delayed(_answer, nout=len(kinds))
        answers = [answer(model, method, part, *arguments) for part in parts]
        return [
            da.concatenate(
                [
                    da.from_delayed(each[place], (size, *shape), dtype)
                    for each, size in zip(answers, sizes, strict=True)
                ]
            )
            for place, (shape, dtype) in enumerate(kinds)
        ]


def _answer(model: TrellisClassifier, method: str, X: Any, *arguments: Any) -> tuple[Any, ...]:
    """Results of a method for one partition, which may have no rows."""
    if X.shape[0] == 0:
        row = np.zeros((1, X.shape[1]), np.float32)
        return tuple(result[:0] for result in _tuple(getattr(model, method)(row, *arguments)))
    return _tuple(getattr(model, method)(X, *arguments))


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


# ---------------------------------------------------------------------- partitions

_COLUMNS = ("y", "sample_weight", "may_hold_out")  # partitioned like the rows


def _partitions(X: Any, *columns: Any) -> list[list[Any]]:
    """Delayed partitions of rows, and of labels and weights, which must be partitioned alike."""
    for name, each in zip(("X", *_COLUMNS), (X, *columns), strict=False):
        if each is not None and not hasattr(each, "to_delayed"):
            raise TypeError(
                f"{name} must be a dask.array or a dask.dataframe, got {type(each).__name__}: "
                f"for data in memory use TrellisClassifier"
            )
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        if X.numblocks[1] > 1:
            raise ValueError(
                f"X must have all features in one block, got {X.numblocks[1]} blocks of columns: "
                f"pass X.rechunk({{1: -1}})"
            )
    rows = list(np.ravel(X.to_delayed()))
    found = [rows]
    for name, column in zip(_COLUMNS, columns, strict=False):
        if column is None:
            found.append([])
            continue
        if isinstance(column, da.Array) and isinstance(X, da.Array):
            known = not np.isnan([*column.chunks[0], *X.chunks[0]]).any()
            if known and column.shape[0] == X.shape[0]:
                column = column.rechunk((X.chunks[0], *column.chunks[1:]))
        parts = list(np.ravel(column.to_delayed()))
        if len(parts) != len(rows):
            raise ValueError(
                f"{name} must have the partitions of X, got {len(parts)} instead of {len(rows)}"
            )
        found.append(parts)
    return found


def _fit_parts(
    classifier: TrellisClassifier, X: list[Any], *columns: list[Any]
) -> tuple[TrellisClassifier, list[tuple[type[Warning], str]]]:
    """Fit on a worker, the blocks on all of them; the classifier, and what was warned of."""
    kept = [number for number, part in enumerate(X) if part.shape[0] > 0]
    if not kept:
        raise ValueError("X has no rows in any partition")
    for name, parts in zip(_COLUMNS, columns, strict=True):
        for number, part in enumerate(parts):
            if len(part) != X[number].shape[0]:
                raise ValueError(
                    f"partition {number} has {X[number].shape[0]} rows, but {name} has "
                    f"{len(part)} there"
                )
    rows = _joined("X", X, kept)
    y, weights, may_hold_out = (
        _joined(name, parts, kept) if parts else None
        for name, parts in zip(_COLUMNS, columns, strict=True)
    )
    with warnings.catch_warnings(record=True) as caught, distributed.worker_client() as client:
        warnings.simplefilter("always")
        with training_on(client):
            classifier.fit(rows, y, weights, may_hold_out=may_hold_out)
    meant = [each for each in caught if issubclass(each.category, UserWarning)]
    return classifier, [(each.category, str(each.message)) for each in meant]


def _joined(name: str, parts: list[Any], kept: list[int]) -> Any:
    """All partitions stacked into one, if they are of one kind."""
    from scipy import sparse

    for number in kept[1:]:
        first, other = _kind(parts[kept[0]]), _kind(parts[number])
        if first != other:
            raise ValueError(
                f"{name} has {_difference(first, other)[1]} in partition {number}, but "
                f"{_difference(first, other)[0]} in partition {kept[0]}: give all partitions "
                f"the same type"
            )
    chosen = [parts[number] for number in kept]
    if sparse.issparse(chosen[0]):
        return sparse.vstack(chosen, format="csr")
    if hasattr(chosen[0], "iloc"):
        import pandas

        return pandas.concat(chosen)
    return np.concatenate(chosen)


def _kind(part: Any) -> tuple[str, ...]:
    """What partitions must share: their types and, of a data frame, the columns."""
    if hasattr(part, "dtypes") and hasattr(part, "columns"):
        return tuple(f"{name}: {dtype}" for name, dtype in part.dtypes.items())
    width = f"{part.shape[1]} features" if part.ndim == 2 else ""
    return (_general(part.dtype), width)


def _general(dtype: npt.DTypeLike | Any) -> str:
    """Name of a dtype; texts of any length are of one."""
    return "texts" if getattr(dtype, "kind", "") == "U" else str(dtype)


def _difference(first: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, str]:
    """The first parts that are not the same."""
    if len(first) != len(other):
        return f"{len(first)} columns", f"{len(other)} columns"
    return next((a, b) for a, b in zip(first, other, strict=True) if a != b)
