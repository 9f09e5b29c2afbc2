"""Baselines against their objectives, solved another way, and against scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csc_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from baselines.dismec import fit_dismec
from baselines.fastxml import Forest, fit_fastxml
from baselines.l1_logistic import l1_logistic
from baselines.pd_sparse import fit_pd_sparse
from baselines.ppd_sparse import class_objective, fit_ppd_sparse, with_bias
from samples import topics


def small_problem(n_classes=4, n_rows=30, n_features=5):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.7)
    y = rng.integers(0, n_classes, n_rows)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def multiclass_hinge_optimum(X, y, l1, C):
    """PD-Sparse's objective as a quadratic program over W = P − N and one slack a row."""
    (n, d), K = X.shape, int(y.max()) + 1
    size = K * d

    def parts(z):
        return (z[:size] - z[size : 2 * size]).reshape(K, d), z[2 * size :]

    def objective(z):
        W, slack = parts(z)
        gradient = np.concatenate([W.ravel() + l1, -W.ravel() + l1, np.full(n, C)])
        return 0.5 * (W**2).sum() + l1 * z[: 2 * size].sum() + C * slack.sum(), gradient

    rows = []  # slack_i − 1 + ⟨w_y − w_k, x_i⟩ ≥ 0
    for i in range(n):
        for k in set(range(K)) - {y[i]}:
            W = np.zeros((K, d))
            W[y[i]], W[k] = X[i], -X[i]
            rows.append(np.concatenate([W.ravel(), -W.ravel(), np.eye(n)[i]]))
    A = np.array(rows)
    margins = {"type": "ineq", "fun": lambda z: A @ z - 1, "jac": lambda z: A}
    start = np.concatenate([np.zeros(2 * size), np.ones(n)])
    bounds = [(0, None)] * len(start)
    settings = {"maxiter": 500, "ftol": 1e-10}
    found = minimize(
        objective, start, jac=True, bounds=bounds, constraints=margins, options=settings
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize(("l1", "C"), [(0.1, 1.0), (0.5, 0.3), (0.0, 1.0)])
def test_pd_sparse_reaches_the_optimum(l1, C):
    X, y = small_problem()
    found = fit_pd_sparse(X, y, l1, C, passes=3000, tolerance=1e-7)
    assert found.primal == pytest.approx(multiclass_hinge_optimum(X, y, l1, C), rel=1e-3)
    assert found.dual == pytest.approx(found.primal, rel=1e-3)


def test_pd_sparse_is_sparser_with_more_l1():
    X, y = topics(n_classes=6, n_rows=300)
    sizes = [fit_pd_sparse(X, y, l1).weights.nnz for l1 in (0.0, 0.1, 0.5)]
    assert sizes[0] > sizes[1] > sizes[2] > 0


@pytest.mark.parametrize(("l1", "C"), [(0.1, 1.0), (1.0, 0.3)])
def test_ppd_sparse_reaches_the_optimum_of_every_class(l1, C):
    X, y = small_problem(n_rows=60)
    found = fit_ppd_sparse(X, y, l1, C, tolerance=1e-6, inner_passes=500).toarray()
    X = with_bias(X).toarray()
    penalty = np.append(np.full(X.shape[1] - 1, l1), 0)
    for k in range(int(y.max()) + 1):
        sign = np.where(y == k, 1, -1)

        def split(z, sign=sign):
            w = np.subtract(*np.split(z, 2))
            hinge = np.maximum(0, 1 - sign * (X @ w))
            slope = w - 2 * C * X.T @ (sign * hinge)
            value = 0.5 * w @ w + np.tile(penalty, 2) @ z + C * hinge @ hinge
            return value, np.concatenate([slope + penalty, -slope + penalty])

        bounds = [(0, None)] * (2 * X.shape[1])
        settings = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-8}
        best = minimize(split, np.zeros(len(bounds)), jac=True, bounds=bounds, options=settings)
        assert class_objective(found[k], X, y == k, l1, C) == pytest.approx(best.fun, rel=1e-4)


def test_dismec_is_a_pruned_linear_svm():
    X, y = topics(n_classes=4, n_rows=200)
    weights, bias = fit_dismec(X, y, tolerance=1e-4)
    for k in range(4):
        svm = LinearSVC(random_state=0).fit(X, y == k)
        dense = weights[k].toarray().ravel()
        assert (np.abs(weights[k].data) >= 0.01).all()
        kept = dense != 0
        np.testing.assert_allclose(dense[kept], svm.coef_[0][kept], rtol=1e-6)
        assert (np.abs(svm.coef_[0][~kept]) < 0.01).all()
        assert bias[k] == pytest.approx(svm.intercept_[0])


def test_l1_logistic_is_liblinears():
    X, y = topics(n_classes=2, n_rows=200)
    sign, columns = np.where(y == 0, 1.0, -1.0), csc_matrix(X)
    cost = np.where(y == 0, 3.0, 1.5)
    w, margins = l1_logistic(
        columns.indptr, columns.indices, columns.data.astype(float), sign, cost, 1e-6, 5000
    )
    reference = LogisticRegression(
        solver="liblinear", l1_ratio=1, fit_intercept=False, tol=1e-8, max_iter=5000
    ).fit(X, sign, sample_weight=cost)

    def objective(w):
        return np.abs(w).sum() + cost @ np.log1p(np.exp(-sign * (X @ w)))

    np.testing.assert_allclose(margins, X @ w, atol=1e-6)
    assert objective(w) == pytest.approx(objective(reference.coef_[0]), rel=1e-5)
    assert 0 < np.count_nonzero(w) < len(w)


def test_fastxml_learns_and_comes_back_from_its_file(tmp_path):
    X, y = topics(n_classes=20, n_rows=800)
    forest = fit_fastxml(X[:600], y[:600], n_trees=10)
    found = forest.predict_top_k(X[600:], 5)
    assert np.mean(found[:, 0] == y[600:]) > 0.8
    assert np.mean((found == y[600:, np.newaxis]).any(axis=1)) >= np.mean(found[:, 0] == y[600:])
    forest.save(tmp_path / "forest.npz")
    again = Forest.load(tmp_path / "forest.npz").predict_top_k(X[600:], 5)
    np.testing.assert_array_equal(found, again)


def test_fastxml_with_one_tree_knows_its_small_leaves():
    """A leaf of one row gives that row's class: a tree grown to the end knows nearly all rows."""
    X, y = topics(n_classes=5, n_rows=200)
    forest = fit_fastxml(X, y, n_trees=1, C=1000.0, max_leaf=1)
    assert np.mean(forest.predict_top_k(X, 1)[:, 0] == y) > 0.9
