"""The bound of a row's cosines holds for every class, and is tight where entries are listed."""

import numpy as np
import pytest
from scipy import sparse

from xtrellis._arrays import canonical_csr
from xtrellis.decoding import reranking
from xtrellis.decoding.reranking import N_TERMS, ClassSums
from xtrellis.kernels.rerank import N_BUCKETS, largest_cosine, squared_length

N_CLASSES = 60


def some_rows(n_rows, seed, negative=False):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 30)) * (rng.random((n_rows, 30)) < 0.3)
    X *= np.where(rng.random(X.shape) < 0.3 * negative, -1, 1)
    return canonical_csr(X)


def bounds(X, centroids):
    c, sums = centroids.arrays, np.empty(N_BUCKETS, np.float32)
    for start, stop in zip(X.indptr, X.indptr[1:], strict=False):
        length = squared_length(X.data, start, stop)
        row = X.indices, X.data, start, stop, length
        yield largest_cosine(*row, c.slots, c.buckets, c.excesses, sums)


@pytest.mark.parametrize("n_largest", [0, 1, 3, 64])
@pytest.mark.parametrize("negative", [False, True])
def test_bound_of_cosines(n_largest, negative, monkeypatch):
    monkeypatch.setattr(reranking, "N_LARGEST", n_largest)
    centroids = ClassSums.of(some_rows(N_CLASSES, 0), np.arange(N_CLASSES), N_CLASSES).centroids(
        N_TERMS[0]
    )
    X = some_rows(40, 1, negative)
    every = centroids.cosines(X, np.tile(np.arange(N_CLASSES), (40, 1))).max(axis=1)
    found = np.array(list(bounds(X, centroids)))
    assert (found >= every).all()
    if n_largest == 64 and not negative:
        np.testing.assert_allclose(found, every, rtol=1e-4)


def test_rows_and_classes_without_features():
    none = canonical_csr(sparse.csr_matrix((2, 30), dtype=np.float32))
    centroids = ClassSums.of(none, np.array([0, 1]), 2).centroids(N_TERMS[0])
    assert list(bounds(none, centroids)) == [0, 0]
    assert list(bounds(some_rows(3, 0), centroids)) == [0, 0, 0]


def test_classes_share_buckets(monkeypatch):
    """The bound may grow, but still holds."""
    monkeypatch.setattr("xtrellis.kernels.rerank.N_BUCKETS", 3)
    centroids = ClassSums.of(some_rows(N_CLASSES, 0), np.arange(N_CLASSES), N_CLASSES).centroids(
        N_TERMS[0]
    )
    X = some_rows(40, 1)
    every = centroids.cosines(X, np.tile(np.arange(N_CLASSES), (40, 1))).max(axis=1)
    assert (np.array(list(bounds(X, centroids))) >= every).all()
