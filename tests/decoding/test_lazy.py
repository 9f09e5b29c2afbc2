"""The lazy search against the full computation and against all paths, on graphs of any shape."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from strategies import graphs
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.decoding import PathHinge, VertexSoftmax, get_loss
from xtrellis.decoding.confidence import BestPaths
from xtrellis.decoding.lazy import is_bounded, normalised
from xtrellis.decoding.reranking import N_RERANKED, N_TERMS, STRENGTHS, ClassSums
from xtrellis.decoding.rivals import Rivals
from xtrellis.graph import Trellis, random_assignment
from xtrellis.kernels.lazy import RESOLUTION
from xtrellis.learning.blocks import all_edge_groups
from xtrellis.model.finished_block import finish_block
from xtrellis.model.weights import gather_blocks
from xtrellis.prediction import TrellisModel


def model_with(trellis, loss, seed, tied=False, parts=1):
    """A model with random weights of 12 features; each vertex has one block, or several."""
    rng = np.random.default_rng(seed)
    blocks = []
    groups = all_edge_groups(trellis, "local")
    for edges in groups:
        if len(edges) == 1:
            continue
        for part in np.array_split(edges, min(parts, len(edges))):
            weights = rng.standard_normal((12, len(part))) * (rng.random((12, len(part))) < 0.5)
            if tied:
                weights = np.round(weights)
            bias = rng.standard_normal(len(part)) - 1
            bias = np.round(bias) if tied else bias
            blocks.append(finish_block(part, np.arange(12), weights, bias))
    weights = gather_blocks(blocks, groups, 12, np.ones(trellis.n_edges, np.float32))
    assignment = random_assignment(trellis, np.random.RandomState(seed))
    classes = np.arange(trellis.n_classes)
    return TrellisModel(classes, trellis, assignment, weights, loss, BestPaths(), "local")


def rows(seed, tied=False, n=6):
    """Half of the rows have no negative value: their search uses bounds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12)) * (rng.random((n, 12)) < 0.6)
    X[::2] = abs(X[::2])
    return canonical_csr(np.round(X) if tied else X)


def all_costs(model, X):
    """Cost of every path, by its definition, rounded edge by edge as the search rounds them."""
    edge_costs = model.loss.edge_costs(model.trellis, model.margins(X).astype(np.float64))
    edge_costs = np.floor(edge_costs * RESOLUTION + 0.5)
    edges = model.trellis.path_edges(np.arange(model.n_classes))
    taken = np.where(edges >= 0, edge_costs[:, np.maximum(edges, 0)], 0)
    return taken.sum(axis=2) / RESOLUTION


LOSSES = [
    VertexSoftmax(0.6, power=2, normalisation=0.75),
    VertexSoftmax(1.4, power=3, normalisation=0.75),
    VertexSoftmax(0.5, power=0),
    PathHinge(2),
    PathHinge(3),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@given(graphs(max_classes=80), st.integers(0, 10**6), st.booleans(), st.integers(1, 3))
def test_k_best_are_the_cheapest_of_all(loss, graph, seed, tied, parts):
    """In the order of their costs; equal ones in the order of their numbers."""
    trellis = Trellis(*graph)
    model, X = model_with(trellis, loss, seed, tied, parts), rows(seed + 1, tied)
    every = all_costs(model, X)
    for k in {1, min(3, trellis.n_classes), trellis.n_classes}:
        paths, costs, _ = model.k_best(X, k)
        expected = np.sort(every, axis=1)[:, :k]
        np.testing.assert_allclose(costs, expected, atol=1e-3, rtol=1e-5)
        own = np.take_along_axis(every, paths, axis=1)
        np.testing.assert_allclose(own, costs, atol=1e-3, rtol=1e-5)
        assert all(len(set(found)) == k for found in paths.tolist())
        for found, cost in zip(paths, costs, strict=True):
            same = np.diff(cost) == 0
            assert (np.diff(found)[same] > 0).all()
            assert (np.diff(cost) >= 0).all()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@given(graphs(max_classes=60), st.integers(0, 10**6))
def test_logs_are_products_of_softmaxes(loss, graph, seed):
    trellis = Trellis(*graph)
    model, X = model_with(trellis, loss, seed), rows(seed + 1)
    paths, _, logs = model.k_best(X, trellis.n_classes)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, atol=1e-3)
    costs = normalised(loss).edge_costs(trellis, model.margins(X).astype(np.float64))
    edges = trellis.path_edges(paths)
    rows_ = np.arange(len(paths))[:, np.newaxis, np.newaxis]
    expected = -np.where(edges >= 0, costs[rows_, np.maximum(edges, 0)], 0).sum(axis=2)
    np.testing.assert_allclose(logs, expected, atol=1e-3, rtol=1e-4)


@given(graphs(max_classes=60), st.integers(0, 10**6), st.booleans())
def test_one_at_a_time_is_the_same_as_many(graph, seed, tied):
    model, X = model_with(Trellis(*graph), LOSSES[0], seed, tied), rows(seed + 1, tied)
    best = model.k_best(X, min(4, graph[0]))[0]
    np.testing.assert_array_equal(model.paths(X), best[:, 0])
    for i in range(X.shape[0]):
        one = canonical_csr(X[i])
        np.testing.assert_array_equal(model.k_best(one, min(4, graph[0]))[0][0], best[i])


