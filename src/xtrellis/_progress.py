"""Progress bars on the terminal: of training, of rows, of widths, and of work that has no measure.

Bars go to standard error and leave standard output alone, which may be a file of predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from threading import Lock, Timer
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

AFTER = 2.0  # seconds, after which work is worth a bar


def _bar(*columns: ProgressColumn, transient: bool = False) -> Progress:
    """A bar on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    # Rich would send what is printed meanwhile to the console, even if it is meant for a file.
    return Progress(*columns, console=console, transient=transient, redirect_stdout=False)


class _Waiting:
    """A bar without a measure, which appears after some seconds and gives way to other bars."""

    current: _Waiting | None = None

    def __init__(self, what: str, after: float) -> None:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        self.bar = _bar(TextColumn(what), BarColumn(), TimeElapsedColumn(), transient=True)
        self.bar.add_task(what, total=None)
        self.after, self.lock = after, Lock()
        self.timer: Timer | None = None

    def start(self) -> None:
        """Show the bar if it is not stopped before."""
        self.timer = Timer(self.after, self._show)
        self.timer.daemon = True
        self.timer.start()

    def _show(self) -> None:
        with self.lock:
            if self.timer is not None:
                self.bar.start()

    def stop(self) -> None:
        """Remove the bar, or let it not appear."""
        with self.lock:
            if self.timer is not None:
                self.timer.cancel()
            self.timer = None
            if self.bar.live.is_started:
                self.bar.stop()


@contextmanager
def waiting(verbose: int, what: str, after: float = AFTER) -> Iterator[None]:
    """Show that something goes on, and for how long, if it takes longer than some seconds.

    While one of the other bars is shown, this one is not.
    """
    if not verbose or _Waiting.current is not None:
        yield
        return
    _Waiting.current = own = _Waiting(what, after)
    own.start()
    try:
        yield
    finally:
        _Waiting.current = None
        own.stop()


@contextmanager
def _alone() -> Iterator[None]:
    """Give the terminal to another bar."""
    other = _Waiting.current
    if other is not None:
        other.stop()
    try:
        yield
    finally:
        if other is not None and other is _Waiting.current:
            other.start()


@contextmanager
def training_progress(verbose: int) -> Iterator[Callable[[float, float], None] | None]:
    """Show a progress bar of blocks or epochs, with their loss and the time that is left.

    Yields a function of the share that has been done since its last call, and of the loss; or None
    if nothing is to be shown.
    """
    if not verbose:
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %{task.fields[loss]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with _alone(), _bar(*columns) as progress:
        task = progress.add_task("training", total=1.0, loss="")

        def report(share: float, loss: float) -> None:
            if isfinite(loss):
                progress.update(task, loss=f"  loss {loss:.4f}")
            progress.advance(task, share)

        yield report
        progress.update(task, completed=1.0)  # also if training stopped early


@contextmanager
def row_progress(
    verbose: int, n_rows: int | None, after: float = AFTER
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar of rows, if it takes longer than some seconds.

    Yields a function to call with the number of rows done since its last call.
    """
    if not verbose:
        yield lambda n_done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = _bar(*columns)
    task, start = progress.add_task("rows", total=n_rows), monotonic()

    def report(n_done: int) -> None:
        progress.advance(task, n_done)
        if not progress.live.is_started and monotonic() - start > after:
            progress.start()

    try:
        with _alone():
            yield report
    finally:
        if progress.live.is_started:
            progress.stop()


@contextmanager
def width_progress(verbose: int, n_widths: int) -> Iterator[Callable[[Any], None]]:
    """Show a progress bar of the widths that are tried, with the choice so far.

    Yields a function to call after each width with the selection so far, or with None.
    """
    if not verbose:
        yield lambda selection: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("widths"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[choice]}"),
        TimeElapsedColumn(),
    )
    with _alone(), _bar(*columns) as progress:
        task = progress.add_task("widths", total=n_widths, choice="")

        def report(selection: Any) -> None:
            progress.advance(task)
            if selection is not None and selection.chosen is not None:
                progress.update(task, choice=_choice(selection))

        yield report


def _choice(selection: Any) -> str:
    """The width tried last, and the best one so far."""
    last, best = selection.trials[-1].slice_width, selection.chosen
    value = getattr(best, selection.criterion)
    name = selection.criterion.replace("_", " ")
    return f"b = {last} done, best b = {best.slice_width} ({name} {value:.4f})"
