"""Weights in the file: whatever their parts are, kernels stay within their arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xtrellis.model.weights_packing import pack_weights, unpack_weights

from xtrellis.model.packed_arrays import Counts
from xtrellis.model.weights import EdgeWeights

# Five features, three of which occur: 1 has two weights, 2 a row, 4 one weight.
GOOD = {
    "n_features": 5,
    "features": Counts.of(np.array([1, 0, 1])),
    "counts": Counts.of(np.array([2, 0, 1])),
    "bias": np.zeros(6, np.float32),
    "dense": np.ones((1, 6), np.float32),
    "edges": np.array([0, 3, 5], np.uint16),
    "values": np.array([1, 2, 3], np.float32),
    "twins": np.array([[1], [0]]),
}


def changed(**parts):
    return unpack_weights(**{**GOOD, **parts})


def test_weights_come_back():
    weights = changed()
    np.testing.assert_array_equal(weights.place, [-1, -1, 0, -1, -1])
    np.testing.assert_array_equal(weights.starts, [0, 0, 2, 2, 2, 3])
    again = unpack_weights(**pack_weights(weights))
    for one, other in zip(weights.arrays, again.arrays, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert isinstance(EdgeWeights.from_parts(**GOOD), EdgeWeights)


@pytest.mark.parametrize(
    "part",
    [
        {"n_features": 4},
        {"n_features": 0},
        {"n_features": 2**31 + 1},
        {"features": Counts.of(np.array([1, 0]))},
        {"features": Counts.of(np.array([1, 0, 2]))},
        {"features": Counts.of(np.array([2**62, 2**62, 2**62]))},
        {"counts": Counts.of(np.array([2, 1, 1]))},
        {"counts": Counts.of(np.array([0, 0, 3]))},
        {"counts": Counts.of(np.array([2**62, 2**62, 0]))},
        {"counts": Counts.of(np.array([7, 0, 1]))},
        {"bias": np.zeros(5, np.float32)},
        {"bias": np.full(6, np.nan, np.float32)},
        {"dense": np.ones((2, 6), np.float32)},
        {"dense": np.full((1, 6), np.inf, np.float32)},
        {"edges": np.array([0, 3, 6], np.uint16)},
        {"edges": np.array([0, 3, 5], np.int32)},
        {"edges": np.array([0, 3], np.uint16)},
        {"values": np.array([1, 2, np.nan], np.float32)},
        {"values": np.ones((3, 1), np.float32)},
        {"twins": np.array([[6], [0]])},
        {"twins": np.array([[1], [-1]])},
        {"twins": np.array([[1, 0], [2, 2]])},
        {"twins": np.array([[0, 1], [1, 2]])},
        {"twins": np.array([1, 0])},
    ],
    ids=str,
)
def test_parts_that_do_not_fit_are_refused(part):
    with pytest.raises(ValueError):
        changed(**part)


numbers = st.integers(-2, 8) | st.sampled_from([255, 300, 2**31, 2**62, 2**63 - 1])


@given(st.lists(numbers, max_size=5), st.lists(numbers, max_size=5), st.integers(0, 12))
def test_whatever_is_accepted_is_within_bounds(gaps, counts, n_features):
    gaps, counts = (np.array(each, np.int64).clip(0) for each in (gaps, counts))
    n_values = min(int(sum(counts.tolist())), 50)
    parts = {
        "n_features": n_features,
        "features": Counts.of(gaps),
        "counts": Counts.of(counts),
        "dense": np.ones((np.count_nonzero(counts == 0), 6), np.float32),
        "edges": np.arange(n_values, dtype=np.uint16) % 6,
        "values": np.ones(n_values, np.float32),
    }
    try:
        weights = changed(**parts)
    except ValueError:
        return
    assert weights.place.shape == (n_features,)
    assert -1 <= weights.place.min() <= weights.place.max() < len(weights.dense)
    assert weights.starts.shape == (n_features + 1,)
    assert weights.starts[0] == 0
    assert weights.starts[-1] == len(weights.values) == len(weights.edges)
    assert (np.diff(weights.starts) >= 0).all()
