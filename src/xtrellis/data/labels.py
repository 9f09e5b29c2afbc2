"""Labels as they stand in a file: checked one by one, kept in one array, doubted as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .streams import Stream, shown

MAX_LABEL = 1_000  # characters: an array of labels takes four bytes for each of the longest
_FEW_ROWS = 20  # too few to judge
_ALONE = 0.8  # share of rows without another row of their class


def label_array(names: list[str]) -> npt.NDArray[Any]:
    """Labels as an array; as objects if one long label would blow up the memory of all others."""
    longest = max(map(len, names), default=1)
    wasteful = len(names) * longest > 2**24 and longest > 64
    return np.array(names, dtype=object if wasteful else np.str_)


def checked_label(stream: Stream, label: bytes | str, line: int) -> str:
    """Return a label as text, or raise an error if it is empty, not UTF-8 or far too long."""
    if isinstance(label, bytes):
        try:
            label = label.decode("utf-8")
        except UnicodeDecodeError as error:
            raise stream.error(
                f"the label {shown(label)} is not UTF-8; convert the file, for example with iconv",
                line,
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


def unlikely_labels(y: Any, texts: Sequence[str] | None = None) -> str | None:
    """Why labels may not be labels: nearly every row is a class of its own; None if all is well.

    >>> unlikely_labels([f"text {row}" for row in range(50)])
    '50 classes in 50 rows: nearly every row is a class of its own; check which part of a row ...
    """
    n_rows = len(y)
    if n_rows < _FEW_ROWS:
        return None
    try:
        _, counts = np.unique(np.asarray(y), return_counts=True)
    except TypeError:  # labels of several types, which training refuses
        return None
    n_classes = len(counts)
    check = (
        "check which part of a row is the label"
        if texts is None
        else "check that labels and texts are not swapped"
    )
    if np.count_nonzero(counts == 1) >= _ALONE * n_rows:
        return (
            f"{n_classes:,} classes in {n_rows:,} rows: nearly every row is a class of its own; "
            f"{check}"
        )
    if texts is not None and n_classes > (n_texts := len(set(texts))):
        texts_are = "text" if n_texts == 1 else "different texts"
        return f"{n_classes:,} classes, but only {n_texts:,} {texts_are}; {check}"
    return None
