"""Assignments: permutations always, deterministic for a seed, and classes alike side by side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

from strategies import graphs
from xtrellis.graph import (
    Trellis,
    given_assignment,
    random_assignment,
    similarity,
    similarity_assignment,
)
from xtrellis.graph.assignment import exit_first


def clustered_data(n_groups, classes_a_group, n_features=300, rows_a_class=3, seed=0):
    """Sparse rows; classes of a group share words. Class numbers are shuffled; returns groups."""
    rng = np.random.default_rng(seed)
    n_classes = n_groups * classes_a_group
    group = rng.permutation(np.repeat(np.arange(n_groups), classes_a_group))
    words = rng.integers(0, n_features, (n_groups, 8))
    labels = np.repeat(np.arange(n_classes), rows_a_class)
    own = rng.integers(0, n_features, (n_classes, 2))
    X = sparse.lil_matrix((len(labels), n_features))
    for row, label in enumerate(labels):
        X[row, rng.choice(words[group[label]], 6)] = 1
        X[row, own[label]] = 1
    return sparse.csr_matrix(X), labels, group


def assert_inverse(assignment, n_classes):
    np.testing.assert_array_equal(np.sort(assignment.path_of_class), np.arange(n_classes))
    np.testing.assert_array_equal(
        assignment.class_of_path[assignment.path_of_class], np.arange(n_classes)
    )


@given(graphs(), st.integers(0, 2**32 - 1))
def test_random_is_a_seeded_permutation(graph, seed):
    trellis = Trellis(*graph)
    assignment = random_assignment(trellis, seed)
    assert_inverse(assignment, trellis.n_classes)
    again = random_assignment(trellis, np.random.RandomState(seed))
    np.testing.assert_array_equal(assignment.path_of_class, again.path_of_class)


def test_random_depends_on_the_seed():
    first, second = (random_assignment(Trellis(200, 5), seed) for seed in (0, 1))
    assert (first.path_of_class != second.path_of_class).any()


@given(graphs())
def test_exit_first_order(graph):
    """Every path once: by exit vertex, then by the vertices from the first slice on."""
    trellis = Trellis(*graph)
    order = exit_first(trellis)
    np.testing.assert_array_equal(np.sort(order), np.arange(trellis.n_classes))
    edges, vertices = trellis.path_edges(order), trellis.path_vertices(order)
    exits = np.take_along_axis(edges, (edges >= 0).sum(axis=1)[:, None] - 1, axis=1)[:, 0]
    keys = [(e, *v) for e, v in zip(exits.tolist(), vertices.tolist(), strict=True)]
    assert keys == sorted(keys)


@pytest.mark.parametrize("path_order", ["depth_first", "exit_first"])
def test_similarity_keeps_groups_together(path_order):
    X, y, group = clustered_data(n_groups=12, classes_a_group=10)
    trellis = Trellis(120, 5)
    assignment = similarity_assignment(trellis, X, y, path_order=path_order, random_state=0)
    assert_inverse(assignment, 120)
    order = np.arange(120) if path_order == "depth_first" else exit_first(trellis)
    in_order = group[assignment.class_of_path[order]]
    # About 108 at random, 11 at best; more where groups are cut to share the first vertex.
    assert (np.diff(in_order) != 0).sum() <= 25


def test_similarity_gives_each_first_vertex_a_group_of_its_own():
    """Where the groups are as large as the runs of paths through a vertex of the first slice."""
    X, y, group = clustered_data(n_groups=10, classes_a_group=10, n_features=2000)
    trellis = Trellis(100, 10)
    assignment = similarity_assignment(trellis, X, y, random_state=0)
    vertex = trellis.path_vertices(assignment.path_of_class)[:, 0]
    assert len(np.unique(np.column_stack([vertex, group]), axis=0)) == 10


def test_similarity_does_not_depend_on_the_number_of_threads():
    X, y, _ = clustered_data(30, 10, n_features=2000)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(similarity_assignment(Trellis(300, 5), X, y, random_state=0))
    np.testing.assert_array_equal(found[0].path_of_class, found[1].path_of_class)


def test_similarity_is_deterministic_for_a_seed():
    X, y, _ = clustered_data(12, 10)
    first, second = (similarity_assignment(Trellis(120, 5), X, y, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.path_of_class, second.path_of_class)


def test_similarity_takes_dense_and_64_bit_input():
    X, y, _ = clustered_data(6, 5)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    expected = similarity_assignment(Trellis(30, 3), X, y, random_state=0)
    for other in (X.toarray(), wide, sparse.csr_array(X)):
        found = similarity_assignment(Trellis(30, 3), other, y, random_state=0)
        np.testing.assert_array_equal(found.path_of_class, expected.path_of_class)


@pytest.mark.parametrize("max_table", [0, 2**25])
def test_similarity_splits_where_linkage_would_be_too_large(monkeypatch, max_table):
    monkeypatch.setattr(similarity, "MAX_LINKAGE", 40)
    monkeypatch.setattr(similarity, "_MAX_TABLE", max_table)
    sizes = []
    linkage_order = similarity._linkage_order
    monkeypatch.setattr(
        similarity, "_linkage_order", lambda v: sizes.append(len(v)) or linkage_order(v)
    )
    X, y, group = clustered_data(n_groups=30, classes_a_group=10, n_features=2000)
    first, second = (similarity_assignment(Trellis(300, 5), X, y, random_state=0) for _ in range(2))
    assert_inverse(first, 300)
    np.testing.assert_array_equal(first.path_of_class, second.path_of_class)
    assert max(sizes) <= 40
    assert (np.diff(group[first.class_of_path]) != 0).sum() <= 60  # about 290 at random


def test_similarity_of_classes_without_rows_or_features():
    X = sparse.csr_matrix(np.array([[1.0, 0], [0, 0], [0, 1], [1, 1]]))
    assignment = similarity_assignment(Trellis(6, 2), X, [0, 1, 2, 3], random_state=0)
    assert_inverse(assignment, 6)
    assert set(assignment.class_of_path[-3:]) == {1, 4, 5}
    assert_inverse(similarity_assignment(Trellis(6, 2), np.zeros((4, 2)), [0, 1, 2, 3]), 6)


@pytest.mark.parametrize(
    ("permutation", "message"),
    [
        ([0, 1], r"one path for each of the 4 classes, got shape \(2,\)"),
        ([0, 1, 2, 4], r"from 0 to 3, got permutation\[3\] = 4"),
        ([0, -1, 2, 3], r"got permutation\[1\] = -1"),
        ([0, 1, 2, 1], r"each path once, got path 1 for classes \[1, 3\]"),
        ([0.0, 1.0, 2.0, 3.0], "permutation must hold integers, got float64"),
    ],
)
def test_bad_permutations(permutation, message):
    with pytest.raises(ValueError, match=message):
        given_assignment(Trellis(4, 2), permutation)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path_order": "sideways"}, "path_order must be .* got 'sideways'"),
        ({"y": [0, 1, 2]}, "inconsistent numbers of samples"),
        ({"y": [0, 1, 2, 4]}, "y must hold integers from 0 to 3, got 4"),
        (
            {"y": [[0], [1], [2], [3]]},
            r"y must hold one integer a row, got int64 of shape \(4, 1\)",
        ),
        ({"y": ["a", "b", "c", "d"]}, "y must hold one integer a row, got <U1"),
        ({"X": np.full((4, 2), np.nan)}, "NaN"),
    ],
)
def test_bad_similarity_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        similarity_assignment(
            **{"trellis": Trellis(4, 2), "X": np.eye(4), "y": [0, 1, 2, 3]} | arguments
        )
