"""Codewords and distances against the enumerated coding matrix."""

import numpy as np
import pytest
from hypothesis import given

import oracle
from strategies import graphs
from xtrellis.graph import Trellis, codewords, hamming_distance, minimum_distance


@pytest.mark.parametrize("code", ["independent", "local"])
@given(graph=graphs(max_classes=150))
def test_codewords_are_the_rows_of_the_coding_matrix(code, graph):
    trellis = Trellis(*graph)
    words = codewords(trellis, np.arange(trellis.n_classes), code=code)
    np.testing.assert_array_equal(words, oracle.coding_matrix(*graph, code))


@given(graphs(max_classes=150))
def test_hamming_distance_counts_differing_entries(graph):
    trellis, matrix = Trellis(*graph), oracle.coding_matrix(*graph)
    paths = np.arange(trellis.n_classes)
    found = hamming_distance(trellis, paths[:, np.newaxis], paths)
    np.testing.assert_array_equal(found, (trellis.n_edges - matrix @ matrix.T) // 2)


def test_minimum_distance_of_all_graphs_up_to_120_classes():
    for n_classes in range(2, 121):
        for width in range(2, n_classes + 1):
            trellis = Trellis(n_classes, width)
            # All pairs, from the shared edges of the enumerated paths.
            edges = trellis.path_edges(np.arange(n_classes))
            lengths = (edges >= 0).sum(axis=1)
            shared = sum(
                (step[:, np.newaxis] == step) & (step >= 0)[:, np.newaxis] for step in edges.T
            )
            distances = lengths[:, np.newaxis] + lengths - 2 * shared
            np.fill_diagonal(distances, trellis.n_edges)
            assert minimum_distance(trellis) == distances.min(), (n_classes, width)


def test_minimum_distance_of_the_local_code():
    for n_classes in range(2, 61):
        for width in range(2, n_classes + 1):
            matrix = oracle.coding_matrix(n_classes, width, "local")
            distances = (matrix.shape[1] - matrix @ matrix.T) / 2
            np.fill_diagonal(distances, np.inf)
            found = minimum_distance(Trellis(n_classes, width), code="local")
            assert found == distances.min(), (n_classes, width)


def test_distances_the_paper_names():
    assert minimum_distance(Trellis(64, 2)) == 4  # Section 4.2
    assert minimum_distance(Trellis(105, 5)) == 3  # 105 = 410 in base 5
    assert minimum_distance(Trellis(10**12, 10)) == 4


def test_one_vs_rest_repeats_its_columns():
    """b = K: each class has two edges of its own, with the same column."""
    matrix = codewords(Trellis(7, 7), np.arange(7))
    np.testing.assert_array_equal(matrix[:, :7], 2 * np.eye(7) - 1)
    np.testing.assert_array_equal(matrix[:, 7:14], 2 * np.eye(7) - 1)
    np.testing.assert_array_equal(matrix[:, 14], 1)


def test_unknown_code():
    with pytest.raises(ValueError, match="code must be 'independent' or 'local', got 'gray'"):
        codewords(Trellis(4, 2), [0], code="gray")
    with pytest.raises(ValueError, match="code must be 'independent' or 'local', got 'gray'"):
        minimum_distance(Trellis(4, 2), code="gray")
