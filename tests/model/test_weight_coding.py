"""Weights as they are written: small, exact, and checked number by number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import topics
from xtrellis import TrellisClassifier
from xtrellis.model.finished_block import finish_block
from xtrellis.model.weight_coding import WeightsError, pack_weights, unpack_weights
from xtrellis.model.weights import gather_blocks


def fitted(**settings):
    X, y = topics()
    return TrellisClassifier(random_state=0, **settings).fit(X, y).weights_


def again(weights):
    parts = pack_weights(weights)
    n_features, n_edges = parts.pop("n_features"), parts.pop("n_edges")
    return unpack_weights(parts, n_edges, n_features)


def assert_equal(one, other):
    for name in ("vertex_starts", "column_starts", "edges", "bias", "feature_starts", "features"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("entry_starts", "columns", "values"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.twins, other.twins)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weight_bits": 32},
        {"training": "independent"},
        {"training": "independent", "slice_width": 30},  # one-vs-rest has twins
        {"slice_width": 2},
    ],
    ids=str,
)
def test_weights_come_back_exactly(settings):
    weights = fitted(**settings)
    assert_equal(again(weights), weights)


@given(st.integers(0, 10**6), st.sampled_from([0.001, 0.01, 0.3, 0.8]))
def test_wide_blocks_come_back_with_a_byte_for_most_columns(seed, density):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((40, 700)) * (rng.random((40, 700)) < density)
    block = finish_block(np.arange(700), np.arange(40), weights, np.zeros(700))
    weights = gather_blocks([block], [np.arange(700)], 40, np.zeros(700, np.float32))
    assert_equal(again(weights), weights)
    assert pack_weights(weights)["columns"].dtype == np.uint8


@given(st.integers(0, 10**6), st.sampled_from([3, 300, 10**9, 10**12]))
def test_any_features_come_back(seed, n_features):
    rng = np.random.default_rng(seed)
    features = np.unique(rng.integers(0, n_features, 20))
    blocks = [
        finish_block(np.array(edges), features, rng.standard_normal((len(features), 2)), [0, 1])
        for edges in ([0, 1], [3, 2])
    ]
    groups = [np.array([0, 1]), np.array([3, 2])]
    weights = gather_blocks(blocks, groups, n_features, np.zeros(4, np.float32))
    assert_equal(again(weights), weights)


def test_eight_bits_take_two_bytes_per_weight():
    weights = fitted()
    parts = pack_weights(weights)
    size = sum(parts[name].nbytes for name in ("columns", "values", "gaps", "counts"))
    assert size < 2 * len(weights.values) + 3 * len(weights.features)


def test_every_number_is_checked():
    """Any array with a number far too large, too small, or missing is refused."""
    parts = pack_weights(fitted())
    n_features, n_edges = parts.pop("n_features"), parts.pop("n_edges")
    for name, array in parts.items():
        wrong = [array[:-1], array.astype(np.float64) + 0.5, array.reshape(-1, 1)]
        if array.size and array.dtype.kind in "iu":
            for value in (2**62, -(2**62), 2**31, n_edges + 1):
                altered = array.astype(np.int64)
                altered.flat[array.size // 2] = value
                wrong.append(altered)
        if array.size and array.dtype.kind == "f":
            altered = array.copy()
            altered[0] = np.nan
            wrong.append(altered)
        for altered in wrong:
            if np.array_equal(altered, array):
                continue
            with pytest.raises(WeightsError, match=r"weights\."):
                unpack_weights({**parts, name: altered}, n_edges, n_features)
    for name in parts.keys() - {"scales"}:
        left = {key: array for key, array in parts.items() if key != name}
        with pytest.raises(WeightsError, match=f"weights.{name} is missing"):
            unpack_weights(left, n_edges, n_features)


def test_counts_that_wrap_around_are_refused():
    parts = pack_weights(fitted())
    n_features, n_edges = parts.pop("n_features"), parts.pop("n_edges")
    counts, wide = parts["counts"].copy(), np.full(4, 2**62 - 1)
    counts[:4] = 255
    with pytest.raises(WeightsError, match="wide_counts"):
        unpack_weights({**parts, "counts": counts, "wide_counts": wide}, n_edges, n_features)
