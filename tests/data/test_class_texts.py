"""Descriptions of classes: what is taken, and what is refused in one line."""

import numpy as np
import pytest

from xtrellis.data.class_texts import described_rows


def test_labels_come_in_the_type_of_the_others():
    texts, labels = described_rows({3: "three", np.int64(4): ["four", "vier"]}, np.array([1, 2]))
    assert texts == ["three", "four", "vier"]
    assert labels.dtype.kind == "i"
    assert labels.tolist() == [3, 4, 4]
    _, labels = described_rows({"b": "B"}, np.array(["a"], object))
    assert labels.dtype == object
    _, labels = described_rows({2: "two"}, [1.0, 1.5])
    assert labels.tolist() == [2]


@pytest.mark.parametrize(
    ("given", "y", "error", "message"),
    [
        ([("a", "text")], ["a"], TypeError, "class_texts must be a dict such as .*, got list"),
        ({}, ["a"], ValueError, "class_texts is empty: class_texts must be a dict"),
        ({7: "seven"}, ["a"], TypeError, "label 7, of another type than the labels of y, .* 'a'"),
        ({"7": "seven"}, [7], TypeError, "label '7', of another type than the labels of y, .* 7"),
        ({True: "yes"}, [7], TypeError, "label True, of another type"),
        ({1: "yes"}, [True], TypeError, "label 1, of another type"),
        ({1.5: "yes"}, [1], TypeError, "label 1.5, of another type"),
        ({7: "x"}, np.array(["a"], object), TypeError, "label 7, of another type"),
        ({"a": None}, ["a"], TypeError, r"class_texts\['a'\] must be a text or a list of texts"),
        ({"a": ["x", 3]}, ["a"], TypeError, r"class_texts\['a'\] must be a text or a list of"),
        ({"a": " "}, ["a"], ValueError, r"class_texts\['a'\] is empty"),
        ({"a": []}, ["a"], ValueError, r"class_texts\['a'\] is empty"),
    ],
)
def test_bad_descriptions(given, y, error, message):
    with pytest.raises(error, match=message) as raised:
        described_rows(given, y)
    assert "\n" not in str(raised.value)
