"""Numba kernels: functions of plain arrays and numbers, compiled once and cached.

Every kernel is made by :func:`xtrellis.kernels._jit.kernel`, which also decides where compiled
code is kept. Nothing here imports Numba, so that :func:`on_compile` costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_elsewhere: dict[str, Callable[[], object]] = {}
_waiting: list[Callable[[str, bool], object]] = []
_seconds = 0.0


def on_compile(callback: Callable[[str, bool], object]) -> Callable[[], None]:
    """Call ``callback`` once, before the next kernel is compiled.

    Nothing happens if all kernels come from the cache. The callback runs in the thread that needs
    the kernel, and should be short.

    Parameters
    ----------
    callback : callable
        Takes a line of text to show, and whether compiled kernels are kept for other processes.

    Returns
    -------
    callable
        Removes the callback if it has not been called.

    Examples
    --------
    >>> from xtrellis.kernels import on_compile
    >>> remove = on_compile(lambda line, is_kept: print(line))
    >>> remove()
    """
    _waiting.append(callback)

    def remove() -> None:
        if callback in _waiting:
            _waiting.remove(callback)

    return remove


def compile_seconds() -> float:
    """Time that this process has spent compiling kernels so far.

    >>> from xtrellis.kernels import compile_seconds
    >>> compile_seconds() >= 0
    True
    """
    return _seconds


def compiled_elsewhere(name: str, wait: Callable[[], object]) -> None:
    """Say that another process compiles a kernel into the cache; ``wait`` returns when it has."""
    _elsewhere[name] = wait


def wait_for_other_process(name: str) -> bool:
    """Wait until another process has compiled a kernel; False if none does."""
    wait = _elsewhere.pop(name, None)
    if wait is not None:
        start = time.perf_counter()
        wait()
        _has_compiled(time.perf_counter() - start)
    return wait is not None


def _starts_compiling(line: str, is_kept: bool) -> bool:
    """Call all waiting callbacks; returns whether there were any."""
    calls, _waiting[:] = list(_waiting), []
    for callback in calls:
        callback(line, is_kept)
    return bool(calls)


def _has_compiled(seconds: float) -> None:
    global _seconds
    _seconds += seconds
