"""The linear SVM against LIBLINEAR and against a dense Newton method in double precision."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from binary_problems import block_of, dense_optimum, objective, run, train
from samples import shared_set, topics
from xtrellis import TrellisClassifier
from xtrellis.learning import LinearSVM
from xtrellis.learning.learners import svm, svm_state
from xtrellis.learning.learners.svm_state import Columns


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_svm_is_liblinears(C):
    """Each edge of a block agrees with scikit-learn's LinearSVC on its binary problem."""
    X, y = topics(n_classes=5, n_rows=300)
    weights, bias = train(LinearSVM(C, tolerance=1e-6), block_of(X, y, 5), 3000)
    for edge in range(5):
        svc = LinearSVC(C=C, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y == edge)
        np.testing.assert_allclose(weights[:, edge], svc.coef_[0], atol=2e-3)
        np.testing.assert_allclose(bias[edge], svc.intercept_[0], atol=2e-3)


def test_svm_row_weights_are_liblinears():
    X, y = topics(n_classes=3, n_rows=200)
    counts = np.random.default_rng(0).integers(1, 5, 200)
    weights, _ = train(LinearSVM(1.0, 1e-6), block_of(X, y, 3, counts), 3000)
    svc = LinearSVC(C=1.0, tol=1e-8, max_iter=100_000, random_state=0)
    svc.fit(X, y == 1, sample_weight=counts)
    np.testing.assert_allclose(weights[:, 1], svc.coef_[0], atol=2e-3)


def test_svm_with_several_targets_a_row():
    """A row may be a positive example of several edges: they are independent problems."""
    X, y = topics(n_classes=4, n_rows=200)
    targets = np.stack([y, 4 + y % 2], axis=1)
    together, _ = train(LinearSVM(1.0, 1e-6), block_of(X, targets, 6), 3000)
    apart, _ = train(LinearSVM(1.0, 1e-6), block_of(X, y % 2, 2), 3000)
    np.testing.assert_allclose(together[:, 4:], apart, atol=2e-3)


