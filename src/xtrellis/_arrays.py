"""Array types, and rows in the one form that the kernels are compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
FloatArray = npt.NDArray[np.floating[Any]]

_SHORTEST = 1e-37  # length of a row that is not taken for zero: float32 holds 1 divided by it
_SOME_ROWS = 2**13  # that temporary arrays are made for at once


def canonical_csr(X: Any) -> Any:
    """CSR of float32 in the one form the kernels are compiled for: sorted, 32-bit, writeable."""
    from scipy import sparse

    X = sparse.csr_matrix(X, dtype=np.float32)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    index_type = np.int32 if max(X.nnz, X.shape[1]) < 2**31 else np.int64
    parts = [X.data, X.indices.astype(index_type, copy=False), X.indptr.astype(np.int64)]
    parts = [part if part.flags.writeable else part.copy() for part in parts]
    result = sparse.csr_matrix(X.shape, dtype=np.float32)
    result.data, result.indices, result.indptr = parts
    result.has_canonical_format = True
    return result


def class_sums(
    X: Any, y_encoded: IntArray, n_classes: int, times: npt.NDArray[np.floating[Any]] | None = None
) -> Any:
    """Sum of the rows of each class, (n_classes, n_features) CSR of float32.

    Each row is taken ``times`` a number of its own: once, unless that is given.

    >>> class_sums(np.array([[1.0, 2.0], [0.0, 5.0], [3.0, 0.0]]), np.array([1, 0, 1]), 2).toarray()
    array([[0., 5.],
           [4., 2.]], dtype=float32)
    """
    from scipy import sparse

    n_rows = len(y_encoded)
    each = np.ones(n_rows, X.dtype) if times is None else np.asarray(times, X.dtype)
    belongs = sparse.csr_matrix((each, (y_encoded, np.arange(n_rows))), (n_classes, n_rows))
    return sparse.csr_matrix(belongs @ X, dtype=np.float32)


def unit_sums(
    X: Any, y_encoded: IntArray, n_classes: int, counted: npt.NDArray[np.bool_] | None = None
) -> Any:
    """Sum of the rows of each class, or of those counted, scaled to length 1 before; X is CSR.

    >>> from scipy import sparse
    >>> unit_sums(sparse.csr_matrix([[3.0, 4.0], [0.0, 5.0]]), np.array([0, 0]), 1).toarray()
    array([[0.6, 1.8]], dtype=float32)
    """
    lengths = np.sqrt(squared_lengths(X))
    times = 1 / np.where(lengths < _SHORTEST, 1, lengths)
    return class_sums(X, y_encoded, n_classes, times if counted is None else times * counted)


def squared_lengths(X: Any) -> Float64Array:
    """Squared length of each row of a CSR matrix.

    >>> from scipy import sparse
    >>> squared_lengths(sparse.csr_matrix([[3.0, 4.0], [0.0, 0.0]]))
    array([25.,  0.])
    """
    lengths = np.empty(X.shape[0])
    for start in range(0, X.shape[0], _SOME_ROWS):
        own = X.indptr[start : start + _SOME_ROWS + 1]
        row = np.repeat(np.arange(len(own) - 1), np.diff(own))
        squares = X.data[own[0] : own[-1]].astype(np.float64) ** 2
        lengths[start : start + _SOME_ROWS] = np.bincount(row, squares, len(own) - 1)
    return lengths


def are_sparse(n_columns: int, n_values: int) -> bool:
    """Whether there are so many columns that work should follow the values instead."""
    return n_columns > max(4 * n_values, 2**20)


def occurring_columns(
    indices: npt.NDArray[np.integer[Any]], n_columns: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Columns that occur, ascending; how often each does; and the indices renumbered to them.

    The work follows the indices, not the number of columns, however large that is.

    >>> occurring_columns(np.array([7, 300_000_000, 7]), 300_000_001)
    (array([        7, 300000000]), array([2, 1]), array([0, 1, 0]))
    """
    if are_sparse(n_columns, len(indices)):
        columns, renumbered, counts = np.unique(indices, return_inverse=True, return_counts=True)
        return columns.astype(np.int64), counts, renumbered
    counts = np.bincount(indices, minlength=n_columns)
    columns = np.flatnonzero(counts)
    return columns, counts[columns], (np.cumsum(counts > 0) - 1)[indices]


@dataclass(frozen=True)
class SparseRows:
    """Rows as the kernels take them, without the cost of making a SciPy matrix."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32] | IntArray
    data: Float32Array
    shape: tuple[int, int]

    @classmethod
    def one_of(cls, X: Any, row: int) -> SparseRows:
        """One row of others."""
        within = slice(X.indptr[row], X.indptr[row + 1])
        indptr = np.array([0, within.stop - within.start], np.int64)
        return cls(indptr, X.indices[within], X.data[within], (1, X.shape[1]))

    @classmethod
    def one(
        cls, features: npt.NDArray[Any], values: Float32Array, shape: tuple[int, int]
    ) -> SparseRows:
        """A row of given features and values."""
        return cls(np.array([0, len(features)], np.int64), features, values, shape)

    def matrix(self) -> Any:
        """The same as a SciPy matrix."""
        from scipy import sparse

        return sparse.csr_matrix((self.data, self.indices, self.indptr), self.shape)
