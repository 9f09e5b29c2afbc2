"""Calibration: the right temperature is found, and probabilities mean what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from samples import shared_set, topics
from strategies import graphs
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.decoding import (
    VertexSoftmax,
    best_paths,
    calibration,
    get_loss,
    path_log_probabilities,
)
from xtrellis.decoding.calibration import (
    Evidence,
    Tempered,
    _choices,
    fit_softmax,
    fit_temperature,
)
from xtrellis.decoding.paths import shortest_paths
from xtrellis.graph import Trellis
from xtrellis.kernels import calibrate
from xtrellis.learning.blocks import all_edge_groups
from xtrellis.model.finished_block import finish_block
from xtrellis.model.weights import gather_blocks


def drawn_paths(trellis, margins, loss, rng):
    """Paths drawn from the distribution that a loss gives."""
    every = np.arange(trellis.n_classes)[np.newaxis]
    p = np.exp(path_log_probabilities(trellis, margins, every, loss))
    return np.array([rng.choice(trellis.n_classes, p=row / row.sum()) for row in p])


def rows_with(trellis, margins):
    """Weights and rows that have these margins: row i has feature i alone."""
    groups = all_edge_groups(trellis, "local")
    features = np.arange(len(margins))
    blocks = [
        finish_block(edges, features, margins[:, edges], np.zeros(len(edges))) for edges in groups
    ]
    nothing = np.zeros(trellis.n_edges, np.float32)
    weights = gather_blocks(blocks, groups, len(margins), nothing)
    return weights, canonical_csr(sparse.identity(len(margins), np.float32, format="csr"))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0])
def test_path_temperature_is_recovered(temperature):
    trellis, rng = Trellis(40, 4), np.random.default_rng(0)
    margins = rng.standard_normal((3000, trellis.n_edges))
    loss = get_loss("log")
    paths = drawn_paths(trellis, margins, Tempered(loss, temperature), rng)
    found = fit_temperature(trellis, margins, paths, np.ones(3000), loss)
    assert found == pytest.approx(temperature, rel=0.2)


@given(graphs(), st.sampled_from([0.02, 0.3, 1.0, 50.0]), st.sampled_from([0.1, 3.0, 1e30]))
def test_detours_give_the_probability_of_the_best_path(graph, temperature, size):
    trellis = Trellis(*graph)
    costs = size * np.random.default_rng(0).standard_normal((4, trellis.n_edges))
    detours, found = np.empty(costs.shape, np.float32), np.empty(4)
    calibrate.edge_detours(costs, trellis.arrays, detours)
    assert (detours >= 0).all()
    best = shortest_paths(trellis, costs)
    taken = trellis.path_edges(best)
    assert all(
        (row[edges[edges >= 0]] == 0).all() for row, edges in zip(detours, taken, strict=True)
    )
    calibrate.best_path_probabilities(detours, trellis.arrays, np.float32(1 / temperature), found)
    log_p = path_log_probabilities(trellis, -costs / temperature, best, "log")
    np.testing.assert_allclose(found, np.exp(log_p), rtol=1e-3)


@pytest.mark.parametrize("small", [0, 2**18])
def test_softmax_temperatures_and_power_are_recovered(monkeypatch, small):
    """By kernels, and by NumPy where there is little to do."""
    monkeypatch.setattr(calibration, "_SMALL", small)
    trellis, rng = Trellis(30, 6), np.random.default_rng(0)
    margins = rng.uniform(-2, 1.5, (4000, trellis.n_edges))
    truth = VertexSoftmax((0.5, 1.5, 1.0), power=2)
    paths = drawn_paths(trellis, margins, truth, rng)
    evidence = [
        Evidence(*rows_with(trellis, margins[part]), paths[part], np.ones(2000))
        for part in (slice(2000), slice(2000, None))
    ]
    found = fit_softmax(trellis, evidence)
    assert found.power == 2
    np.testing.assert_allclose(found.temperature[:2], (0.5, 1.5), rtol=0.15)


@pytest.mark.parametrize(("n_classes", "width"), [(40, 3), (9, 2), (7, 7), (100, 10)])
def test_choices_are_the_edges_of_the_vertices(n_classes, width):
    trellis = Trellis(n_classes, width)
    margins = np.random.default_rng(0).standard_normal((n_classes, trellis.n_edges))
    margins = margins.astype(np.float32)
    weights, X = rows_with(trellis, margins)
    paths = np.arange(n_classes)
    tails, _ = trellis.endpoints()
    for step in range(trellis.n_slices + 1):
        table, taken, rows = _choices(trellis, weights, X, paths, step)
        single = [np.sum(tails == tails[edge]) == 1 for edge in trellis.path_edges(paths)[:, step]]
        reached = trellis.path_edges(paths)[:, step] >= 0
        np.testing.assert_array_equal(rows, np.flatnonzero(reached & ~np.array(single)))
        for values, column, row in zip(table, taken, rows, strict=True):
            edge = trellis.path_edges(row)[step]
            assert values[column] == margins[row, edge]
            own = margins[row, tails == tails[edge]]
            np.testing.assert_allclose(np.sort(values[np.isfinite(values)]), np.sort(own))


def expected_calibration_error(model, X, y, n_bins=15):
    labels, probabilities = model.predict_top_k(X, 1)
    sure, right = probabilities[:, 0], labels[:, 0] == y
    bins = np.minimum((sure * n_bins).astype(int), n_bins - 1)
    gaps = [abs(np.mean(right[bins == b]) - np.mean(sure[bins == b])) for b in np.unique(bins)]
    return np.average(gaps, weights=[np.mean(bins == b) for b in np.unique(bins)])


def test_probabilities_mean_something_on_made_up_data():
    X, y = topics(n_classes=50, n_rows=4000)
    for training in ("local", "independent"):
        model = TrellisClassifier(7, training=training, random_state=0).fit(X[:3000], y[:3000])
        assert expected_calibration_error(model, X[3000:], y[3000:]) < 0.08


@pytest.mark.parametrize("name", ["icd10cm", "wordnet_hypernym"])
def test_probabilities_mean_something_on_real_data(name):
    X, y, X_test, y_test = shared_set(name)
    model = TrellisClassifier(random_state=0).fit(X, y)
    assert expected_calibration_error(model, X_test, y_test) <= 0.03


def test_a_few_rows_do_not_mislead():
    trellis = Trellis(4, 2)
    margins = np.random.default_rng(0).standard_normal((2, trellis.n_edges))
    weights, X = rows_with(trellis, margins)
    found = fit_softmax(trellis, [Evidence(weights, X, np.array([0, 3]), np.ones(2))])
    assert all(0.05 < t < 10 for t in found.temperature)


def test_rows_in_order_of_their_class_calibrate_alike():
    """Half of the classes are noise: the temperature must come from rows of all classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(16), 400)
    X = np.eye(16)[np.where(y < 8, y, rng.integers(8, 16, len(y)))]
    model = TrellisClassifier.paper(4, calibration=0.3, early_stopping=True, random_state=0)
    model.set_params(epochs=2, validation_fraction=0.3).fit(X, y)
    _, shares = model.predict_top_k(X, 1)
    assert abs(shares.mean() - model.score(X, y)) < 0.06


@pytest.mark.parametrize("small", [0, 2**18])
def test_ties_are_not_all_right(monkeypatch, small):
    """Rows without known features: of K paths that cost the same, one is right."""
    monkeypatch.setattr(calibration, "_SMALL", small)
    trellis = Trellis(40, 4)
    margins = np.zeros((3000, trellis.n_edges), np.float32)
    paths = np.random.default_rng(0).integers(0, 40, 3000)
    margins[:1000, :] = np.random.default_rng(1).standard_normal((1000, trellis.n_edges))
    paths[:1000] = shortest_paths(trellis, -margins[:1000])
    found = fit_temperature(trellis, margins, paths, np.ones(3000), get_loss("log"))
    loss = Tempered(get_loss("log"), found)
    best = best_paths(trellis, margins, get_loss("log"))
    claimed = np.exp(path_log_probabilities(trellis, margins, best[:, np.newaxis], loss)).mean()
    assert claimed == pytest.approx(1 / 3, abs=0.05)
