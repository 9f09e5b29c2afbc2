"""Blocks as tasks of a Dask cluster.

A block is trained from the rows that pass its vertex, and a worker is sent these rows alone, when
it is about to train the block. Small blocks go together, as a task costs some milliseconds. All
rows pass the source: they are sent to each worker that trains some of its edges, once. Finished
blocks come back as their task ends, pruned.

If a worker dies, its blocks are trained by the others; rows that went with it are sent again.

Dask is only imported when it is used.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .blocks import Job, Plan, block_rows, sees_all
from .rows import TrainingRows

PACKAGES = ("xtrellis", "numba", "numpy", "scipy")  # whose versions decide what a block is
_ATTEMPTS = 3  # at sending rows, if workers die before a block is finished
_TASKS_PER_THREAD = 16  # of small blocks: few enough to cost little, and enough to share fairly
_MOST_VERTICES = 256  # in a task
_AHEAD = 2  # tasks per thread: one in training, one whose rows are on the way

_client: ContextVar[Any] = ContextVar("client", default=None)
_is_wanted: ContextVar[Callable[[], bool]] = ContextVar("is_wanted", default=lambda: True)

# ---------------------------------------------------------------------- which cluster


@contextmanager
def training_on(client: Any, is_wanted: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Train blocks on this client's cluster, in this context, as long as they are wanted."""
    tokens = _client.set(client), _is_wanted.set(is_wanted)
    try:
        yield
    finally:
        _client.reset(tokens[0])
        _is_wanted.reset(tokens[1])


def stop_if_unwanted() -> None:
    """Raise an error if nobody waits for the model any more, as after an interrupt."""
    if not _is_wanted.get()():
        raise RuntimeError("this training was cancelled")


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
    return _own_address() is not None


def _own_address() -> str | None:
    """Address of the worker that this thread runs a task of, if it does."""
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return None


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


@dataclass(frozen=True)
class Task:
    """Blocks that a worker trains one after the other.

    Attributes
    ----------
    groups : tuple of tuples of int
        Numbers of the blocks; those that learn from the same rows are a group.
    rows_of : tuple of int
        For each group, a block whose rows are sent; empty if all rows are.
    work : float
    """

    groups: tuple[tuple[int, ...], ...]
    rows_of: tuple[int, ...]
    work: float

    @property
    def blocks(self) -> tuple[int, ...]:
        """Numbers of all blocks."""
        return tuple(index for group in self.groups for index in group)


def tasks_of(job: Job, order: Sequence[int], n_threads: int) -> list[Task]:
    """These blocks as tasks, those with most work first.

    Blocks of one vertex go together, and small vertices do. But a vertex that would keep a worker
    busy for long is shared by several, and so is the source.
    """
    plans = job.plans
    work = {index: plans[index].work for index in order}
    enough = sum(work.values()) / (_TASKS_PER_THREAD * n_threads)
    whole = [index for index in order if sees_all(job.rows, plans[index])]
    tasks = [Task(((index,),), (), work[index]) for index in whole]
    at_vertex: dict[Any, list[int]] = {}
    for index in sorted(work.keys() - set(whole)):
        at_vertex.setdefault(plans[index].vertex, []).append(index)
    small = []
    for group in at_vertex.values():
        if len(group) > 1 and sum(work[index] for index in group) > enough:
            tasks += [Task(((index,),), (group[0],), work[index]) for index in group]
        else:
            small.append(tuple(group))
    tasks += _bundles(small, work, enough)
    return sorted(tasks, key=lambda task: (-task.work, task.blocks))


def _bundles(
    groups: list[tuple[int, ...]], work: dict[int, float], enough: float
) -> Iterator[Task]:
    """Groups of blocks, largest first, in tasks of at least so much work."""
    total = {group: sum(work[index] for index in group) for group in groups}
    bundle: list[tuple[int, ...]] = []
    for group in sorted(groups, key=lambda group: (-total[group], group)):
        bundle.append(group)
        found = sum(total[each] for each in bundle)
        if found >= enough or len(bundle) == _MOST_VERTICES:
            yield Task(tuple(bundle), tuple(each[0] for each in bundle), found)
            bundle = []
    if bundle:
        found = sum(total[each] for each in bundle)
        yield Task(tuple(bundle), tuple(each[0] for each in bundle), found)


def on_cluster(
    client: Any, job: Job, order: Sequence[int]
) -> Generator[tuple[int, Any], None, None]:
    """Number and result of each of these blocks, as they are ready."""
    from distributed import CancelledError

    left, failures = dict.fromkeys(order), 0
    while left:
        before = len(left)
        try:
            for index, result in _submitted(client, job, list(left)):
                del left[index]
                yield index, result
        except CancelledError as error:  # rows were on no worker any more
            failures = failures + 1 if len(left) == before else 0
            if failures == _ATTEMPTS:
                raise RuntimeError(
                    f"all workers that had the rows died, {_ATTEMPTS} times; {len(left)} blocks "
                    f"are not trained: give the workers more memory"
                ) from error


