"""Threads: how many, helpers for work of milliseconds, and BLAS kept to one of them.

Blocks of edges are trained through joblib; what is here serves everything shorter.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``, as joblib counts.

    joblib's own ``effective_n_jobs`` asks the active backend. Its default is for processes, so
    inside a worker of a process pool it would warn, on every call, that it cannot start any.

    >>> thread_count(3), thread_count(None)
    (3, 1)
    """
    from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

    backend, preferred = get_active_backend()
    if isinstance(backend, SequentialBackend):  # inside work that is parallel already
        return 1
    return int(ThreadingBackend().effective_n_jobs(preferred if n_jobs is None else n_jobs))


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> list[Result]:
    """Results of a function for all items, in their order, by as many threads as joblib allows.

    joblib checks for finished work every ten milliseconds, and new threads take a millisecond to
    start: longer than such work may take. So helper threads are kept, and the caller works, too;
    alone, if all helpers are busy.

    >>> in_threads(len, ["a", "bcd"], n_jobs=2)
    [1, 3]
    """
    items = list(items)
    n_available = thread_count(n_jobs)
    n_threads = min(n_available, len(items))
    if n_threads < 2:
        return [function(item) for item in items]
    waiting = deque(enumerate(items))
    results: dict[int, Result] = {}

    def work() -> None:
        while waiting:
            try:
                index, item = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results[index] = function(item)
            except BaseException:
                waiting.clear()
                raise

    helpers = _helpers(n_available - 1)
    others = [helpers.submit(work) for _ in range(n_threads - 1)]
    try:
        work()
    finally:
        # A helper that has not begun need not any more; those that have must end first.
        _finish([other for other in others if not other.cancel()], waiting)
    return [results[index] for index in range(len(items))]


def _finish(begun: list[Future[None]], waiting: deque[Any]) -> None:
    """Wait until all have ended, also when interrupted; then pass on the first error."""
    from concurrent.futures import wait

    try:
        wait(begun)
    except BaseException:
        waiting.clear()
        wait(begun)
        raise
    for helper in begun:
        helper.result()


@cache
def _helpers(n_threads: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(n_threads, thread_name_prefix="xtrellis")


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_helpers.cache_clear)


# ---------------------------------------------------------------------- BLAS


class _BlasLimit:
    """Keeps BLAS to one thread while at least one caller wants it so."""

    def __init__(self) -> None:
        self.lock, self.n_callers = threading.Lock(), 0
        self.limit: Any = None

    def enter(self) -> None:
        from threadpoolctl import threadpool_limits

        with self.lock:
            if self.n_callers == 0:
                self.limit = threadpool_limits(1, user_api="blas")
            self.n_callers += 1

    def leave(self) -> None:
        with self.lock:
            self.n_callers -= 1
            if self.n_callers == 0:
                self.limit.restore_original_limits()


_blas_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):  # another thread may have held the lock
    os.register_at_fork(after_in_child=_blas_limit.__init__)  # type: ignore[misc]


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS with one thread: bit for bit the same result on any machine.

    The limit is one of the whole process. threadpoolctl's own context manager restores what it
    found, so of two threads that overlap the second would restore the first one's limit of 1;
    here the first caller sets the limit, and the last one to leave restores it.
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()
