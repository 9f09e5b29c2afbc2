"""What to do while kernels are compiled, which takes some seconds once per machine.

A line announces it. The search is the largest kernel and is needed last, so a second process
compiles it into the cache while this one compiles the kernels that are needed before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

from ..kernels import compile_seconds, compiled_elsewhere, on_compile
from .errors import note

_announced: list[Callable[[], None]] = []
_helpers: list[subprocess.Popen[bytes]] = []
_PATIENCE = 60  # seconds to wait; after that, this process compiles the search itself


def announce_compiling() -> None:
    """Before this command compiles its first kernel, print a line and start a second process."""
    if _announced:  # left by an earlier command in this process, which compiled nothing
        _announced.pop()()
    _announced.append(on_compile(_start))


def _start(line: str, is_kept: bool) -> None:
    note(line)
    if is_kept and (os.cpu_count() or 1) > 1:
        compile_search_beside()


def compile_search_beside() -> None:
    """Let another process compile the search, unless one has been started before."""
    if _helpers:
        return
    try:
        other = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.compile_search"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return
    _helpers.append(other)

    def wait() -> None:
        try:
            other.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            other.kill()

    compiled_elsewhere("k_best", wait)


def timed(work: Callable[[], object]) -> float:
    """Seconds that some work takes, without those of compiling kernels."""
    start, compiled = time.perf_counter(), compile_seconds()
    work()
    return max(0.0, time.perf_counter() - start - (compile_seconds() - compiled))
