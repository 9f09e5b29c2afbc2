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
    loaded = load(model, jobs)
    if not json:
        check_plain_labels(model, loaded.classes_)
    k = min(top_k, len(loaded.classes_))
    if str(rows) == "-" and sys.stdin.isatty():
        note("reading rows from the terminal, one per line; Ctrl-D ends")
    options = RowOptions(format, text_column, zero_based=zero_based)
    with output_lines(output) as write:
        for batch in read_batches(loaded, rows, options):
            if k == 1 and not (proba or json):
                write("".join(f"{label}\n" for label in loaded.predict(batch)))
                continue
            labels, shares = loaded.predict_top_k(batch, k)
            as_line = json_line if json else plain_line
            write(
                "".join(
                    as_line(*row, proba or json)
                    for row in zip(labels.tolist(), shares.tolist(), strict=True)
                )
            )


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
