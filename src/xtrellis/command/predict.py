"""``xtrellis predict`` and ``xtrellis evaluate``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import note
from .options import (
    FormatOption,
    Jobs,
    Json,
    LabelColumn,
    Labelled,
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
    print_facts,
)
from .rows import RowOptions, load, read_batches, read_labelled

if TYPE_CHECKING:
    import numpy.typing as npt


def predict(
    model: Model,
    rows: Annotated[Path, typer.Argument(help="Rows; - is standard input.")] = Path("-"),
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; standard output if omitted."),
    ] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Labels per row.")] = 1,
    proba: Annotated[bool, typer.Option("--proba", "-p", help="Print probabilities, too.")] = False,
    min_probability: Annotated[
        float | None, typer.Option(help="Leave out labels that are less likely than this.")
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(help="Print sets of labels that hold the true one this often, such as 0.9."),
    ] = None,
    otherwise: Annotated[
        str, typer.Option(help="What to print for a row without a label; nothing if omitted.")
    ] = "",
    json: Json = False,
    format: FormatOption = None,
    text_column: TextColumn = "text",
    zero_based: ZeroBased = None,
    jobs: Jobs = -1,
) -> None:
    """Classify rows: one line per row, labels and probabilities separated by tabs, best first."""
    if output is None or str(output) == "-":
        check_stdout(model, rows)
    else:
        check_output(output, model, rows)
    _check_answers(top_k, proba, min_probability, coverage, otherwise, json)
    loaded = load(model, jobs)
    if not json:
        check_plain_labels(model, loaded.classes_)
    k = min(top_k, len(loaded.classes_))
    if str(rows) == "-" and sys.stdin.isatty():
        note("reading rows from the terminal, one per line; Ctrl-D ends")
    options = RowOptions(format, text_column, zero_based=zero_based)
    as_line = json_line if json else plain_line
    with output_lines(output) as write:
        for batch in read_batches(loaded, rows, options):
            if coverage is not None:
                found: list[Any] = [
                    (own.tolist(), []) for own in loaded.predict_set(batch, coverage)
                ]
            elif k == 1 and not (proba or json or min_probability):
                write("".join(f"{label}\n" for label in loaded.predict(batch)))
                continue
            else:
                labels, shares = loaded.predict_top_k(batch, k)
                found = [
                    _likely(*row, min_probability or 0.0)
                    for row in zip(labels.tolist(), shares.tolist(), strict=True)
                ]
            lines = [
                as_line(labels, shares, proba) if labels else _no_answer(otherwise, json)
                for labels, shares in found
            ]
            write("".join(lines))


def _check_answers(
    top_k: int,
    proba: bool,
    min_probability: float | None,
    coverage: float | None,
    otherwise: str,
    json: bool,
) -> None:
    """Raise an error about options that do not go together, or have impossible values."""
    if min_probability is not None and not 0 <= min_probability <= 1:
        raise typer.BadParameter(f"--min-probability must be from 0 to 1, got {min_probability}")
    if coverage is not None:
        if not 0 < coverage < 1:
            raise typer.BadParameter(f"--coverage must be above 0 and below 1, got {coverage}")
        if top_k > 1 or proba or min_probability is not None:
            raise typer.BadParameter(
                "--coverage prints whole sets: omit --top-k, --proba and --min-probability"
            )
    elif otherwise and min_probability is None:
        raise typer.BadParameter("--otherwise needs --min-probability or --coverage")
    if not json and label_that_breaks_lines([otherwise]) is not None:
        raise typer.BadParameter("--otherwise must not contain a tab or a newline")


def _likely(
    labels: list[Any], shares: list[float], min_probability: float
) -> tuple[list[Any], list[float]]:
    """The labels that are likely enough, and their probabilities."""
    n_likely = sum(share >= min_probability for share in shares)
    return labels[:n_likely], shares[:n_likely]


def _no_answer(otherwise: str, json: bool) -> str:
    """The line of a row without a label."""
    return json_line([otherwise] if otherwise else [], [], False) if json else f"{otherwise}\n"


def evaluate(
    model: Model,
    rows: Labelled,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="For top-k accuracy.")] = 5,
    json: Json = False,
    format: FormatOption = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    zero_based: ZeroBased = None,
    jobs: Jobs = -1,
) -> None:
    """Measure a model on rows with labels: accuracy, top-k accuracy, calibration, time."""
    import numpy as np

    check_stdout(model, rows)
    loaded = load(model, jobs)
    X, y = read_labelled(loaded, rows, RowOptions(format, text_column, label_column, zero_based))
    k = min(top_k, len(loaded.classes_))
    loaded.predict(X[:1])  # loads or compiles the kernels
    start = time.perf_counter()
    loaded.predict(X)
    seconds = time.perf_counter() - start
    labels, shares = loaded.predict_top_k(X, k)
    right = labels == y[:, np.newaxis]
    facts = {
        "rows": len(y),
        "accuracy": float(right[:, 0].mean()),
        f"top_{k}_accuracy": float(right.any(axis=1).mean()),
        "mean_probability": float(shares[:, 0].mean()),
        "expected_calibration_error": expected_calibration_error(right[:, 0], shares[:, 0]),
        "rows_of_unknown_classes": int((~np.isin(y, loaded.classes_)).sum()),
        "microseconds_per_row": seconds / len(y) * 1e6,
    }
    print_facts(facts, json)


def expected_calibration_error(
    right: npt.NDArray[Any], confidence: npt.NDArray[Any], n_bins: int = 15
) -> float:
    """Mean gap between accuracy and confidence, over equally wide bins of the confidence.

    The gap of a bin is the difference between the share of its rows that are right and their mean
    confidence; bins count by their number of rows (Guo et al., ICML 2017).

    >>> import numpy as np
    >>> right, confidence = np.array([True, False, True, True]), np.array([0.6, 0.6, 0.9, 0.9])
    >>> round(expected_calibration_error(right, confidence), 3)
    0.1
    """
    import numpy as np

    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, right.astype(float) - confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(right))
