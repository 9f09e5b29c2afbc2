"""Rivals: a class's own SVM, which tells its rows from those of classes it is mistaken for.

No edge is trained to separate two classes whose paths part at the source, where each goes with many
others. So each class k has one more linear learner f_k, trained on few rows: its own, and those of
other classes that list it among their m best. The m best paths of a row, with costs c, are then
ordered by

    c_i + mu max(0, 1 - f_i(x))^2,

together with the cosines of ``reranking``. Whether it is worth it, and mu, held-out rows say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import (
    Float32Array,
    Float64Array,
    IntArray,
    occurring_columns,
    squared_lengths,
)
from .._checks import check_shape
from .._threads import in_threads
from ..model.gaps import pack_gaps, unpack_gaps
from .class_entries import are_sound, lists_of, places_in_lists, starts_of

N_ENTRIES = (100, 300, 1000)  # candidates for the weights of a class that are kept, at most
STRENGTHS = (0.25, 0.5, 1.0, 2.0)  # candidates for mu
_C = 3.0  # good for all sets that were tried; there is too little to gain to choose it each time
_PASSES, _GAP = 30, 0.1  # of coordinate descent: the most, and where it stops
_SOME = 64  # classes that are trained at once: what they may need is kept at hand
_MOST_FEATURES = 2**31


class RivalArrays(NamedTuple):
    """Weights of all classes, as the kernels take them: see :class:`Rivals`."""

    starts: IntArray
    features: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int8]
    units: Float32Array
    biases: Float32Array


@dataclass(frozen=True, eq=False)
class Rivals:
    """The learners of all classes, and how much they count.

    Attributes
    ----------
    strength : float
        mu.
    starts : ndarray of int64, shape (n_classes + 1,)
    features : ndarray of int32
        Those of class k are at ``starts[k]`` to ``starts[k + 1]``, ascending.
    codes : ndarray of int8
        Their weights, in units of ``units[k]``.
    units, biases : ndarray of float32, shape (n_classes,)
    """

    strength: float
    starts: IntArray
    features: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int8]
    units: Float32Array
    biases: Float32Array

    def __post_init__(self) -> None:
        check_shape("codes", self.codes, self.features.shape)
        n_classes = (len(self.starts) - 1,)
        check_shape("units", self.units, n_classes)
        check_shape("biases", self.biases, n_classes)
        sound = (
            0 <= self.strength < 1e6
            and are_sound(self.starts, self.features)
            and bool(np.isfinite(self.units).all() and np.isfinite(self.biases).all())
        )
        if not sound:
            raise ValueError("rivals must list the features of each class")

    def to_parts(self) -> dict[str, Any]:
        """Parts of a model file: features as the distances to the ones before."""
        gaps, wide_gaps = pack_gaps(self.features, self.starts)
        return {
            "strength": self.strength,
            "counts": np.diff(self.starts),
            "gaps": gaps,
            "wide_gaps": wide_gaps,
            "codes": self.codes,
            "units": self.units,
            "biases": self.biases,
        }

    @classmethod
    def from_parts(
        cls,
        strength: float,
        counts: IntArray,
        gaps: npt.NDArray[np.uint16],
        wide_gaps: IntArray,
        codes: npt.NDArray[np.int8],
        units: Float32Array,
        biases: Float32Array,
    ) -> Rivals:
        """Learners of the parts of a model file, every bound checked."""
        if counts.ndim != 1 or counts.min(initial=0) < 0 or counts.max(initial=0) > N_ENTRIES[-1]:
            raise ValueError("counts of rivals are out of range")
        starts = starts_of(counts)
        features = unpack_gaps(gaps, wide_gaps, starts)
        if features.max(initial=0) >= _MOST_FEATURES:
            raise ValueError("features of rivals are out of range")
        return cls(strength, starts, features.astype(np.int32), codes, units, biases)

    @classmethod
    def none(cls, n_classes: int) -> Rivals:
        """Learners that change nothing."""
        nothing = np.zeros(n_classes, np.float32)
        starts = np.zeros(n_classes + 1, np.int64)
        return cls(0.0, starts, np.empty(0, np.int32), np.empty(0, np.int8), nothing, nothing)

    def of_classes(self, numbers: IntArray) -> Rivals:
        """The learners of these classes, in this order; -1 stands for one that is never doubted."""
        starts, at = lists_of(self.starts, numbers)
        units, biases = (
            self.units[numbers],
            np.where(numbers < 0, np.float32(1), self.biases[numbers]),
        )
        return Rivals(self.strength, starts, self.features[at], self.codes[at], units, biases)

    @property
    def n_entries(self) -> int:
        """Weights that a class may have: one of the candidates."""
        most = int(np.diff(self.starts).max())
        return next(limit for limit in N_ENTRIES if limit >= most)

    def cut(self, n_entries: int) -> Rivals:
        """The same with at most so many weights for each class: the largest."""
        counts = np.diff(self.starts)
        if counts.max() <= n_entries:
            return self
        sizes = np.abs(self.codes).astype(np.float32)
        kept = places_in_lists(self.starts, sizes) < n_entries
        starts = starts_of(np.minimum(counts, n_entries))
        return replace(self, starts=starts, features=self.features[kept], codes=self.codes[kept])

    @cached_property
    def arrays(self) -> RivalArrays:
        """What the search takes of the learners."""
        return RivalArrays(self.starts, self.features, self.codes, self.units, self.biases)

    def margins(self, X: Any, classes: IntArray) -> Float64Array:
        """Margins f_k of rows at some classes each, (n, m)."""
        from ..kernels import rivals

        out = np.empty(classes.shape)
        rivals.margins(X.indptr, X.indices, X.data, self.arrays, classes, out)
        return out

    def losses(self, X: Any, classes: IntArray) -> Float64Array:
        """Squared hinges of these margins."""
        short: Float64Array = np.maximum(0, 1 - self.margins(X, classes))
        return short**2


# ---------------------------------------------------------------------- training


def train_rivals(
    X: Any,
    y_encoded: IntArray,
    listed: npt.NDArray[np.integer[Any]],
    sample_weight: Float32Array,
    n_classes: int,
    unit: float = 1.0,
    n_entries: int = N_ENTRIES[-1],
    n_jobs: int | None = None,
) -> Rivals | None:
    """Learners of all classes, with a strength of zero; None if there are too many features.

    Parameters
    ----------
    X : csr_matrix
        Rows, as :func:`~xtrellis._arrays.canonical_csr` makes them.
    y_encoded : ndarray of int64
        Number of each row's class; -1 for a row that is to be left out.
    listed : ndarray of integers, shape (n, m)
        Classes that each row lists, or -1: of these others it becomes a negative example.
    sample_weight : ndarray of float32
        How much each row counts, but none counts for more than the median.
    n_classes : int
    unit : float, default=1.0
        Length that rows are measured in: that of a typical one.
    n_entries : int
        Weights that are kept of a class, at most.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    """
    from ..kernels import rivals as kernels

    if X.shape[1] >= _MOST_FEATURES:
        return None
    columns, indices = _renumbered(X)
    csr = X.indptr, indices, X.data
    starts = np.empty(n_classes + 1, np.int64)
    most = len(y_encoded) + int(np.count_nonzero(listed >= 0))
    rows, signs = np.empty(most, np.int32), np.empty(most, np.int8)
    kernels.group_by_class(y_encoded, listed, starts, rows, signs)
    # Heavy rows that contradict each other would take thousands of passes: without these, the last
    # one to be visited would win.
    median = np.median(sample_weight[y_encoded >= 0])
    costs = (_C / unit**2 * (np.minimum(sample_weight, median) / median)).astype(np.float32)
    costs = np.maximum(costs, np.finfo(np.float32).tiny)
    norms = squared_lengths(X).astype(np.float32)
    lengths = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[rows[: starts[-1]]])])
    n_values = np.minimum(np.diff(lengths[starts]), n_entries)
    units, biases = np.empty(n_classes, np.float32), np.empty(n_classes, np.float32)

    def train(cut: tuple[int, int]) -> tuple[IntArray, Any, Any]:
        first, last = cut
        room = int(n_values[first:last].sum())
        ends = np.zeros(last - first + 1, np.int64)
        features, codes = np.empty(room, np.int32), np.empty(room, np.int8)
        kernels.train(
            *(*csr, starts, rows, signs, costs, norms, np.float32(unit**2), first, last),
            *(n_entries, _PASSES, np.float32(_GAP), np.zeros(len(columns), np.float32)),
            *(ends, features, codes, units, biases),
        )
        # Copies, as a view would keep all that was set aside.
        return np.diff(ends), columns[features[: ends[-1]]], codes[: ends[-1]].copy()

    cuts = [*range(0, n_classes, _SOME), n_classes]
    parts = in_threads(train, pairwise(cuts), n_jobs)
    counts, features, codes = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Rivals(0.0, starts_of(counts), features, codes, units, biases)


def _renumbered(X: Any) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Columns that occur, and the indices of a matrix renumbered to them."""
    columns, _, renumbered = occurring_columns(X.indices, X.shape[1])
    return columns.astype(np.int32), renumbered.astype(np.int32, copy=False)