def reranking(model, seed, strength, rival_strength, tied):
    """The model with random centroids and rivals, of which many are alike if they are tied."""
    rng, shape = np.random.default_rng(seed), (model.n_classes, 12)
    near = rng.random(shape) * (rng.random(shape) < 0.4)
    near = sparse.csr_matrix(np.ceil(2 * near) if tied else near)
    sums = ClassSums.of(near, np.arange(model.n_classes), model.n_classes)
    centroids = replace(sums.centroids(N_TERMS[0]), strength=strength)
    if rival_strength is None:
        return replace(model, centroids=centroids)
    features = [np.flatnonzero(rng.random(12) < 0.5) for _ in range(model.n_classes)]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in features])])
    codes = rng.integers(-3, 4, starts[-1]).astype(np.int8)
    units = np.full(model.n_classes, 0.5 if tied else 0.3, np.float32)
    biases = np.round(rng.random(model.n_classes)).astype(np.float32)
    own = np.concatenate(features).astype(np.int32), codes, units, biases
    rivals = Rivals(rival_strength, starts, *own)
    return replace(model, centroids=centroids if strength else None, rivals=rivals)


@pytest.mark.parametrize("loss", LOSSES[1:4], ids=str)
@given(
    graphs(max_classes=80),
    st.integers(0, 10**6),
    st.sampled_from([0.0, *STRENGTHS]),
    st.sampled_from([None, 0.0, 0.5, 4.0]),
    st.booleans(),
    st.integers(1, 12),
)
def test_reranking_ends_early_with_the_same_answers(loss, graph, seed, strength, rivals, tied, k):
    """Those of ten paths that are found first and then ordered anew, to the last bit."""
    model, X = model_with(Trellis(*graph), loss, seed, tied), rows(seed + 1, tied)
    model = reranking(model, seed, strength, rivals, tied)
    k, n_reranked = min(k, model.n_classes), min(N_RERANKED, model.n_classes)
    expected = model.k_best(X, max(k, n_reranked))
    model.rerank(X, *expected)
    for found, wanted in zip(model.ranked(X, k), expected, strict=True):
        np.testing.assert_array_equal(found, wanted[:, :k])
    assert (model.opened(X, k) <= model.search(X, max(k, n_reranked))[3]).all()


@given(graphs(max_classes=60), st.integers(0, 10**6), st.integers(1, 6))
def test_a_search_of_few_vertices_finds_the_best_paths_through_them(graph, seed, n_openable):
    """All paths if they are few enough; else some, in the order of their costs, and no others."""
    model, X = model_with(Trellis(*graph), LOSSES[0], seed, False), rows(seed + 1, False)
    k = min(10, graph[0])
    paths, costs, _, opened = model.search(X, k, n_openable=n_openable)
    every, every_cost, *_ = model.search(X, graph[0])
    assert opened.max() <= n_openable
    for i in range(X.shape[0]):
        found = paths[i] >= 0
        own = [every[i].tolist().index(path) for path in paths[i][found]]
        assert own == sorted(set(own))
        np.testing.assert_array_equal(costs[i][found], every_cost[i][own])
        assert found[: len(own)].all()
        if opened[i] < n_openable:
            np.testing.assert_array_equal(paths[i], every[i, :k])


def test_one_reranked_path_needs_few_vertices():
    from samples import topics

    X, y = topics(n_classes=900, n_rows=4000)
    model = TrellisClassifier(random_state=0, C=1.0, rerank=4.0).fit(X, y).model_
    rows = canonical_csr(X)
    assert model.opened(rows).mean() < model.search(rows, N_RERANKED)[3].mean() / 2


def test_few_vertices_are_opened():
    from samples import topics

    X, y = topics(n_classes=900, n_rows=4000)
    model = TrellisClassifier(random_state=0).fit(X, y).model_
    assert model.is_lazy
    assert model.opened(canonical_csr(X)).mean() < 6  # of 61


@pytest.mark.parametrize("loss", [None, LOSSES[2]], ids=["fitted", "plain"])
def test_bounds_keep_vertices_closed_without_changing_an_answer(loss):
    """A feature of value -1e-9 that no vertex knows makes a row one without bounds."""
    from samples import topics

    X, y = topics(n_classes=900, n_rows=4000)
    X = sparse.hstack([X, np.zeros((len(y), 1))], format="csr")
    model = TrellisClassifier(random_state=0, C=1.0, slice_width=30).fit(X, y).model_
    model = model if loss is None else replace(model, loss=loss)
    unbounded = sparse.hstack([X[:, :-1], np.full((len(y), 1), -1e-9)], format="csr")
    with_bounds, without = (model.search(canonical_csr(each), 5) for each in (X, unbounded))
    for found, wanted in zip(with_bounds[:3], without[:3], strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert (with_bounds[3] <= without[3]).all()
    assert with_bounds[3].mean() < 0.9 * without[3].mean()


def test_rows_without_known_features():
    trellis = Trellis(30, 5)
    model = model_with(trellis, LOSSES[0], 0)
    empty = canonical_csr(np.zeros((2, 12)))
    far = canonical_csr(np.zeros((2, 12)))
    assert model.paths(empty).tolist() == model.paths(far).tolist()


def test_which_losses_are_bounded():
    for loss in LOSSES:
        assert is_bounded(loss)
    assert not is_bounded(VertexSoftmax(0.5, power=0, normalisation=0.9))
    for name in ("exponential", "hinge", "squared"):
        assert not is_bounded(get_loss(name))
        assert not is_bounded(get_loss(name, code="local"))
    assert not is_bounded(PathHinge(2.5))
