"""Decoding against brute force over all paths, and the paper's theorem and lemma."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from strategies import graphs, margins, tied_margins
from xtrellis.decoding import (
    PathHinge,
    VertexSoftmax,
    best_paths,
    get_loss,
    k_best_paths,
    log_partition,
    path_log_probabilities,
)
from xtrellis.decoding.losses import Tempered
from xtrellis.decoding.paths import likely_paths
from xtrellis.graph import Trellis, codewords

CODES = ["independent", "local"]


def custom_loss(z):
    return np.maximum(0, 2 - z) ** 1.5


LOSSES = oracle.LOSSES | {"custom": custom_loss}


def decoding_loss(name, code):
    return get_loss(LOSSES["custom"] if name == "custom" else name, code=code)


def assert_least(chosen, losses, scale, rtol):
    """The chosen paths lose no more than the best ones, but for rounding."""
    least = losses.min(axis=1)
    excess = losses[np.arange(len(losses)), chosen] - least
    assert (excess <= rtol * (least + scale)).all(), (excess, least)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", LOSSES)
@given(data=st.data(), graph=graphs())
@settings(max_examples=60)
def test_shortest_path_is_loss_based_decoding(name, code, data, graph):
    """Theorem 1 for any K, any b and margins of all magnitudes."""
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges))
    matrix = oracle.coding_matrix(*graph, code)
    losses = oracle.total_losses(matrix, f, LOSSES[name])
    # The exponential total can be tiny beside its largest terms: no absolute slack there.
    scale = 0 if name == "exponential" else np.abs(f).max()
    assert_least(best_paths(trellis, f, decoding_loss(name, code)), losses, scale, rtol=1e-12)


@pytest.mark.parametrize("name", oracle.LOSSES)
@given(data=st.data(), graph=graphs())
@settings(max_examples=40)
def test_float32_margins_are_decoded_as_well(name, data, graph):
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges, max_magnitude=80.0, dtype=np.float32))
    losses = oracle.total_losses(oracle.coding_matrix(*graph), f, oracle.LOSSES[name])
    scale = 0 if name == "exponential" else np.abs(f).max()
    assert_least(best_paths(trellis, f, name), losses, scale, rtol=2e-5)


@pytest.mark.parametrize("name", oracle.LOSSES)
@given(data=st.data(), graph=graphs(max_classes=120))
@settings(max_examples=25)
def test_weights_of_the_paper_add_up_to_the_same_totals(name, data, graph):
    """Equations (5) and (6), with the sets S(e), against the coding matrix and against ours."""
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges, n_rows=1, max_magnitude=50.0))
    losses = oracle.total_losses(oracle.coding_matrix(*graph), f, oracle.LOSSES[name])[0]
    weights = oracle.paper_weights(*graph, f[0], oracle.LOSSES[name])
    np.testing.assert_allclose(oracle.path_sums(*graph, weights), losses, rtol=1e-12)
    shared = oracle.LOSSES[name](-f[0]).sum()
    ours = shared + oracle.path_sums(*graph, get_loss(name).edge_costs(trellis, f)[0])
    np.testing.assert_allclose(ours, losses.astype(float), rtol=1e-9, atol=1e-13 * shared)


@given(data=st.data(), graph=graphs())
def test_squared_loss_is_the_heaviest_path(data, graph):
    """Lemma 2: LTLS's decoding, and that of the log loss, which orders paths alike."""
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges))
    weights = np.stack([oracle.path_sums(*graph, row) for row in f])
    for name in ("squared", "log"):
        chosen = weights[np.arange(len(f)), best_paths(trellis, f, name)]
        tolerance = 1e-12 * np.abs(f).max()
        np.testing.assert_allclose(chosen, weights.max(axis=1), atol=tolerance, rtol=1e-12)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", LOSSES)
@given(data=st.data(), graph=graphs(max_classes=200))
@settings(max_examples=30)
def test_k_best_paths_are_sorted_and_complete(name, code, data, graph):
    trellis = Trellis(*graph)
    k = data.draw(st.integers(1, trellis.n_classes))
    f = data.draw(margins(trellis.n_edges, max_magnitude=200.0))
    losses = oracle.total_losses(oracle.coding_matrix(*graph, code), f, LOSSES[name])
    paths, found = k_best_paths(trellis, f, k, decoding_loss(name, code))
    expected = np.sort(losses, axis=1)[:, :k].astype(float)
    own = np.take_along_axis(losses, paths, axis=1).astype(float)
    tolerance = 1e-12 * trellis.n_edges * (0 if name == "exponential" else max(1, np.abs(f).max()))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=tolerance)
    np.testing.assert_allclose(found, own, rtol=1e-9, atol=tolerance)
    assert (np.diff(found, axis=1) >= 0).all()
    assert all(len(set(row)) == k for row in paths.tolist())


