"""Readers: rows of text or features, and labels, from files in the usual formats.

========  =============================================================================
format    row
========  =============================================================================
svmlight  ``label index:value index:value ...``
tsv       ``label<TAB>text``
fasttext  ``__label__x text``
csv       fields, as spreadsheets write them, most often under a header that names them
jsonl     a JSON object, such as ``{"label": "x", "text": "..."}``
parquet   a row of a Parquet file, if pyarrow is installed
lines     a text without a label
========  =============================================================================

All but Parquet may be compressed. Files are read in one pass: ``streams`` turns bytes into lines,
this module and ``tables`` turn lines into rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .labels import checked_label, label_array
from .streams import DataError, MissingFileError, Source, Stream, opened, shown
from .svmlight import (
    SIZES,
    HandleUnknown,
    SvmlightRows,
    ZeroBased,
    detect_zero_based,
    parse_svmlight,
    read_svmlight,
)
from .tables import Column, Columns, Row, csv_rows, is_parquet, json_rows, parquet_rows

__all__ = [
    "DataError",
    "MissingFileError",
    "detect_format",
    "iter_texts",
    "read_rows",
    "read_svmlight",
    "read_text",
]

Format = Literal["svmlight", "tsv", "fasttext", "csv", "jsonl", "parquet", "lines"]
TextRows = tuple[list[str], npt.NDArray[np.str_] | None]

_OF_SUFFIX: dict[str, Format] = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".ft": "fasttext",
    ".fasttext": "fasttext",
}
_PAIR = rb"(qid:\d+|\d+:[-+.\deE]+)"
_SVMLIGHT = re.compile(rb"([^\s:]+|" + _PAIR + rb")(\s+" + _PAIR + rb")+\s*(#.*)?|" + _PAIR)
_ARRAY = re.compile(rb"\s*\[\s*\{\s*\"")
_JSON = re.compile(rb'\{\s*"[^"]*"\s*:')
_PREFIX = "__label__"


def read_rows(
    source: Source,
    *,
    format: Format | None = None,
    text_column: Column = "text",
    label_column: Column = "label",
    delimiter: str = ",",
    header: bool = True,
    labelled: bool = True,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    handle_unknown: HandleUnknown = "error",
) -> tuple[Any, npt.NDArray[Any] | None]:
    r"""Read rows and labels from a file in any of the formats.

    Parameters are those of :func:`read_svmlight` and :func:`read_text`. The format may also be
    ``"svmlight"``, and is detected from the file if omitted.

    Returns
    -------
    X : csr_matrix or list of str
    y : ndarray or None

    Examples
    --------
    >>> import io
    >>> from xtrellis.data.readers import read_rows
    >>> read_rows(io.BytesIO(b"A00\tcholera\nA01\ttyphoid fever\n"))
    (['cholera', 'typhoid fever'], array(['A00', 'A01'], dtype='<U3'))
    """
    rows = parse_rows(
        source,
        format=format,
        text_column=text_column,
        label_column=label_column,
        delimiter=delimiter,
        header=header,
        labelled=labelled,
    )
    if not isinstance(rows, SvmlightRows):
        return rows
    if zero_based == "auto":
        zero_based = detect_zero_based([rows], n_features, handle_unknown)
    return rows.matrix(n_features, zero_based, handle_unknown), rows.y


def parse_rows(
    source: Source,
    *,
    format: Format | None = None,
    text_column: Column = "text",
    label_column: Column = "label",
    delimiter: str = ",",
    header: bool = True,
    labelled: bool = True,
) -> TextRows | SvmlightRows:
    """Read texts and labels, or features that are still numbered as in their file."""
    columns = Columns(text_column, label_column if labelled else None, delimiter, header)
    with opened(source) as stream:
        format = known_format(stream, format, columns)
        if format == "svmlight":
            return parse_svmlight(stream, labelled)
        return _texts_and_labels(stream, source, format, columns)


def read_text(
    source: Source,
    *,
    format: Format | None = None,
    text_column: Column = "text",
    label_column: Column = "label",
    delimiter: str = ",",
    header: bool = True,
    labelled: bool = True,
) -> TextRows:
    r"""Read texts and labels from a file.

    Parameters
    ----------
    source : path or binary file
        UTF-8, plain or compressed with gzip, bzip2 or xz, which is detected from its first bytes.
    format : {"tsv", "fasttext", "csv", "jsonl", "parquet", "lines"} or None
        ``label<TAB>text``; ``__label__x text``; comma-separated values; one JSON object per line; a
        Parquet file; or one text per line, without labels. Detected from the file's name and first
        line if omitted.
    text_column, label_column : str or int
        Columns of a csv or Parquet file, or keys of JSON objects, that contain the texts and the
        labels. Columns also by number, from 1.
    delimiter : str, default=","
        What separates the fields of a csv file.
    header : bool, default=True
        Whether the first line of a csv file names the columns. If not, labels are in the first
        column and texts in the second, unless numbers say otherwise.
    labelled : bool, default=True
        Whether to read labels. If not, pass the ``format`` of a tsv or fasttext file to drop its
        labels.

    Returns
    -------
    texts : list of str
    y : ndarray of str, shape (n_rows,), or None
        None if ``labelled`` is false.

    Raises
    ------
    DataError
        If the file is not as above; the message names the line.

    Examples
    --------
    >>> import io
    >>> from xtrellis.data import read_text
    >>> read_text(io.BytesIO(b"__label__cooking How long to boil an egg?\n"))
    (['How long to boil an egg?'], array(['cooking'], dtype='<U7'))
    >>> read_text(io.BytesIO(b"id,text,label\n1,\"cholera, classical\",A00\n"))
    (['cholera, classical'], array(['A00'], dtype='<U3'))
    """
    columns = Columns(text_column, label_column if labelled else None, delimiter, header)
    with opened(source) as stream:
        format = known_format(stream, format, columns)
        return _texts_and_labels(stream, source, format, columns)


def iter_texts(
    source: Source,
    *,
    format: Format | None = None,
    text_column: Column = "text",
    delimiter: str = ",",
    header: bool = True,
) -> Iterator[str]:
    r"""Read texts from a file or pipe, one by one as they arrive, without labels.

    Parameters are those of :func:`read_text` with ``labelled=False``.

    Examples
    --------
    >>> import io
    >>> from xtrellis.data.readers import iter_texts
    >>> for text in iter_texts(io.BytesIO(b"cholera\ntyphoid fever\n")):
    ...     print(text)
    cholera
    typhoid fever
    """
    columns = Columns(text_column, None, delimiter, header)
    with opened(source) as stream:
        format = known_format(stream, format, columns)
        for text, _ in _rows(stream, source, format, columns, at_once=False):
            yield text


# ---------------------------------------------------------------------- which format


def detect_format(name: str, first_lines: bytes, columns: Columns | None = None) -> Format:
    r"""Detect the format from a file's name, or else from its first line.

    >>> detect_format("train.svm.gz", b""), detect_format("rows.txt", b"A00\tcholera\n")
    ('svmlight', 'tsv')
    """
    columns = Columns() if columns is None else columns
    stem, suffix = os.path.splitext(name.lower())
    if suffix in (".gz", ".bz2", ".xz"):
        suffix = os.path.splitext(stem)[1]
    if suffix in _OF_SUFFIX:
        return _OF_SUFFIX[suffix]
    if is_parquet(first_lines):
        return "parquet"
    lines = [line.strip(b" \r") for line in first_lines.split(b"\n")]
    written = (line for line in lines if line and not line.startswith(b"#"))
    line = next(written, b"")
    if SIZES.fullmatch(line):
        line = next(written, line)
    if line.startswith(_PREFIX.encode()):
        return "fasttext"
    # The head may end in the middle of a line, and so of a number.
    if _SVMLIGHT.fullmatch(line if line is not lines[-1] else line.rpartition(b" ")[0] or line):
        return "svmlight"
    if _JSON.match(line):
        return "jsonl"
    fields = {
        field.strip(b' "\t\xef\xbb\xbf') for field in line.lower().split(columns.delimiter.encode())
    }
    named = {b"text", b"label", *(str(c).lower().encode() for c in (columns.text, columns.label))}
    if columns.header and len(fields) > 1 and fields & named:
        return "csv"
    return "tsv" if b"\t" in line else "lines"


def known_format(stream: Stream, format: Format | None, columns: Columns) -> Format:
    """The format that was asked for, or else the one detected, if it leaves no doubt."""
    if format is not None:
        if format not in get_args(Format):
            raise ValueError(f"format must be one of {', '.join(get_args(Format))}, got {format!r}")
        return format
    format = detect_format(stream.name, stream.head(), columns)
    if format == "lines" and _ARRAY.match(stream.head()):
        raise stream.error(
            "this is a JSON array; write one object per line, as to_json(orient='records', "
            "lines=True) of pandas does, or pass format='lines' if each line is a text"
        )
    if columns.label is None and format in ("tsv", "fasttext"):
        raise stream.error(
            f"this looks like a {format} file with labels; pass format={format!r} to drop them, or "
            "format='lines' if the whole line is the text"
        )
    return format


# ---------------------------------------------------------------------- rows


def labelled_texts(
    stream: Stream, source: Source, format: Format, columns: Columns
) -> Iterator[Row]:
    """Texts and labels, one by one; or an error if there is none."""
    _check_labelled(stream, format, columns)
    n_rows = 0
    for row in _rows(stream, source, format, columns):
        n_rows += 1
        yield row
    if not n_rows:
        raise stream.error("there are no rows; is this the right file?")


def _check_labelled(stream: Stream, format: Format, columns: Columns) -> None:
    if columns.label is not None and format == "lines" and stream.head():
        raise stream.error(
            "these lines have no labels; write label<TAB>text on each line, or, if they are in "
            "another format, pass it, such as format='csv'"
        )


def _texts_and_labels(stream: Stream, source: Source, format: Format, columns: Columns) -> TextRows:
    texts: list[str] = []
    labels: list[Any] = []
    for text, label in labelled_texts(stream, source, format, columns):
        texts.append(text)
        labels.append(label)
    return texts, None if columns.label is None else label_array(labels)


def _rows(
    stream: Stream, source: Source, format: Format, columns: Columns, at_once: bool = True
) -> Iterator[Row]:
    """Rows of a text file; without labels if there is no column of them."""
    if format == "parquet":
        return parquet_rows(stream, source, columns)
    lines = _lines(stream, at_once)
    if format == "tsv":
        return _tsv_rows(stream, lines, f"{columns.label or 'label'}\t{columns.text}")
    if format == "fasttext":
        return _fasttext_rows(stream, lines, columns.label is not None)
    if format == "csv":
        return csv_rows(stream, lines, columns)
    if format == "jsonl":
        return json_rows(stream, lines, columns)
    if format == "lines":
        return ((line.rstrip("\r"), None) for _, line in lines)
    raise stream.error("this is a file of svmlight features, not of texts; is it the right file?")


def _lines(stream: Stream, at_once: bool) -> Iterator[tuple[int, str]]:
    """Numbered lines without their newlines, in large blocks or as they arrive."""
    for block in stream.blocks() if at_once else stream.blocks(size=1):
        if b"\0" in block:
            line = stream.line + block.count(b"\n", 0, block.index(b"\0")) + 1
            raise stream.error("there is a NUL byte; is this a text file in UTF-8?", line)
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            line = stream.line + block.count(b"\n", 0, error.start) + 1
            raise stream.error(
                "this is not UTF-8; convert the file, for example with iconv", line
            ) from error
        yield from enumerate(text[:-1].split("\n"), stream.line + 1)


def _tsv_rows(stream: Stream, lines: Iterator[tuple[int, str]], header: str) -> Iterator[Row]:
    for number, line in lines:
        line = line.rstrip("\r")
        if not line.strip():
            continue
        if number == 1 and line.lower() == header.lower():
            raise stream.error(
                "this looks like a header, which a tsv file has not; remove it, or pass "
                "format='csv' and delimiter='tab'",
                1,
            )
        label, tab, text = line.partition("\t")
        if not tab:
            raise stream.error(f"no tab after the label in {shown(line)}; insert one", number)
        yield text, checked_label(stream, label.strip(), number)


def _fasttext_rows(
    stream: Stream, lines: Iterator[tuple[int, str]], labelled: bool
) -> Iterator[Row]:
    for number, line in lines:
        if not line.strip():
            continue
        first, _, text = line.strip().partition(" ")
        if not first.startswith(_PREFIX):
            if labelled:
                raise stream.error(
                    f"the line does not start with {_PREFIX}, but with {shown(first)}; "
                    "every row needs one label",
                    number,
                )
            first, text = _PREFIX + "none", line.strip()
        label, tab, rest = first.removeprefix(_PREFIX).partition("\t")
        text = (rest + " " + text if tab else text).strip()
        if _PREFIX in text and any(word.startswith(_PREFIX) for word in text.split()):
            raise stream.error("the row has several labels; keep one", number)
        yield text, checked_label(stream, label, number)
