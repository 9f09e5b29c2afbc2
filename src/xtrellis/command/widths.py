"""``xtrellis widths``."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from . import options as opt
from .errors import mark_interrupt_handled, note, print_if_interrupted
from .outputs import check_picture, check_stdout, writing
from .rows import RowOptions, read_training


def widths(
    rows: opt.Labelled,
    widths: Annotated[
        str | None, typer.Option(help="Widths to try, such as 2,5,10; chosen by K if omitted.")
    ] = None,
    max_bytes: Annotated[
        float | None, typer.Option(help="Largest size of the weights in bytes.")
    ] = None,
    training: opt.TrainingOption = opt.Training.local,
    learner: opt.LearnerOption = None,
    C: opt.COption = None,
    epochs: opt.Epochs = None,
    words: opt.Words = "1-2",
    characters: opt.Characters = "0",
    min_df: opt.MinDf = 1,
    hash_size: opt.HashSize = None,
    plot: opt.Plot = None,
    format: opt.FormatOption = None,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    jobs: opt.Jobs = -1,
    seed: opt.Seed = 0,
) -> None:
    """Train several slice widths, and recommend one from the training rows alone."""
    check_stdout(rows)
    check_picture(plot, rows)
    if training is opt.Training.joint:
        raise typer.BadParameter("--training joint has no bound to choose a width by")
    ladder = None if widths is None else opt.numbers("--widths", widths)
    estimator = opt.new_classifier(training, None, learner, C, epochs, jobs, seed)
    data = read_training(
        rows, None, RowOptions(format, text_column, label_column, None, delimiter, header)
    )
    X = data.X
    if data.first_feature is None:
        text = opt.new_text_classifier(None, words, characters, min_df, hash_size)
        X = text.new_features().fit_transform(X, min_df)
    else:
        why = f"{rows}: these are features, not texts"
        opt.check_no_terms(why, words, characters, min_df, hash_size)
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
