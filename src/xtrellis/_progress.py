"""Progress of training, and of width selection, on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def training_progress(verbose: int) -> Iterator[Callable[[float, float], None] | None]:
    """Progress bar of blocks or epochs, with their loss and the time that is left."""
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
        TextColumn("{task.percentage:>3.0f} %  loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=1.0, loss=float("nan"))

        def report(share: float, loss: float) -> None:
            progress.update(task, advance=share, loss=loss)

        yield report
        progress.update(task, completed=1.0)  # also if training stopped early


@contextmanager
def width_progress(verbose: int, n_widths: int) -> Iterator[Callable[[Any], None]]:
    """Progress bar of a ladder of widths, with the choice so far; reported to after each width."""
    if not verbose:
        yield lambda climb: None
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

        def report(climb: Any) -> None:
            progress.advance(task)
            if climb is not None and climb.chosen is not None:
                last, best = climb.trials[-1].slice_width, climb.chosen
                value = getattr(best, climb.criterion)
                name = climb.criterion.replace("_", " ")
                text = f"b = {last} done, best b = {best.slice_width} ({name} {value:.4f})"
                progress.update(task, choice=text)

        yield report
