"""Rows of tables: csv with any delimiter, JSON lines and Parquet.

A table has columns of which one contains the texts and one the labels. They are found by name, or
by number, counted from 1, where there are no names or the name is not there.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .labels import checked_label
from .streams import MAX_LINE, Source, Stream, shown

Row = tuple[str, str | None]  # text, label
Column = str | int

_PARQUET = b"PAR1"  # the first four bytes


@dataclass(frozen=True)
class Columns:
    """Which columns of a table contain the texts and the labels, and how csv separates them.

    ``label`` is None if labels are not read. Without a header, labels are in the first column and
    texts in the second, unless numbers say otherwise.
    """

    text: Column = "text"
    label: Column | None = "label"
    delimiter: str = ","
    header: bool = True

    def __post_init__(self) -> None:
        if not is_delimiter(self.delimiter):
            raise ValueError(
                f"delimiter must be one character, not a quote or a line break; "
                f"got {self.delimiter!r}"
            )

    def numbered(self) -> Columns:
        """The same for tables without names."""
        text = 2 if self.text == "text" else self.text
        return replace(self, text=text, label=1 if self.label == "label" else self.label)


_USUAL = ("text", "label")  # names of columns, unless others are given
_DELIMITERS = "\t;,|"  # that are common


def is_delimiter(text: str) -> bool:
    """Whether csv can be separated by this: one character, not a quote or a line break."""
    return len(text) == 1 and text not in '\r\n"'


def check_layout(layout: dict[str, Any]) -> None:
    """Raise a ValueError if this is not how a reader can be told to read a table.

    >>> check_layout({"text_column": "report", "delimiter": ";", "header": True})
    """
    types = {"text_column": str, "label_column": str, "delimiter": str, "header": bool}
    for name, value in layout.items():
        if not isinstance(value, types.get(name, ())):
            raise ValueError(f"layout_ has a part {name!r} that is {value!r}")
    Columns(delimiter=layout.get("delimiter", ","))


# ---------------------------------------------------------------------- csv


def csv_rows(stream: Stream, lines: Iterator[tuple[int, str]], columns: Columns) -> Iterator[Row]:
    """Rows of a csv file, as spreadsheets write it."""
    # The limit applies to the whole process, and its default of 128 KiB is too low for documents.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    text_lines = (line + "\n" for _, line in lines)
    table = csv.reader(text_lines, delimiter=columns.delimiter, strict=True)
    try:
        first = next((row for row in table if row), [])
        if not first:
            raise stream.error("there are no rows; is this the right file?")
        if columns.header:
            names = [name.strip() for name in first]
            wanted = _positions(stream, names, columns, _csv_hint(names, columns.delimiter))
        else:
            wanted = _numbers(stream, len(first), columns)
            yield _row(stream, [first[at] for at in wanted], table.line_num)
        for row in table:
            if len(row) == len(first):
                yield _row(stream, [row[at] for at in wanted], table.line_num)
            elif row:
                raise stream.error(
                    f"the row has {len(row)} fields, the {'header' if columns.header else 'first'} "
                    f"{len(first)}; quote a field that contains {shown(columns.delimiter)}",
                    table.line_num,
                )
    except csv.Error as error:
        raise stream.error(f"not csv ({error}); correct the quotes", table.line_num) from error


def _row(stream: Stream, fields: list[str], line: int) -> Row:
    if len(fields) == 1:
        return fields[0], None
    return fields[0], checked_label(stream, fields[1].strip(), line)


def _positions(stream: Stream, names: Sequence[str], columns: Columns, hint: str = "") -> list[int]:
    """Positions of the columns of texts and labels among named ones."""
    wanted = [_position(stream, names, columns.text, "text_column", hint)]
    if columns.label is not None:
        wanted.append(_position(stream, names, columns.label, "label_column", hint))
    return wanted


def _csv_hint(names: Sequence[str], delimiter: str) -> str:
    """What else may be wrong if a column of csv is not found."""
    if len(names) == 1:
        others = [each for each in _DELIMITERS if each != delimiter and each in names[0]]
        if not others:
            return ", or the delimiter"
        return f", or delimiter={others[0]!r}"
    return "" if set(_USUAL) & set(names) else ", or header=False if the first line is a row"


def _position(
    stream: Stream, names: Sequence[str], column: Column, parameter: str, hint: str
) -> int:
    number = _as_number(column)
    if column in names or number is None:
        if list(names).count(str(column)) != 1:
            problem = "there is more than one column" if column in names else "there is no column"
            named = ", ".join(shown(name) for name in names[:20])
            also = hint if column in _USUAL or len(names) == 1 else ""
            raise stream.error(f"{problem} {column!r}; pass {parameter}, one of {named}{also}", 1)
        return list(names).index(str(column))
    if not 1 <= number <= len(names):
        raise stream.error(f"there is no column {number}; there are {len(names)}", 1)
    return number - 1


def _numbers(stream: Stream, n_columns: int, columns: Columns) -> list[int]:
    """Positions of the columns of texts and labels among nameless ones."""
    if n_columns > 2 and columns.text == "text" and columns.label == "label":
        raise stream.error(
            f"there are {n_columns} columns without names; pass text_column and label_column, "
            f"numbers from 1 to {n_columns}",
            1,
        )
    columns = columns.numbered()
    if columns.label is None and n_columns == 1:
        return [0]  # nothing but texts
    wanted = []
    for column, parameter in ((columns.text, "text_column"), (columns.label, "label_column")):
        if column is None:
            continue
        number = _as_number(column)
        if number is None or not 1 <= number <= n_columns:
            raise stream.error(
                f"there is no column {column!r}; pass {parameter}, a number from 1 to {n_columns}, "
                "or read the first line as a header",
                1,
            )
        wanted.append(number - 1)
    return wanted


def _as_number(column: Column) -> int | None:
    """Number of a column, if it may be meant: 2 or "2"."""
    if isinstance(column, int):
        return column
    return int(column) if column.isascii() and column.isdigit() else None


# ---------------------------------------------------------------------- JSON lines


def json_rows(stream: Stream, lines: Iterator[tuple[int, str]], columns: Columns) -> Iterator[Row]:
    """Rows of a file with one JSON object per line."""
    for number, line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = str(error).partition(":")[0]
            raise stream.error(
                f"not JSON ({reason}) in {shown(line)}; write one object per line", number
            ) from error
        if not isinstance(record, dict):
            raise stream.error(f"not a JSON object, but {shown(line)}; write one per line", number)
        text = _value(stream, record, columns.text, "text_column", number)
        if not isinstance(text, str):
            raise stream.error(f"{columns.text!r} is not a text, but {shown(str(text))}", number)
        if columns.label is None:
            yield text, None
            continue
        label = _value(stream, record, columns.label, "label_column", number)
        yield text, checked_label(stream, _label(stream, label, columns.label, number), number)


def _value(stream: Stream, record: dict[str, Any], key: Column, parameter: str, line: int) -> Any:
    if str(key) not in record:
        named = ", ".join(shown(name) for name in list(record)[:20])
        raise stream.error(f"there is no key {key!r}; pass {parameter}, one of {named}", line)
    return record[str(key)]


def _label(stream: Stream, label: Any, column: Column, line: int) -> str:
    """A label as text; numbers are written as they stand."""
    is_number = isinstance(label, int | float) and math.isfinite(label)
    if isinstance(label, bool) or not (is_number or isinstance(label, str)):
        raise stream.error(f"{column!r} is not a text or a number, but {shown(str(label))}", line)
    return str(label).strip()


# ---------------------------------------------------------------------- Parquet


def is_parquet(head: bytes) -> bool:
    """Whether a file that begins so is a Parquet file."""
    return head.startswith(_PARQUET)


def parquet_rows(stream: Stream, source: Source, columns: Columns) -> Iterator[Row]:
    """Rows of a Parquet file, some thousand at a time; lines of errors are numbers of rows."""
    try:
        from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise stream.error(
            "a Parquet file needs pyarrow; install it with pip install 'xtrellis[parquet]'"
        ) from None
    if not isinstance(source, str | os.PathLike):
        raise stream.error("a Parquet file cannot be read from a pipe; name the file")
    number = 0
    try:
        with parquet.ParquetFile(os.fspath(source)) as file:
            names = file.schema_arrow.names
            wanted = [names[at] for at in _positions(stream, names, columns)]
            for batch in file.iter_batches(columns=wanted):
                table = batch.to_pydict()
                for values in zip(*(table[name] for name in wanted), strict=True):
                    number += 1
                    if not isinstance(values[0], str):
                        raise stream.error(
                            f"{wanted[0]!r} is not a text, but {shown(str(values[0]))}", number
                        )
                    if columns.label is None:
                        yield values[0], None
                        continue
                    label = _label(stream, values[1], wanted[1], number)
                    yield values[0], checked_label(stream, label, number)
    except (ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:100]
        raise stream.error(f"not a sound Parquet file ({reason}); copy it again") from error
