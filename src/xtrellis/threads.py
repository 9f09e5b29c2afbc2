"""Threads for short work: what takes milliseconds, beside the blocks, which go through joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> list[Result]:
    """Results of a function for all items, in their order, by as many threads as joblib allows.

    joblib looks for finished work every ten milliseconds, which is longer than such work takes.

    >>> in_threads(len, ["a", "bcd"], n_jobs=2)
    [1, 3]
    """
    from concurrent.futures import ThreadPoolExecutor

    from joblib import effective_n_jobs

    items = list(items)
    n_threads = min(effective_n_jobs(n_jobs), len(items))
    if n_threads < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n_threads) as threads:
        return list(threads.map(function, items))