def noisy_problem(kind, seed=0, n=120, n_features=12):
    """Rows, labels 0 and 1, and row weights up to 10,000."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)) * (rng.random((n, n_features)) < 0.5)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    y = (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int)
    weights = np.ceil(10 ** rng.uniform(0, 4, n))
    if kind in ("duplicated", "conflicting"):
        X, weights = np.vstack([X, X]), np.append(weights, weights[::-1])
        y = np.append(y, y if kind == "duplicated" else rng.integers(0, 2, n))
    if kind == "nearly equal":
        X = np.vstack([X, X + 1e-3 * rng.standard_normal(X.shape)])
        y, weights = np.append(y, 1 - y), np.append(weights, weights[::-1])
    return X.astype(np.float32), y, weights


def check_optimal(learner, X, y, row_weights, weights, bias, share=1e-3, distance=0.05):
    """The objective of edge 1 is within a share of its optimum, and its weights are close."""
    constant = np.column_stack([X.astype(float), np.ones(len(X))])
    signs = np.where(y == 1, 1.0, -1.0)
    costs = learner.C * np.asarray(row_weights, float)
    best = dense_optimum(constant, signs, costs)
    found = np.append(weights[:, 1], bias[1]).astype(float)
    least = objective(constant, signs, costs, best)
    assert objective(constant, signs, costs, found) <= (1 + share) * least
    assert np.linalg.norm(found - best) <= distance * np.linalg.norm(best)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("kind", ["weighted", "duplicated", "conflicting", "nearly equal"])
@pytest.mark.parametrize(("tolerance", "share"), [(0.03, 1e-2), (0.01, 1e-3)])
def test_heavy_rows_reach_the_optimum(kind, C, tolerance, share):
    X, y, row_weights = noisy_problem(kind)
    learner = LinearSVM(C, tolerance)
    block = block_of(X, y, 2, row_weights)
    state = run(learner, block, learner.start(block), learner.epochs)
    assert learner.converged(state)
    assert learner.shortfall(block, state) == 0
    check_optimal(learner, X, y, row_weights, *learner.finish(block, state), share, 0.1)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
def test_rows_of_equal_weight_reach_the_optimum(C):
    X, y, _ = noisy_problem("weighted")
    learner = LinearSVM(C, tolerance=1e-3)
    weights, bias = train(learner, block_of(X, y, 2), learner.epochs)
    check_optimal(learner, X, y, np.ones(len(y)), weights, bias)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
def test_heavy_rows_are_liblinears_repeated_rows(C):
    """One row that counts up to 10,000 times, here; as many rows for LIBLINEAR."""
    X, y, row_weights = noisy_problem("conflicting", n=40)
    weights, bias = train(LinearSVM(C, tolerance=1e-5), block_of(X, y, 2, row_weights), 100)
    repeated = np.repeat(np.arange(len(y)), row_weights.astype(int))
    assert len(repeated) > 40_000
    # By its Newton method: its coordinate descent does not converge here.
    svc = LinearSVC(C=C, dual=False, tol=1e-10, max_iter=10_000)
    svc.fit(X[repeated].astype(float), y[repeated])
    np.testing.assert_allclose(weights[:, 1], svc.coef_[0], atol=0.01)
    np.testing.assert_allclose(bias[1], svc.intercept_[0], atol=0.01)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("kind", ["weighted", "conflicting", "nearly equal"])
def test_rough_solutions_are_near_and_lead_to_the_optimum(kind, C):
    X, y, row_weights = noisy_problem(kind)
    learner, block = LinearSVM(C), block_of(X, y, 2, row_weights)
    rough, state = learner.rough(), learner.start(block)
    run(rough, block, state, rough.epochs)
    assert rough.converged(state)
    check_optimal(learner, X, y, row_weights, *learner.finish(block, state), 0.2, 0.5)
    run(learner, block, state, learner.epochs)  # on the same rows, as if none were held out
    assert learner.converged(state)
    check_optimal(learner, X, y, row_weights, *learner.finish(block, state), 1e-2, 0.1)


def test_rough_solutions_leave_stubborn_edges(monkeypatch):
    monkeypatch.setattr(svm, "SPARSE_IF_HARD", 0.0)
    monkeypatch.setattr(svm, "SPARSE", 0.0)  # else no edge is stubborn here
    X, y = topics(n_classes=40, n_rows=2000, seed=1)
    block, learner = block_of(X, y, 40), LinearSVM(100.0, tolerance=1e-3)
    exact = run(learner, block, learner.start(block), learner.epochs)
    rough = run(learner.rough(), block, learner.start(block), learner.epochs)
    assert len(rough.newton_edges) < len(exact.newton_edges) / 2
    near, best = (learner.finish(block, state)[0] for state in (rough, exact))
    np.testing.assert_allclose(near, best, atol=0.15 * np.abs(best).max())


@pytest.mark.parametrize("C", [10.0, 100.0])
def test_passes_over_the_support_lead_to_the_same_optimum(C, monkeypatch):
    """In fewer rounds; rows that support an edge are found anew in each."""
    X, y = topics(n_classes=40, n_rows=2000, seed=1)
    block, learner = block_of(X, y, 40), LinearSVM(C, tolerance=1e-4)
    found, rounds = [], []
    for share in (0.0, 1.0):
        monkeypatch.setattr(svm, "SPARSE", share)
        monkeypatch.setattr(svm, "SPARSE_IF_HARD", share)
        state = run(learner, block, learner.start(block), learner.epochs)
        assert learner.shortfall(block, state) == 0
        found.append(learner.finish(block, state))
        rounds.append(state.n_rounds)
    assert rounds[1] < rounds[0]
    for with_all, with_support in zip(*found, strict=True):
        np.testing.assert_allclose(with_all, with_support, atol=0.02 * np.abs(with_all).max())


def test_weights_are_those_of_the_dual_variables_after_passes_over_the_support(monkeypatch):
    monkeypatch.setattr(svm, "SPARSE", 1.0)
    monkeypatch.setattr(svm, "SPARSE_IF_HARD", 1.0)
    X, y = topics(n_classes=40, n_rows=500, seed=1)
    targets = np.stack([y, np.where(y % 2, -1, (y + 1) % 40)], axis=1)  # some rows have two
    block, learner = block_of(X, targets, 40), LinearSVM(10.0)
    state = learner.start(block)
    for seed in range(3):
        learner.step(block, state, np.random.default_rng(seed).permutation(500))
    columns = Columns.together([state.active, *state.resting])
    assert len(columns.edges) == 40
    signs = np.stack([block.signs(edge) for edge in columns.edges], axis=1)
    pulls = signs * columns.duals
    np.testing.assert_allclose(X.T @ pulls, columns.weights, atol=1e-4)
    np.testing.assert_allclose(pulls.sum(axis=0), columns.bias, atol=1e-3)


def test_many_edges_that_stall_are_solved_by_smaller_steps(monkeypatch):
    """Not by Newton's method, which takes them one by one and twenty times as long."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 500, 2000)
    own = rng.integers(0, 4000, (500, 3))[y]
    columns = np.concatenate([own, np.minimum(rng.zipf(1.5, (2000, 1)), 200) - 1], axis=1)
    starts = np.arange(0, columns.size + 1, 4)
    X = sparse.csr_matrix((np.full(columns.size, 0.5, np.float32), columns.ravel(), starts))
    X.sum_duplicates()
    monkeypatch.setattr(svm_state, "MOST_IGNORED", np.inf)
    block, learner = block_of(X, np.where(y < 20, y, -1), 20), LinearSVM(30.0, tolerance=0.3)
    handed_over = []
    for many in (2, svm.MANY):
        monkeypatch.setattr(svm, "MANY", many)
        state = run(learner, block, learner.start(block), learner.epochs)
        assert learner.converged(state)
        handed_over.append(len(state.newton_edges))
    assert handed_over[0] > 10
    assert handed_over[1] == 0


