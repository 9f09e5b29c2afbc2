"""Progress bars of training and of width selection on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from time import monotonic
from typing import Any


@contextmanager
def training_progress(verbose: int) -> Iterator[Callable[[float, float], None] | None]:
    """Show a progress bar of blocks or epochs, with their loss and the time that is left.

    Yields a function of the share that has been done since its last call, and of the loss; or None
    if nothing is to be shown.
    """
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %{task.fields[loss]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=1.0, loss="")

        def report(share: float, loss: float) -> None:
            if isfinite(loss):
                progress.update(task, loss=f"  loss {loss:.4f}")
            progress.advance(task, share)

        yield report
        progress.update(task, completed=1.0)  # also if training stopped early


@contextmanager
def row_progress(
    verbose: int, n_rows: int | None, after: float = 2.0
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar of rows, if it takes longer than some seconds.

    Yields a function to call with the number of rows done since its last call.
    """
    if not verbose:
        yield lambda n_done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True))
    task, start = progress.add_task("rows", total=n_rows), monotonic()

    def report(n_done: int) -> None:
        progress.advance(task, n_done)
        if not progress.live.is_started and monotonic() - start > after:
            progress.start()

    try:
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
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("widths"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[choice]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
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
