"""The graph: the paper's tables and worked example, and arithmetic against enumeration."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from strategies import graphs
from xtrellis.graph import Trellis
from xtrellis.kernels import graph as kernels

# The tables of E.1 and E.5: (data, K, d), and the model sizes of W-LTLS as printed. Their MB is
# 2**20 bytes, their GB a thousand of it.
PAPER_SIZES = {
    ("sector", 105, 55_197): {2: "5.9 MB", 4: "9.7 MB", 5: "11.6 MB", 7: "15.4 MB", 10: "26.5 MB"},
    ("aloi.bin", 1_000, 636_911): {
        2: "102.1 MB", 3: "133.6 MB", 5: "216.2 MB", 7: "328.0 MB", 10: "537.0 MB",
        15: "777.5 MB", 20: "1.1 GB",
    },
    ("imageNet", 1_000, 1_000): {
        2: "0.16 MB", 5: "0.34 MB", 10: "0.84 MB", 15: "1.2 MB", 20: "1.8 MB", 30: "3.7 MB",
    },
    ("Dmoz", 11_947, 833_484): {
        2: "193.9 MB", 3: "248.0 MB", 5: "429.2 MB", 10: "1.1 GB", 20: "2.8 GB", 30: "4.3 GB",
        40: "6.3 GB", 50: "9.0 GB",
    },
    ("LSHTC1", 12_294, 1_199_856): {
        2: "256.3 MB", 3: "361.6 MB", 5: "631.6 MB", 10: "1.5 GB", 20: "4.0 GB", 30: "6.3 GB",
        40: "9.0 GB", 45: "10.8 GB",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "width", "printed"),
    [(data, b, size) for data, sizes in PAPER_SIZES.items() for b, size in sizes.items()],
    ids=lambda value: str(value[0] if isinstance(value, tuple) else value),
)
def test_edges_give_the_model_sizes_of_the_paper(data, width, printed):
    _, n_classes, n_features = data
    number, unit = printed.split()
    size = (
        4 * n_features * Trellis(n_classes, width).n_edges / {"MB": 2**20, "GB": 2**20 * 1000}[unit]
    )
    # To the printed digit. Two sizes of aloi.bin, 102.044 and 536.947, were printed rounded up.
    assert abs(size - float(number)) < 0.6 * 10 ** -len(number.partition(".")[2])


def test_sector_edge_counts():
    assert [Trellis(105, b).n_edges for b in (2, 4, 5, 7, 10)] == [28, 46, 55, 73, 126]


def test_worked_example_of_appendix_c():
    trellis = Trellis(9, 2)
    assert trellis.n_edges == 14
    # S(e) of equation (5): the edges that leave the same slice, for an exit also all later ones.
    assert trellis.leaving_edges(2, [0, 1]).tolist() == [[10, -1], [11, -1]]
    assert trellis.leaving_edges(1, [0, 1]).tolist() == [[6, 7, -1], [8, 9, -1]]  # S(e6)
    assert trellis.leaving_edges(0, [0, 1]).tolist() == [[2, 3, 13], [4, 5, -1]]  # S(e2)
    assert trellis.leaving_edges(3, [0]).tolist() == [[12]]  # S(e12)
    sets = oracle.conflicting_edges(9, 2)
    assert sets[6] == {6, 7, 8, 9}
    assert sets[2] == {2, 3, 4, 5, 13}
    assert sets[11] == {10, 11}
    assert sets[12] == {12}
    assert sets[13] == set(range(2, 14))


@pytest.mark.parametrize(("n_classes", "width"), [(1000, 10), (64, 4), (64, 8), (2, 2), (7, 7)])
def test_exact_powers_have_one_leading_digit(n_classes, width):
    trellis = Trellis(n_classes, width)
    assert trellis.digits == (0,) * (trellis.n_slices - 1) + (1,)
    assert width ** (trellis.n_slices - 1) == n_classes


def test_every_small_graph_has_exactly_k_distinct_paths():
    for n_classes in range(2, 121):
        for width in range(2, n_classes + 1):
            edges = Trellis(n_classes, width).path_edges(np.arange(n_classes))
            found = [tuple(row[row >= 0].tolist()) for row in edges]
            assert found == oracle.all_paths(n_classes, width)
            assert len(set(found)) == n_classes


@given(graphs())
def test_edges_and_slices_match_the_construction(graph):
    trellis, expected = Trellis(*graph), oracle.graph_edges(*graph)
    assert trellis.n_edges == len(expected)
    names = {0: oracle.SOURCE, trellis.n_vertices - 1: oracle.SINK}
    for i, size in enumerate(trellis.slice_sizes):
        names |= {1 + i * trellis.slice_width + v: (i, v) for v in range(size)}
    tails, heads = trellis.endpoints()
    assert [(names[t], names[h]) for t, h in zip(tails, heads, strict=True)] == expected
    for i, size in enumerate((1, *trellis.slice_sizes), start=-1):
        for v in range(size):
            tail = 0 if i < 0 else 1 + i * trellis.slice_width + v
            assert trellis.vertex_edges(i, v).tolist() == np.flatnonzero(tails == tail).tolist()


@given(graphs())
def test_kernels_find_edges_where_the_trellis_has_them(graph):
    trellis = Trellis(*graph)
    slices = trellis.arrays.slices
    assert kernels.n_slices(slices) == trellis.n_slices
    for i, size in enumerate((1, *trellis.slice_sizes), start=-1):
        assert kernels.n_vertices(slices, i) == size
        for v in range(size):
            first, n_heads = kernels.first_edge(slices, i, v), kernels.n_heads(slices, i)
            leaving = kernels.exit_edge(slices, i, v)
            assert (leaving >= 0) == (v < kernels.n_exits(slices, i))
            edges = [*range(first, first + n_heads), *([leaving] if leaving >= 0 else [])]
            assert trellis.vertex_edges(i, v).tolist() == edges


def test_arrays_of_enormous_graphs_and_after_pickling():
    assert Trellis(2**60, 2**59).arrays.slices[0].tolist() == [1, 0, 0, 3 * 2**59 + 2, 2**60]
    trellis = Trellis(105, 5)
    assert trellis.arrays is trellis.arrays
    assert pickle.loads(pickle.dumps(trellis)) == trellis
    assert hash(trellis) == hash(Trellis(105, 5))


@given(graphs(max_classes=2**60), st.integers(0, 2**32 - 1))
def test_path_numbers_invert_path_edges(graph, seed):
    trellis = Trellis(*graph)
    paths = np.random.default_rng(seed).integers(0, trellis.n_classes, (5, 4))
    edges = trellis.path_edges(paths)
    assert edges.shape == (5, 4, trellis.n_slices + 1)
    np.testing.assert_array_equal(trellis.path_numbers(edges), paths)
    tails, heads = trellis.endpoints(np.maximum(edges, 0))
    assert (tails[..., 0] == 0).all()
    joined = edges[..., 1:] >= 0
    assert (heads[..., :-1][joined] == tails[..., 1:][joined]).all()
    last = np.take_along_axis(heads, (edges >= 0).sum(axis=-1)[..., None] - 1, axis=-1)
    assert (last == trellis.n_vertices - 1).all()


@given(graphs(max_classes=90))
def test_paths_to_a_vertex_and_bounds_on_size(graph):
    """Lemma 3, Lemma 11 and Corollary 12 of the appendix."""
    graph = Trellis(*graph)
    b, n_slices = graph.slice_width, graph.n_slices
    tails, heads = graph.endpoints()
    paths = np.zeros(graph.n_vertices, int)
    paths[0] = 1
    for tail, head in sorted(zip(tails, heads, strict=True)):
        paths[head] += paths[tail]
    sizes = graph.slice_sizes
    assert paths[1:-1].tolist() == [b**i for i, size in enumerate(sizes) for _ in range(size)]
    assert paths[-1] == graph.n_classes
    assert sum(sizes) <= n_slices * b
    assert graph.n_edges <= (b + 1) * n_slices * b + b


def test_neighbouring_numbers_share_early_vertices():
    vertices = Trellis(1597, 10).path_vertices(np.arange(1597))
    assert (np.diff(vertices[:, 0]) >= 0).all()


def test_nothing_grows_with_the_number_of_classes():
    # Work or memory that grew with K would not end here in any reasonable time.
    for width in (2, 10, 10**6, 10**12):
        trellis = Trellis(10**12, width)
        assert trellis.path_numbers(trellis.path_edges(10**12 - 1)) == 10**12 - 1


def test_widths_whose_square_is_no_64_bit_number():
    trellis = Trellis(2**60, 2**59 + 7)
    last = trellis.n_edges - 1
    tails, heads = trellis.endpoints([0, last])
    assert tails[0] == 0
    assert heads.tolist() == [1, trellis.n_vertices - 1]


def test_is_an_immutable_value():
    trellis = Trellis(100, 5)
    assert trellis == Trellis(np.int64(100), np.int32(5))
    assert hash(trellis) == hash(Trellis(100, 5))
    assert repr(trellis) == "Trellis(n_classes=100, slice_width=5)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        trellis.n_classes = 3


def test_empty_arrays_of_paths():
    assert Trellis(9, 2).path_edges([]).shape == (0, 5)
    assert Trellis(9, 2).path_numbers(np.empty((0, 5))).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-3, 2), "n_classes must be .* got -3"),
        ((1, 2), "n_classes must be .* got 1"),
        ((2**61, 2), "n_classes must be from 2 to 2\\*\\*60, got"),
        ((10, 1), "slice_width must be from 2 to n_classes \\(10\\), got 1"),
        ((10, 11), "slice_width must be .* got 11"),
    ],
)
def test_bad_graphs(arguments, message):
    with pytest.raises(ValueError, match=message):
        Trellis(*arguments)


@pytest.mark.parametrize("arguments", [(10.0, 2), (10, 2.5), (True, 2), ("10", 2)])
def test_sizes_must_be_integers(arguments):
    with pytest.raises(TypeError, match="must be an integer, got"):
        Trellis(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.path_edges([9]), "paths must be from 0 to 8, got 9"),
        (lambda t: t.path_edges([0, -1]), "paths must be from 0 to 8, got -1"),
        (lambda t: t.path_edges([0.5]), "paths must hold integers, got float64"),
        (lambda t: t.endpoints([14]), "edges must be from 0 to 13, got 14"),
        (lambda t: t.leaving_edges(4, 0), "index must be from -1 .* to 3, got 4"),
        (lambda t: t.path_numbers([[0, 2, 6, 10, 13]]), r"edges\[0\] = .* is not a source-sink"),
        (lambda t: t.path_numbers([[0, 13, -1]]), "last axis of length 5, got .* shape \\(1, 3\\)"),
        (lambda t: t.path_numbers([[99, 99, 99, 99, 99]]), "is not a source-sink path"),
    ],
)
def test_bad_paths_and_edges(call, message):
    with pytest.raises(ValueError, match=message):
        call(Trellis(9, 2))
