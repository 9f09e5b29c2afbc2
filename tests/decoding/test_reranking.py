"""Re-ranking: cosines by their definition, and used only where held-out rows gain."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from xtrellis import TrellisClassifier, load_model
from xtrellis._arrays import canonical_csr
from xtrellis.decoding.reranking import N_TERMS, Centroids, centroids_of, choose_strength


def few_rows(n_classes=300, seed=0):
    """Two rows of each of many classes to train on, one to test on: six of its own ten words."""
    rng = np.random.default_rng(seed)
    words = np.array([rng.choice(3000, 10, replace=False) for _ in range(n_classes)])
    y = np.repeat(np.arange(n_classes), 9)
    columns = np.array([rng.choice(words[k], 4, replace=False) for k in y])
    noise = rng.integers(0, 3000, (len(y), 4))
    columns = np.concatenate([columns, noise], axis=1)
    rows = np.repeat(np.arange(len(y)), 8)
    X = sparse.csr_matrix(
        (np.ones(columns.size, np.float32), (rows, columns.ravel())), (len(y), 3000)
    )
    return X, y


def test_cosines_are_cosines():
    X, y = few_rows(40)
    centroids = centroids_of(X, y, 40)
    classes = np.random.default_rng(0).integers(0, 40, (len(y), 3))
    found = centroids.cosines(canonical_csr(X), classes)
    assert np.diff(centroids.starts).max() == N_TERMS
    dense = np.zeros((40, 3000))
    for k in range(40):
        own = slice(*centroids.starts[k : k + 2])
        dense[k, centroids.features[own]] = centroids.codes[own]
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    rows = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    expected = np.einsum("nd,nmd->nm", rows, dense[classes])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_rows_and_classes_without_features():
    centroids = centroids_of(sparse.csr_matrix((2, 5), dtype=np.float32), np.array([0, 1]), 3)
    empty = canonical_csr(sparse.csr_matrix((1, 5), dtype=np.float32))
    assert centroids.cosines(empty, np.array([[0, 2]])).tolist() == [[0, 0]]


def test_order_follows_costs_less_cosines():
    X, y = few_rows(40)
    rng, n = np.random.default_rng(0), 6
    class_of_path = rng.permutation(40)
    paths = np.array([rng.choice(40, 8, replace=False) for _ in y])
    costs = np.sort(rng.integers(0, 4, paths.shape), axis=1) / 2
    rows = canonical_csr(X)
    for strength in (0.0, 1.0, 4.0):
        centroids = replace(centroids_of(X, y, 40), strength=strength)
        new = costs - strength * centroids.cosines(rows, class_of_path[paths])
        new[:, n:] = costs[:, n:]
        order = np.argsort(new[:, :n], axis=1, kind="stable")  # equal ones as before
        order = np.concatenate([order, np.tile([6, 7], (len(y), 1))], axis=1)
        found = paths.copy(), costs.copy(), -costs
        centroids.rerank(rows, class_of_path, n, *found)
        for ours, expected in zip(found, (paths, new, -costs), strict=True):
            wanted = np.take_along_axis(expected, order, axis=1)
            np.testing.assert_allclose(ours, wanted, atol=1e-12)


def test_a_gain_that_may_be_chance_is_not_taken():
    rng = np.random.default_rng(0)
    costs = np.tile([0.0, 0.1], (400, 1))
    hits = np.zeros((400, 2), bool)
    hits[np.arange(400), rng.integers(0, 2, 400)] = True
    ones = np.ones(400, np.float32)
    assert choose_strength(costs, hits.astype(float), hits, ones) > 0
    assert choose_strength(costs, rng.random((400, 2)), hits, ones) == 0
    assert choose_strength(costs[:50], hits[:50].astype(float), hits[:50], ones[:50]) == 0


def test_it_is_chosen_saved_and_switched_off(tmp_path):
    X, y = few_rows()
    plain = TrellisClassifier(random_state=0, rerank=0, C=1.0).fit(X, y)
    assert plain.model_.centroids is None
    forced = TrellisClassifier(random_state=0, rerank=8.0, C=1.0).fit(X, y)
    assert forced.model_.centroids.strength == 8
    assert (forced.predict_top_k(X, 5)[0] != plain.predict_top_k(X, 5)[0]).any()
    forced.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X[:50]), forced.predict_proba(X[:50]))
    one = forced.row_predictor()
    np.testing.assert_array_equal(
        [one(X[i].indices, X[i].data) for i in range(20)], forced.predict(X[:20])
    )


@pytest.mark.parametrize("wrong", [-1, np.nan, "yes"])
def test_bad_strengths(wrong):
    X, y = few_rows(10)
    with pytest.raises(ValueError, match="rerank must be at least 0"):
        TrellisClassifier(rerank=wrong).fit(X, y)


def test_unsound_centroids_are_refused():
    with pytest.raises(ValueError, match="centroids"):
        Centroids(1.0, np.array([0, 2]), np.array([1]), np.array([1], np.uint8))
