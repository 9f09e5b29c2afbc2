"""Converters: rows of any kind into a folder of shards, in bounded memory.

Rows are parsed a few megabytes at a time, collected until they fill a shard, and written. Labels
are numbered as they come; their names, and what else is known only at the end, are written last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray
from .labels import checked_label
from .readers import Format, known_format, labelled_texts
from .shards import (
    ENTRY,
    NAME,
    VERSION,
    Shards,
    open_shards,
    read_shard,
    shard_path,
    write_features,
)
from .streams import DataError, Source, Stream, opened
from .svmlight import ZeroBased, _Block, _parse
from .tables import Column, Columns, Row
from .terms import Lengths, TermCounts
from .text_features import TextFeatures, new_features

_SHARD = 2**25  # bytes of features and values in a shard, about
_MOST = 2**31 - 1  # the highest number of a feature

Batches = Iterable[tuple[Any, Any]]
Report = Callable[[int], None]


def write_shards(
    source: Source | Batches,
    folder: str | os.PathLike[str],
    *,
    format: Format | None = None,
    text_column: Column = "text",
    label_column: Column = "label",
    delimiter: str = ",",
    header: bool = True,
    zero_based: ZeroBased = "auto",
    words: Lengths | None = (1, 2),
    characters: Lengths | None = None,
    min_df: int = 1,
    hash_size: int | None = None,
    shard_bytes: int = _SHARD,
    verbose: int = 0,
) -> Shards:
    r"""Convert rows into a folder of shards, in bounded memory.

    Texts become TF-IDF features as in :class:`~xtrellis.TrellisTextClassifier`, which the folder
    remembers. Their terms are kept in memory while they are learned, unless they are hashed.

    Parameters
    ----------
    source : path, binary file, or iterable of (X, y)
        A file in any of the formats, with labels; or batches of rows with their labels, all with
        the same number of columns. Rows should be in random order: those that are sorted by class
        take longer to train on.
    folder : path
        Made if it does not exist; it must not hold rows already.
    format, text_column, label_column, delimiter, header
        As for :func:`read_rows`.
    zero_based : bool or "auto", default="auto"
        As for :func:`read_svmlight`.
    words, characters, min_df, hash_size
        Terms of texts, as for :class:`~xtrellis.TrellisTextClassifier`.
    shard_bytes : int
        Size of a shard: what is in memory at once is a few times as much.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> import io, tempfile
    >>> from xtrellis import TrellisClassifier
    >>> from xtrellis.data import write_shards
    >>> file = io.BytesIO(b"cat 1:1 3:1\ndog 2:1\n" * 10)
    >>> clf = TrellisClassifier(learner="arow", random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = write_shards(file, folder)
    ...     for X, y in shards:
    ...         clf = clf.partial_fit(X, y, classes=shards.classes)
    ...     [clf.score(X, y) for X, y in shards]
    [1.0]

    Texts:

    >>> from xtrellis import TrellisTextClassifier
    >>> file = io.BytesIO(b"fruit\tred apple\nfruit\tgreen apple\ndrink\tred wine\n" * 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = write_shards(file, folder)
    ...     clf = TrellisTextClassifier().fit_shards(shards)
    >>> clf.predict(["some wine"]).tolist()
    ['drink']
    """
    from .._progress import row_progress

    writer = ShardWriter(folder, shard_bytes)
    with row_progress(verbose, None) as report:
        rows: Any = source
        if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
            return _from_batches(rows, writer, report)
        columns = Columns(text_column, label_column, delimiter, header)
        with opened(rows) as stream:
            format = known_format(stream, format, columns)
            if format in ("svmlight", "lines"):  # of the latter, the line that is wrong is named
                return _from_svmlight(stream, writer, zero_based, report)
            features = new_features(words, characters, min_df, hash_size)
            texts = labelled_texts(stream, rows, format, columns)
            return _from_texts(texts, writer, features, min_df, report)


def _from_svmlight(
    stream: Stream, writer: ShardWriter, zero_based: ZeroBased, report: Report
) -> Shards:
    least, most = _MOST, -1
    for text in stream.blocks(min(writer.shard_bytes, 2**22)):
        block = _parse(stream, text, labelled=True)
        least = min(least, int(block.indices.min(initial=_MOST)))
        most = max(most, int(block.indices.max(initial=-1)))
        names, whole_numbers = _names(stream, block)
        sizes = np.diff(block.row_stops, prepend=0)
        writer.add(sizes, block.indices, block.values, names, whole_numbers)
        report(len(names))
    writer.flush()
    if not writer.counts:
        raise stream.error("there are no rows; is this the right file?")
    if zero_based == "auto":
        zero_based = least == 0 or most < 0
    if not zero_based and least == 0:
        raise stream.error("feature 0 in a file of features from 1; pass zero_based=True")
    return writer.finish(max(most + bool(zero_based), 0), int(not zero_based))


def _names(stream: Stream, block: _Block) -> tuple[list[str], bool]:
    """Labels of a block, and whether all of them are whole numbers."""
    from ..kernels import svmlight as kernel

    names, start = [], 0
    for row, stop in enumerate(block.name_stops.tolist()):
        names.append(checked_label(stream, block.names[start:stop], int(block.lines[row])))
        start = stop
    return names, bool((block.label_kinds == kernel.INTEGER).all())


def _from_batches(batches: Batches, writer: ShardWriter, report: Report) -> Shards:
    from sklearn.utils.validation import check_array, check_consistent_length

    from .._arrays import canonical_csr

    n_features = None
    for number, (rows, y) in enumerate(batches):
        X = canonical_csr(check_array(rows, accept_sparse="csr", dtype=np.float32))
        labels = np.asarray(y)
        check_consistent_length(X, labels)
        n_features = X.shape[1] if n_features is None else n_features
        if X.shape[1] != n_features:
            raise DataError(
                f"batch {number} has {X.shape[1]} features, those before it {n_features}; "
                f"all need the same columns"
            )
        if labels.ndim != 1 or labels.dtype.kind not in "iuUO":
            raise DataError(f"labels of batch {number} must be whole numbers or texts")
        names, whole_numbers = [str(label) for label in labels.tolist()], labels.dtype.kind in "iu"
        step = max(1, writer.shard_bytes * len(names) // (8 * max(X.nnz, 1)))
        for start in range(0, len(names), step):
            part = X[start : start + step]
            sizes, indices = np.diff(part.indptr), part.indices.astype(np.int32)
            writer.add(sizes, indices, part.data, names[start : start + step], whole_numbers)
        report(len(names))
    writer.flush()
    if n_features is None:
        raise DataError("there are no rows to write")
    return writer.finish(n_features, 0)


def _from_texts(
    rows: Iterator[Row], writer: ShardWriter, features: TextFeatures, min_df: int, report: Report
) -> Shards:
    """Count terms in one pass over the texts; then weigh the counts, shard by shard.

    What a term weighs is known only after the last text, and so is which terms are kept. But texts
    are read once: they may come from a pipe.
    """
    for texts, labels in _batches(rows, min(2**20, writer.shard_bytes // 4)):
        counts = features.learn_more(texts)
        writer.add(np.diff(counts.indptr), counts.indices, counts.data, labels)
        report(len(texts))
    writer.flush()
    columns = features.finish(min_df)
    for number in range(len(writer.counts)):
        writer.change(number, lambda indptr, i, x: _weighed(features, columns, indptr, i, x))
    write_features(writer.folder, features)
    return writer.finish(features.n_columns, 0, texts=True)


def _batches(rows: Iterator[Row], n_characters: int) -> Iterator[tuple[list[str], list[str]]]:
    """Texts and labels, about so many characters of them at a time."""
    texts: list[str] = []
    labels: list[str] = []
    size = 0
    for text, label in rows:
        texts.append(text)
        labels.append(label or "")
        size += len(text)
        if size > n_characters or len(texts) >= 2**14:
            yield texts, labels
            texts, labels, size = [], [], 0
    if texts:
        yield texts, labels


def _weighed(
    features: TextFeatures, columns: Any, indptr: IntArray, numbers: Any, values: Float32Array
) -> tuple[Any, Any, Any]:
    """Counts of a shard as features: terms in the order of their columns, without rare ones."""
    from scipy import sparse

    if columns is not None:
        numbers = columns[numbers]
        known = numbers >= 0
        indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
        shape = len(indptr) - 1, features.n_columns
        matrix = sparse.csr_matrix((values[known], numbers[known], indptr), shape)
        matrix.sort_indices()
        indptr, numbers, values = matrix.indptr.astype(np.int64), matrix.indices, matrix.data
    counts = TermCounts(indptr, numbers.astype(np.int32, copy=False), values)
    features.weigh(counts)
    return counts.indptr, counts.indices, counts.data


class ShardWriter:
    """Collects rows until they fill a shard; labels are numbered as they come.

    Attributes
    ----------
    counts : list of int
        Number of rows of each shard written so far.
    """

    def __init__(self, folder: str | os.PathLike[str], shard_bytes: int) -> None:
        self.folder, self.shard_bytes = Path(folder), shard_bytes
        self.folder.mkdir(parents=True, exist_ok=True)
        if (self.folder / NAME).exists():
            raise DataError(
                f"{self.folder}: it holds rows already; name another folder, or delete it"
            )
        self.counts: list[int] = []
        self._numbers: dict[str, int] = {}
        self._whole_numbers = True
        self._parts: list[tuple[Any, Any, Any, Any]] = []
        self._size = 0

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
