"""What to do while kernels are compiled, which takes some seconds once per machine.

A line announces it. Two further processes compile the largest kernels into the cache, a round of
training and the search. Meanwhile this one imports what it needs and compiles the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from ..kernels import compile_seconds, compiled_elsewhere, on_compile
from .errors import note

_announced: list[Callable[[], None]] = []
_helpers: list[subprocess.Popen[bytes]] = []
_LARGEST = ("svm_round", "k_best")  # kernels
_PATIENCE = 60  # seconds to wait; after that, this process compiles a kernel itself


def announce_compiling() -> None:
    """Before this command compiles its first kernel, print a line and start a second process."""
    if _announced:  # left by an earlier command in this process, which compiled nothing
        _announced.pop()()
    _announced.append(on_compile(_start))


def compile_ahead() -> None:
    """Begin at once if the search was never compiled: imports take a while, too."""
    from ..kernels import lazy
    from ..kernels._jit import cache_folders, is_compiled

    if cache_folders()[0] is not None and not is_compiled(lazy.k_best):
        compile_beside()


def _start(line: str, is_kept: bool) -> None:
    note(line)
    if is_kept:
        compile_beside()


def compile_beside() -> None:
    """Let other processes compile the largest kernels, unless they have been started before."""
    if _helpers or (os.cpu_count() or 1) < 2:
        return
    for name in _LARGEST:
        try:
            other = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.compile_largest", name],
                stdin=subprocess.PIPE,  # which closes when this process ends, however it ends
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return
        _helpers.append(other)
        compiled_elsewhere(name, partial(_wait, other))


def _wait(other: subprocess.Popen[bytes]) -> None:
    """Wait until another process has ended."""
    try:
        other.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        other.kill()


def timed(work: Callable[[], object]) -> float:
    """Seconds that some work takes, without those of compiling kernels."""
    start, compiled = time.perf_counter(), compile_seconds()
    work()
    return max(0.0, time.perf_counter() - start - (compile_seconds() - compiled))