@pytest.mark.parametrize("loss", [PathHinge(3), VertexSoftmax(0.3)], ids=["hinge", "softmax"])
@given(data=st.data(), graph=graphs(max_classes=200))
def test_paths_own_losses(loss, data, graph):
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges, max_magnitude=50.0))
    totals = np.stack(
        [oracle.path_sums(*graph, row) for row in loss.edge_costs(trellis, f)],
    )
    k = min(5, trellis.n_classes)
    paths, found = k_best_paths(trellis, f, k, loss)
    np.testing.assert_allclose(found, np.sort(totals, axis=1)[:, :k], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(best_paths(trellis, f, loss), paths[:, 0])


@pytest.mark.parametrize("name", ["squared", "log", "hinge", "squared_hinge"])
@given(data=st.data(), graph=graphs(max_classes=200))
def test_ties_go_to_the_lowest_number(name, data, graph):
    trellis = Trellis(*graph)
    f = data.draw(tied_margins(trellis.n_edges))
    costs = get_loss(name).edge_costs(trellis, f)
    totals = np.stack([oracle.path_sums(*graph, row) for row in costs])
    order = np.argsort(totals, axis=1, kind="stable")
    np.testing.assert_array_equal(best_paths(trellis, f, name), order[:, 0])
    np.testing.assert_array_equal(best_paths(trellis, f.astype(np.float32), name), order[:, 0])
    k = data.draw(st.integers(1, trellis.n_classes))
    np.testing.assert_array_equal(k_best_paths(trellis, f, k, name)[0], order[:, :k])


@pytest.mark.parametrize("name", ["log", "exponential", "hinge"])
@given(data=st.data(), graph=graphs())
def test_probabilities_sum_to_one_over_all_paths(name, data, graph):
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges, max_magnitude=20.0))
    costs = get_loss(name).edge_costs(trellis, f).astype(np.longdouble)
    expected = -np.stack([oracle.path_sums(*graph, row) for row in costs])
    log_sums = oracle.log_sum_exp(expected)
    scale = np.abs(costs).sum(axis=1).max()
    found = log_partition(trellis, f, name)
    np.testing.assert_allclose(found, log_sums.astype(float), atol=1e-13 * (scale + 1), rtol=1e-12)
    every = np.broadcast_to(np.arange(trellis.n_classes), (len(f), trellis.n_classes))
    log_p = path_log_probabilities(trellis, f, every, name)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=1e-9)
    assert (log_p <= 0).all()
    likely = log_p > -30
    np.testing.assert_allclose(
        log_p[likely], (expected - log_sums[:, np.newaxis])[likely].astype(float), atol=1e-6
    )


def test_probabilities_of_local_softmax_need_no_normalising():
    trellis = Trellis(1597, 10)
    f = np.random.default_rng(0).standard_normal((4, trellis.n_edges))
    np.testing.assert_allclose(log_partition(trellis, f, VertexSoftmax(0.5)), 0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [10**6, 10**9, 10**12])
@pytest.mark.parametrize("width", [2, 10, 50])
def test_huge_graphs(n_classes, width):
    """A path whose edges alone have positive margins is found, and comes first of the k best."""
    rng = np.random.default_rng(0)
    trellis = Trellis(n_classes, width)
    expected = rng.integers(0, n_classes, 5)
    f = -1 - rng.random((5, trellis.n_edges))
    for row, edges in zip(f, trellis.path_edges(expected), strict=True):
        row[edges[edges >= 0]] = 1
    np.testing.assert_array_equal(best_paths(trellis, f), expected)
    paths, losses = k_best_paths(trellis, f, 50)
    np.testing.assert_array_equal(paths[:, 0], expected)
    assert (np.diff(losses, axis=1) >= 0).all()
    totals = get_loss("exponential").total_loss(trellis, f, paths[:, -1])
    np.testing.assert_allclose(losses[:, -1], totals)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("size", [1e3, 5e12, 1e30, 3e38])
def test_probabilities_of_huge_margins_are_numbers(size, code):
    """Of the exponential loss, whose costs are far larger than the margins."""
    trellis = Trellis(7, 3)
    signs = np.random.default_rng(0).choice([-1, 1], (20, trellis.n_edges))
    f = (size * signs).astype(np.float32)
    every = np.arange(7)[np.newaxis]
    found = path_log_probabilities(trellis, f, every, decoding_loss("exponential", code))
    assert not np.isnan(found).any()
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1)


def test_huge_margins_decode_to_finite_losses():
    trellis = Trellis(100, 5)
    f = np.full((1, trellis.n_edges), -1e4, dtype=np.float32)
    edges = trellis.path_edges(42)
    f[0, edges[edges >= 0]] = 1e4
    for name in oracle.LOSSES:
        paths, losses = k_best_paths(trellis, f, 100, name)
        assert paths[0, 0] == 42
        assert best_paths(trellis, f, name) == 42
        assert np.isfinite(losses).all()


def test_costs_that_every_path_pays_hide_nothing():
    """All source edges at -40 cost 1e17 each: the other edges must still decide."""
    trellis = Trellis(10**6, 10)
    f = np.random.default_rng(0).standard_normal((200, trellis.n_edges))
    expected = best_paths(trellis, np.where(np.arange(trellis.n_edges) < 10, 0, f))
    f[:, :10] = -40
    np.testing.assert_array_equal(best_paths(trellis, f), expected)


