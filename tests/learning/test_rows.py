"""Training rows: merged, held out, shuffled, over the features that occur."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from samples import topics
from xtrellis._arrays import canonical_csr, occurring_columns
from xtrellis.graph import Trellis, similarity_assignment
from xtrellis.learning.rows import (
    held_out_weights,
    hold_out_rows,
    merge_rows,
    prepare_rows,
    shuffled_rows,
    visiting_order,
)


def test_visiting_order_is_a_new_permutation_each_time():
    rng = np.random.default_rng(0)
    rows = np.arange(100, 1000)
    first, second = visiting_order(rows, rng), visiting_order(rows, rng)
    np.testing.assert_array_equal(np.sort(first), rows)
    np.testing.assert_array_equal(np.sort(second), rows)
    assert (first != second).mean() > 0.9


def test_merging_rows_adds_up_their_weights():
    X, y = topics(n_rows=200)
    twice = np.concatenate([np.arange(200), np.arange(50)])
    shuffled = np.random.default_rng(0).permutation(twice)
    merged, y_encoded, weights, _ = merge_rows(
        canonical_csr(X[shuffled]), y[shuffled], np.ones(250, np.float32)
    )
    assert merged.shape[0] == len(np.unique(np.column_stack([X.toarray(), y]), axis=0))
    assert weights.sum() == 250
    again = merge_rows(canonical_csr(X[twice]), y[twice], np.ones(250, np.float32))
    np.testing.assert_array_equal(merged.toarray(), again[0].toarray())
    np.testing.assert_array_equal(y_encoded, again[1])
    np.testing.assert_array_equal(weights, again[2])


def test_equal_rows_of_different_classes_stay_apart():
    X = canonical_csr(np.eye(3, dtype=np.float32)[[0, 0, 1, 1]])
    _, y_encoded, weights, _ = merge_rows(X, np.array([0, 1, 2, 2]), np.ones(4, np.float32))
    assert sorted(zip(y_encoded.tolist(), weights.tolist(), strict=True)) == [
        (0, 1),
        (1, 1),
        (2, 2),
    ]


def test_holding_out_leaves_a_row_of_every_class():
    codes = np.repeat(np.arange(500), [1, 2, 3, 10, 4] * 100)
    held_out = hold_out_rows(codes, 0.3, np.random.RandomState(0))
    assert set(codes[~held_out]) == set(range(500))
    for size in (2, 3, 10):  # the same share of classes of all sizes
        mine = np.repeat([1, 2, 3, 10, 4] * 100, [1, 2, 3, 10, 4] * 100) == size
        assert abs(held_out[mine].mean() - 0.3) < 0.1


def test_rows_drawn_at_random_count_alike():
    rng = np.random.RandomState(0)
    y = rng.zipf(1.5, 2_000) % 300  # many classes have one row
    held_out = hold_out_rows(np.unique(y, return_inverse=True)[1], 0.1, rng)
    weights = held_out_weights(
        np.unique(y, return_inverse=True)[1], held_out, np.flatnonzero(held_out)
    )
    np.testing.assert_array_equal(weights, np.ones(held_out.sum()))


def test_held_out_rows_stand_for_rows_of_classes_as_large_as_theirs_has_become():
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(3_000), rng.randint(2, 9, 3_000))  # from two rows to eight
    sizes = np.bincount(y)
    held_out = hold_out_rows(y, 0.1, rng)
    weights = held_out_weights(y, held_out, np.flatnonzero(held_out))
    left = (sizes - np.bincount(y[held_out], minlength=3_000))[y[held_out]]
    assert weights[left == 1].max() == 0
    for n_rows in range(2, 7):  # of the largest classes some row is always held out
        share = weights[left == n_rows].sum() / weights.sum()
        assert share == pytest.approx((sizes[y] == n_rows).mean(), rel=1e-5)
    assert weights.mean() == pytest.approx(1, rel=1e-5)


def test_weights_are_one_on_average_where_the_smallest_class_has_no_row_held_out():
    y, held_out = np.array([0, 0, 1, 1, 1, 1, 1]), np.zeros(7, bool)
    held_out[2] = True
    np.testing.assert_allclose(held_out_weights(y, held_out, np.array([2])), [1])


def test_all_held_out_rows_count_where_all_classes_are_large():
    y = np.repeat(np.arange(50), 40)
    held_out = hold_out_rows(y, 0.1, np.random.RandomState(0))
    weights = held_out_weights(y, held_out, np.flatnonzero(held_out))
    np.testing.assert_allclose(weights, np.ones(held_out.sum()))


def test_rows_that_may_not_be_held_out():
    codes = np.repeat(np.arange(500), [1, 2, 3, 10, 4] * 100)
    allowed = np.random.default_rng(0).random(len(codes)) < 0.5
    held_out = hold_out_rows(codes, 0.3, np.random.RandomState(0), allowed)
    assert not (held_out & ~allowed).any()
    assert held_out[allowed].mean() > 0.2
    assert set(codes[~held_out]) == set(range(500))
    only = np.isin(np.arange(len(codes)), np.unique(codes, return_index=True)[1], invert=True)
    held_out = hold_out_rows(codes, 0.9, np.random.RandomState(0), only)
    assert held_out[only].mean() > 0.85  # the others are enough to train on
    X = canonical_csr(np.eye(3, dtype=np.float32)[[0, 0, 1, 2]])
    one = np.array([True, False, False, True])
    merged = merge_rows(X, np.array([0, 0, 1, 2]), np.ones(4, np.float32), one)
    assert merged[3][np.argsort(merged[1])].tolist() == [True, False, True]


@given(st.lists(st.integers(0, 50), max_size=30), st.sampled_from([51, 2**31, 2**40]))
def test_occurring_columns(indices, n_columns):
    given_columns = np.array(indices, np.int64)
    columns, counts, renumbered = occurring_columns(given_columns, n_columns)
    assert columns.tolist() == sorted(set(indices))
    assert counts.tolist() == [indices.count(column) for column in columns]
    assert columns[renumbered].tolist() == indices


def test_shuffled_rows_are_the_same_rows_over_the_features_that_occur():
    X, _ = topics()
    X = canonical_csr(X.multiply(np.arange(400) % 3 > 0))
    shuffled, features, order = shuffled_rows(X, np.random.RandomState(0))
    np.testing.assert_array_equal(shuffled.toarray(), X[order][:, features].toarray())
    counts = np.bincount(shuffled.indices)
    assert counts.min() > 0
    assert (np.diff(counts) <= 0).all()


def test_rows_carry_their_paths():
    X, y = topics()
    trellis, rng = Trellis(30, 5), np.random.RandomState(0)
    weights, held_out = rng.rand(900).astype(np.float32), rng.rand(900) < 0.5
    rows = prepare_rows(trellis, X, y, weights, held_out, np.random.RandomState(1))
    order = np.random.RandomState(1).permutation(900)
    np.testing.assert_array_equal(rows.paths, y[order])
    np.testing.assert_array_equal(rows.sample_weight, weights[order])
    np.testing.assert_array_equal(rows.path_edges, trellis.path_edges(rows.paths))
    np.testing.assert_array_equal(rows.held_out, held_out[order])


@pytest.mark.parametrize("n_features", [300_000_001, 2**31 + 5])
def test_cost_follows_the_features_that_occur(n_features):
    """One row with index 3e8 must not cost gigabytes."""
    X, y = topics(n_classes=10, n_rows=100)
    X = canonical_csr(sparse.csr_matrix((X.data, X.indices, X.indptr), (100, n_features)))
    X.indices[-1] = n_features - 1
    trellis = Trellis(10, 3)
    weights, none = np.ones(100, np.float32), np.zeros(100, bool)
    tracemalloc.start()
    rows = prepare_rows(trellis, X, y, weights, none, np.random.RandomState(0))
    similarity_assignment(trellis, X, y, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert rows.X.shape[1] < 500
    assert n_features - 1 in rows.features
