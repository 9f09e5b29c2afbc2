"""FastXML (Prabhu and Varma, 2014): an ensemble of trees that split by ranking quality.

A node sends each of its rows left or right, δ_i = ±1, so that the labels of both sides are ranked
well. For one label per row, nDCG is 1 / log2(1 + rank of the label), and the node alternates

    rank the labels of each side by their counts;   δ_i = the side that ranks label y_i higher

from a random start until nothing changes. Then a sparse separator learns the sides,

    min_w  ‖w‖₁ + Σ_i C_i log(1 + exp(−δ_i ⟨w, x_i⟩)),

and decides where rows go. C_i is C divided by the share of the row's side, which keeps the sides
balanced. A node of at most ``max_leaf`` rows is a leaf with the frequencies of its labels, and the
prediction is their mean over the trees. The defaults are the authors': 50 trees, C = 1, leaves of
10. The package of this name on PyPI needs Python 2.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from .l1_logistic import l1_logistic
from .ppd_sparse import with_bias

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Forest:
    """All trees in one set of arrays; a negative child is the leaf −1 − child."""

    roots: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]  # nodes × 2: for ⟨w, x⟩ ≤ 0 and for > 0
    node_ends: IntArray
    features: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    leaf_ends: IntArray
    labels: npt.NDArray[np.int32]
    frequencies: npt.NDArray[np.float32]
    shape: IntArray  # features without the bias, classes

    def predict_top_k(self, X: Any, k: int) -> IntArray:
        """The k classes with the highest mean frequency, best first; -1 where there are fewer."""
        arrays = [getattr(self, field.name) for field in fields(self)]
        return _predict(X.indptr, X.indices, X.data, k, *arrays)

    def save(self, file: Path) -> None:
        """Write to a file."""
        np.savez(file, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, file: Path) -> Forest:
        """Read from a file."""
        with np.load(file) as arrays:
            return cls(**arrays)


def fit_fastxml(
    X: Any,
    y: IntArray,
    n_trees: int = 50,
    C: float = 1.0,
    max_leaf: int = 10,
    leaf_labels: int = 100,
    seed: int = 0,
) -> Forest:
    """Grow the trees, one after the other."""
    X = with_bias(X)
    y = np.asarray(y, np.int64)
    grower = _Grower(X, y, C, max_leaf, leaf_labels)
    rng = np.random.default_rng(seed)
    roots = [grower.grow(rng) for _ in range(n_trees)]
    return grower.forest(roots)


class _Grower:
    """Lists of the nodes and leaves found so far."""

    def __init__(self, X: Any, y: IntArray, C: float, max_leaf: int, leaf_labels: int) -> None:
        self.rows = (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, y)
        self.shape = np.array([X.shape[1] - 1, int(y.max()) + 1])
        self.y, self.C, self.max_leaf, self.leaf_labels = y, C, max_leaf, leaf_labels
        # Number of a label or feature within a node, else -1; the kernels reset it to -1.
        self.local = (np.full(self.shape[1], -1), np.full(X.shape[1], -1))
        self.children: list[list[int]] = []
        self.separators: list[tuple[Any, Any]] = []
        self.leaves: list[tuple[Any, Any]] = []

    def grow(self, rng: np.random.Generator) -> int:
        """Grow one tree and return its root."""
        root: list[int] = [0]
        waiting: list[tuple[IntArray, list[int], int]] = [(np.arange(len(self.y)), root, 0)]
        while waiting:
            rows, parent, side = waiting.pop()
            split = self._split(rows, rng)
            if split is None:
                parent[side] = self._leaf(rows)
                continue
            features, weights, right = split
            parent[side] = len(self.children)
            node = [0, 0]
            self.children.append(node)
            self.separators.append((features, weights))
            waiting.append((rows[~right], node, 0))
            waiting.append((rows[right], node, 1))
        return root[0]

    def _split(self, rows: IntArray, rng: np.random.Generator) -> tuple[Any, Any, Any] | None:
        """Separator of a node and the rows that go right, or None if the node is a leaf."""
        if len(rows) <= self.max_leaf:
            return None
        start = rng.random(len(rows)) < 0.5
        features, weights, right = _split_node(*self.rows, rows, start, self.C, *self.local)
        if right.all() or not right.any():
            return None
        return features, weights, right

    def _leaf(self, rows: IntArray) -> int:
        labels, counts = np.unique(self.y[rows], return_counts=True)
        most = np.argsort(-counts, kind="stable")[: self.leaf_labels]
        self.leaves.append((labels[most], counts[most] / len(rows)))
        return -len(self.leaves)

    def forest(self, roots: list[int]) -> Forest:
        """The lists as arrays."""
        node_ends, features, weights = _joined(self.separators)
        leaf_ends, labels, frequencies = _joined(self.leaves)
        children = np.array(self.children, np.int32).reshape(-1, 2)
        nodes = (np.array(roots, np.int32), children, node_ends, features, weights)
        return Forest(*nodes, leaf_ends, labels, frequencies, self.shape)


def _joined(parts: list[tuple[Any, Any]]) -> tuple[IntArray, Any, Any]:
    """Lists of (numbers, values), concatenated, and where each begins."""
    ends = np.cumsum([0, *(len(numbers) for numbers, _ in parts)])
    numbers = np.concatenate([np.empty(0, np.int32), *(part[0] for part in parts)])
    values = np.concatenate([np.empty(0, np.float32), *(part[1] for part in parts)])
    return ends, numbers.astype(np.int32), values.astype(np.float32)


@numba.njit(cache=True, nogil=True)
def _split_node(indptr, indices, data, y, rows, right, C, local_label, local_feature):
    """Choose sides by nDCG, learn the separator, and return the sides it makes."""
    _rank_sides(y, rows, right, local_label)
    share = right.mean()
    if share == 0 or share == 1:
        return np.empty(0, np.int64), np.empty(0), right
    sign = np.where(right, 1.0, -1.0)
    cost = np.where(right, C / share, C / (1 - share))
    features, starts, members, values = _columns(indptr, indices, data, rows, local_feature)
    w, margins = l1_logistic(starts, members, values, sign, cost, 0.1, 20)
    used = np.flatnonzero(w)
    order = np.argsort(features[used])
    return features[used][order], w[used][order], margins > 0


@numba.njit(cache=True, nogil=True)
def _rank_sides(y, rows, right, local):
    """Alternate ranks and sides, in place, until no label changes sides."""
    n_labels = 0
    for i in rows:
        if local[y[i]] < 0:
            local[y[i]] = n_labels
            n_labels += 1
    label = np.array([local[y[i]] for i in rows])
    for i in rows:
        local[y[i]] = -1
    for _ in range(20):
        counts = np.zeros((2, n_labels))
        for r in range(len(rows)):
            counts[1 if right[r] else 0, label[r]] += 1
        gains = np.zeros((2, n_labels))
        for side in range(2):
            order = np.argsort(-counts[side], kind="mergesort")
            for rank in range(n_labels):
                if counts[side, order[rank]] > 0:  # a side does not rank labels it does not have
                    gains[side, order[rank]] = 1 / np.log2(2 + rank)
        moved = False
        for r in range(len(rows)):
            better = gains[1, label[r]] - gains[0, label[r]]
            if better != 0 and right[r] != (better > 0):
                right[r] = better > 0
                moved = True
        if not moved:
            break


@numba.njit(cache=True, nogil=True)
def _columns(indptr, indices, data, rows, local):
    """The rows of a node, by columns: features, their starts, row numbers and values."""
    n_features, n_values = 0, 0
    for i in rows:
        for p in range(indptr[i], indptr[i + 1]):
            n_values += 1
            if local[indices[p]] < 0:
                local[indices[p]] = n_features
                n_features += 1
    features = np.empty(n_features, np.int64)
    starts = np.zeros(n_features + 1, np.int64)
    for i in rows:
        for p in range(indptr[i], indptr[i + 1]):
            features[local[indices[p]]] = indices[p]
            starts[local[indices[p]] + 1] += 1
    starts = np.cumsum(starts)
    members, values = np.empty(n_values, np.int64), np.empty(n_values)
    place = starts[:-1].copy()
    for r in range(len(rows)):
        for p in range(indptr[rows[r]], indptr[rows[r] + 1]):
            at = place[local[indices[p]]]
            members[at], values[at] = r, data[p]
            place[local[indices[p]]] += 1
    local[features] = -1
    return features, starts, members, values


@numba.njit(cache=True, nogil=True)
def _predict(
    indptr, indices, data, k, roots, children, node_ends, features, weights,
    leaf_ends, labels, frequencies, shape,
):  # fmt: skip
    """Pass rows down all trees, add up the frequencies of the leaves, and keep the k best."""
    n_rows, bias = len(indptr) - 1, shape[0]
    best = np.full((n_rows, k), -1, np.int64)
    scores = np.zeros(shape[1])
    for i in range(n_rows):
        x, x_data = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        leaves = np.empty(len(roots), np.int64)
        for t in range(len(roots)):
            node = roots[t]
            while node >= 0:
                of_node = slice(node_ends[node], node_ends[node + 1])
                product = _product(x, x_data, features[of_node], weights[of_node], bias)
                node = children[node, 1 if product > 0 else 0]
            leaves[t] = -1 - node
            for p in range(leaf_ends[leaves[t]], leaf_ends[leaves[t] + 1]):
                scores[labels[p]] += frequencies[p]
        for leaf in leaves:
            for p in range(leaf_ends[leaf], leaf_ends[leaf + 1]):
                if scores[labels[p]] > 0:
                    _insert(best[i], labels[p], scores)
        for leaf in leaves:
            scores[labels[leaf_ends[leaf] : leaf_ends[leaf + 1]]] = 0
    return best


@numba.njit(cache=True, nogil=True)
def _product(x, x_data, features, weights, bias):
    """⟨w, x⟩ for sorted sparse w and x, plus the bias, which is the last feature."""
    product, end = 0.0, len(features)
    if end and features[end - 1] == bias:
        product = weights[end - 1]
    for p in range(len(x)):
        at = np.searchsorted(features, x[p])
        if at < end and features[at] == x[p]:
            product += weights[at] * x_data[p]
    return product


@numba.njit(cache=True, nogil=True)
def _insert(best, label, scores):
    """Insert a label among the best, unless it is already there."""
    if label in best:
        return
    at = len(best)
    while at > 0 and (best[at - 1] < 0 or scores[best[at - 1]] < scores[label]):
        at -= 1
    if at < len(best):
        best[at + 1 :] = best[at:-1].copy()
        best[at] = label