@pytest.mark.parametrize("C", [1.0, 10.0, 30.0])
def test_converged_is_not_an_estimate(C):
    """The gap of weights at rest is within the tolerance, for every edge that descended."""
    X, y = topics(n_classes=40, n_rows=2000, seed=1)
    block, learner = block_of(X, y, 40), LinearSVM(C)
    state = run(learner, block, learner.start(block), learner.epochs)
    assert learner.converged(state)
    weights, bias = (a.astype(float) for a in learner.finish(block, state))
    descended = Columns.together([state.active, *state.resting])
    signs = np.stack([block.signs(edge) for edge in descended.edges], axis=1)
    margins = (X.astype(float) @ weights + bias)[:, descended.edges]
    losses = C * (np.maximum(0, 1 - signs * margins) ** 2).sum(axis=0)
    duals = descended.duals.astype(float)
    squares = ((weights**2).sum(axis=0) + bias**2)[descended.edges]
    gaps = squares + losses - (duals - duals**2 / (4 * C)).sum(axis=0)
    assert (gaps <= 1.01 * learner.tolerance * (squares / 2 + losses)).all()


def test_solved_edges_rest_and_wake_up_for_other_rows():
    X, y = topics(n_classes=40, n_rows=2000, seed=1)
    block, learner = block_of(X, y, 40), LinearSVM(10.0, tolerance=1e-3)
    rng = np.random.default_rng(0)
    state = learner.start(block)
    while not learner.converged(state):
        learner.step(block, state, rng.permutation(np.arange(1500)))
    assert state.resting
    resting = np.concatenate([part.edges for part in state.resting])
    every = np.concatenate([state.edges, resting, state.newton_edges])
    np.testing.assert_array_equal(np.sort(every), np.arange(40))
    asleep = learner.finish(block, state)
    state.restart(block, 1500, learner.tolerance)
    for before, after in zip(asleep, learner.finish(block, state), strict=True):
        np.testing.assert_array_equal(before, after)  # whatever the order of the edges in it
    learner.step(block, state, rng.permutation(2000))
    assert state.resting == []
    assert len(state.edges) + len(state.newton_edges) == 40
    state = run(learner, block, state, learner.epochs)
    cold = run(learner, block, learner.start(block), learner.epochs)
    for warm, anew in zip(learner.finish(block, state), learner.finish(block, cold), strict=True):
        np.testing.assert_allclose(warm, anew, atol=0.03 * np.abs(anew).max())


def test_equal_rows_with_conflicting_labels():
    """Two rows, each ten per cent mislabelled: the majority wins."""
    X = np.repeat([[1.0, 0], [0, 1]], 500, axis=0)
    y = np.append(np.arange(500) % 10 == 0, np.arange(500) % 10 != 0).astype(int)
    for seed in range(3):
        assert TrellisClassifier(random_state=seed).fit(X, y).score(X, y) == 0.9


def test_one_hot_rows_with_noisy_labels():
    """The class most frequent for a row is the best prediction, and is found."""
    rng = np.random.default_rng(0)
    columns = np.repeat(np.arange(50), 100)
    y = np.where(rng.random(len(columns)) < 0.1, rng.integers(0, 50, len(columns)), columns)
    X = np.eye(50)[columns]
    score = TrellisClassifier(random_state=0).fit(X, y).score(X, y)
    assert score >= np.mean(y == columns) - 0.005


def test_stopping_too_early_warns_once():
    X, y = topics()
    with pytest.warns(ConvergenceWarning, match="raise epochs or lower C") as caught:
        TrellisClassifier(5, C=100.0, epochs=1, random_state=0).fit(X, y)
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["icd10cm", "wordnet_hypernym"])
def test_defaults_converge(name):
    """No ConvergenceWarning, which would be an error here; nor many passes."""
    X, y, _, _ = shared_set(name)
    rows = np.flatnonzero(y < 150)
    model = TrellisClassifier(random_state=0).fit(X[rows], y[rows])
    assert len(model.history_.loss) < LinearSVM.epochs


def test_the_same_rows_are_solved_precisely_after_a_rough_solution():
    """As in a block none of whose rows are held out: what rests there is not solved yet."""
    X, y = topics(n_classes=40, n_rows=2000, seed=1)
    block, learner = block_of(X, y, 40), LinearSVM(100.0, tolerance=1e-3)
    state = run(learner.rough(), block, learner.start(block), learner.epochs)
    run(learner, block, state, learner.epochs)
    assert (state.gaps <= learner.tolerance).all()


@pytest.mark.parametrize("C", [1.0, 30.0, 1000.0])
def test_a_unit_scales_the_rows(C):
    """As if rows were divided by it; by a power of 2, bit for bit. Newton's method is used, too."""
    X, y = topics(n_classes=10, n_rows=400, seed=1)
    found = []
    for scale in (1, 2**9):
        block, learner = block_of(X * np.float32(scale), y, 10), LinearSVM(C, 1e-3, float(scale))
        state = run(learner, block, learner.start(block), learner.epochs)
        weights, bias = learner.finish(block, state)
        found.append((weights * np.float32(scale), bias, learner.shortfall(block, state)))
    assert bool(len(state.newton_edges)) == (C >= 30)
    for plain, scaled in zip(*found, strict=True):
        np.testing.assert_array_equal(plain, scaled)
