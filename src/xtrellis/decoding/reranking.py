"""Re-ranking: the best classes of a row once more, by how close the row is to their centroids.

A class with few rows has weak weights, but its few rows still say what it looks like. So the m best
paths, with costs c, are ordered anew by

    c_i - lambda cos(x, centroid of class i),

where the centroid is the mean of the class's rows at unit length, cut to its largest entries. How
many entries are kept, and lambda, are chosen on held-out rows: 20 entries are enough for short
texts, while images need hundreds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, Float64Array, IntArray, unit_sums
from .._checks import check_shape
from ..model.feature_slots import feature_slots
from ..model.gaps import pack_gaps, unpack_gaps
from .class_entries import are_sound, lists_of, places_in_lists, starts_of

N_RERANKED = 10  # best paths that are ordered anew: twenty take half as long again, for little
N_TERMS = (20, 50, 100, 500)  # candidates for the entries of a centroid that are kept, at most
N_LARGEST = 64  # entries of a feature, over all centroids, that the bound of a cosine looks at
_STEPS = 2**16 - 1  # that their sizes are rounded up to
STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # candidates for lambda
ENOUGH = 100  # held-out rows: what fewer say is chance
# Accuracy that held-out rows must gain, for re-ranking, or for more of it, to be worth its time:
# the stronger it is, the more paths could still win, and the longer the search takes.
LEAST_GAIN = 0.005


class CentroidArrays(NamedTuple):
    """Centroids as the kernels take them, with what bounds their cosines (``kernels.rerank``).

    Attributes
    ----------
    starts, features, codes
        As those of :class:`Centroids`.
    slots : ndarray of int64
        Hash table of features, as that of the weights; a slot has the feature, and where its list
        starts and stops.
    buckets : ndarray of uint16
        Bucket of the class of each entry of a list.
    excesses : ndarray of float32
        How far the entry of a centroid at unit length is above that which the list starts with.
    """

    starts: IntArray
    features: IntArray
    codes: npt.NDArray[np.uint8]
    slots: IntArray
    buckets: npt.NDArray[np.uint16]
    excesses: Float32Array


@dataclass(frozen=True, eq=False)
class Centroids:
    """Centroids of all classes, and how much they count.

    Attributes
    ----------
    strength : float
        lambda.
    starts : ndarray of int64, shape (n_classes + 1,)
    features : ndarray of int64
        Those of class k are at ``starts[k]`` to ``starts[k + 1]``, ascending.
    codes : ndarray of uint8
        Their values, in units of 1 / 255 of the largest of their class.
    """

    strength: float
    starts: IntArray
    features: IntArray
    codes: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        check_shape("codes", self.codes, self.features.shape)
        sound = 0 <= self.strength < 1e6 and are_sound(self.starts, self.features)
        if not sound:
            raise ValueError("centroids must list the features of each class")

    def to_parts(self) -> dict[str, Any]:
        """Parts of a model file: features as the distances to the ones before."""
        gaps, wide_gaps = pack_gaps(self.features, self.starts)
        counts = np.diff(self.starts)
        return {
            "strength": self.strength,
            "counts": counts,
            "gaps": gaps,
            "wide_gaps": wide_gaps,
            "codes": self.codes,
        }

    @classmethod
    def from_parts(
        cls,
        strength: float,
        counts: IntArray,
        gaps: npt.NDArray[np.uint16],
        wide_gaps: IntArray,
        codes: npt.NDArray[np.uint8],
    ) -> Centroids:
        """Centroids of the parts of a model file, every bound checked."""
        if counts.ndim != 1 or counts.min(initial=0) < 0 or counts.max(initial=0) > N_TERMS[-1]:
            raise ValueError("counts of centroids are out of range")
        starts = starts_of(counts)
        return cls(strength, starts, unpack_gaps(gaps, wide_gaps, starts), codes)

    @classmethod
    def none(cls, n_classes: int) -> Centroids:
        """Centroids that change nothing."""
        starts, features = np.zeros(n_classes + 1, np.int64), np.empty(0, np.int64)
        return cls(0.0, starts, features, np.empty(0, np.uint8))

    def of_classes(self, numbers: IntArray) -> Centroids:
        """The centroids of these classes, in this order; -1 stands for one that has none."""
        starts, at = lists_of(self.starts, numbers)
        return Centroids(self.strength, starts, self.features[at], self.codes[at])

    @property
    def n_terms(self) -> int:
        """Entries of the largest centroid."""
        return int(np.diff(self.starts).max())

    def cosines(self, X: Any, classes: IntArray) -> Float64Array:
        """Cosines of rows and the centroids of some classes each, (n, m)."""
        from ..kernels import rerank

        out = np.empty(classes.shape)
        rerank.cosines(
            X.indptr, X.indices, X.data, self.starts, self.features, self.codes, classes, out
        )
        return out

    @cached_property
    def arrays(self) -> CentroidArrays:
        """What the search takes of the centroids."""
        return CentroidArrays(self.starts, self.features, self.codes, *self._largest())

    def _largest(self) -> tuple[IntArray, npt.NDArray[np.uint16], Float32Array]:
        """The largest entries of each feature, as :class:`CentroidArrays` lists them."""
        from ..kernels.blocks import HIGH, LOW
        from ..kernels.rerank import N_BUCKETS

        counts = np.diff(self.starts)
        class_of_entry = np.repeat(np.arange(len(counts)), counts)
        lengths = np.sqrt(np.bincount(class_of_entry, self.codes.astype(np.float64) ** 2))
        steps = _STEPS * (self.codes / np.maximum(lengths, 1)[class_of_entry])
        slots, seen, ranks = feature_slots(self.features, len(self.features))
        # Sorted by feature, the largest entries first, all in one number: far faster than by keys.
        packed = ranks * np.int64((_STEPS + 1) * N_BUCKETS)
        packed += (_STEPS - np.ceil(steps).astype(np.int64)) * N_BUCKETS
        packed += class_of_entry % N_BUCKETS
        packed.sort()
        rest, bucket = np.divmod(packed, N_BUCKETS)
        rank, below = np.divmod(rest, _STEPS + 1)
        sizes = ((_STEPS - below) / _STEPS).astype(np.float32)
        n_entries = np.bincount(ranks, minlength=len(seen))
        place = np.arange(len(rank)) - (np.cumsum(n_entries) - n_entries)[rank]
        # What a list starts with: zero, unless there are entries that are not listed.
        least = np.zeros(len(seen), np.float32)
        least[rank[place == N_LARGEST]] = sizes[place == N_LARGEST]
        is_listed = place < N_LARGEST
        rank, place = rank[is_listed], place[is_listed]
        n_listed = np.minimum(n_entries, N_LARGEST)
        stops = np.cumsum(1 + n_listed)
        slots[seen, LOW], slots[seen, HIGH] = stops - n_listed - 1, stops
        at = (stops - n_listed)[rank] + place
        buckets = np.zeros(len(at) + len(seen), np.uint16)
        buckets[at] = bucket[is_listed]
        excesses = np.empty(len(buckets), np.float32)
        excesses[at] = sizes[is_listed] - least[rank]
        excesses[slots[seen, LOW]] = least
        return slots.ravel(), buckets, excesses


# ---------------------------------------------------------------------- from rows to centroids


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums of the rows of each class at unit length, and how each entry ranks within its class.

    Attributes
    ----------
    sums : csr_matrix of float32, shape (n_classes, n_features)
        All entries are above zero.
    class_of_entry : ndarray of int32
    places : ndarray of int32
        0 for the largest entry of its class, 1 for the second; the first of equal ones first.
    """

    sums: Any
    class_of_entry: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls,
        X: Any,
        y_encoded: IntArray,
        n_classes: int,
        counted: npt.NDArray[np.bool_] | None = None,
    ) -> ClassSums:
        """The sums of rows, or of those counted, with their classes as numbers."""
        from scipy import sparse

        sums = unit_sums(sparse.csr_matrix(X, dtype=np.float32), y_encoded, n_classes, counted)
        sums.data = np.maximum(sums.data, 0)  # a word's absence says nothing
        sums.eliminate_zeros()
        sums.sort_indices()
        class_of_entry = np.repeat(np.arange(n_classes, dtype=np.int32), np.diff(sums.indptr))
        places = places_in_lists(sums.indptr.astype(np.int64), sums.data)
        return cls(sums, class_of_entry, places)

    def centroids(self, n_terms: int) -> Centroids:
        """Centroids of at most so many entries each, with a strength of zero."""
        sums, n_classes = self.sums, self.sums.shape[0]
        first = self.places == 0
        largest = np.zeros(n_classes, np.float32)
        largest[self.class_of_entry[first]] = sums.data[first]
        is_kept = self.places < n_terms
        kept_class, kept_data = self.class_of_entry[is_kept], sums.data[is_kept]
        counts = np.bincount(kept_class, minlength=n_classes)
        starts = starts_of(counts)
        codes = np.rint(255 * kept_data / largest[kept_class]).astype(np.uint8)
        return Centroids(0.0, starts, sums.indices[is_kept].astype(np.int64), codes)


