"""Arrays as files hold them: small, the same again, and never larger than they may be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xtrellis.model.packed_arrays import Counts, Labels, Texts, smallest, starts_of


@given(st.lists(st.integers(0, 2**40)))
def test_counts_come_back(values):
    counts = np.array(values, np.int64)
    np.testing.assert_array_equal(Counts.of(counts).values(len(values)), counts)


def test_counts_are_not_decompressed_beyond_what_there_can_be():
    bomb = Counts.of(np.zeros(10**7, np.int64))
    assert bomb.small.size < 10_000
    with pytest.raises(ValueError, match="where there can be 100 at most"):
        bomb.values(100)
    with pytest.raises(ValueError, match="does not have the size it claims"):
        Counts(100, bomb.small, bomb.large).values(100)


def test_large_counts_that_cannot_be():
    counts = Counts.of(np.array([1, 300, 2]))
    for wrong in ([2**64 - 1], [3]):
        with pytest.raises(ValueError, match="out of range"):
            Counts(3, counts.small, np.array(wrong, np.uint64)).values(3)
    for wrong in ([], [300, 300], [[300]]):
        with pytest.raises(ValueError, match="large counts"):
            Counts(3, counts.small, np.array(wrong, np.uint64)).values(3)


@given(st.lists(st.text(st.characters(exclude_characters="\n"))))
def test_texts_come_back(texts):
    assert Texts.of(texts).values() == texts


def test_texts_that_cannot_be():
    with pytest.raises(ValueError, match="line break"):
        Texts.of(["a\nb"])
    fine = Texts.of(["a", "b"])
    for wrong in (Texts(3, 3, fine.text), Texts(2, 4, fine.text), Texts(2, -1, fine.text)):
        with pytest.raises(ValueError):
            wrong.values()
    bomb = Texts.of(["a" * 10**8])
    with pytest.raises(ValueError, match="cannot hold 100000000 bytes"):
        bomb.values()


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 255], np.uint8),
        ([-1, 100], np.int8),
        ([0, 256], np.uint16),
        ([0, 2**32 - 1], np.uint32),
        ([0, 2**32], np.int64),
        ([-(2**31), 2**31], np.int64),
        ([], np.uint8),
    ],
)
def test_smallest_type_of_integers(values, dtype):
    array = np.array(values, np.int64)
    assert smallest(array).dtype == dtype
    np.testing.assert_array_equal(smallest(array), array)


def test_half_precision_only_where_nothing_is_lost():
    assert smallest(np.array([0.5, -2.0], np.float32)).dtype == np.float16
    for values in ([0.1], [1e30], [1e-8], [np.nan], [np.inf]):
        assert smallest(np.array(values, np.float32)).dtype == np.float32


def test_starts_do_not_wrap():
    np.testing.assert_array_equal(starts_of(np.array([1, 0, 2])), [0, 1, 1, 3])
    for wrong in ([2**62] * 4, [2**62] * 2, [-1, 5], [2**63 - 1, 2, 2**63 - 1]):
        with pytest.raises(ValueError, match="do not add up"):
            starts_of(np.array(wrong))


def test_one_long_label_among_many_short_ones_stays_small():
    """As an array of texts these would take 4 GB: all elements are as long as the longest."""
    labels = np.array(["a" * 30_000, *map(str, range(30_000))], dtype=object)
    parts = {**Labels(labels).to_parts(), "dtype": "U"}
    result = Labels.from_parts(**parts).values
    assert result.dtype == object
    assert result.tolist() == labels.tolist()


@pytest.mark.parametrize("lengths", [[2**62] * 4, [-1, 5], [1, 1], [5], [[2, 2]]])
def test_lengths_of_labels_must_add_up(lengths):
    with pytest.raises(ValueError, match="lengths"):
        Labels.from_parts("U", np.frombuffer(b"abcd", np.uint8), np.array(lengths))


@pytest.mark.parametrize("dtype", ["V8", "O8", "S0", "f8", "S3", "M8", "nonsense", "U4"])
def test_labels_of_other_types_are_refused(dtype):
    with pytest.raises((ValueError, TypeError)):
        Labels.from_parts(dtype, np.frombuffer(b"abcd", np.uint8))
