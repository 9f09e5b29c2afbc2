"""Lists of entries, one per class: ranked, picked, and checked."""

from itertools import pairwise

import numpy as np
import pytest

from xtrellis.decoding import class_entries
from xtrellis.decoding.class_entries import are_sound, lists_of, places_in_lists, starts_of


@pytest.fixture
def lists():
    """Sizes of the entries of forty classes, some without any and many of them equal."""
    rng = np.random.default_rng(0)
    starts = starts_of(rng.integers(0, 30, 40) * (rng.random(40) < 0.7))
    return starts, rng.integers(0, 6, starts[-1]).astype(np.float32)


@pytest.mark.parametrize("at_once", [1, 50, 2**20])
def test_places_are_those_of_a_stable_sort_of_each_list(lists, monkeypatch, at_once):
    monkeypatch.setattr(class_entries, "_SOME_ENTRIES", at_once)
    starts, sizes = lists
    places = places_in_lists(starts, sizes)
    for first, last in pairwise(starts):
        order = np.argsort(-sizes[first:last], kind="stable")
        np.testing.assert_array_equal(places[first:last][order], np.arange(last - first))


def test_lists_are_picked_in_any_order(lists):
    starts, sizes = lists
    numbers = np.array([7, -1, 39, 0, 7])
    new, at = lists_of(starts, numbers)
    for j, number in enumerate(numbers):
        own = sizes[starts[number] : starts[number + 1]] if number >= 0 else []
        np.testing.assert_array_equal(sizes[at][new[j] : new[j + 1]], own)


@pytest.mark.parametrize(
    ("starts", "features"),
    [
        ([0], []),
        ([0, 1], [1, 2]),
        ([1, 2], [1, 2]),
        ([0, 2, 1, 2], [1, 2]),
        ([0, 2], [-1, 2]),
        ([[0, 2]], [1, 2]),
    ],
)
def test_unsound_lists_are_told(starts, features):
    assert are_sound(np.array([0, 1, 1, 2]), np.array([5, 0]))
    assert not are_sound(np.array(starts), np.array(features, np.int64))
