"""``xtrellis widths``."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from .errors import mark_interrupt_handled, note, print_if_interrupted
from .options import (
    Characters,
    COption,
    Delimiter,
    Epochs,
    FormatOption,
    HashSize,
    Header,
    Jobs,
    LabelColumn,
    Labelled,
    LearnerOption,
    MinDf,
    Plot,
    Seed,
    TextColumn,
    Training,
    TrainingOption,
    Words,
    new_classifier,
    new_text_classifier,
    numbers,
)
from .outputs import check_output, check_stdout, writing
from .rows import RowOptions, read_training


def widths(
    rows: Labelled,
    widths: Annotated[
        str | None, typer.Option(help="Widths to try, such as 2,5,10; chosen by K if omitted.")
    ] = None,
    max_bytes: Annotated[
        float | None, typer.Option(help="Largest size of the weights in bytes.")
    ] = None,
    training: TrainingOption = Training.local,
    learner: LearnerOption = None,
    C: COption = None,
    epochs: Epochs = None,
    words: Words = "1-2",
    characters: Characters = "0",
    min_df: MinDf = 1,
    hash_size: HashSize = None,
    plot: Plot = None,
    format: FormatOption = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    header: Header = None,
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Train several slice widths, and say which one the training rows favour."""
    check_stdout(rows)
    if plot is not None:
        check_output(plot, rows)
    if training is Training.joint:
        raise typer.BadParameter("--training joint has no bound to choose a width by")
    ladder = None if widths is None else numbers("--widths", widths)
    estimator = new_classifier(training, None, learner, C, epochs, jobs, seed)
    data = read_training(
        rows, None, RowOptions(format, text_column, label_column, None, delimiter, header)
    )
    X = data.X
    if data.first_feature is None:
        text = new_text_classifier(None, words, characters, min_df, hash_size)
        X = text.new_features().fit_transform(X, min_df)
    from ..selection.widths import select_slice_width

    warnings.filterwarnings("ignore", "interrupted: ")  # the table says so
    selection = select_slice_width(
        X,
        data.y,
        estimator=estimator,
        widths=ladder,
        max_bytes=max_bytes,
        verbose=int(sys.stderr.isatty()),
        callback=lambda so_far: print_if_interrupted(so_far.table()),
    )
    if selection.interrupted:
        mark_interrupt_handled()
    print(selection.table(), flush=True)
    if plot is not None:
        with writing(plot) as beside:
            selection.plot(beside)
        note(f"picture: {plot}")
    if selection.interrupted:
        raise typer.Exit(130)
