"""Converters: rows of any kind into a folder of shards, in bounded memory.

Rows are parsed a few megabytes at a time, collected until they fill a shard, and written. Labels
are numbered as they come; their names, and what else is known only at the end, are written last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray
from .._checks import check_integer
from .labels import checked_label
from .readers import Format, known_format, labelled_texts
from .shard_writer import ShardWriter
from .shards import MOST, Shards
from .streams import DataError, Source, Stream, opened
from .svmlight import LONG_LABEL, ZeroBased, _Block, _parse
from .tables import Column, Columns, Row
from .terms import Lengths, TermCounts
from .text_features import TextFeatures, new_features

_SHARD = 2**25  # bytes of features and values in a shard, about

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
    features: TextFeatures | None = None,
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
        Made if it does not exist; it must not hold rows already. If the rows cannot be converted,
        nothing is left in it.
    format, text_column, label_column, delimiter, header
        As for :func:`read_rows`.
    zero_based : bool or "auto", default="auto"
        As for :func:`read_svmlight`.
    words, characters, min_df, hash_size
        Terms of texts, as for :class:`~xtrellis.TrellisTextClassifier`.
    features : TextFeatures or None, default=None
        Terms that are known already, to be used instead: ``shards.features`` of a folder, or
        ``clf.features_`` of a classifier, for texts that it shall be validated on or predict.
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

    check_integer("shard_bytes", shard_bytes, 1)
    with ShardWriter(folder, shard_bytes) as writer, row_progress(verbose, None) as report:
        rows: Any = source
        if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
            return _from_batches(rows, writer, report)
        columns = Columns(text_column, label_column, delimiter, header)
        with opened(rows) as stream:
            format = known_format(stream, format, columns)
            head = stream.head().strip()
            if format == "svmlight" or (format == "lines" and (b":" in head or not head)):
                # Of the latter a line is wrong, which is named; or there are none.
                if features is not None:
                    raise stream.error("these are features, not texts, and have no terms")
                return _from_svmlight(stream, writer, zero_based, report)
            texts = labelled_texts(stream, rows, format, columns)
            if features is not None:
                return _from_texts_like(texts, writer, features, report)
            features = new_features(words, characters, min_df, hash_size)
            return _from_texts(texts, writer, features, min_df, report)


def _from_svmlight(
    stream: Stream, writer: ShardWriter, zero_based: ZeroBased, report: Report
) -> Shards:
    from ..kernels import svmlight as kernel

    least, most, words, long_label = MOST, -1, False, None
    for text in stream.blocks(min(writer.shard_bytes, 2**22)):
        block = _parse(stream, text, labelled=True)
        least = min(least, int(block.indices.min(initial=MOST)))
        most = max(most, int(block.indices.max(initial=-1)))
        names, whole_numbers = _names(stream, block)
        if long_label is None and (long := block.label_kinds == kernel.LONG_INTEGER).any():
            long_label = int(block.lines[np.argmax(long)])
        words = words or bool((block.label_kinds == kernel.TEXT).any())
        sizes = np.diff(block.row_stops, prepend=0)
        writer.add(sizes, block.indices, block.values, names, whole_numbers)
        report(len(names))
    writer.flush()
    if not writer.counts:
        raise stream.error("there are no rows; is this the right file?")
    if long_label is not None and not words:
        raise stream.error(LONG_LABEL, long_label)
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
        if n_features > MOST + 1:
            raise DataError(f"batch {number} has {n_features} features, and {MOST + 1} is the most")
        names, whole_numbers = _checked_names(labels, number)
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


def _checked_names(labels: npt.NDArray[Any], batch: int) -> tuple[list[str], bool]:
    """Labels of a batch as texts, and whether all of them are whole numbers."""
    found: list[Any] = labels.tolist() if labels.ndim == 1 else [None]
    whole_numbers = all(
        isinstance(label, Integral) and not isinstance(label, bool) for label in found
    )
    if not whole_numbers and not all(isinstance(label, str) for label in found):
        raise DataError(f"labels of batch {batch} must be whole numbers or texts")
    if whole_numbers and any(abs(label) >= 2**63 for label in found):
        raise DataError(f"labels of batch {batch} are too large: {2**63 - 1} is the most")
    return [str(label) for label in found], whole_numbers


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
    writer.write_features(features)
    return writer.finish(features.n_columns, 0, texts=True)


def _from_texts_like(
    rows: Iterator[Row], writer: ShardWriter, features: TextFeatures, report: Report
) -> Shards:
    """The same with terms that are known: one pass is enough."""
    for texts, labels in _batches(rows, min(2**20, writer.shard_bytes // 4)):
        counts = features.weighted(texts)
        writer.add(np.diff(counts.indptr), counts.indices, counts.data, labels)
        report(len(texts))
    writer.flush()
    writer.write_features(features)
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
