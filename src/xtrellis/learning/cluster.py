"""Blocks as tasks of a Dask cluster.

The rows are sent to every worker once, from worker to worker; a task is then a block's edges and
vertex, a few kilobytes. Finished blocks come back one by one, pruned. If a worker dies, its blocks
are trained by the others; a new worker is sent the rows when it gets its first block.

Dask is only imported when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from .blocks import Job, Plan, block_rows
from .rows import TrainingRows

PACKAGES = ("xtrellis", "numba", "numpy", "scipy")  # whose versions decide what a block is
_ATTEMPTS = 3  # at sending the rows, if every worker that had them has died

_client: ContextVar[Any] = ContextVar("client", default=None)

# ---------------------------------------------------------------------- which cluster


@contextmanager
def training_on(client: Any) -> Iterator[None]:
    """Train blocks on this client's cluster, in this context."""
    token = _client.set(client)
    try:
        yield
    finally:
        _client.reset(token)


def active_client() -> Any | None:
    """Client of the cluster to train on: ours, or that of joblib's active backend."""
    if _client.get() is not None:
        return _client.get()
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend(prefer="threads")
    if not is_dask(backend) or _in_task():
        return None
    check_versions(backend.client)
    return backend.client


def is_dask(backend: Any) -> bool:
    """Whether a backend of joblib is Dask's."""
    module = sys.modules.get("joblib._dask")
    return module is not None and isinstance(backend, module.DaskDistributedBackend)


def _in_task() -> bool:
    """Whether this thread runs a task of a cluster, as under ``GridSearchCV``."""
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


def check_versions(client: Any) -> None:
    """Raise an ImportError if a worker lacks a package, or has another version than this process.

    With another version a block might not be bit for bit the same.
    """
    found = client.get_versions(packages=list(PACKAGES))
    own = found["client"]["packages"]
    for address, worker in sorted(found["workers"].items()):
        for name in ("python", *PACKAGES):
            wanted, there = own.get(name), worker["packages"].get(name)
            if there is None:
                raise ImportError(f"worker {address} has no {name}: install {name} {wanted} there")
            if there != wanted:
                raise ImportError(
                    f"worker {address} has {name} {there}, but this process has {wanted}: "
                    f"install the same version on both"
                )


# ---------------------------------------------------------------------- tasks


def on_cluster(client: Any, job: Job, order: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Number and result of each of these blocks, as they are ready."""
    from distributed import CancelledError

    left = dict.fromkeys(order)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            for index, result in _submitted(client, job, list(left)):
                del left[index]
                yield index, result
            return
        except CancelledError as error:  # the rows were on no worker any more
            if attempt == _ATTEMPTS:
                raise RuntimeError(
                    f"all workers that had the rows died, {_ATTEMPTS} times; {len(left)} blocks "
                    f"are not trained: give the workers more memory"
                ) from error


def _submitted(client: Any, job: Job, order: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """The same, as long as one worker has the rows."""
    from distributed import CancelledError, KilledWorker, as_completed

    if not order:
        return
    everywhere = client.scatter(job.rows, broadcast=True, hash=False)
    number = {}
    try:
        for index in order:
            light = replace(job.plans[index], rows=None)  # its rows are found again by the worker
            task = client.submit(
                _train, everywhere, light, job.function, job.settings(index), pure=False
            )
            number[task] = index
        for task, result in as_completed(list(number), with_results=True):
            if isinstance(result, CancelledError):  # Dask hands it over instead of raising it
                raise result
            yield number.pop(task), result
    except KilledWorker as error:
        raise RuntimeError(
            f"workers died while they trained a block ({error}): they may be short of memory"
        ) from error
    finally:
        with suppress(Exception):  # the cluster may be gone
            client.cancel(list(number))


def _train(
    rows: TrainingRows, plan: Plan, function: Callable[..., Any], settings: tuple[Any, ...]
) -> Any:
    """Train one block, on a worker."""
    return function(rows, replace(plan, rows=block_rows(rows, plan)), *settings)
