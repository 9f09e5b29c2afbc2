"""Labels that are no labels are refused or doubted."""

import io

import numpy as np
import pytest

from xtrellis.data.labels import checked_label, label_array, unlikely_labels
from xtrellis.data.streams import DataError, Stream

STREAM = Stream(io.BytesIO(b""), "rows")


def test_labels_are_texts_of_some_length():
    assert checked_label(STREAM, "é".encode(), 1) == "é"
    for label, message in (
        ("", "rows:3: the label is empty"),
        (b"\xff", "rows:3: the label .* is not UTF-8"),
        ("x" * 1001, "rows:3: the label .* has more than 1000 characters"),
    ):
        with pytest.raises(DataError, match=message):
            checked_label(STREAM, label, 3)


def test_one_long_label_takes_no_room_in_the_others():
    assert label_array(["a", "bc"]).dtype == "<U2"
    assert label_array(["a"] * 50_000 + ["b" * 900]).dtype == object


def test_a_class_for_nearly_every_row_is_doubted():
    rows = np.arange(1_000)
    assert unlikely_labels(rows) == (
        "1,000 classes in 1,000 rows: nearly every row is a class of its own; "
        "check which part of a row is the label"
    )
    assert "901 classes" in unlikely_labels(np.where(rows < 900, rows, 999))
    assert unlikely_labels(rows // 2) is None
    assert unlikely_labels(np.where(rows < 400, rows, 999)) is None
    assert unlikely_labels(rows[:10]) is None


def test_more_classes_than_different_texts_are_doubted():
    labels = [f"text {row // 3}" for row in range(300)]
    texts = [f"label {row % 7}" for row in range(300)]
    assert unlikely_labels(labels, texts) == (
        "100 classes, but only 7 different texts; check that labels and texts are not swapped"
    )
    assert unlikely_labels(texts, labels) is None
