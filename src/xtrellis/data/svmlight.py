"""The svmlight format: one row a line, ``label index:value index:value ... # comment``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .streams import Source, Stream, opened, shown

ZeroBased = bool | Literal["auto"]

_WORD = re.compile(rb"[^ \t\r\n#]*")
MAX_LABEL = 1_000  # characters: an array of labels takes four bytes for each of the longest


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


def read_svmlight(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    labelled: bool = True,
) -> tuple[Any, npt.NDArray[Any] | None]:
    r"""Rows and labels of a file in svmlight (LIBSVM) format.

    Parameters
    ----------
    source : path or binary file
        Plain or compressed with gzip, bzip2 or xz, which its first bytes tell.
    n_features : int or None
        Number of columns; a feature beyond it is an error. By default the last feature's.
        Give it for test rows, which may not have all features of the training rows.
    zero_based : bool or "auto", default="auto"
        Whether the first feature is 0 or 1. By default it is 0 if any row has a feature 0.
    labelled : bool, default=True
        Whether rows begin with a label. If not, a label is allowed and dropped, and an empty
        line is a row of zeros; otherwise empty lines are skipped.

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
    if n_features is not None and not 0 <= n_features <= 2**31:
        raise ValueError(f"n_features must be from 0 to {2**31}, got {n_features}")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    with opened(source) as stream:
        return rows_of(stream, n_features, zero_based, labelled)


def rows_of(
    stream: Stream, n_features: int | None, zero_based: ZeroBased, labelled: bool
) -> tuple[Any, npt.NDArray[Any] | None]:
    """Rows and labels of an open stream."""
    from scipy import sparse

    blocks = [_parse(stream, text, labelled) for text in stream.blocks()]
    lines = _joined([block.lines for block in blocks], np.int64)
    if not len(lines):
        raise stream.error("there are no rows; is this the right file?")
    counts = _joined([np.diff(block.row_stops, prepend=0) for block in blocks], np.int64)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = _joined([block.indices for block in blocks], np.int32)
    values = _joined([block.values for block in blocks], np.float32)
    y = _labels(stream, blocks, lines) if labelled else None
    del blocks

    if zero_based == "auto":
        zero_based = not len(indices) or int(indices.min()) == 0
    if not zero_based:
        indices -= 1

    def refuse(at: Any, what: str) -> None:
        line = int(lines[np.searchsorted(indptr, at, side="right") - 1])
        raise stream.error(what.format(indices[at] + (not zero_based)), line)

    if len(indices) and indices.min() < 0:
        refuse(indices.argmin(), "feature {} in a file of features from 1; say zero_based=True")
    last = int(indices.max()) + 1 if len(indices) else 0
    if n_features is not None and last > n_features:
        refuse(
            np.argmax(indices >= n_features),
            f"feature {{}} is beyond the {n_features} features there should be; "
            "check n_features and zero_based",
        )
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    shape = (len(lines), last if n_features is None else n_features)
    X = sparse.csr_matrix((values, indices, indptr), shape, copy=False)
    X.has_sorted_indices = X.has_canonical_format = True
    return X, y


def _parse(stream: Stream, text: bytes, labelled: bool) -> _Block:
    """Rows of one block of lines; ``stream.line`` lines came before it."""
    from ..kernels import svmlight as kernel

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
        kernel.NO_LABEL: f"no label before {word}; if rows have none, say labelled=False",
        kernel.SEVERAL_LABELS: f"several labels, {word}; keep one label a row",
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
        raise stream.error("the label has more than 18 digits; use shorter ones, or names", line)
    names: list[str] = []
    for block in blocks:
        start = 0
        for stop in block.name_stops.tolist():
            name, start = block.names[start:stop], stop
            names.append(checked_label(stream, name, int(lines[len(names)])))
    return label_array(names)


def label_array(names: list[str]) -> npt.NDArray[Any]:
    """Labels as an array; as objects if one long label would blow up the memory of all others."""
    longest = max(map(len, names), default=1)
    wasteful = len(names) * longest > 2**24 and longest > 64
    return np.array(names, dtype=object if wasteful else np.str_)


def checked_label(stream: Stream, label: bytes | str, line: int) -> str:
    """A label as text that is neither empty nor broken nor far too long."""
    if isinstance(label, bytes):
        try:
            label = label.decode("utf-8")
        except UnicodeDecodeError as error:
            raise stream.error(
                f"the label {shown(label)} is not UTF-8; convert the file", line
            ) from error
    if not label:
        raise stream.error("the label is empty; every row needs one", line)
    if len(label) > MAX_LABEL:
        raise stream.error(
            f"the label {shown(label)} has more than {MAX_LABEL} characters; is this the right "
            "format?",
            line,
        )
    return label


def _joined(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate([*parts, np.empty(0, dtype)])
