"""Similarity of classes: vectors, clusters of given sizes, linkage; within its memory."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage

from xtrellis.graph import Trellis, similarity, similarity_assignment
from xtrellis.kernels.cluster import _kth_lowest


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.integers(0, 2**32 - 1))
def test_fill_keeps_to_the_sizes(sizes, seed):
    likeness = np.random.RandomState(seed).uniform(-1, 1, (sum(sizes), len(sizes)))
    clusters = similarity._fill(likeness.astype(np.float32), np.array(sizes))
    np.testing.assert_array_equal(np.bincount(clusters, minlength=len(sizes)), sizes)


def test_fill_lets_those_go_first_who_lose_most():
    likeness = np.array([[0.9, 0.8], [0.7, 0.1], [0.2, 0.3]], dtype=np.float32)
    assert similarity._fill(likeness, np.array([1, 2])).tolist() == [1, 0, 1]


@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=40),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 200, 2**20]),
)
def test_fill_by_few_keeps_to_the_sizes(sizes, seed, most):
    """And if all clusters are looked at, its clusters are those of a whole table."""
    rng = np.random.RandomState(seed)
    vectors = rng.standard_normal((sum(sizes), 5)).astype(np.float32)
    centres = rng.standard_normal((len(sizes), 5)).astype(np.float32)
    vectors, centres = (
        each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors, centres)
    )
    with mock.patch.object(similarity, "_MAX_TABLE", most):
        clusters = similarity._fill_by_few(vectors, centres, np.array(sizes))
        np.testing.assert_array_equal(np.bincount(clusters, minlength=len(sizes)), sizes)
        if len(sizes) <= similarity._FEW and most > 200:
            expected = similarity._fill(vectors @ centres.T, np.array(sizes))
            np.testing.assert_array_equal(clusters, expected)


def test_many_classes_are_clustered_as_well_as_few(monkeypatch):
    """Halves of halves alone would tear groups apart."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 20)
    vectors = unit_vectors(60, 40)[groups] + 0.5 * unit_vectors(1200, 40)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    mixed = rng.permutation(1200)
    shared = np.repeat(np.arange(40), 30)[:, np.newaxis]  # not the sizes of the groups

    def together():
        order = similarity.class_order(mixed, vectors, shared, 1, np.random.RandomState(0), None)
        parts = groups[order].reshape(40, 30)
        return np.mean([np.bincount(part).max() for part in parts])

    whole = together()
    monkeypatch.setattr(similarity, "_MAX_TABLE", 40 * 1200 - 1)
    assert together() > 0.97 * whole
    monkeypatch.setattr(similarity, "_FEW_ROUNDS", 1)
    assert together() < 0.95 * whole


def unit_vectors(n, n_dimensions=20):
    vectors = np.random.default_rng(n).standard_normal((n, n_dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("n", [3, 4, 40, 300])
def test_linkage_order_is_the_order_of_scipys_leaves(n):
    vectors = unit_vectors(n)
    merges = linkage(vectors.astype(float), "average", "cosine")
    np.testing.assert_array_equal(similarity._linkage_order(vectors), leaves_list(merges))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_linkage_order_of_too_few_is_theirs(n):
    np.testing.assert_array_equal(similarity._linkage_order(unit_vectors(n)), np.arange(n))


def test_linkage_order_of_equal_vectors():
    """Ties everywhere: every leaf comes once, and equal ones side by side."""
    order = similarity._linkage_order(np.repeat(unit_vectors(30), 9, axis=0))
    np.testing.assert_array_equal(np.sort(order), np.arange(270))
    assert np.count_nonzero(np.diff(order // 9)) == 29
    zeros = similarity._linkage_order(np.zeros((50, 4), np.float32))
    np.testing.assert_array_equal(np.sort(zeros), np.arange(50))


def test_reduced_vectors_keep_the_products_of_a_full_decomposition():
    """Also with features of one class only, which are left out of the products."""
    rows = sparse.random(150, 400, 0.03, "csr", np.float32, random_state=0)
    assert (np.bincount(rows.indices, minlength=400) == 1).any()
    reduced = similarity._reduce(rows, np.random.RandomState(0))
    values = np.linalg.svd(rows.toarray(), compute_uv=False)[: reduced.shape[1]]
    np.testing.assert_allclose(np.linalg.norm(reduced, axis=0)[::-1][:20], values[:20], rtol=1e-2)
    again = similarity._reduce(rows, np.random.RandomState(0), n_jobs=3)
    np.testing.assert_array_equal(reduced, again)


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, np.nan]), min_size=1), st.data())
def test_selection_is_that_of_a_sort(values, data):
    k = data.draw(st.integers(0, len(values) - 1))
    found = _kth_lowest(np.array(values, np.float32), k)  # must end even if there are NaNs
    if not np.isnan(values).any():
        assert found == sorted(values)[k]


def test_features_too_large_to_add_up():
    with pytest.raises(ValueError, match="scale the features"):
        similarity_assignment(Trellis(3, 2), np.full((6, 2), 3e38), [0, 1, 2] * 2)


def test_columns_in_parts_have_the_same_bits(monkeypatch):
    rows = sparse.random(200, 500, 0.05, "csr", np.float32, random_state=0)
    whole = similarity._reduce(rows, np.random.RandomState(0))
    monkeypatch.setattr(similarity, "_MAX_TABLE", 0)  # eight columns at a time
    np.testing.assert_array_equal(similarity._reduce(rows, np.random.RandomState(0)), whole)


def test_rarity_brings_classes_together_that_share_a_rare_feature():
    """Classes 0 and 1 share a feature of theirs alone; 0 and 2 a larger one that all have."""
    X = np.full((8, 3), [0.0, 0.0, 1.0])
    X[[0, 1], 0] = 0.8
    X[[1, 3, 4, 5, 6, 7], 1] = 1.5
    vectors = {
        order: similarity.class_vectors(X, np.arange(8), 8, np.random.RandomState(0), order=order)
        for order in ("plain", "by_rarity")
    }
    plain, by_rarity = (each @ each[0] for each in vectors.values())
    assert plain[2] > plain[1]
    assert by_rarity[1] - by_rarity[2] > plain[1] - plain[2]
    assert (similarity_assignment(Trellis(8, 2), X, np.arange(8)).path_of_class >= 0).all()


def test_groups_that_are_easy_to_tell_apart_need_not_find_rows():
    """All rows name their topic, some less clearly their class; one group has all of a topic."""
    rng = np.random.default_rng(0)
    n_classes, n_rows = 40, 400
    topic, classes = np.arange(n_classes) // 20, rng.integers(0, n_classes, n_rows)
    X = np.zeros((n_rows, 2 + n_classes), np.float32)
    X[np.arange(n_rows), topic[classes]] = 3
    X[np.arange(n_rows), 2 + classes] = rng.random(n_rows) < 0.5
    own = np.zeros((n_classes, 2 + n_classes), np.float32)
    own[np.arange(n_classes), topic], own[:, 2:] = 6, np.eye(n_classes)
    rows, sums = sparse.csr_matrix(X), sparse.csr_matrix(own)
    near, found = similarity.shares_near(sums, topic, rows, classes)
    assert near == 1
    # By brute force: the nearest class of the right topic.
    lengths = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(own, axis=1)
    cosines = np.where(topic == topic[classes][:, None], X @ own.T / lengths, -1)
    assert found == np.mean(cosines.argmax(axis=1) == classes)
    assert found < 0.7
