"""Losses and edge costs: their definitions, and their safety at extreme margins."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import oracle
from strategies import graphs, margins
from xtrellis.decoding import PathHinge, VertexSoftmax, get_loss
from xtrellis.graph import Trellis
from xtrellis.kernels.costs import _log

NAMES = list(oracle.LOSSES)
TERNARY = [*NAMES, "cubed_hinge", "softmax"]


@pytest.mark.parametrize("name", NAMES)
def test_values_and_differences_are_the_definitions(name):
    z = np.linspace(-40, 40, 1001)
    loss, expected = get_loss(name), oracle.LOSSES[name]
    np.testing.assert_allclose(loss(z), expected(z.astype(np.longdouble)).astype(float), rtol=1e-14)
    exact = z.astype(np.longdouble)
    difference = (expected(exact) - expected(-exact)).astype(float)
    costs = loss.edge_costs(Trellis(2, 2), z)
    np.testing.assert_allclose(costs, difference, rtol=1e-13, atol=1e-14)


def test_differences_the_design_names():
    f = np.random.default_rng(0).standard_normal((2, 5))
    trellis = Trellis(2, 2)
    np.testing.assert_array_equal(get_loss("squared").edge_costs(trellis, f), -4 * f)
    np.testing.assert_array_equal(get_loss("log").edge_costs(trellis, f), -f)
    exponential = get_loss("exponential").edge_costs(trellis, f)
    np.testing.assert_allclose(exponential, -2 * np.sinh(f), rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_costs_are_finite_and_keep_the_order_of_margins(name, dtype):
    """From 1e-30 to 1e4, both signs: never inf or NaN, and strictly falling with the margin."""
    magnitudes = np.logspace(-30, 4, 2000)
    f = np.concatenate([-magnitudes[::-1], [0.0], magnitudes]).astype(dtype)
    loss = get_loss(name)
    costs = loss.edge_costs(Trellis(2, 2), f[:, np.newaxis])[:, 0]
    for array in (loss(f), costs):
        assert np.isfinite(1000 * array).all()  # with room to add up a path
    assert (np.diff(costs) < 0).all()
    assert (np.diff(loss(f[f <= 1])) <= 0).all()


@pytest.mark.parametrize("name", TERNARY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_local_costs_are_finite(name, dtype):
    trellis = Trellis(400, 20)
    f = np.random.default_rng(0).uniform(-1e4, 1e4, (20, trellis.n_edges)).astype(dtype)
    costs = get_loss(name, code="local").edge_costs(trellis, f)
    assert np.isfinite(costs).all()
    assert np.isfinite(costs.sum(axis=1)).all()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), graph=graphs(max_classes=60))
def test_local_costs_add_up_to_the_total_loss(name, data, graph):
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges, n_rows=2, max_magnitude=50.0))
    expected = oracle.total_losses(oracle.coding_matrix(*graph, "local"), f, oracle.LOSSES[name])
    loss = get_loss(name, code="local")
    costs = loss.edge_costs(trellis, f)
    at_zero = float(oracle.LOSSES[name](np.zeros(1))[0])
    for row in range(2):
        sums = oracle.path_sums(*graph, costs[row]) + trellis.n_edges * at_zero
        tolerance = 1e-12 * trellis.n_edges * max(1, np.abs(f).max())
        np.testing.assert_allclose(sums, expected[row].astype(float), rtol=1e-9, atol=tolerance)
    paths = [0, trellis.n_classes - 1]
    totals = loss.total_loss(trellis, f, paths)
    np.testing.assert_allclose(totals, expected[[0, 1], paths].astype(float), rtol=1e-9)


@given(data=st.data(), graph=graphs(max_classes=60))
def test_paths_own_costs(data, graph):
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges, n_rows=1, max_magnitude=50.0))
    hinges = PathHinge(3).edge_costs(trellis, f)
    np.testing.assert_allclose(hinges, np.maximum(0, 1 - f) ** 3)
    total = PathHinge(3).total_loss(trellis, f, [1])
    np.testing.assert_allclose(total, oracle.path_sums(*graph, hinges[0])[1])


@given(data=st.data(), graph=graphs(max_classes=60), temperature=st.floats(0.05, 20))
def test_softmax_is_a_distribution_at_every_vertex(data, graph, temperature):
    trellis = Trellis(*graph)
    f = data.draw(margins(trellis.n_edges, n_rows=1, max_magnitude=50.0))
    costs = VertexSoftmax(temperature).edge_costs(trellis, f)[0]
    tails, _ = trellis.endpoints()
    for tail in np.unique(tails):
        leaving = tails == tail
        scores = f[0, leaving] / temperature
        np.testing.assert_allclose(
            -costs[leaving], scores - oracle.log_sum_exp(scores), rtol=1e-9, atol=1e-9
        )
    probabilities = np.exp(-oracle.path_sums(*graph, costs))
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-9)


def test_float32_margins_give_float32_costs():
    trellis = Trellis(100, 10)
    f = np.random.default_rng(0).standard_normal((3, trellis.n_edges)).astype(np.float32)
    for name in NAMES:
        assert get_loss(name).edge_costs(trellis, f).dtype == np.float32
    assert VertexSoftmax().edge_costs(trellis, f).dtype == np.float32
    assert PathHinge().edge_costs(trellis, f).dtype == np.float32


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", ["independent", "local"])
def test_one_huge_margin_in_float32(name, code):
    """A single large margin of either sign: costs stay finite and follow the definition."""
    trellis = Trellis(100, 5)
    f = np.random.default_rng(0).standard_normal((2, trellis.n_edges)).astype(np.float32)
    f[0, 3], f[1, 7] = 100, -100
    costs = get_loss(name, code=code).edge_costs(trellis, f)
    assert np.isfinite(costs).all()
    expected = get_loss(name, code=code).edge_costs(trellis, f.astype(np.float64))
    np.testing.assert_allclose(costs, expected, rtol=2e-6, atol=1e-4)


def test_a_rows_costs_do_not_depend_on_the_batch():
    trellis = Trellis(100, 5)
    f = np.random.default_rng(0).standard_normal((2, trellis.n_edges)).astype(np.float32)
    f[0, 3] = 1000
    together = get_loss("exponential").edge_costs(trellis, f)
    alone = get_loss("exponential").edge_costs(trellis, f[1:])
    np.testing.assert_array_equal(together[1:], alone)


def test_softmax_kernel_is_the_definition_whatever_the_margins():
    trellis = Trellis(1597, 10)
    for scale in (0.01, 1.0, 30.0, 1000.0):
        f = scale * np.random.default_rng(0).standard_normal((3, trellis.n_edges))
        f = f.astype(np.float32)
        fast = VertexSoftmax(0.25).edge_costs(trellis, f)
        slow = VertexSoftmax(0.25).edge_costs(trellis, f.astype(np.float64))
        np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-5)


def test_any_function_is_a_loss():
    def quartic(z):
        return np.maximum(0, 1 - z) ** 4

    loss = get_loss(quartic)
    f = np.array([[0.5, -2.0, 0.0, 1.0, 3.0]])
    assert loss.name == "quartic"
    np.testing.assert_allclose(loss.edge_costs(Trellis(2, 2), f), quartic(f) - quartic(-f))
    assert get_loss(loss) is loss
    assert get_loss(loss, code="local").loss is loss


def test_a_loss_may_return_booleans():
    zero_one = get_loss(lambda z: z <= 0)
    costs = zero_one.edge_costs(Trellis(2, 2), np.array([[0.5, -2.0, 0.0, 1.0, 3.0]]))
    np.testing.assert_array_equal(costs, [[-1, 1, 0, -1, -1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get_loss("cosine"), "loss must be one of exponential, .* got 'cosine'"),
        (lambda: get_loss("softmax"), "loss must be one of .* got 'softmax'"),
        (lambda: get_loss(3), "loss must be a name or a function of the margin, got 3"),
        (lambda: get_loss("log", code="gray"), "code must be 'independent' or 'local', got 'gray'"),
        (lambda: VertexSoftmax(0.0), "temperature must be positive and finite, got 0.0"),
        (lambda: VertexSoftmax("1"), "temperature must be positive and finite, got '1'"),
        (lambda: PathHinge("a"), "power must be positive and finite, got 'a'"),
        (lambda: get_loss(PathHinge), r"not a class: try PathHinge\(\)"),
        (lambda: get_loss("log")(["a"]), "margins must be real numbers, got"),
        (lambda: get_loss(lambda z: z * 1j)(np.ones(3)), "values of loss .* got complex128"),
        (lambda: get_loss(np.sum)(np.ones(3)), "loss 'sum' must return one value per element"),
    ],
)
def test_bad_losses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_logarithm_for_simd():
    """Over all powers that a softmax in float32 adds up."""
    x = np.exp(np.linspace(-80, 88, 20_001)).astype(np.float32)
    x = np.append(x, np.float32([1, 0.5, np.sqrt(0.5), np.sqrt(2)]))
    found = np.array([_log_of(value) for value in x])
    np.testing.assert_allclose(found, np.log(x.astype(np.float64)), rtol=3e-7, atol=1e-7)


@njit
def _log_of(x):
    return _log(x)


def quartic(z):
    return (1 - z) ** 4


@pytest.mark.parametrize("loss", [*NAMES, quartic])
@pytest.mark.parametrize("code", ["independent", "local"])
def test_copies_are_equal(loss, code):
    loss = get_loss(loss, code=code)
    assert copy.deepcopy(loss) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert loss != get_loss(lambda z: (1 - z) ** 4, code=code)


def test_a_loss_is_more_than_its_name():
    """A function called as a loss of the library's is not that loss."""

    def exponential(z):
        return z**2

    assert get_loss(exponential) != get_loss("exponential")
    with pytest.raises(ValueError, match="cannot be saved, as it is code"):
        get_loss(exponential).to_parts()


@pytest.mark.parametrize("temperature", [0, -1, np.inf, np.nan, 1e-40, 1e40, (1.0, 1e-40), "1"])
def test_temperatures_out_of_range_are_refused(temperature):
    with pytest.raises(ValueError, match="temperature must be positive and finite"):
        VertexSoftmax(temperature)
