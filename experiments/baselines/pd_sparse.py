"""PD-Sparse (Yen, Huang, Zhong, Ravikumar and Dhillon, 2016): margins with primal-dual sparsity.

One weight vector per class, the multiclass hinge loss, and both an L1 and an L2 penalty:

    min_W  Σ_k ½ ‖w_k‖² + λ ‖w_k‖₁  +  C Σ_i max(0, 1 + max_{k≠y_i} ⟨w_k, x_i⟩ − ⟨w_{y_i}, x_i⟩)

Its dual has one variable for each row and class,

    min_α  ½ Σ_k ‖w_k(α)‖² + Σ_i Σ_{k≠y_i} α_ik,    w_k(α) = soft(Σ_i α_ik x_i, λ),
    α_ik ≤ 0 for k ≠ y_i,    0 ≤ α_{i y_i} ≤ C,    Σ_k α_ik = 0,

with soft(v, λ) = sign(v) max(0, |v| − λ). Few α are non-zero, since few classes rival that of a
row, and few weights are non-zero, thanks to λ. The algorithm is a fully corrective
block-coordinate Frank-Wolfe: visit a row, add the class that violates its margin most to the
active classes of the row, and minimise over the active classes. With ‖x_i‖² as a bound on the
curvature this is a projection (:func:`_project`).

Σ_i α_ik x_i is dense here, one number per feature and class. The authors also have a version with a
hash table, which needs less memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from scipy import sparse


@dataclass(frozen=True)
class PDSparseSolution:
    """Weights, classes × features, and both objectives, which are equal at the optimum."""

    weights: sparse.csr_matrix
    primal: float
    dual: float


def fit_pd_sparse(
    X: Any,
    y: npt.NDArray[np.int64],
    l1: float = 0.1,
    C: float = 1.0,
    passes: int = 20,
    tolerance: float = 1e-3,
    seed: int = 0,
) -> PDSparseSolution:
    """Solve for classes 0 … max(y), until the dual variables move less than the tolerance.

    The defaults are the authors': λ = 0.1 and C = 1 in their examples, at most 20 passes.
    """
    X = sparse.csr_matrix(X, dtype=np.float64)
    rng = np.random.default_rng(seed)
    n_classes = int(y.max()) + 1
    sums = np.zeros((X.shape[1], n_classes), np.float32)  # Σ_i α_ik x_i, feature by feature
    # A visit adds at most one class, so that a row has at most as many rivals as there are passes.
    width = min(passes, n_classes - 1)
    rivals = np.full((X.shape[0], width), -1, np.int32)
    alpha = np.zeros((X.shape[0], width))  # −α_ik of each rival; α of the own class is their sum
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    rows = (X.indptr, X.indices, X.data, norms, y)
    for _ in range(passes):
        moved = _one_pass(*rows, rng.permutation(X.shape[0]), l1, C, sums, rivals, alpha)
        if moved < tolerance:
            break
    weights = _thresholded(sums, l1)
    return PDSparseSolution(weights, primal_objective(weights, X, y, l1, C), _dual(weights, alpha))


def primal_objective(
    weights: Any, X: Any, y: npt.NDArray[np.int64], l1: float, C: float, batch: int = 2048
) -> float:
    """The objective as a function of the weights."""
    W = sparse.csr_matrix(weights)
    hinge, columns = 0.0, W.T.tocsr()
    for start in range(0, X.shape[0], batch):
        scores = (X[start : start + batch] @ columns).toarray()
        each, own = np.arange(len(scores)), y[start : start + batch]
        own_score = scores[each, own]
        scores[each, own] = -np.inf
        hinge += np.maximum(0, 1 + scores.max(axis=1) - own_score).sum()
    return float(0.5 * (W.data**2).sum() + l1 * np.abs(W.data).sum() + C * hinge)


def _dual(weights: Any, alpha: npt.NDArray[np.float64]) -> float:
    """The negated dual objective, which is at most the primal one."""
    return float(alpha.sum() - 0.5 * (weights.data.astype(np.float64) ** 2).sum())


def _thresholded(sums: npt.NDArray[Any], l1: float, batch: int = 2048) -> sparse.csr_matrix:
    """soft(sums, λ) as a sparse matrix, classes × features; in batches of features."""
    parts = []
    for start in range(0, len(sums), batch):
        v = sums[start : start + batch]
        parts.append(sparse.csc_matrix((v - np.clip(v, -l1, l1)).T))
    return sparse.hstack(parts, format="csr")


@numba.njit(cache=True, nogil=True)
def _one_pass(indptr, indices, data, norms, y, order, l1, C, sums, rivals, alpha):
    """Visit every row once; return the mean over rows of the largest change of α."""
    n_classes, width = sums.shape[1], rivals.shape[1]
    scores = np.empty(n_classes, np.float32)
    target, moved = np.empty(width), 0.0
    for i in order:
        start, end, own = indptr[i], indptr[i + 1], y[i]
        if start == end:
            continue
        _score(indices[start:end], data[start:end], np.float32(l1), sums, scores)
        n_active = _add_most_violating(scores, own, rivals[i], alpha[i])
        if n_active == 0:
            continue
        # A gradient step in the dual, then a projection onto the feasible set. The gradient is
        # ⟨w_k, x⟩ + 1 for a rival and ⟨w_y, x⟩ for the class of the row.
        total = alpha[i, :n_active].sum()
        for a in range(n_active):
            target[a] = alpha[i, a] + (scores[rivals[i, a]] + 1) / norms[i]
        _project(target[:n_active], total - scores[own] / norms[i], C)
        largest = 0.0
        for a in range(n_active):
            change = target[a] - alpha[i, a]
            alpha[i, a] = target[a]
            largest = max(largest, abs(change))
            if change != 0:
                for p in range(start, end):
                    step = np.float32(change * data[p])
                    sums[indices[p], rivals[i, a]] -= step
                    sums[indices[p], own] += step
        moved += largest
    return moved / len(order)


@numba.njit(cache=True, nogil=True)
def _score(features, values, l1, sums, scores):
    """⟨w_k, x⟩ of all classes; weights are thresholded as they are read."""
    scores[:] = 0
    for p in range(len(features)):
        value, column = np.float32(values[p]), sums[features[p]]
        for k in range(len(scores)):
            v = column[k]
            # soft(v) = v − clip(v, −λ, λ), without a branch, so that it vectorises
            scores[k] += value * (v - min(max(v, -l1), l1))


@numba.njit(cache=True, nogil=True)
def _add_most_violating(scores, own, rivals, alpha):
    """Drop rivals at zero, then add the best-scoring other class if it violates the margin."""
    n_active = 0
    for a in range(len(rivals)):
        if rivals[a] >= 0 and alpha[a] > 0:
            rivals[n_active], alpha[n_active] = rivals[a], alpha[a]
            n_active += 1
    rivals[n_active:] = -1
    alpha[n_active:] = 0
    best = -1
    for k in range(len(scores)):
        # A class must beat the best so far, so that the search among the rivals is rare.
        if (best < 0 or scores[k] > scores[best]) and k != own and k not in rivals[:n_active]:
            best = k
    if best >= 0 and n_active < len(rivals) and 1 + scores[best] - scores[own] > 0:
        rivals[n_active] = best
        n_active += 1
    return n_active


@numba.njit(cache=True, nogil=True)
def _project(targets, own_target, C):
    """Project onto rivals β ≥ 0 with Σβ ≤ C for the own class, in place.

    min ½ Σ (β_k − b_k)² + ½ (Σβ − b_y)²: β_k = max(0, b_k − θ), with θ such that
    Σβ − b_y = θ, or, if that were above C, such that Σβ = C.
    """
    ordered = np.sort(targets)[::-1]
    theta, total = -own_target, 0.0
    for m in range(len(ordered)):
        total += ordered[m]
        if ordered[m] > theta:
            theta = (total - own_target) / (m + 2)
    if own_target + theta > C:
        theta, total = -np.inf, 0.0
        for m in range(len(ordered)):
            total += ordered[m]
            if ordered[m] > theta:
                theta = (total - C) / (m + 1)
    for k in range(len(targets)):
        targets[k] = max(0.0, targets[k] - theta)