def _submitted(client: Any, job: Job, order: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """The same, until rows are lost with a worker."""
    from distributed import CancelledError, KilledWorker, as_completed

    waiting = tasks_of(job, order, max(1, sum(client.nthreads().values())))[::-1]
    sent = _SentRows(client, job, waiting)
    running: dict[Any, tuple[Task, str]] = {}
    completed = as_completed(with_results=True)

    def submit() -> None:
        """Keep every worker busy, with few rows under way."""
        while waiting:
            worker = _least_busy(client, Counter(address for _, address in running.values()))
            if worker is None:
                return
            task = waiting[-1]
            rows = sent.rows(task, worker)
            if rows is None:
                continue
            waiting.pop()
            light = [
                [(replace(job.plans[i], rows=None), job.settings(i)) for i in group]
                for group in task.groups
            ]
            # Dask itself would queue all tasks where the rows are, and notice idle workers later.
            future = client.submit(
                _train,
                rows,
                light,
                job.function,
                workers=[worker],
                allow_other_workers=True,
                pure=False,
            )
            running[future] = task, worker
            completed.add(future)

    try:
        stop_if_unwanted()
        submit()
        for future, results in completed:
            if isinstance(results, CancelledError):  # Dask hands it over instead of raising it
                raise results
            stop_if_unwanted()
            task, _ = running.pop(future)
            sent.release(task)
            submit()
            yield from zip(task.blocks, results, strict=True)
    except KilledWorker as error:
        raise RuntimeError(
            f"workers died while they trained a block ({error}): they may be short of memory"
        ) from error
    except Exception as error:
        if "xtrellis" in str(error):  # a worker without it may have joined in the meantime
            check_versions(client)
        raise
    finally:
        with suppress(Exception):  # the cluster may be gone
            client.cancel(list(running))


def _least_busy(client: Any, n_running: Counter[str]) -> str | None:
    """Address of the worker with the fewest tasks per thread; None if all have enough.

    Of equals the one that this code runs on, where rows need not be sent.
    """
    own = _own_address()
    client.wait_for_workers(1)  # if all have died, they may be started again
    threads = client.nthreads()
    load = {each: n_running[each] / n for each, n in threads.items()}
    best = min(load, key=lambda each: (load[each], each != own, each))
    return best if load[best] < _AHEAD or not n_running else None


class _SentRows:
    """Rows on the cluster: those of a task are there from its submission to its end."""

    def __init__(self, client: Any, job: Job, tasks: Sequence[Task]) -> None:
        self.client, self.job = client, job
        self.n_tasks = Counter(task.rows_of for task in tasks)
        self.futures: dict[tuple[int, ...], Any] = {}
        self.n_failed = 0

    def rows(self, task: Task, worker: str) -> Any:
        """Future of a list of training rows, those of each block; for a worker, or for all.

        Within a task of the cluster they stay where they are until a worker fetches them. None if
        the worker died meanwhile.
        """
        if task.rows_of not in self.futures:
            job = self.job
            where: dict[str, Any] = {"workers": [worker]}
            parts = [block_rows(job.rows, job.plans[index]) for index in task.rows_of]
            if not parts:
                parts = [job.rows]
                if self.n_tasks[()] >= len(self.client.nthreads()):
                    where = {"broadcast": True}
            try:
                (future,) = self.client.scatter([parts], hash=False, **where)
            except OSError:
                self.n_failed += 1
                if self.n_failed == _ATTEMPTS:
                    raise
                time.sleep(0.2)  # for the scheduler to notice
                return None
            self.futures[task.rows_of], self.n_failed = future, 0
        return self.futures[task.rows_of]

    def release(self, task: Task) -> None:
        """Forget the rows of a finished task, unless others need them."""
        self.n_tasks[task.rows_of] -= 1
        if self.n_tasks[task.rows_of] == 0:
            del self.futures[task.rows_of]


def _train(
    parts: list[TrainingRows],
    groups: Sequence[Sequence[tuple[Plan, tuple[Any, ...]]]],
    function: Callable[..., Any],
) -> list[Any]:
    """Train blocks, on a worker; each group on its part of the rows."""
    results = []
    for rows, group in zip(parts, groups, strict=True):
        for plan, settings in group:
            own = None if plan.vertex is None else np.arange(len(rows.paths))
            results.append(function(rows, replace(plan, rows=own), *settings))
    return results
