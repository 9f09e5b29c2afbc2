"""What runs as tasks on the workers: training by the leading one, and answers by partition."""

from __future__ import annotations

import copy
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import distributed
import numpy as np

from ..classifier import TrellisClassifier
from ..data import write_shards
from ..learning.cluster import training_on
from .partitions import COLUMNS, Kinds, check_lengths, joined

Warned = list[tuple[type[Warning], str]]

_NO_ROWS = "X has no rows in any partition"
_SHARDS = 16  # shares of the memory: for one shard

# ---------------------------------------------------------------------- training


def fit_in_memory(
    classifier: TrellisClassifier, X: list[Any], *columns: list[Any]
) -> tuple[TrellisClassifier, Warned]:
    """Fit on all partitions, the blocks on all workers; the classifier, and what was warned of."""
    kept = [number for number, part in enumerate(X) if part.shape[0] > 0]
    if not kept:
        raise ValueError(_NO_ROWS)
    for number, part in enumerate(X):
        own = {name: parts[number] for name, parts in zip(COLUMNS, columns, strict=True) if parts}
        check_lengths(number, part, own)
    rows = joined("X", X, kept)
    y, weights, may_hold_out = (
        joined(name, parts, kept) if parts else None
        for name, parts in zip(COLUMNS, columns, strict=True)
    )

    def fit(client: Any) -> None:
        classifier.fit(rows, y, weights, may_hold_out=may_hold_out)

    return classifier, _leading(fit)


def fit_from_disk(
    classifier: TrellisClassifier, pickled: bytes, memory: int
) -> tuple[TrellisClassifier, Warned]:
    """The same with partitions that are fetched one by one, and written to this worker's disk.

    ``pickled`` are the delayed partitions of rows and labels.
    """
    import cloudpickle

    def fit(client: Any) -> None:
        X, y = cloudpickle.loads(pickled)  # may hold futures, which look for the client
        scratch = distributed.get_worker().local_directory
        names: list[Any] = []
        with tempfile.TemporaryDirectory(prefix="xtrellis-", dir=scratch) as folder:
            shards = write_shards(
                _fetched(client, X, y, names), folder, shard_bytes=min(2**25, memory // _SHARDS)
            )
            classifier.fit_shards(shards, memory=memory)
        if names and all(isinstance(name, str) for name in names):
            classifier.feature_names_in_ = np.array(names, object)

    return classifier, _leading(fit)


def _fetched(
    client: Any, X: Sequence[Any], y: Sequence[Any], names: list[Any]
) -> Iterator[tuple[Any, Any]]:
    """Partitions with rows, two of them under way at a time; notes the names of their columns."""
    kinds, found = Kinds(), False
    futures = client.compute([X[0], y[0]])
    for number in range(len(X)):
        following = client.compute([X[number + 1], y[number + 1]]) if number + 1 < len(X) else []
        part, labels = client.gather(futures)
        futures = following
        check_lengths(number, part, {"y": labels})
        if part.shape[0] == 0:
            continue
        found = True
        kinds.check("X", number, part)
        kinds.check("y", number, labels)
        if hasattr(part, "columns"):
            names[:] = part.columns
        yield part, np.asarray(labels)
    if not found:
        raise ValueError(_NO_ROWS)


def _leading(fit: Callable[[Any], None]) -> Warned:
    """Call it as the one task that hands out blocks; what it warned the user of.

    Dask cannot stop a task that runs. So it looks itself whether it was cancelled, because the user
    interrupted ``fit`` or is gone.
    """
    worker = distributed.get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    with warnings.catch_warnings(record=True) as caught, distributed.worker_client() as client:
        warnings.simplefilter("always")
        with training_on(client, is_wanted):
            fit(client)
    meant = [each for each in caught if issubclass(each.category, UserWarning)]
    return [(each.category, str(each.message)) for each in meant]


# ---------------------------------------------------------------------- batch by batch


@dataclass(frozen=True, eq=False)
class Learned:
    """A classifier after some partitions, and what the partitions must share."""

    classifier: TrellisClassifier
    kinds: Kinds

    def __sizeof__(self) -> int:
        """By this Dask decides whether to move what was learned, or the next partition."""
        return _nbytes(vars(self.classifier))

    def after(
        self, number: int, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> Learned:
        """The same after one more partition."""
        classifier, kinds = copy.copy(self.classifier), copy.deepcopy(self.kinds)
        columns = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
        check_lengths(number, X, columns)
        if X.shape[0] > 0:
            for name, part in {"X": X, **columns}.items():
                kinds.check(name, number, part)
            try:
                classifier.partial_fit(X, y, classes, sample_weight)
            except ValueError as error:
                raise ValueError(f"partition {number}: {error}") from None
        return Learned(classifier, kinds)


def _nbytes(thing: Any) -> int:
    """Bytes of all arrays in an object."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        return sum(_nbytes(each) for each in thing.values())
    if isinstance(thing, list | tuple):
        return sum(_nbytes(each) for each in thing)
    return _nbytes(vars(thing)) if hasattr(thing, "__dict__") else 0


# ---------------------------------------------------------------------- prediction


def answer(model: TrellisClassifier, method: str, X: Any, *arguments: Any) -> tuple[Any, ...]:
    """Results of a method for one partition, which may have no rows."""
    if X.shape[0] == 0:
        row = np.zeros((1, X.shape[1]), np.float32)
        return tuple(result[:0] for result in _tuple(getattr(model, method)(row, *arguments)))
    return _tuple(getattr(model, method)(X, *arguments))


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
