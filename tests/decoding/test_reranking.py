"""Re-ranking: cosines by their definition, and used only where held-out rows gain."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from xtrellis import TrellisClassifier, load_model
from xtrellis._arrays import canonical_csr
from xtrellis.decoding.reranking import N_TERMS, Centroids, ClassSums, choose_reranking
from xtrellis.decoding.rivals import Rivals
from xtrellis.kernels import rerank


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
    centroids = ClassSums.of(X, y, 40).centroids(N_TERMS[0])
    classes = np.random.default_rng(0).integers(0, 40, (len(y), 3))
    found = centroids.cosines(canonical_csr(X), classes)
    assert centroids.n_terms == N_TERMS[0]
    dense = np.zeros((40, 3000))
    for k in range(40):
        own = slice(*centroids.starts[k : k + 2])
        dense[k, centroids.features[own]] = centroids.codes[own]
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    rows = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    expected = np.einsum("nd,nmd->nm", rows, dense[classes])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_rows_and_classes_without_features():
    none = sparse.csr_matrix((2, 5), dtype=np.float32)
    centroids = ClassSums.of(none, np.array([0, 1]), 3).centroids(N_TERMS[0])
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
        centroids = replace(ClassSums.of(X, y, 40).centroids(N_TERMS[0]), strength=strength)
        new = costs - strength * centroids.cosines(rows, class_of_path[paths])
        new[:, n:] = costs[:, n:]
        order = np.argsort(new[:, :n], axis=1, kind="stable")  # equal ones as before
        order = np.concatenate([order, np.tile([6, 7], (len(y), 1))], axis=1)
        found = paths.copy(), costs.copy(), -costs
        by = centroids.arrays, strength, Rivals.none(40).arrays, 0.0
        rerank.rerank(rows.indptr, rows.indices, rows.data, *by, class_of_path, *found, n)
        for ours, expected in zip(found, (paths, new, -costs), strict=True):
            wanted = np.take_along_axis(expected, order, axis=1)
            np.testing.assert_allclose(ours, wanted, atol=1e-12)


def test_centroids_keep_the_largest_entries_the_first_of_equal_ones():
    X = sparse.csr_matrix(np.array([[3, 1, 2, 2, 0], [0, 1, 0, 0, -1]], np.float32))
    sums = ClassSums.of(X, np.array([0, 1]), 3)
    found = {n_terms: sums.centroids(n_terms) for n_terms in (1, 2, 9)}
    assert found[1].features.tolist() == [0, 1]
    assert found[2].features.tolist() == [0, 2, 1]
    assert found[9].features.tolist() == [0, 1, 2, 3, 1]
    assert found[9].codes.tolist() == [255, 85, 170, 170, 255]
    assert [each.n_terms for each in found.values()] == [1, 2, 4]


def test_a_gain_that_may_be_chance_is_not_taken():
    rng = np.random.default_rng(0)
    costs = np.tile([0.0, 0.1], (400, 1))
    hits = np.zeros((400, 2), bool)
    hits[np.arange(400), rng.integers(0, 2, 400)] = True
    ones = np.ones(400, np.float32)
    assert choose_reranking(costs, [hits.astype(float)], hits, ones)[1] > 0
    assert choose_reranking(costs, [rng.random((400, 2))], hits, ones)[1] == 0
    assert choose_reranking(costs[:50], [hits[:50].astype(float)], hits[:50], ones[:50])[1] == 0


def test_more_entries_are_kept_only_where_they_gain():
    rng = np.random.default_rng(0)
    costs = np.tile([0.0, 0.1], (4000, 1))
    hits = np.zeros((4000, 2), bool)
    hits[np.arange(4000), rng.integers(0, 2, 4000)] = True
    ones = np.ones(4000, np.float32)
    sure = hits.astype(float)
    nearly, roughly = sure.copy(), sure.copy()
    nearly[:4], roughly[:400] = 0, 0  # wrong for every second of a thousandth, or of a tenth
    assert choose_reranking(costs, [nearly, sure], hits, ones)[0] == 0
    assert choose_reranking(costs, [roughly, nearly, sure], hits, ones)[0] == 1


def test_what_is_not_worth_it_is_not_taken_for_being_nearly_the_best():
    rng = np.random.default_rng(0)
    n_rows = 10_000
    costs = np.tile([0.0, 0.5], (n_rows, 1))  # the true class is behind in 90 rows
    hits = np.tile([True, False], (n_rows, 1))
    behind = rng.permutation(n_rows)[:90]
    hits[behind] = [False, True]
    cosines = np.zeros((n_rows, 2))
    cosines[behind, 1] = 0.3  # at a strength of 2 they win
    cosines[behind[:45], 1] = 0.6  # half of them already at 1
    found = choose_reranking(costs, [cosines], hits, np.ones(n_rows, np.float32))
    assert found == (0, 2.0)  # the gain at 1 is 0.45 points, at 2 it is 0.9


def test_pictures_get_larger_centroids_than_short_texts():
    rng = np.random.default_rng(0)
    n_classes, n_rows = 400, 6
    y = np.repeat(np.arange(n_classes), n_rows)
    strokes = rng.random((n_classes, 200)) < 0.4
    noise = rng.random((len(y), 200)) < 0.25
    clf = TrellisClassifier(random_state=0, C=1.0, slice_width=3)
    clf.fit(sparse.csr_matrix((strokes[y] ^ noise).astype(np.float32)), y)
    assert clf.model_.centroids.n_terms > N_TERMS[0]


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
