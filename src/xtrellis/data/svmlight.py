"""The svmlight format: one row per line, ``label index:value index:value ... # comment``.

A first line with the numbers of rows, features and labels, as in the files of the Extreme
Classification Repository, is skipped.

Parsed by a kernel rather than by scikit-learn, whose reader does not take labels that are words,
does not name the line that is wrong, and is several times slower (``benchmarks/bench_readers.py``).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .labels import checked_label, label_array
from .streams import Source, Stream, opened, shown

ZeroBased = bool | Literal["auto"]
HandleUnknown = Literal["error", "warn", "ignore"]

LONG_LABEL = "the label has more than 18 digits; use shorter ones, or names"

_WORD = re.compile(rb"[^ \t\r\n#]*")
SIZES = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*")  # of rows, features and labels, before the first row


def read_svmlight(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    labelled: bool = True,
    handle_unknown: HandleUnknown = "error",
) -> tuple[Any, npt.NDArray[Any] | None]:
    r"""Read rows and labels from a file in svmlight (LIBSVM) format.

    To read training and test rows, use :func:`read_svmlight_files`, which numbers the features of
    all files in the same way.

    Parameters
    ----------
    source : path or binary file
        Plain or compressed with gzip, bzip2 or xz, which is detected from its first bytes. A first
        line with the numbers of rows, features and labels is skipped.
    n_features : int or None
        Number of columns. By default, that of the last feature in the file.
    zero_based : bool or "auto", default="auto"
        Whether features are counted from 0 or from 1. By default they are counted from 0 if any
        row has a feature 0, and else from 1. With ``n_features``, which says that there are other
        rows, an error is raised where both are possible.
    labelled : bool, default=True
        Whether rows begin with a label. If not, a label is allowed and dropped, and an empty
        line is a row of zeros; otherwise empty lines are skipped.
    handle_unknown : {"error", "warn", "ignore"}, default="error"
        What to do about features beyond ``n_features``, such as those of test rows that did not
        occur in training: raise an error, or ignore them with or without a warning.

    Returns
    -------
    X : csr_matrix of float32, shape (n_rows, n_features)
    y : ndarray of shape (n_rows,) or None
        The labels as they are in the file: int64 if all of them are whole numbers, else
        strings. None if ``labelled`` is false.

    Raises
    ------
    DataError
        If the file is not as above; the message names the line.

    Examples
    --------
    >>> import io
    >>> from xtrellis.data import read_svmlight
    >>> X, y = read_svmlight(io.BytesIO(b"7 1:0.5 3:2  # a comment\n4 2:1\n"))
    >>> X.toarray(), y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]], dtype=float32), array([7, 4]))
    """
    X, y = read_svmlight_files(
        [source],
        n_features=n_features,
        zero_based=zero_based,
        labelled=labelled,
        handle_unknown=handle_unknown,
    )
    return X, y


def read_svmlight_files(
    sources: Iterable[Source],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    labelled: bool = True,
    handle_unknown: HandleUnknown = "error",
) -> list[Any]:
    r"""Read several svmlight files that belong together, such as training and test rows.

    The counterpart of :func:`sklearn.datasets.load_svmlight_files`: features are counted from 0 if
    any row of any file has a feature 0, and all matrices have the same number of columns.

    Parameters
    ----------
    sources : iterable of paths or binary files
    n_features, zero_based, labelled, handle_unknown
        As for :func:`read_svmlight`, but for all files together.

    Returns
    -------
    [X1, y1, ..., Xn, yn] : list

    Examples
    --------
    >>> import io
    >>> from xtrellis.data import read_svmlight_files
    >>> train, test = io.BytesIO(b"7 0:1 2:1\n4 1:1\n"), io.BytesIO(b"4 1:1\n")
    >>> X_train, y_train, X_test, y_test = read_svmlight_files([train, test])
    >>> X_test.toarray(), y_test
    (array([[0., 1., 0.]], dtype=float32), array([4]))
    """
    if isinstance(sources, (str, bytes)) or hasattr(sources, "read"):
        raise TypeError("sources must be a list of files; use read_svmlight for a single one")
    if n_features is not None and not 0 <= n_features <= 2**31:
        raise ValueError(f"n_features must be from 0 to {2**31}, got {n_features}")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    if handle_unknown not in ("error", "warn", "ignore"):
        raise ValueError(
            f"handle_unknown must be 'error', 'warn' or 'ignore', got {handle_unknown!r}"
        )
    files = []
    for source in sources:
        with opened(source) as stream:
            files.append(parse_svmlight(stream, labelled))
    if not files:
        return []
    if zero_based == "auto":
        zero_based = detect_zero_based(files, n_features, handle_unknown)
    if n_features is None:
        n_features = max(0, *(file.last_feature + zero_based for file in files))
    _check_label_types(files)
    read: list[Any] = []
    for file in files:
        read += [file.matrix(n_features, zero_based, handle_unknown), file.y]
    return read


def detect_zero_based(
    files: Sequence[SvmlightRows],
    n_features: int | None = None,
    handle_unknown: HandleUnknown = "error",
) -> bool:
    """Whether features are counted from 0: if any row has a feature 0, or if none has any.

    With ``n_features``, rows without a feature 0 are known to be counted from 1 only if their last
    feature is ``n_features``, and if this cannot be an unknown one.
    """
    first = min((file.first_feature for file in files if len(file.indices)), default=0)
    if first == 0:
        return True
    last = max(file.last_feature for file in files)
    if n_features is not None and (handle_unknown != "error" or last < n_features):
        raise files[0].stream.error(
            "features may be counted from 0 or from 1, which these rows do not show; "
            "pass zero_based=True or zero_based=False"
        )
    return False


def _check_label_types(files: Sequence[SvmlightRows]) -> None:
    """Raise an error if labels are numbers in one file and words in another, so never equal."""
    kinds = [None if file.y is None else file.y.dtype.kind == "i" for file in files]
    if True in kinds and False in kinds:
        words, numbers = files[kinds.index(False)].stream, files[kinds.index(True)].stream
        raise words.error(
            f"some labels are words, those of {numbers.name} are whole numbers; check both files"
        )


@dataclass(frozen=True)
class SvmlightRows:
    """Rows and labels of a file, with features numbered as in the file."""

    stream: Stream
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    indptr: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    y: npt.NDArray[Any] | None

    @property
    def first_feature(self) -> int:
        """Lowest number of a feature."""
        return int(self.indices.min(initial=2**31 - 1))

    @property
    def last_feature(self) -> int:
        """Highest number of a feature; -1 if there are no features."""
        return int(self.indices.max(initial=-1))

    def matrix(
        self,
        n_features: int | None = None,
        zero_based: bool = True,
        handle_unknown: HandleUnknown = "error",
    ) -> Any:
        """Rows as a CSR matrix of so many columns; the first column is feature 0 or 1."""
        from scipy import sparse

        if n_features is None:
            n_features = max(0, self.last_feature + zero_based)
        indices, values, indptr = self.indices, self.values, self.indptr
        if not zero_based:
            indices = indices - np.int32(1)
        if indices.min(initial=0) < 0 or indices.max(initial=-1) >= n_features:
            known = (indices >= 0) & (indices < n_features)
            self._report(np.flatnonzero(~known), n_features, zero_based, handle_unknown)
            indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
            indices, values = indices[known], values[known]
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        X = sparse.csr_matrix((values, indices, indptr), (len(self.lines), n_features), copy=False)
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def _report(
        self, unknown: npt.NDArray[Any], n_features: int, zero_based: bool, how: HandleUnknown
    ) -> None:
        """Raise an error or a warning about features that there is no column for."""
        if how == "ignore":
            return
        numbers = self.indices[unknown]
        feature = int(numbers[0])
        line = int(self.lines[np.searchsorted(self.indptr, unknown[0], side="right") - 1])
        if how == "error" and feature == 0 and not zero_based:
            what = "feature 0 in a file of features from 1; pass zero_based=True"
            raise self.stream.error(what, line)
        if how == "error":
            raise self.stream.error(
                f"feature {feature} is beyond the {n_features} features there should be; check "
                "n_features and zero_based, or pass handle_unknown='ignore'",
                line,
            )
        n_unknown = len(np.unique(numbers))
        what = (
            f"ignored {n_unknown:,} features that did not occur in training, such as {feature}"
            if n_unknown > 1
            else f"ignored feature {feature}, which did not occur in training"
        )
        warnings.warn(str(self.stream.error(what, line)), stacklevel=4)


def parse_svmlight(stream: Stream, labelled: bool = True) -> SvmlightRows:
    """Rows and labels of an open stream."""
    blocks = [_parse(stream, text, labelled) for text in stream.blocks()]
    lines = _joined([block.lines for block in blocks], np.int64)
    if not len(lines):
        raise stream.error("there are no rows; is this the right file?")
    counts = _joined([np.diff(block.row_stops, prepend=0) for block in blocks], np.int64)
    return SvmlightRows(
        stream,
        _joined([block.indices for block in blocks], np.int32),
        _joined([block.values for block in blocks], np.float32),
        np.concatenate([[0], np.cumsum(counts)]),
        lines,
        _labels(stream, blocks, lines) if labelled else None,
    )


# ---------------------------------------------------------------------- lines to rows


@dataclass(frozen=True)
class _Block:
    """Rows of some lines; ``stops`` are ends of rows in the values, of labels in ``names``."""

    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    row_stops: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    label_kinds: npt.NDArray[np.int8]
    names: bytes
    name_stops: npt.NDArray[np.int32]


def _parse(stream: Stream, text: bytes, labelled: bool) -> _Block:
    """Rows of one block of lines; ``stream.line`` lines came before it."""
    from ..kernels import svmlight as kernel

    if stream.line == 0 and SIZES.fullmatch(text.partition(b"\n")[0]):
        text = b"#" + text  # the rows themselves say how many they are
    if b"\0" in text:
        line = stream.line + text.count(b"\n", 0, text.index(b"\0")) + 1
        raise stream.error("there is a NUL byte; is this a text file?", line)
    n_lines, n_pairs = text.count(b"\n"), text.count(b":")
    indices = np.empty(n_pairs, np.int32)
    values = np.empty(n_pairs, np.float32)
    row_stops, lines, name_stops = np.empty((3, n_lines), np.int32)  # a block has few
    labels = np.empty(n_lines, np.int64)
    label_kinds = np.empty(n_lines, np.int8)
    names = np.empty(len(text), np.uint8)
    unsure = np.empty((n_pairs, 2), np.int64)
    n_rows, n_values, n_unsure, code, line, place = kernel.parse(
        np.frombuffer(text, np.uint8), labelled, indices, values, row_stops, lines, labels,
        label_kinds, names, name_stops, unsure,
    )  # fmt: skip
    if code != kernel.FINE:
        word = shown(_word_at(text, place))
        raise stream.error(_complaint(code, word), stream.line + line + 1)
    for at, start in unsure[:n_unsure].tolist():
        values[at] = np.float32(float(_word_at(text, start)))
    n_names = name_stops[n_rows - 1] if n_rows else 0
    return _Block(
        indices[:n_values].copy(),
        values[:n_values].copy(),
        row_stops[:n_rows],
        lines[:n_rows] + np.int64(stream.line + 1),
        labels[:n_rows],
        label_kinds[:n_rows],
        names[:n_names].tobytes(),
        name_stops[:n_rows],
    )


def _word_at(text: bytes, start: int) -> bytes:
    match = _WORD.match(text, start)
    return match[0] if match else b""


def _complaint(code: int, word: str) -> str:
    """What is wrong with a word, and what to do."""
    from ..kernels import svmlight as kernel

    return {
        kernel.NO_LABEL: f"no label before {word}; every row needs one",
        kernel.SEVERAL_LABELS: f"several labels, {word}; keep one label per row",
        kernel.NO_PAIR: f"{word} is not index:value; correct it",
        kernel.BAD_INDEX: f"the index in {word} is not a whole number from 0 on; correct it",
        kernel.LARGE_INDEX: f"the index in {word} is above {kernel.MAX_INDEX}; hash or renumber",
        kernel.UNORDERED: f"the index in {word} is not above the one before; sort the row's pairs "
        "and add up those of one index",
        kernel.BAD_VALUE: f"the value in {word} is not a finite number; correct it",
        kernel.LARGE_VALUE: f"the value in {word} is beyond single precision; scale the feature",
    }[code]


def _labels(stream: Stream, blocks: list[_Block], lines: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Labels of all rows: numbers if all are, else the words as they stand in the file."""
    from ..kernels import svmlight as kernel

    kinds = _joined([block.label_kinds for block in blocks], np.int8)
    if (kinds == kernel.INTEGER).all():
        return _joined([block.labels for block in blocks], np.int64)
    if (kinds != kernel.TEXT).all():
        line = int(lines[np.argmax(kinds == kernel.LONG_INTEGER)])
        raise stream.error(LONG_LABEL, line)
    names: list[str] = []
    for block in blocks:
        start = 0
        for stop in block.name_stops.tolist():
            name, start = block.names[start:stop], stop
            names.append(checked_label(stream, name, int(lines[len(names)])))
    return label_array(names)


def _joined(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate([*parts, np.empty(0, dtype)])
