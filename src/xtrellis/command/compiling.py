"""When kernels are compiled, which takes seconds, once on a machine: a note, and help.

The search is the largest kernel, and needed last. So a second process compiles it into the cache
while this one compiles what it needs before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from ..kernels import compiled_elsewhere, on_compile
from .errors import note

_announced: list[Callable[[], None]] = []
_helpers: list[subprocess.Popen[bytes]] = []
_PATIENCE = 60  # seconds: then this process compiles the search itself


def announce_compiling() -> None:
    """Print one line before the first kernel that this command has to compile, and get help."""
    if _announced:  # of another command of this process, in which nothing was compiled
        _announced.pop()()
    _announced.append(on_compile(_start))


def _start(line: str, is_kept: bool) -> None:
    note(line)
    if is_kept and (os.cpu_count() or 1) > 1:
        compile_search_beside()


def compile_search_beside() -> None:
    """Have another process compile the search, if one can be started; one is enough."""
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