def choose_reranking(
    costs: Float64Array,
    cosines: Sequence[Float64Array],
    hits: npt.NDArray[np.bool_],
    sample_weight: Float32Array,
    strengths: Sequence[float] = STRENGTHS,
    n_deviations: float = 1.0,
    least_gain: float = LEAST_GAIN,
) -> tuple[int, float]:
    """Which of several kinds of cosines, and at which strength, makes rows right most often.

    Among those whose gain is within half a point of the best, or within chance of it, the first
    kind is taken, at its smallest strength: centroids are then small, and the search ends early.
    The strength is zero if the gain is less than ``least_gain``, or may be chance itself: less than
    so many standard deviations. ``hits`` says which of a row's paths is the true one, if any.
    """
    if len(hits) < ENOUGH:
        return 0, 0.0
    share = sample_weight / sample_weight.sum()

    def right(kind: int, strength: float) -> npt.NDArray[np.bool_]:
        best = np.argmin(costs - strength * cosines[kind], axis=1)
        return np.asarray(hits[np.arange(len(hits)), best])

    def chance(some: npt.NDArray[np.bool_], others: npt.NDArray[np.bool_]) -> float:
        """Standard deviation of the difference of their shares, if it were mere luck."""
        return float(np.sqrt(share**2 @ (some != others)))

    before = right(0, 0.0)
    settings = [*product(range(len(cosines)), strengths)]
    outcomes = [right(*setting) for setting in settings]
    gains = np.array([share @ outcome for outcome in outcomes]) - share @ before
    best = int(np.argmax(gains))
    for gain, outcome, (kind, strength) in zip(gains, outcomes, settings, strict=True):
        is_worth_it = gain >= max(least_gain, n_deviations * chance(outcome, before))
        if is_worth_it and gain >= gains[best] - max(LEAST_GAIN, chance(outcome, outcomes[best])):
            return kind, strength
    return 0, 0.0
