"""Who trains the blocks: threads, the workers of any joblib backend, or those of a Dask cluster.

A block is trained by a pure function of its rows and its plan, so it does not matter where. Threads
of this process are the default, as they share the rows. Other backends are used when the caller
asks for them: ``with joblib.parallel_config(backend="loky")``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import cluster
from .blocks import Job, Plan
from .checkpoint import stage_of
from .rows import TrainingRows


def in_parallel(
    function: Callable[..., Any],
    rows: TrainingRows,
    plans: Sequence[Plan],
    settings: Callable[[int], tuple[Any, ...]],
    n_jobs: int | None,
) -> Iterator[tuple[int, Any]]:
    """Number of each block and ``function(rows, plan, *settings(number))``, as they are ready.

    Blocks that a checkpoint has come first; the others are kept in it when they are finished.
    """
    job = Job(function, rows, plans, settings)
    stage = stage_of(job)
    left = []
    # Largest first, so that no worker is left with a large one at the end.
    for index in sorted(range(len(plans)), key=lambda index: -plans[index].work):
        result = stage.read(index) if stage is not None else None
        if result is None:
            left.append(index)
        else:
            yield index, result
    client = cluster.active_client()
    if client is not None:
        trained = cluster.on_cluster(client, job, left)
    else:
        trained = _by_joblib(job, left, n_jobs)
    with closed_quietly(trained):
        for index, result in trained:
            if stage is not None:
                stage.write(index, result)
            yield index, result


@contextmanager
def closed_quietly(results: Generator[Any, None, None]) -> Iterator[None]:
    """Close a generator of results at the end, also after an error, which is told alone.

    Left to the garbage collector, joblib would warn of blocks that were trained for nothing.
    """
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\d+ tasks (have been|which were)")
            results.close()


def _by_joblib(
    job: Job, order: Sequence[int], n_jobs: int | None
) -> Generator[tuple[int, Any], None, None]:
    """Number and result of each of these blocks, as they are ready."""
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend(prefer="threads")
    if cluster.is_dask(backend):  # inside a task of the cluster, whose workers are busy already
        parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator_unordered")
    else:
        lazily = getattr(backend, "supports_return_generator", False)
        # Processes map large arrays of the rows from one file; private pages, as kernels are
        # compiled for arrays that can be written.
        parallel = Parallel(
            n_jobs=n_jobs,
            prefer="threads",
            mmap_mode="c",
            return_as="generator_unordered" if lazily else "list",
        )
    yield from parallel(
        delayed(_numbered)(index, job.function, job.rows, job.plans[index], job.settings(index))
        for index in order
    )


def _numbered(
    index: int,
    function: Callable[..., Any],
    rows: TrainingRows,
    plan: Plan,
    settings: tuple[Any, ...],
) -> tuple[int, Any]:
    return index, function(rows, plan, *settings)
