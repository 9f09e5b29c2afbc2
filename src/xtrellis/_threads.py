"""Threads for short work: what takes milliseconds, beside the blocks, which go through joblib."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    from joblib import effective_n_jobs

    items = list(items)
    n_threads = min(effective_n_jobs(n_jobs), len(items))
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

    helpers = _helpers(effective_n_jobs(n_jobs) - 1)
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
