"""Which terms a model of texts has: words, n-grams of characters, or both.

Where texts are names, or words in all their forms, whole words say next to nothing of texts to
come; where they are sentences, characters say little that words do not, but there are several times
as many of them. So words are usual, and something else must be clearly better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .settings import deviation

Lengths = tuple[int, int]

GAIN = 0.02  # of accuracy, for terms of characters to be worth their time and space,
FEWER = 0.1  # or of the errors


@dataclass(frozen=True)
class Terms:
    """Lengths of terms, and the share of a row's squared norm that its words make up.

    >>> print(Terms((1, 2), (1, 4), 0.25))
    words 1-2 (25%) and characters 1-4
    """

    words: Lengths | None
    characters: Lengths | None
    word_share: float | None = None

    def __str__(self) -> str:
        share = "" if self.word_share is None else f" ({self.word_share:.0%})"
        kinds = ("words", self.words, share), ("characters", self.characters, "")
        told = [f"{name} {each[0]}-{each[1]}{more}" for name, each, more in kinds if each]
        return " and ".join(told)


@dataclass(frozen=True)
class TermTrial:
    """How accurate a model of these terms is on texts that were held out."""

    terms: Terms
    accuracy: float


WORDS, CHARACTERS = (1, 2), (1, 4)
USUAL = Terms(WORDS, None)
CANDIDATES = (
    USUAL,
    Terms(None, CHARACTERS),
    Terms(WORDS, CHARACTERS, 0.25),
    Terms(WORDS, CHARACTERS, 0.75),
)
HASHED = (USUAL, Terms(None, CHARACTERS), Terms(WORDS, CHARACTERS))  # one table for both kinds


def choose_terms(trials: Sequence[TermTrial], n_texts: int) -> Terms:
    """The most accurate terms if they are clearly better than the first, which are usual.

    That is by so much of accuracy, or so many of the errors, and by more than what may be chance on
    so many texts.

    >>> trials = [TermTrial(USUAL, 0.89), TermTrial(Terms(None, CHARACTERS), 0.905)]
    >>> choose_terms(trials, n_texts=3_000)
    Terms(words=None, characters=(1, 4), word_share=None)
    >>> choose_terms(trials, n_texts=100)
    Terms(words=(1, 2), characters=None, word_share=None)
    """
    usual = trials[0].accuracy
    best = trials[int(np.argmax([trial.accuracy for trial in trials]))]
    gain = best.accuracy - usual
    is_clear = gain >= min(GAIN, FEWER * (1 - usual)) and gain > 2 * deviation(n_texts)
    return best.terms if is_clear else trials[0].terms
