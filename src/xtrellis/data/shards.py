"""Rows on disk, larger than memory: a folder of CSR shards that are mapped one at a time.

A converter (``converting``) streams a file into the folder, a few megabytes at a time. Each shard
is a safetensors file of some rows: its arrays are mapped into memory when the shard is used, and
nothing is parsed again. ``rows.json`` is written last and lists what the folder holds; a folder
without it was not finished.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .labels import label_array
from .streams import DataError, Stream
from .svmlight import SvmlightRows

if TYPE_CHECKING:
    from .text_features import TextFeatures

NAME, SUFFIX, FEATURES = "rows.json", ".rows", "features.xtrellis"
VERSION = 1
ENTRY = "xtrellis rows"  # of a shard's header
MOST = 2**31 - 1  # the highest number of a feature

Stamp = tuple[int, int, int]  # inode, size, and time of the last change of a file

_TYPES = {"values": np.float32, "indices": np.int32, "indptr": np.int64, "labels": np.int32}


@dataclass(frozen=True, eq=False)
class Shards:
    """Rows in a folder: an iterable of ``(X, y)``, one pair per shard, mapped when it is reached.

    Attributes
    ----------
    folder : Path
    counts : tuple of int
        Number of rows of each shard.
    n_features : int
        Number of columns of each X.
    first_feature : {0, 1}
        The number of the first column in the svmlight file.
    classes : ndarray
        All labels, sorted.
    features : TextFeatures or None
        How texts became rows, if they were texts.
    """

    folder: Path
    counts: tuple[int, ...]
    n_features: int
    first_feature: int
    classes: npt.NDArray[Any]
    numbers: npt.NDArray[np.int64] = field(repr=False)  # of the labels, as they are in the shards
    features: TextFeatures | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows of all shards."""
        return sum(self.counts)

    @property
    def nbytes(self) -> int:
        """Size of all shards on disk."""
        paths = [shard_path(self.folder, number) for number in range(len(self))]
        return sum(path.stat().st_size for path in paths if path.exists())

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> tuple[Any, npt.NDArray[Any]]:
        """Rows and labels of one shard."""
        rows = self.as_read(number)
        X, y = rows.matrix(self.n_features, self.first_feature == 0), rows.y
        assert y is not None
        return X, y

    def stamp(self, number: int) -> Stamp:
        """What tells whether a shard was changed."""
        path = shard_path(self.folder, number)
        with _naming(path):
            found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def read(self, number: int, stamp: Stamp | None = None) -> Any:
        """Rows of one shard, without their labels, read into memory rather than mapped.

        If a stamp is given, they must be those that were there when it was taken.
        """
        from scipy import sparse

        arrays = self._arrays(number, mmap=False)
        if stamp is not None and self.stamp(number) != stamp:
            path = shard_path(self.folder, number)
            raise DataError(f"{path}: this shard was changed while it was trained on; train again")
        indices = arrays["indices"]
        indices -= self.first_feature
        X = sparse.csr_matrix((self.counts[number], self.n_features), dtype=np.float32)
        X.data, X.indices, X.indptr = arrays["values"], indices, arrays["indptr"]
        X.has_canonical_format = True  # the converter wrote it so
        return X

    def digest(self) -> bytes:
        """SHA-256 of all shards, and of what their labels stand for; reads every file once."""
        facts = self.n_features, self.first_feature, self.classes.tolist(), self.numbers.tolist()
        found = hashlib.sha256(repr(facts).encode())
        for number in range(len(self)):
            path = shard_path(self.folder, number)
            with _naming(path), open(path, "rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
        return found.digest()

    def encoded_labels(self) -> npt.NDArray[np.int64]:
        """Number of each row's label in ``classes``; of the shards, only labels are read."""
        found = []
        for number, n_rows in enumerate(self.counts):
            path = shard_path(self.folder, number)
            with _naming(path):
                labels = read_shard(path, mmap=True)["labels"]
                known = labels.dtype == _TYPES["labels"]
                known = (
                    known
                    and labels.max(initial=0) < len(self.numbers)
                    and labels.min(initial=0) >= 0
                )
                if labels.shape != (n_rows,) or not known:
                    raise DataError("its parts do not fit each other")
            found.append(self.numbers[labels])
        return np.concatenate(found)

    def as_read(self, number: int) -> SvmlightRows:
        """Rows of one shard with features numbered as in the file that was converted."""
        arrays = self._arrays(number, mmap=True)
        y = self.classes[self.numbers[arrays["labels"]]]
        lines = np.arange(len(y)) + 1 + sum(self.counts[:number])
        rows = arrays["indices"], arrays["values"], arrays["indptr"]
        return SvmlightRows(_named(self.folder), *rows, lines, y)

    def _arrays(self, number: int, mmap: bool) -> dict[str, Any]:
        """Arrays of one shard, checked."""
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} shards, not {number + 1}")
        path = shard_path(self.folder, number)
        with _naming(path):
            arrays = read_shard(path, mmap)
            indptr, indices = arrays["indptr"], arrays["indices"]
            values, labels = arrays["values"], arrays["labels"]
            n_rows, n_values = self.counts[number], len(values)
            sound = (  # which kernels rely on
                all(arrays[name].dtype == dtype for name, dtype in _TYPES.items())
                and indptr.shape == (n_rows + 1,)
                and labels.shape == (n_rows,)
                and indices.shape == (n_values,)
                and indptr[0] == 0
                and indptr[-1] == n_values
                and bool((np.diff(indptr) >= 0).all())
                and labels.min(initial=0) >= 0
                and labels.max(initial=0) < len(self.numbers)
                and indices.min(initial=self.first_feature) >= self.first_feature
                and indices.max(initial=-1) < self.n_features + self.first_feature
                and _are_in_order(indptr, indices)
            )
            if not sound:
                raise DataError("its parts do not fit each other")
        return arrays

    def in_memory(self) -> tuple[Any, npt.NDArray[Any]]:
        """Rows and labels of all shards, in memory."""
        rows = self.all_rows()
        assert rows.y is not None
        return rows.matrix(self.n_features, self.first_feature == 0), rows.y

    def all_rows(self) -> SvmlightRows:
        """Rows of all shards, in memory."""
        parts = [self.as_read(number) for number in range(len(self))]
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        return SvmlightRows(
            _named(self.folder),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([part.lines for part in parts]),
            np.concatenate([part.y for part in parts]),
        )


