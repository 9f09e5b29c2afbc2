"""``xtrellis evaluate``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .errors import busy, note
from .folders import load_for
from .options import (
    Delimiter,
    FormatOption,
    Header,
    Jobs,
    Json,
    LabelColumn,
    Labelled,
    Model,
    TextColumn,
    ZeroBased,
)
from .outputs import check_output, check_picture, check_stdout, print_facts, write_picture, writing
from .rows import RowOptions, read_labelled
from .small import interpret_if_small

if TYPE_CHECKING:
    from ..evaluation import Evaluation


def evaluate(
    model: Model,
    rows: Labelled,
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=1, help="The k of top-k accuracy.")
    ] = 5,
    curve: Annotated[
        bool, typer.Option("--curve", help="Print accuracy against the share of rows answered.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="File to draw that curve to.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="File to write a report to: one page with everything.")
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(help="What separates levels in labels such as A/B/C; detected if omitted."),
    ] = None,
    json: Json = False,
    format: FormatOption = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    header: Header = None,
    zero_based: ZeroBased = None,
    jobs: Jobs = -1,
) -> None:
    """Measure a model on rows with labels: accuracy, calibration and typical errors.

    Prints overall figures, accuracy by class size and by level of the label, and the worst
    confusions with examples.
    """
    check_stdout(model, rows)
    check_picture(plot, model, rows)
    if html is not None:
        check_output(html, model, rows)
    if plot is not None and plot == html:
        raise typer.BadParameter("--plot and --html must be different files")
    interpret_if_small(rows, model)
    loaded = load_for(model, rows, jobs)
    options = RowOptions(format, text_column, label_column, zero_based, delimiter, header)
    with busy("reading rows"):
        X, y = read_labelled(loaded, rows, options)
    from ..evaluation import evaluate as measure

    verbose = int(sys.stderr.isatty())
    found = measure(loaded, X, y, k=top_k, separator=separator, verbose=verbose)
    if json:
        print_facts(found.to_dict(), True)
    else:
        from ..evaluation.results import details_in_words

        print_facts(found.facts, False)
        print("\n".join(details_in_words(found, curve)))
    if html is not None:
        _write_report(found, html, f"{model.name} on {rows.name}")
    if plot is not None:
        _draw(found, plot)


def _write_report(found: Evaluation, path: Path, title: str) -> None:
    from .evaluation_report import report_of

    with writing(path) as beside:
        beside.write_text(report_of(found, title), encoding="utf-8")
    note(f"report: {path}")


def _draw(found: Evaluation, path: Path) -> None:
    from matplotlib.figure import Figure

    from ..plots import draw_curve
    from ..plots.axes import WIDTHS_SIZE

    figure = Figure(figsize=WIDTHS_SIZE, layout="constrained")
    draw_curve(found, figure.subplots())
    write_picture(figure, path)
