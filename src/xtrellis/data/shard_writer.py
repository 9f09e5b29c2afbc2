"""The writer of a folder of shards: rows are collected, and written when they fill a shard."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .shards import (
    ENTRY,
    FEATURES,
    NAME,
    VERSION,
    Shards,
    open_shards,
    own_files,
    read_shard,
    shard_path,
    write_features,
)
from .streams import DataError
from .text_features import TextFeatures


class ShardWriter:
    """Collects rows until they fill a shard; labels are numbered as they come.

    Nothing in the folder is overwritten. If an error ends the ``with`` statement, what was written
    is removed.

    Attributes
    ----------
    counts : list of int
        Number of rows of each shard written so far.
    """

    def __init__(self, folder: str | os.PathLike[str], shard_bytes: int) -> None:
        self.folder, self.shard_bytes = Path(folder), shard_bytes
        self.counts: list[int] = []
        self._numbers: dict[str, int] = {}
        self._whole_numbers = True
        self._parts: list[tuple[Any, Any, Any, Any]] = []
        self._size = 0
        self._is_new = False
        self._written: set[Path] = set()

    def __enter__(self) -> Self:
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(f"{self.folder}: this is a file; name a folder to write to")
        if (self.folder / NAME).exists():
            raise DataError(
                f"{self.folder}: it holds rows already; name another folder, or delete it"
            )
        if files := own_files(self.folder):
            raise DataError(
                f"{files[0]}: this would be overwritten; it may be left from a conversion that "
                f"was not finished: name another folder, or delete it"
            )
        self._is_new = not self.folder.exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        """Leave nothing behind if the rows could not be converted."""
        from ..model.atomic import UNFINISHED

        for path in self._written:
            if kind is not None:
                path.unlink(missing_ok=True)
            UNFINISHED.discard(path)
        if kind is not None and self._is_new:
            with suppress(OSError):
                self.folder.rmdir()

    def add(
        self,
        sizes: npt.NDArray[Any],
        indices: npt.NDArray[np.int32],
        values: npt.NDArray[np.float32],
        labels: Sequence[str],
        whole_numbers: bool = False,
    ) -> None:
        """Take some rows: the number of features of each, all features and values, the labels."""
        numbers = self._numbers
        encoded = [numbers.setdefault(name, len(numbers)) for name in labels]
        self._whole_numbers &= whole_numbers
        self._parts.append((sizes, indices, values, np.array(encoded, np.int32)))
        self._size += indices.nbytes + values.nbytes
        if self._size >= self.shard_bytes:
            self.flush()

    def flush(self) -> None:
        """Write what was collected as a shard."""
        if any(len(part[3]) for part in self._parts):
            sizes, indices, values, labels = (
                np.concatenate(arrays) for arrays in zip(*self._parts, strict=True)
            )
            arrays = {
                "values": values,
                "indices": indices,
                "indptr": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
                "labels": labels,
            }
            path = shard_path(self.folder, len(self.counts))
            if path.exists():
                raise DataError(f"{path}: another conversion writes to this folder; name another")
            self._write(len(self.counts), arrays)
            self.counts.append(len(labels))
        self._parts, self._size = [], 0

    def change(self, number: int, change: Callable[[Any, Any, Any], tuple[Any, Any, Any]]) -> None:
        """Change the rows of a shard: their indptr, features and values."""
        arrays = read_shard(shard_path(self.folder, number), mmap=False)
        names = "indptr", "indices", "values"
        changed = change(*(arrays[name] for name in names))
        self._write(number, {**arrays, **dict(zip(names, changed, strict=True))})

    def _write(self, number: int, arrays: dict[str, Any]) -> None:
        from ..model.atomic import replacing
        from ..model.model_file import write_file

        path = shard_path(self.folder, number)
        with replacing(path) as beside, open(beside, "wb") as file:
            write_file(file, arrays, {"version": VERSION}, ENTRY)
        self._wrote(path)

    def write_features(self, features: TextFeatures) -> None:
        """Keep the features of texts beside their rows."""
        write_features(self.folder, features)
        self._wrote(self.folder / FEATURES)

    def _wrote(self, path: Path) -> None:
        from ..model.atomic import UNFINISHED

        self._written.add(path)
        UNFINISHED.add(path)  # until all of them are there

    def finish(self, n_features: int, first_feature: int, texts: bool = False) -> Shards:
        """Write what the folder holds, and open it."""
        from ..model.atomic import replacing

        self.flush()
        names: list[Any] = list(self._numbers)
        facts = {
            "version": VERSION,
            "counts": self.counts,
            "n_features": n_features,
            "first_feature": first_feature,
            "whole_numbers": self._whole_numbers,
            "labels": [int(name) for name in names] if self._whole_numbers else names,
            **({"texts": True} if texts else {}),
        }
        with replacing(self.folder / NAME) as beside:
            beside.write_text(json.dumps(facts), encoding="utf-8")
        return open_shards(self.folder)
