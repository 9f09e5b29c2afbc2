"""PPDSparse (Yen et al., 2017): PD-Sparse in parallel, one problem per class.

The loss is a sum over the classes, so that each class is trained alone, with y_i = ±1:

    min_w  ½ ‖w‖² + λ ‖w‖₁ + C Σ_i max(0, 1 − y_i ⟨w, x_i⟩)²

and in the dual, with w(α) = soft(Σ_i α_i y_i x_i, λ),

    min_{α≥0}  ½ ‖w(α)‖² + Σ_i α_i² / 4C − Σ_i α_i.

Nearly all negative rows have α_i = 0, so that coordinate descent runs over an active set. It starts
with the rows of the class and as many random others. The rows that violate their margin most, found
from the few non-zero weights, column by column, are added until none violates it by more than the
tolerance. The last feature is a constant bias without the L1 penalty, as in the authors' program.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from scipy import sparse


def fit_ppd_sparse(
    X: Any,
    y: npt.NDArray[np.int64],
    l1: float = 0.1,
    C: float = 1.0,
    tolerance: float = 0.1,
    inner_passes: int = 20,
    rounds: int = 1000,
    seed: int = 0,
) -> sparse.csr_matrix:
    """Weights of classes 0 … max(y), classes × (features + 1), the last one the bias.

    Defaults are those of the authors' program.
    """
    X = with_bias(X)
    columns = X.tocsc()
    rows = (X.indptr, X.indices, X.data, columns.indptr, columns.indices, columns.data)
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    n_rows, n_features = X.shape
    # Work space of one class; the kernel resets it.
    alpha, products, sums = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_features)
    order = np.argsort(y, kind="stable")
    ends = np.searchsorted(y[order], np.arange(int(y.max()) + 2))
    rng = np.random.default_rng(seed)
    weights = []
    for k, (start, end) in enumerate(pairwise(ends)):
        own = order[start:end]
        others = rng.integers(0, n_rows, len(own))
        first = np.concatenate([own, np.unique(others[y[others] != k])])
        positive = y == k
        settings = (l1, C, tolerance, inner_passes, rounds, rng)
        weights.append(_train_one(*rows, norms, positive, first, *settings, alpha, products, sums))
    indptr = np.cumsum([0, *(len(features) for features, _ in weights)])
    features = np.concatenate([features for features, _ in weights])
    values = np.concatenate([values for _, values in weights])
    return sparse.csr_matrix((values, features, indptr), (len(weights), n_features))


def with_bias(X: Any) -> sparse.csr_matrix:
    """Rows with a constant 1 as the last feature."""
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([sparse.csr_matrix(X, dtype=np.float64), ones], format="csr")


def class_objective(
    w: npt.NDArray[np.float64], X: Any, positive: npt.NDArray[np.bool_], l1: float, C: float
) -> float:
    """The objective of one class; X has the bias as its last feature."""
    hinge = np.maximum(0, 1 - np.where(positive, 1, -1) * (X @ w))
    return float(0.5 * w @ w + l1 * np.abs(w[:-1]).sum() + C * hinge @ hinge)


@numba.njit(cache=True, nogil=True)
def _train_one(
    indptr, indices, data, by_column, column_rows, column_data, norms, positive, active,
    l1, C, tolerance, inner_passes, rounds, rng, alpha, products, sums,
):  # fmt: skip
    """Features and values of the non-zero weights of one class."""
    bias, n_rows = len(sums) - 1, len(alpha)
    touched = np.zeros(len(sums), np.bool_)
    for _ in range(rounds):
        for i in active:
            for p in range(indptr[i], indptr[i + 1]):
                touched[indices[p]] = True
        for _ in range(inner_passes):
            rng.shuffle(active)
            rows = (indptr, indices, data, norms, positive)
            if _descend(*rows, active, l1, C, alpha, sums) < 0.1 * tolerance:
                break
        keep = np.array([alpha[i] > 0 or positive[i] for i in active])
        for i in active[~keep]:
            alpha[i] = 0
        active = active[keep]
        # ⟨w, x_i⟩ of all rows, from the non-zero weights alone
        products[:] = sums[bias]
        for j in np.flatnonzero(touched[:bias]):
            w = _soft(sums[j], l1)
            if w != 0:
                for p in range(by_column[j], by_column[j + 1]):
                    products[column_rows[p]] += w * column_data[p]
        found = np.flatnonzero((products > -1) & (alpha == 0) & ~positive)
        if len(found) == 0 or products[found].max() + 1 < tolerance:
            break
        most = min(len(found), max(1, min(len(active), n_rows // 10)))
        found = found[np.argsort(-products[found])[:most]]
        active = np.concatenate((active, found))
    features = np.flatnonzero(touched)
    values = np.array([_soft(sums[j], 0.0 if j == bias else l1) for j in features])
    sums[features] = 0
    alpha[active] = 0
    return features[values != 0], values[values != 0]


@numba.njit(cache=True, nogil=True)
def _descend(indptr, indices, data, norms, positive, active, l1, C, alpha, sums):
    """One pass of dual coordinate descent; return the largest step in units of the gradient."""
    bias, largest = len(sums) - 1, 0.0
    for i in active:
        sign = 1.0 if positive[i] else -1.0
        product = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            product += data[p] * _soft(sums[j], 0.0 if j == bias else l1)
        curvature = norms[i] + 1 / (2 * C)
        gradient = sign * product - 1 + alpha[i] / (2 * C)
        new = max(0.0, alpha[i] - gradient / curvature)
        change, alpha[i] = new - alpha[i], new
        largest = max(largest, abs(change) * curvature)
        if change != 0:
            for p in range(indptr[i], indptr[i + 1]):
                sums[indices[p]] += sign * change * data[p]
    return largest


@numba.njit(cache=True, nogil=True)
def _soft(v, l1):
    return v - min(max(v, -l1), l1)
