"""Small inputs on a new machine: run by Python, as to compile the kernels would take far longer.

Four lines are trained on in a tenth of a second by Python itself, and so is a text classified. To
compile the kernels for them takes many seconds, once per machine; so that is left until there is
something to gain by it.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from pathlib import Path
from typing import Any

_ROWS = 2_000  # bytes of rows that Python trains on in a few seconds at most
_MODEL = 100_000  # bytes of a model that it reads in as many
_PATIENCE = 0.2  # seconds to wait for the end of standard input
_is_own_process = False


def in_own_process() -> None:
    """Say that this process runs the command alone: nothing else in it needs fast kernels."""
    global _is_own_process
    _is_own_process = True


def interpret_if_small(rows: Path | None = None, model: Path | None = None) -> bool:
    """Let Python run the kernels, if none was compiled yet and there is little to do.

    Of rows, ``-`` is standard input. Returns whether kernels are run by Python.
    """
    if not _is_own_process or "xtrellis.kernels.lazy" in sys.modules:
        return False
    if model is not None and _size_of(model) > _MODEL:
        return False
    if rows is not None and _size_of(rows) > _ROWS:
        return False
    from ..kernels._jit import has_compiled, interpret

    if has_compiled("lazy.k_best"):
        return False
    interpret()
    return True


def _size_of(path: Path) -> float:
    """Number of bytes; infinite if it is not known."""
    try:
        if str(path) == "-":
            return _size_of_input()
        found = path.stat()
    except (OSError, ValueError):  # what is wrong is told when the file is opened
        return float("inf")
    return found.st_size if stat.S_ISREG(found.st_mode) else float("inf")


def _size_of_input() -> float:
    """The same for standard input, of which nothing is consumed: of a pipe, if it has ended."""
    source: Any = sys.stdin.buffer
    found = os.fstat(source.fileno())
    if stat.S_ISREG(found.st_mode):
        return found.st_size
    if not stat.S_ISFIFO(found.st_mode) or not hasattr(select, "poll"):
        return float("inf")
    read = source.peek()  # waits for the first bytes, and takes as many as there are
    poll = select.poll()
    poll.register(source, select.POLLIN)
    events = [event for _, event in poll.poll(1_000 * _PATIENCE)]
    return len(read) if events == [select.POLLHUP] else float("inf")
