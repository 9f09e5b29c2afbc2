"""How a classifier of texts chooses its terms, by texts held out of training.

The candidates, and the rule by which one is taken, are in ``selection.terms``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from ._arrays import IntArray
from .classifier import TrellisClassifier
from .data.text_features import TextFeatures
from .engine import ENOUGH
from .learning.rows import hold_out_rows
from .selection.terms import CANDIDATES, HASHED, USUAL, Terms, TermTrial, choose_terms

_MANY_TEXTS = 10_000  # terms are tried on at most so many,
_MANY_CHARACTERS = 2_000_000  # with at most so many characters,
_OF_A_CLASS = 100  # and so many of a class, or as many as there is room for
_HELD_OUT = 0.3  # of them
_C = 3.0  # between those that are best for few terms and for many


class Labelled(NamedTuple):
    """Texts, numbers of their classes, their weights, and which of them may be held out."""

    texts: Sequence[str]
    y_encoded: IntArray
    sample_weight: npt.NDArray[np.floating[Any]]
    may_hold_out: npt.NDArray[np.bool_]

    def part(self, rows: npt.NDArray[Any]) -> Labelled:
        """Some of them, by their numbers."""
        texts = [self.texts[row] for row in rows]
        return Labelled(texts, *(column[rows] for column in self[1:]))


def best_terms(
    data: Labelled, min_df: int = 1, hash_size: int | None = None, n_jobs: int | None = None
) -> tuple[Terms, tuple[TermTrial, ...]]:
    """The terms to use, and what was tried: nothing if the texts are too few to judge by.

    >>> data = Labelled(["red"] * 9, np.arange(9), np.ones(9), np.ones(9, bool))
    >>> best_terms(data)
    (Terms(words=(1, 2), characters=None, word_share=None), ())
    """
    rng = np.random.RandomState(0)  # the same texts have the same terms
    some = _sample(data, rng)
    held_out = hold_out_rows(some.y_encoded, _HELD_OUT, rng, some.may_hold_out)
    if np.count_nonzero(held_out) < ENOUGH or len(np.unique(some.y_encoded)) < 2:
        return USUAL, ()
    inside, outside = (some.part(np.flatnonzero(mask)) for mask in (~held_out, held_out))
    candidates = CANDIDATES if hash_size is None else HASHED
    trials = tuple(
        TermTrial(terms, _accuracy(terms, inside, outside, min_df, hash_size, n_jobs))
        for terms in candidates
    )
    weight = outside.sample_weight.astype(np.float64)
    return choose_terms(trials, int(weight.sum() ** 2 / (weight**2).sum())), trials


def _sample(data: Labelled, rng: np.random.RandomState) -> Labelled:
    """Texts of classes drawn at random, until there are many; of a class not too many."""
    counted = rng.permutation(np.flatnonzero(data.sample_weight > 0))
    _, classes, sizes = np.unique(data.y_encoded[counted], return_inverse=True, return_counts=True)
    drawn = rng.permutation(len(sizes))[classes]  # the turn of each text's class
    by_turn = np.argsort(drawn, kind="stable")
    counted, drawn = counted[by_turn], drawn[by_turn]
    starts = np.searchsorted(drawn, np.arange(len(sizes)))
    most = max(_OF_A_CLASS, _MANY_TEXTS // len(sizes)) if len(sizes) else 0
    counted = counted[np.arange(len(counted)) - starts[drawn] < most][:_MANY_TEXTS]
    lengths = np.cumsum([len(data.texts[row]) for row in counted])
    return data.part(counted[: np.searchsorted(lengths, _MANY_CHARACTERS, side="right")])


def _accuracy(
    terms: Terms,
    inside: Labelled,
    outside: Labelled,
    min_df: int,
    hash_size: int | None,
    n_jobs: int | None,
) -> float:
    """Accuracy on held-out texts of a quick model of the others; 0 if these have no such terms."""
    features = TextFeatures(terms.words, terms.characters, hash_size, word_share=terms.word_share)
    try:
        X = features.fit_transform(list(inside.texts), min_df)
    except ValueError:
        return 0.0
    settings: dict[str, Any] = {"calibration": 0.0, "rerank": 0.0, "prune_threshold": 0.0}
    clf = TrellisClassifier(C=_C, n_jobs=n_jobs, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, inside.y_encoded, inside.sample_weight)
    right = clf.predict(features.transform(list(outside.texts))) == outside.y_encoded
    return float(np.average(right, weights=outside.sample_weight))