# ---------------------------------------------------------------------- reading


def open_shards(folder: str | os.PathLike[str], *, n_features: int | None = None) -> Shards:
    """Open a folder that :func:`write_shards` made.

    Parameters
    ----------
    folder : path
    n_features : int or None, default=None
        Number of columns, if it is to be larger than that of the rows themselves: for rows to
        predict, ``clf.n_features_in_``.

    Examples
    --------
    See :func:`write_shards`.

    >>> from xtrellis.data import open_shards
    >>> open_shards("nowhere")
    Traceback (most recent call last):
        ...
    xtrellis.data.streams.DataError: nowhere: there is no rows.json: no folder of rows, or one ...
    """
    path = Path(folder)
    with _naming(path):
        try:
            found = json.loads((path / NAME).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(
                f"there is no {NAME}: no folder of rows, or one that was not finished; convert the "
                f"rows again"
            ) from None
        if found["version"] != VERSION:
            version = repr(found["version"])[:40]
            raise DataError(f"it has version {version}, and this xtrellis reads {VERSION}")
        counts = tuple(_checked_number(count, 1, MOST) for count in _checked_list(found["counts"]))
        kind = int if found["whole_numbers"] else str
        names = [_checked_type(name, kind) for name in _checked_list(found["labels"])]
        labels = label_array(names) if kind is str else np.array(names, np.int64)
        classes, numbers = np.unique(labels, return_inverse=True)
        own = _checked_number(found["n_features"], 0, MOST + 1)
        first = _checked_number(found["first_feature"], 0, 1)
    features = _read_features(path) if found.get("texts") else None
    if features is not None and features.n_columns != own:
        raise DataError(f"{path / FEATURES}: it has another number of features than the rows")
    if n_features is not None and n_features < own:
        raise DataError(f"{path}: its rows have {own} features, more than the {n_features} wanted")
    return Shards(path, counts, n_features or own, first, classes, numbers, features)


def as_shards(source: Any) -> Shards:
    """Shards, or the folder of them, as an estimator is given either."""
    if isinstance(source, str | os.PathLike):
        return open_shards(source)
    if not isinstance(source, Shards):
        raise TypeError(f"shards must be a folder, or Shards, got {type(source).__name__}")
    return source


def _checked_type(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _checked_list(values: Any) -> list[Any]:
    if not _checked_type(values, list):
        raise TypeError
    return list(values)


def _checked_number(value: Any, least: int, most: int) -> int:
    if not least <= _checked_type(value, int) <= most:
        raise TypeError
    return int(value)


def _are_in_order(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> bool:
    """Whether features ascend within every row."""
    rises = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # between two rows
    return bool(rises.all())


def own_files(folder: Path) -> list[Path]:
    """Files of a folder of rows, without others that may be there."""
    files = [folder / NAME, folder / FEATURES, *folder.glob(f"*{SUFFIX}")]
    return [file for file in files if file.is_file()]


def write_features(folder: Path, features: TextFeatures) -> None:
    """Keep the features of texts beside their rows."""
    from ..model.atomic import replacing
    from ..model.model_file import checksum, write_file
    from ..model.packing import Packer

    packer = Packer()
    facts: dict[str, Any] = {"version": VERSION, "features": packer.pack(features, "")}
    facts["checksum"] = checksum(packer.arrays, facts)
    with replacing(folder / FEATURES) as beside, open(beside, "wb") as file:
        write_file(file, packer.arrays, facts, ENTRY)


def _read_features(folder: Path) -> TextFeatures:
    from ..model.model_file import checksum, read_file
    from ..model.packing import Unpacker

    path = folder / FEATURES
    with _naming(path), open(path, "rb") as file:
        arrays, metadata = read_file(file)
        facts = json.loads(metadata[ENTRY])
        if facts["checksum"] != checksum(arrays, facts):
            raise DataError("its checksum is wrong: the file was altered or damaged")
        features: TextFeatures = Unpacker(arrays).unpack(facts["features"], "")
    return features


def _named(folder: Path) -> Stream:
    """For messages about rows that were read long ago."""
    return Stream(io.BytesIO(), str(folder))


def read_shard(path: Path, mmap: bool) -> dict[str, Any]:
    """Arrays of a shard, as they are."""
    from ..model.model_file import read_file

    with open(path, "rb") as file:
        arrays, metadata = read_file(file, mmap)
    if ENTRY not in metadata:
        raise DataError("it holds no rows")
    return arrays


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """One line that names the file, whatever is wrong with it."""
    from ..model.packing import ModelFileError

    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: this shard is missing; convert the rows again") from None
    except MemoryError:
        raise
    except Exception as error:
        what = "it is damaged; convert the rows again"
        if isinstance(error, DataError):
            what = str(error)
        elif isinstance(error, ModelFileError):
            what = str(error).replace("a model file", "a file of rows") + "; convert the rows again"
        elif isinstance(error, OSError):
            what = f"cannot be read ({error.strerror or error}); check the path"
        raise DataError(f"{path}: {' '.join(what.split())}") from None


def shard_path(folder: Path, number: int) -> Path:
    """File of one shard."""
    return folder / f"{number:06}{SUFFIX}"
