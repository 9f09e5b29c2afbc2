"""Rivals: SVMs at their optimum on the right rows, cut and stored as they are."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from xtrellis._arrays import canonical_csr
from xtrellis.decoding import rivals
from xtrellis.decoding.rivals import Rivals, train_rivals

K = 6


@pytest.fixture(scope="module")
def rows():
    """Rows, their classes, the classes they list (-1: none), and how much they count."""
    rng = np.random.default_rng(0)
    X = canonical_csr(sparse.random(240, 60, 0.15, random_state=0, format="csr"))
    y = rng.integers(0, K - 1, 240)  # the last class has no row
    listed = np.array([rng.permutation(K - 1)[:3] for _ in y])
    listed[rng.random(listed.shape) < 0.2] = -1
    return X, y, listed, rng.uniform(0.5, 1, 240).astype(np.float32)


@pytest.fixture
def exact(monkeypatch):
    """Descent that goes on until it is done."""
    monkeypatch.setattr(rivals, "_GAP", 1e-3)
    monkeypatch.setattr(rivals, "_PASSES", 3000)


def members(y, listed, number):
    return np.flatnonzero((y == number) | ((listed == number).any(axis=1) & (y >= 0)))


@pytest.mark.parametrize("unit", [1.0, 4.0])
def test_each_class_has_the_optimal_svm_of_its_rows_and_those_that_list_it(rows, exact, unit):
    X, y, listed, weight = rows
    scaled = canonical_csr(X * unit)
    found = train_rivals(scaled, y, listed, weight, K, unit)
    every = found.margins(scaled, np.tile(np.arange(K), (len(y), 1)))
    for number in range(K - 1):
        own = members(y, listed, number)
        svm = LinearSVC(C=rivals._C, tol=1e-7, max_iter=10**6)
        svm.fit(X[own], y[own] == number, np.minimum(weight / np.median(weight), 1)[own])
        rounding = found.units[number] / 2 * abs(scaled).sum(axis=1).max()
        errors = np.abs(every[:, number] - svm.decision_function(X))
        assert errors.max() < rounding + 0.01


def test_rows_left_out_are_neither_its_own_nor_rivals(rows, exact):
    X, y, listed, weight = rows
    inside = np.arange(len(y)) % 3 > 0
    found = train_rivals(X, np.where(inside, y, -1), listed, weight, K)
    alone = train_rivals(canonical_csr(X[inside]), y[inside], listed[inside], weight[inside], K)
    every = np.tile(np.arange(K), (len(y), 1))
    np.testing.assert_allclose(found.margins(X, every), alone.margins(X, every), atol=1e-6)


def test_a_class_that_no_other_row_lists_is_never_doubted(rows):
    X, y, listed, weight = rows
    found = train_rivals(X, y, np.where(listed == 2, -1, listed), weight, K)
    classes = np.full((len(y), 1), 2)
    assert (found.margins(X, classes) == 1).all()
    assert (found.losses(X, classes) == 0).all()


def test_losses_are_squared_hinges_of_sums_of_weights(rows):
    X, y, listed, weight = rows
    found = train_rivals(X, y, listed, weight, K)
    dense = np.zeros((K, X.shape[1]))
    for number in range(K):
        own = slice(*found.starts[number : number + 2])
        assert (np.diff(found.features[own]) > 0).all()
        dense[number, found.features[own]] = found.codes[own] * found.units[number]
    classes = np.random.default_rng(1).integers(0, K, (len(y), 4))
    margins = np.einsum("nd,nmd->nm", X.toarray(), dense[classes]) + found.biases[classes]
    np.testing.assert_allclose(found.margins(X, classes), margins, atol=1e-5)
    expected = np.maximum(0, 1 - margins) ** 2
    np.testing.assert_allclose(found.losses(X, classes), expected, atol=1e-4)


@pytest.mark.parametrize("n_entries", [1, 7, 1000])
def test_the_largest_weights_are_kept(rows, n_entries):
    X, y, listed, weight = rows
    found = train_rivals(X, y, listed, weight, K)
    cut, trained = found.cut(n_entries), train_rivals(X, y, listed, weight, K, 1.0, n_entries)
    for number in range(K):
        whole, part, direct = (
            dict(
                zip(
                    each.features[slice(*each.starts[number : number + 2])].tolist(),
                    each.codes[slice(*each.starts[number : number + 2])].tolist(),
                    strict=True,
                )
            )
            for each in (found, cut, trained)
        )
        assert len(part) == min(n_entries, len(whole))
        assert part.items() <= whole.items()
        sizes = sorted(map(abs, whole.values()), reverse=True)[: len(part)]
        assert sorted(map(abs, part.values()), reverse=True) == sizes
        assert sorted(map(abs, direct.values()), reverse=True) == sizes
    assert cut.n_entries >= np.diff(cut.starts).max()
    assert cut.n_entries in rivals.N_ENTRIES


def test_the_result_does_not_depend_on_threads(rows, monkeypatch):
    monkeypatch.setattr(rivals, "_SOME", 2)
    one, two = (train_rivals(*rows, K, n_jobs=n_jobs) for n_jobs in (1, 2))
    for name in ("starts", "features", "codes", "units", "biases"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_heavy_rows_that_contradict_each_other_are_weighed():
    """Descent would take thousands of passes; the last row that it visits must not win."""
    X = canonical_csr(np.eye(2)[[0, 0, 1, 1]])
    weight = np.array([4e4, 1e4, 1e4, 4e4], np.float32)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        y = np.array([0, 1, 0, 1])[order]
        found = train_rivals(canonical_csr(X[order]), y, np.tile([0, 1], (4, 1)), weight[order], 2)
        margins = found.margins(canonical_csr(np.eye(2)), np.tile([0, 1], (2, 1)))
        np.testing.assert_array_equal(margins.argmax(axis=1), [0, 1])


def test_the_cost_follows_the_features_that_occur():
    indices = np.array([5, 2**30, 5, 7])
    X = sparse.csr_matrix((np.ones(4), indices, [0, 2, 3, 4]), (3, 2**30 + 1))
    X, y = canonical_csr(X), np.array([0, 1, 1])
    found = train_rivals(X, y, np.tile([0, 1], (3, 1)), np.ones(3, np.float32), 2)
    assert 2**30 in found.features
    wide = sparse.csr_matrix((np.ones(1), [2**31], [0, 1, 1, 1]), (3, 2**31 + 1))
    ones = np.ones(3, np.float32)
    assert train_rivals(canonical_csr(wide), y, np.tile([0, 1], (3, 1)), ones, 2) is None


def test_classes_come_and_go(rows):
    found = replace(train_rivals(*rows, K), strength=2.0)
    X = rows[0]
    moved = found.of_classes(np.array([4, -1, 0]))
    expected = found.margins(X, np.tile([4, 0], (240, 1)))
    np.testing.assert_array_equal(moved.margins(X, np.tile([0, 2], (240, 1))), expected)
    assert (moved.margins(X, np.full((240, 1), 1)) == 1).all()  # never doubted
    assert moved.strength == 2


def test_parts_of_a_file(rows):
    found = replace(train_rivals(*rows, K), strength=0.5)
    again = Rivals.from_parts(**found.to_parts())
    for name in ("strength", "starts", "features", "codes", "units", "biases"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("strength", -1.0),
        ("counts", np.array([-1, 5])),
        ("counts", np.array([2, 5000])),
        ("codes", np.zeros(1, np.int8)),
        ("units", np.array([1.0, np.nan], np.float32)),
        ("units", np.ones(3, np.float32)),
        ("biases", np.array([np.inf, 0], np.float32)),
        ("wide_gaps", np.array([2**40])),
    ],
)
def test_unsound_parts_are_refused(name, wrong):
    sound = Rivals(
        *(1.0, np.array([0, 2, 4]), np.array([1, 70_000, 0, 3], np.int32)),
        *(np.array([1, -1, 2, 3], np.int8), np.ones(2, np.float32), np.zeros(2, np.float32)),
    ).to_parts()
    assert Rivals.from_parts(**sound).n_entries == rivals.N_ENTRIES[0]
    with pytest.raises(ValueError, match=r"rivals|codes|units|biases|distances"):
        Rivals.from_parts(**{**sound, name: wrong})
