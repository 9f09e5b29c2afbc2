"""``xtrellis convert``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .errors import note
from .options import ZeroBasedInTraining
from .outputs import size_in_words
from .rows import source_of
from .words import count


def convert(
    rows: Annotated[
        Path,
        typer.Argument(help="svmlight rows with labels; - is standard input.", show_default=False),
    ],
    folder: Annotated[Path, typer.Argument(help="Folder to write to.", show_default=False)],
    zero_based: ZeroBasedInTraining = None,
    shard_size: Annotated[
        float, typer.Option(min=0.01, help="Megabytes of a part, which is in memory at once.")
    ] = 32.0,
) -> None:
    """Convert rows that may be larger than memory into a folder that needs no parsing.

    The other commands accept such a folder in place of a file of rows; predict reads one part of
    it at a time.
    """
    from ..data.converting import write_shards

    shards = write_shards(
        source_of(rows),
        folder,
        zero_based="auto" if zero_based is None else zero_based,
        shard_bytes=int(shard_size * 2**20),
        verbose=int(sys.stderr.isatty()),
    )
    size = sum(path.stat().st_size for path in folder.iterdir())
    note(
        f"{count(shards.n_rows, 'row')}, {count(len(shards.classes), 'class', 'classes')}, "
        f"{count(shards.n_features, 'feature')}\n{folder}: {size_in_words(size)} in "
        f"{count(len(shards), 'part')}"
    )
