"""Progress of training on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def training_progress(verbose: int) -> Iterator[Callable[[float, float], None] | None]:
    """Progress bar of the blocks, with their loss and the time that is left."""
    if not verbose:
        yield None
        return
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
    with Progress(*columns) as progress:
        task = progress.add_task("training", total=1.0, loss=float("nan"))

        def report(share: float, loss: float) -> None:
            progress.update(task, advance=share, loss=loss)

        yield report
        progress.update(task, completed=1.0)  # shares add up to 1 but for rounding
