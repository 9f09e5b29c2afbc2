"""A note when kernels are compiled, which takes seconds, once on a machine."""

from __future__ import annotations

import time
from typing import Any

from .errors import note

_seconds = [0.0]


def announce_compiling() -> None:
    """Print one line before the first kernel that this command has to compile."""
    from .. import kernels

    on_compile = getattr(kernels, "on_compile", None)
    if on_compile is None:
        _listen_to_numba()
    else:
        on_compile(note)


def compile_seconds() -> float:
    """Seconds that this process has spent compiling kernels."""
    from .. import kernels

    return float(getattr(kernels, "compile_seconds", lambda: _seconds[0])())


def _listen_to_numba() -> None:
    """The same by Numba's own events, without the hook in ``kernels``."""
    from numba.core import event

    class Listener(event.Listener):
        depth, started, announced = 0, 0.0, False

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.started = time.perf_counter()
            self.depth += 1
            if not self.announced:
                self.announced = True
                note("compiling kernels, once on this machine")

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                _seconds[0] += time.perf_counter() - self.started

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
