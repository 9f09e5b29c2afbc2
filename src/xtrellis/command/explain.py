"""``xtrellis explain``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, Model, Plot, ZeroBased
from .outputs import check_picture, check_stdout, write_picture

if TYPE_CHECKING:
    from ..explanation import Explanation


def explain(
    model: Model,
    row: Annotated[
        str,
        typer.Argument(
            help="A text, or features such as '3:1 17:0.5'; - is standard input.",
            show_default=False,
        ),
    ],
    label: Annotated[
        str | None, typer.Option(help="Class to explain; the most likely one if omitted.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of features to show.")] = 10,
    plot: Plot = None,
    json: Json = False,
    zero_based: ZeroBased = None,
) -> None:
    """Show which words or features of one row spoke for and against a class."""
    from .rows import load, read_one
    from .small import interpret_if_small

    check_stdout(model)
    check_picture(plot, model)
    interpret_if_small(model=model)
    loaded = load(model, 1)
    text = sys.stdin.read().strip("\n") if row == "-" else row
    found = loaded.explain(read_one(loaded, text, zero_based), _label(loaded, label), top)
    first = _first_feature(loaded, zero_based)
    if first:
        found = found.renamed(lambda feature: feature + first)
    if json:
        from json import dumps

        print(dumps(found.to_dict(), ensure_ascii=False, default=str))
    else:
        _show(found)
    if plot is not None:
        _draw(found, plot)


def _label(loaded: Any, label: str | None) -> Any:
    """The class whose name is this text, or an error."""
    if label is None:
        return None
    for known in loaded.classes_.tolist():
        if str(known) == label:
            return known
    raise ValueError(f"--label {label!r} is not a class of the model")


def _first_feature(loaded: Any, zero_based: bool | None) -> int:
    """Number of the first feature in the rows, if features have numbers rather than names."""
    if hasattr(loaded, "features_") or hasattr(loaded, "feature_names_in_"):
        return 0
    return int(getattr(loaded, "first_feature_", 0) if zero_based is None else not zero_based)


def _show(found: Explanation) -> None:
    """Print an explanation: coloured bars on a terminal, plain text in a pipe."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..explanation import step_details, step_in_words

    if not sys.stdout.isatty():
        print(found)
        return
    console = Console(highlight=False)
    console.print(Text(found.headline, style="bold"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    shown = found.contributions[: found.top]
    largest = max((abs(each.amount) for each in shown), default=1.0)
    for each in shown:
        style = "green" if each.amount > 0 else "red"
        bar = "█" * max(1, round(24 * abs(each.amount) / largest))
        table.add_row(Text(f"{each.amount:+.3f}"), Text(str(each.feature)), Text(bar, style=style))
    console.print(
        table if shown else "no feature of the row has a weight on the path of this class"
    )
    console.print(Text(found.sums))
    for step in found.steps:
        console.print(Text(step_in_words(step, found.n_trellises)))
        for line in step_details(step, found.label):
            console.print(Text(f"    {line}", style="dim"))


def _draw(found: Explanation, path: Path) -> None:
    """Draw an explanation to a file."""
    from matplotlib.figure import Figure

    from ..plots import draw_explanation

    figure = Figure(figsize=(7, 1.4 + 0.32 * max(found.top, 3)), layout="constrained")
    draw_explanation(found, ax=figure.subplots())
    write_picture(figure, path)
