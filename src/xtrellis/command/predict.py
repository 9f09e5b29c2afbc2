"""``xtrellis predict``."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .._progress import row_progress
from .errors import note
from .folders import load_for
from .options import (
    Delimiter,
    FormatOption,
    Header,
    Jobs,
    Json,
    Model,
    TextColumn,
    ZeroBased,
)
from .outputs import (
    check_output,
    check_plain_labels,
    check_stdout,
    json_line,
    label_that_breaks_lines,
    output_lines,
    plain_line,
)
from .rows import RowOptions, read_batches
from .small import interpret_if_small
from .unknown import UnknownTexts, as_rows


def predict(
    model: Model,
    rows: Annotated[Path, typer.Argument(help="Rows; - is standard input.")] = Path("-"),
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; standard output if omitted."),
    ] = None,
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=1, help="Number of labels per row.")
    ] = 1,
    proba: Annotated[bool, typer.Option("--proba", "-p", help="Also print probabilities.")] = False,
    min_probability: Annotated[
        float | None, typer.Option(help="Leave out labels less likely than this.")
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(help="Print sets that contain the true label this often, such as 0.9."),
    ] = None,
    otherwise: Annotated[
        str, typer.Option(help="What to print for rows without a label; nothing if omitted.")
    ] = "",
    json: Json = False,
    format: FormatOption = None,
    text_column: TextColumn = None,
    delimiter: Delimiter = None,
    header: Header = None,
    zero_based: ZeroBased = None,
    jobs: Jobs = -1,
) -> None:
    """Classify rows: one line per row, labels and probabilities separated by tabs, best first."""
    if output is None or str(output) == "-":
        check_stdout(model, rows)
    else:
        check_output(output, model, rows)
    _check_answers(top_k, proba, min_probability, coverage, otherwise, json)
    interpret_if_small(rows, model)
    loaded = load_for(model, rows, jobs, quickly=coverage is None)
    if not json:
        check_plain_labels(model, loaded.classes_)
    k = min(top_k, len(loaded.classes_))
    if str(rows) == "-" and sys.stdin.isatty():
        note("reading rows from the terminal, one per line; Ctrl-D ends")
    options = RowOptions(format, text_column, None, zero_based, delimiter, header)
    unknown = UnknownTexts()
    verbose = int(sys.stderr.isatty() and _goes_to_file(output))  # other lines show progress
    with output_lines(output) as write, row_progress(verbose, None) as report:
        for batch in read_batches(loaded, rows, options):
            report(batch.shape[0] if hasattr(batch, "shape") else len(batch))
            classifier, X = as_rows(loaded, batch)
            n_terms = unknown.count(X) if isinstance(batch, list) else None
            if coverage is not None:
                found = _sets(classifier, X, coverage, proba or json)
            elif k == 1 and not (proba or json or min_probability):
                write("".join(f"{label}\n" for label in classifier.predict(X)))
                continue
            else:
                found = _best(classifier, X, k, min_probability or 0.0)
            write("".join(_lines(found, n_terms, otherwise, proba, json)))
    unknown.tell()


def _goes_to_file(output: Path | None) -> bool:
    """Whether predictions are written to a file, rather than to a terminal or a pipe."""
    if output is not None and str(output) != "-":
        return True
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # standard output is closed, or no file
        return False


def _check_answers(
    top_k: int,
    proba: bool,
    min_probability: float | None,
    coverage: float | None,
    otherwise: str,
    json: bool,
) -> None:
    """Raise an error about options that contradict each other, or have impossible values."""
    if min_probability is not None and not 0 <= min_probability <= 1:
        raise typer.BadParameter(f"--min-probability must be from 0 to 1, got {min_probability}")
    if coverage is not None:
        if not 0 < coverage < 1:
            raise typer.BadParameter(f"--coverage must be above 0 and below 1, got {coverage}")
        if top_k > 1 or min_probability is not None:
            raise typer.BadParameter(
                "--coverage prints whole sets: omit --top-k and --min-probability"
            )
    elif otherwise and min_probability is None:
        raise typer.BadParameter("--otherwise needs --min-probability or --coverage")
    if not json and label_that_breaks_lines([otherwise]) is not None:
        raise typer.BadParameter("--otherwise must not contain a tab or a newline")


def _sets(
    classifier: Any, X: Any, coverage: float, proba: bool
) -> list[tuple[list[Any], list[float]]]:
    """The set of each row, and the probabilities of its classes if they are printed."""
    if not proba:
        return [(own.tolist(), []) for own in classifier.predict_set(X, coverage)]
    sets, probabilities = classifier.predict_set(X, coverage, return_proba=True)
    return [
        (own.tolist(), likely.tolist()) for own, likely in zip(sets, probabilities, strict=True)
    ]


def _best(
    classifier: Any, X: Any, k: int, min_probability: float
) -> list[tuple[list[Any], list[float]]]:
    """The best labels of each row, best first, and their probabilities: those that are enough."""
    labels, probabilities = classifier.predict_top_k(X, k)
    n_likely = (probabilities >= min_probability).sum(axis=1)
    rows = zip(labels.tolist(), probabilities.tolist(), n_likely, strict=True)
    return [(best[:n], likely[:n]) for best, likely, n in rows]


def _lines(
    found: list[tuple[list[Any], list[float]]],
    n_terms: list[int] | None,
    otherwise: str,
    proba: bool,
    json: bool,
) -> list[str]:
    """The line of each row."""
    if json:
        known: Sequence[int | None] = n_terms or [None] * len(found)
        return [
            json_line(labels or [otherwise] * bool(otherwise), likely, n)
            for (labels, likely), n in zip(found, known, strict=True)
        ]
    return [
        plain_line(labels, likely, proba) if labels else f"{otherwise}\n"
        for labels, likely in found
    ]