@pytest.mark.parametrize("margin", [-1e4, -40.0, -30.0, 30.0, 1e4])
def test_probabilities_of_equal_paths_whatever_they_cost(margin):
    for graph in ((1000, 10), (105, 5)):
        trellis = Trellis(*graph)
        every = np.arange(trellis.n_classes)[np.newaxis]
        f = np.full((1, trellis.n_edges), margin)
        log_p = path_log_probabilities(trellis, f, every, "exponential")
        np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-9)
        if graph == (1000, 10):  # all paths equally long
            np.testing.assert_allclose(log_p, -np.log(1000), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_best_is_first_of_the_k_best(dtype):
    trellis = Trellis(10**6, 10)
    f = 8 * np.random.default_rng(0).standard_normal((2000, trellis.n_edges)).astype(dtype)
    np.testing.assert_array_equal(best_paths(trellis, f), k_best_paths(trellis, f, 2)[0][:, 0])


def test_an_empty_batch():
    margins = np.empty((0, Trellis(9, 2).n_edges))
    assert best_paths(Trellis(9, 2), margins).shape == (0,)
    assert k_best_paths(Trellis(9, 2), margins, 3)[0].shape == (0, 3)
    assert log_partition(Trellis(9, 2), margins).shape == (0,)
    for shape in ((0,), (0, 3)):
        paths = np.empty(shape, int)
        assert path_log_probabilities(Trellis(9, 2), margins, paths).shape == shape


def test_any_memory_layout():
    trellis = Trellis(50, 4)
    f = np.random.default_rng(0).standard_normal((6, trellis.n_edges))
    expected = best_paths(trellis, f)
    np.testing.assert_array_equal(best_paths(trellis, np.asfortranarray(f)), expected)
    np.testing.assert_array_equal(best_paths(trellis, f.tolist()), expected)
    f.flags.writeable = False
    np.testing.assert_array_equal(best_paths(trellis, f), expected)


def nan_margins(value):
    f = np.zeros((3, 14))
    f[1, 5] = value
    return f


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: best_paths(t, np.zeros((2, 13))), r"shape \(n, 14\).* got shape \(2, 13\)"),
        (lambda t: best_paths(t, np.zeros(14)), r"margins must have shape .* got shape \(14,\)"),
        (lambda t: best_paths(t, nan_margins(np.nan)), r"finite, got margins\[1, 5\] = nan"),
        (lambda t: log_partition(t, nan_margins(np.inf)), r"finite, got margins\[1, 5\] = inf"),
        (lambda t: best_paths(t, np.zeros((1, 14)), "cosine"), "got 'cosine'"),
        (lambda t: best_paths(t, [["a"] * 14]), "margins must be an array of real numbers, got"),
        (lambda t: k_best_paths(t, np.zeros((1, 14)), 0), r"k must be from 1 to .*\(9\), got 0"),
        (lambda t: k_best_paths(t, np.zeros((1, 14)), 10), r"k must be .* got 10"),
        (lambda t: path_log_probabilities(t, np.zeros((2, 14)), [1]), r"paths must have shape"),
        (lambda t: path_log_probabilities(t, np.zeros((1, 14)), [9]), "paths must be .* got 9"),
        (
            lambda t: best_paths(t, np.zeros((1, 14)), lambda z: z / 0.0 * np.inf),
            "gave an edge cost of nan for the margin",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(Trellis(9, 2))


def test_hamming_decoding_is_the_loss_of_signs():
    """Section 3: the codeword that differs in the fewest signs, by L(z) = (1 - sign z) / 2."""
    trellis = Trellis(29, 3)
    margins = np.random.default_rng(0).standard_normal((40, trellis.n_edges))
    words = codewords(trellis, np.arange(29))
    distances = (np.sign(margins)[:, np.newaxis] != words).sum(axis=2)
    found = best_paths(trellis, margins, lambda z: (1 - np.sign(z)) / 2)
    np.testing.assert_array_equal(distances[np.arange(40), found], distances.min(axis=1))


class CountedLoss:
    """The log loss, counting how often costs are asked for."""

    calls = 0

    def edge_costs(self, trellis, margins):
        self.calls += 1
        return get_loss("log").edge_costs(trellis, margins)

    def total_loss(self, trellis, margins, paths):
        return get_loss("log").total_loss(trellis, margins, paths)


@pytest.mark.parametrize("k", [1, 4])
def test_likely_paths_compute_costs_once(k):
    trellis = Trellis(105, 5)
    margins = np.random.default_rng(0).standard_normal((6, trellis.n_edges))
    loss = CountedLoss()
    for probability_loss in (loss, Tempered(loss, 0.5)):
        loss.calls = 0
        paths, log_p = likely_paths(trellis, margins, k, loss, probability_loss)
        assert loss.calls == 1
        np.testing.assert_array_equal(paths, k_best_paths(trellis, margins, k, loss)[0])
        expected = path_log_probabilities(trellis, margins, paths, probability_loss)
        np.testing.assert_array_equal(log_p, expected)
    other = get_loss("exponential")
    paths, log_p = likely_paths(trellis, margins, k, loss, other)
    np.testing.assert_array_equal(log_p, path_log_probabilities(trellis, margins, paths, other))
