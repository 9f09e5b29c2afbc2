"""``xtrellis prune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .errors import busy, note
from .folders import part_for
from .options import (
    Delimiter,
    FormatOption,
    Header,
    Jobs,
    LabelColumn,
    Model,
    NewModel,
    TextColumn,
    ZeroBased,
)
from .outputs import check_output, save_model, size_in_words
from .rows import RowOptions, load, read_labelled
from .words import pruned as pruned_in_words


def prune(
    model: Model,
    rows: Annotated[
        Path,
        typer.Argument(
            help="Rows with labels that the model was not trained on; - is standard input.",
            show_default=False,
        ),
    ],
    pruned: NewModel,
    max_drop: Annotated[
        float, typer.Option(help="Accuracy that may be lost; 0.01 is one point.")
    ] = 0.01,
    threshold: Annotated[
        float | None,
        typer.Option(help="Remove weights up to this size; rows then only measure the accuracy."),
    ] = None,
    bits: Annotated[
        int, typer.Option(help="Bits of each weight in the file: 8, which rounds them, or 32.")
    ] = 8,
    format: FormatOption = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    header: Header = None,
    zero_based: ZeroBased = None,
    jobs: Jobs = -1,
) -> None:
    """Remove small weights from a model, and write the smaller model to another file."""
    check_output(pruned, model, rows)
    loaded = load(model, jobs)
    part = part_for(loaded, rows, model)
    options = RowOptions(format, text_column, label_column, zero_based, delimiter, header)
    with busy("reading rows"):
        X, y = read_labelled(part, rows, options)
    with busy("pruning"):
        part.prune(X, y, max_drop=max_drop, threshold=threshold, bits=bits)
    done = getattr(loaded, "classifier_", loaded).pruning_
    before = model.stat().st_size
    size = save_model(loaded, pruned)
    note(
        f"{pruned_in_words(done)}, accuracy {done.accuracy_before:.2%} -> {done.accuracy_after:.2%}"
    )
    note(f"{pruned}: {size_in_words(size)}, before {size_in_words(before)}")
