"""``xtrellis convert``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as opt
from .errors import note
from .outputs import size_in_words
from .rows import RowOptions, load, source_of, terms_of
from .words import count


def convert(
    rows: opt.Labelled,
    folder: Annotated[Path, typer.Argument(help="Folder to write to.", show_default=False)],
    format: opt.FormatOption = None,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    zero_based: opt.ZeroBasedInTraining = None,
    words: opt.Words = "1-2",
    characters: opt.Characters = "0",
    min_df: opt.MinDf = 1,
    hash_size: opt.HashSize = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help="Folder or model whose terms to use, for texts to validate on or to predict.",
            show_default=False,
        ),
    ] = None,
    shard_size: Annotated[
        float,
        typer.Option(min=0.01, max=1e6, help="Megabytes of a part, which is in memory at once."),
    ] = 32.0,
) -> None:
    """Convert rows that may be larger than memory into a folder that needs no parsing.

    The other commands accept such a folder in place of a file of rows; train and predict read one
    part of it at a time. Texts become features here: the options about terms are those of train.
    """
    from ..data.converting import write_shards
    from ..data.shards import own_files

    options = RowOptions(format, text_column, label_column, zero_based, delimiter, header)
    of_words, of_characters = opt.term_lengths(words, characters)
    if like is not None:
        why = "--like says which terms there are"
        opt.check_no_terms(why, words, characters, min_df, hash_size)
    shards = write_shards(
        source_of(rows),
        folder,
        **options.reading(),
        zero_based="auto" if zero_based is None else zero_based,
        words=of_words,
        characters=of_characters,
        min_df=min_df,
        hash_size=hash_size,
        features=None if like is None else _terms_like(like),
        shard_bytes=int(shard_size * 2**20),
        verbose=int(sys.stderr.isatty()),
    )
    size = sum(path.stat().st_size for path in own_files(folder))
    note(
        f"{count(shards.n_rows, 'row')}, {count(len(shards.classes), 'class', 'classes')}, "
        f"{count(shards.n_features, 'feature')}\n{folder}: {size_in_words(size)} in "
        f"{count(len(shards), 'part')}"
    )


def _terms_like(path: Path) -> Any:
    """The terms of a folder of texts, or of a model that takes texts."""
    found = terms_of(path) if path.is_dir() else getattr(load(path, 1), "features_", None)
    if found is None:
        raise ValueError(f"--like {path}: there are no terms, as its rows are not texts")
    return found
