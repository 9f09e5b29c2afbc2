"""Rows that stay on disk: what one sweep tells of them, and how some of them are taken.

Rows come in parts, the shards. :func:`survey` reads each once and keeps what training needs of all
rows at once; :meth:`StoredRows.gather` takes some rows into memory, in one sweep; and
:func:`spill` writes them once more, those that pass a vertex side by side, so that a vertex's rows
are read in as few pieces as there are shards.
"""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray, canonical_csr
from .._checks import check_magnitudes
from .learners.svm import CSR

_DENSE = 2**24  # features: up to so many, a table of all of them is the fastest


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows on disk, over the features that occur in them.

    Attributes
    ----------
    shards : Shards
        Anything with ``counts``, ``n_features``, ``folder``, ``stamp(number)``, and
        ``read(number, stamp)``, a CSR matrix.
    stamps : tuple
        Of each shard: what tells whether it was changed since.
    starts : ndarray of int64
        Number of the first row of each shard, and the number of all rows.
    features : ndarray of int64
        Numbers of the features that occur, the most frequent first.
    norms : ndarray of float32
        Squared length of each row.
    lengths : ndarray of int32
        Number of non-zeros of each row.
    largest : float
        The largest size of a value.
    """

    shards: Any
    stamps: tuple[Any, ...]
    starts: IntArray
    features: IntArray
    norms: Float32Array
    lengths: npt.NDArray[np.int32]
    largest: float
    _places: npt.NDArray[np.int32]  # of all features; or of those that occur, ascending
    _ascending: IntArray | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.starts[-1])

    @property
    def n_values(self) -> int:
        """Number of non-zeros of all rows."""
        return int(self.lengths.sum(dtype=np.int64))

    def read(self, number: int) -> CSR:
        """Rows of one shard, with features numbered by their place in ``features``."""
        X = self._rows(number)
        if self._ascending is None:
            return X.indptr, self._places[X.indices], X.data
        return X.indptr, self._places[np.searchsorted(self._ascending, X.indices)], X.data

    def _rows(self, number: int) -> Any:
        return self.shards.read(number, self.stamps[number])

    def gather(self, rows: IntArray) -> Any:
        """Some rows, given by ascending numbers, as a CSR matrix over all features."""
        from scipy import sparse

        parts = []
        for number in range(len(self.starts) - 1):
            first, last = np.searchsorted(rows, self.starts[number : number + 2])
            if last > first:
                X = self._rows(number)
                parts.append(X[rows[first:last] - self.starts[number]])
        return canonical_csr(sparse.vstack(parts, format="csr"))

    def class_sums(
        self, y_encoded: IntArray, taken: npt.NDArray[np.bool_], n_classes: int, n_entries: int
    ) -> Any:
        """Sum of some rows of each class, as a CSR matrix over all features.

        Never more than twice ``n_entries`` sums are kept: when there are more, each class keeps
        those that are large for it, weighted by how few classes have them.
        """
        from scipy import sparse

        sums = sparse.csr_matrix((n_classes, self.shards.n_features), dtype=np.float32)
        for number in range(len(self.starts) - 1):
            X, own = self._rows(number), slice(self.starts[number], self.starts[number + 1])
            shape = n_classes, X.shape[0]
            places = y_encoded[own], np.arange(X.shape[0])
            belongs = sparse.csr_matrix((taken[own].astype(np.float32), places), shape)
            belongs.eliminate_zeros()
            with np.errstate(over="ignore"):
                sums = sums + belongs @ X
            if sums.nnz > 2 * n_entries:
                sums = _largest_entries(sums, n_entries)
        return canonical_csr(sums)


def _largest_entries(sums: Any, n_entries: int) -> Any:
    """So many entries, the largest relative to the largest of their row.

    They are weighted by how few rows have them.
    """
    n_classes = sums.shape[0]
    rarity = np.log1p(n_classes / np.maximum(np.bincount(sums.indices, minlength=1), 1))
    sizes = np.abs(sums.data) * rarity.astype(np.float32)[sums.indices]
    counts = np.diff(sums.indptr)
    some = np.flatnonzero(counts)
    sizes /= np.repeat(np.maximum.reduceat(sizes, sums.indptr[some]), counts[some])
    least = np.partition(sizes, len(sizes) - n_entries)[len(sizes) - n_entries]
    sums.data[sizes < least] = 0
    sums.eliminate_zeros()
    return sums


def survey(shards: Any) -> StoredRows:
    """What training needs to know of all rows, in one sweep."""
    n_features, dense = shards.n_features, shards.n_features <= _DENSE
    starts = np.concatenate([[0], np.cumsum(shards.counts)]).astype(np.int64)
    norms, lengths = np.empty(starts[-1], np.float32), np.empty(starts[-1], np.int32)
    columns, counts = np.arange(n_features if dense else 0), np.zeros(n_features * dense, np.int64)
    largest = 0.0
    stamps = tuple(shards.stamp(number) for number in range(len(shards.counts)))
    for number in range(len(starts) - 1):
        X = shards.read(number, stamps[number])
        own = slice(starts[number], starts[number + 1])
        check_magnitudes(X, np.ones(1, np.float32))
        if not np.isfinite(X.data).all():
            raise ValueError(f"{shards.folder}: part {number} holds values that are not finite")
        largest = max(largest, float(np.abs(X.data).max(initial=0)))
        lengths[own] = np.diff(X.indptr)
        if dense:
            counts += np.bincount(X.indices, minlength=n_features)
        else:
            columns, counts = _merged(columns, counts, X.indices)
        X.data *= X.data
        norms[own] = X @ np.ones(n_features, np.float32)
    if dense:
        columns = np.flatnonzero(counts)
        counts = counts[columns]
    by_frequency = np.argsort(-counts, kind="stable")
    places = np.full(n_features if dense else len(columns), -1, np.int32)
    places[columns[by_frequency] if dense else by_frequency] = np.arange(len(columns))
    ascending = None if dense else columns
    features = columns[by_frequency]
    return StoredRows(shards, stamps, starts, features, norms, lengths, largest, places, ascending)


def _merged(
    columns: IntArray, counts: IntArray, indices: npt.NDArray[Any]
) -> tuple[IntArray, IntArray]:
    """Columns that occurred before or occur now, ascending, and how often each did."""
    new, n_new = np.unique(indices, return_counts=True)
    both = np.union1d(columns, new.astype(np.int64))
    total = np.zeros(len(both), np.int64)
    total[np.searchsorted(both, columns)] = counts
    total[np.searchsorted(both, new)] += n_new
    return both, total


# ---------------------------------------------------------------------- by vertex


class Spilled:
    """Rows of one slice's vertices in a file without a name, which is gone when it is closed.

    For every shard it holds one piece per vertex: lengths of the rows, their features, their
    values.
    """

    def __init__(self, file: BinaryIO, pieces: list[list[tuple[int, int, int]]]) -> None:
        self._file, self._pieces = file, pieces
        self._lock = threading.Lock()

    def pieces(self, vertex: int) -> SpilledParts:
        """The rows of a vertex, in parts."""
        return SpilledParts(self, self._pieces[vertex])

    def read(self, piece: tuple[int, int, int]) -> CSR:
        """Rows of a piece."""
        position, n_rows, n_values = piece
        content = np.empty(n_rows + 2 * n_values, np.int32)
        with self._lock:
            self._file.seek(position)
            n_read = self._file.readinto(content.view(np.uint8).data)  # type: ignore[attr-defined]
        if n_read != content.nbytes:
            raise OSError("a temporary file was cut short while it was in use")
        indptr = np.concatenate([[0], np.cumsum(content[:n_rows], dtype=np.int64)])
        data = content[n_rows + n_values :].view(np.float32)
        return indptr.astype(np.int64), content[n_rows : n_rows + n_values], data

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


class SpilledParts:
    """Rows that pass one vertex, in the order of their numbers: a piece per shard."""

    def __init__(self, spilled: Spilled, pieces: list[tuple[int, int, int]]) -> None:
        self._spilled, self._pieces = spilled, pieces
        n_rows = [n for _, n, _ in pieces]
        self.starts: IntArray = np.concatenate([[0], np.cumsum(n_rows)]).astype(np.int64)

    def read(self, number: int) -> CSR:
        """Rows of one piece."""
        return self._spilled.read(self._pieces[number])

    def whole(self) -> CSR:
        """All rows."""
        n_values = sum(n for _, _, n in self._pieces)
        lengths = np.empty(self.starts[-1], np.int64)
        indices, data = np.empty(n_values, np.int32), np.empty(n_values, np.float32)
        first = 0
        for number, (_, _, n) in enumerate(self._pieces):
            indptr, indices[first : first + n], data[first : first + n] = self.read(number)
            lengths[self.starts[number] : self.starts[number + 1]] = np.diff(indptr)
            first += n
        return np.concatenate([[0], np.cumsum(lengths)]), indices, data


def spill(rows: StoredRows, vertices: npt.NDArray[np.int32], n_vertices: int) -> Spilled:
    """Write the rows of every vertex side by side, in one sweep; -1 marks rows to leave out.

    The file is in the folder of the shards if that can be written to, as there is a disk with room
    for as much; else in that for temporary files, which may be kept in memory.
    """
    pieces: list[list[tuple[int, int, int]]] = [[] for _ in range(n_vertices)]
    folder = Path(rows.shards.folder)
    if not os.access(folder, os.W_OK):
        folder = Path(tempfile.gettempdir())
    file: Any = None
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - kept by the one that is returned
        position = 0
        for number in range(len(rows.starts) - 1):
            csr = rows.read(number)
            own = vertices[rows.starts[number] : rows.starts[number + 1]]
            by_vertex = np.argsort(own, kind="stable")
            cuts = np.searchsorted(own[by_vertex], np.arange(n_vertices + 1))
            for vertex in np.flatnonzero(np.diff(cuts)):
                content, n_values = _piece(csr, by_vertex[cuts[vertex] : cuts[vertex + 1]])
                file.write(content.data)
                n_rows = int(cuts[vertex + 1] - cuts[vertex])
                pieces[vertex].append((position, n_rows, n_values))
                position += content.nbytes
        file.flush()
    except BaseException as error:
        if file is not None:
            _close_quietly(file)
        from ..model.atomic import is_disk_full

        if is_disk_full(error):
            raise OSError(
                error.errno,
                f"{error.strerror}: training needs as much room there as the rows take; free some",
                os.fspath(folder),
            ) from None
        raise
    return Spilled(file, pieces)


def _piece(csr: CSR, members: IntArray) -> tuple[npt.NDArray[np.int32], int]:
    """Lengths, features and values of some rows, one after the other; and the number of values."""
    indptr, indices, data = csr
    lengths = indptr[members + 1] - indptr[members]
    n_values = int(lengths.sum())
    shifts = indptr[members] - (np.cumsum(lengths) - lengths)
    at = np.arange(n_values) + np.repeat(shifts, lengths)
    content = np.empty(len(members) + 2 * n_values, np.int32)
    content[: len(members)] = lengths
    content[len(members) : len(members) + n_values] = indices[at]
    content[len(members) + n_values :] = data[at].view(np.int32)
    return content, n_values


def _close_quietly(file: Any) -> None:
    """Close a file whose last bytes may find no room, either."""
    try:
        file.close()
    except OSError:
        file.close()  # which now forgets them
