"""Texts as rows of numbers: TF-IDF weights of their words and character n-grams.

With ``tf`` the number of times a term occurs in the text, ``df`` the number of training texts it
occurs in, and n the number of training texts,

    x_term = (1 + log tf) * (1 + log((1 + n) / (1 + df))),  divided by the row's Euclidean norm.

scikit-learn splits and counts; the columns are the terms seen in training or, for streams, hashes.
The weighting is that of its ``TfidfTransformer(sublinear_tf=True)``, written out because that one
takes 1.2 ms for a single text, and these few lines 0.15 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from ..model.packed_arrays import Counts, Texts, starts_of

Lengths = tuple[int, int]

WORD = r"(?u)\b\w+\b"  # single letters and digits, too: they distinguish diagnoses and products


@dataclass
class TextFeatures:
    """TF-IDF features: the terms, and how many training texts each of them occurs in.

    Attributes
    ----------
    words, characters : (int, int) or None
        Smallest and largest length of a term.
    hash_size : int or None
        Number of columns that terms are hashed to.
    terms : list of list of str
        Terms of words, then of characters, each sorted: the order of the columns. None if hashed.
    frequencies : ndarray of int64
        ``df`` of each column; None if terms are not weighted.
    n_texts : int
        Number of training texts.
    """

    words: Lengths | None
    characters: Lengths | None
    hash_size: int | None
    terms: list[list[str]] | None = None
    frequencies: npt.NDArray[np.int64] | None = None
    n_texts: int = 0

    def __post_init__(self) -> None:
        self._vectorizers: list[Any] | None = None
        self._idf: npt.NDArray[np.float32] | None = None

    def fit_transform(self, texts: list[str], min_df: int = 1) -> Any:
        """Learn the terms and their frequencies, and return the features of the texts."""
        self.n_texts = len(texts)
        if self.hash_size is not None:
            counts = self._counts(texts)
        else:
            fitted = [self._fit_terms(texts, min_df, *kind) for kind in self._kinds()]
            self.terms = [terms for _, terms in fitted]
            if not any(self.terms):
                raise ValueError(
                    "the texts contain no terms at all"
                    if min_df == 1
                    else f"no term occurs in min_df={min_df} texts: lower it"
                )
            counts = _side_by_side([part for part, _ in fitted])
        self.frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
        return self._weighted(counts)

    def transform(self, texts: list[str]) -> Any:
        """Features of texts."""
        return self._weighted(self._counts(texts))

    def _fit_terms(
        self, texts: list[str], min_df: int, analyzer: str, lengths: Lengths
    ) -> tuple[Any, list[str]]:
        """Counts of the terms of one kind that occur in enough texts, and these terms."""
        vectorizer = self._vectorizer(None, analyzer, lengths)
        vectorizer.set_params(min_df=min(min_df, len(texts)))  # more is an error of its own
        try:
            counts = vectorizer.fit_transform(texts)
        except ValueError:  # there is no such term
            return _no_columns(texts), []
        if min_df > len(texts):
            return _no_columns(texts), []
        return counts, vectorizer.get_feature_names_out().tolist()

    def _counts(self, texts: list[str]) -> Any:
        """Number of times each term occurs in each text."""
        if self._vectorizers is None:
            terms: list[Any] = self.terms or [None] * len(self._kinds())
            self._vectorizers = [
                self._vectorizer(own, *kind) for own, kind in zip(terms, self._kinds(), strict=True)
            ]
        parts = [
            _no_columns(texts) if each is None else each.transform(texts)
            for each in self._vectorizers
        ]
        if self.hash_size is not None:
            return sparse.csr_matrix(sum(parts[1:], parts[0]), dtype=np.float32)
        return _side_by_side(parts)

    def _weighted(self, counts: Any) -> Any:
        """Logarithms of counts, times the rarity of terms, scaled to rows of norm 1."""
        counts.sort_indices()
        counts.data = 1 + np.log(counts.data)
        if self.frequencies is not None:
            if self._idf is None:
                ratios = (1 + self.n_texts) / (1 + self.frequencies)
                self._idf = (1 + np.log(ratios)).astype(np.float32)
            counts.data *= self._idf[counts.indices]
        sums = np.zeros(counts.shape[0])
        filled = np.flatnonzero(np.diff(counts.indptr))
        if len(filled):
            squares = counts.data.astype(np.float64) ** 2
            sums[filled] = np.add.reduceat(squares, counts.indptr[filled])
        norms = np.sqrt(sums).astype(np.float32)
        counts.data /= np.repeat(norms, np.diff(counts.indptr))
        return counts

    def _kinds(self) -> list[tuple[str, Lengths]]:
        """Kinds of terms: scikit-learn's analyzer, and their lengths."""
        kinds = [("word", self.words), ("char_wb", self.characters)]
        return [(analyzer, lengths) for analyzer, lengths in kinds if lengths is not None]

    def _vectorizer(self, terms: list[str] | None, analyzer: str, lengths: Lengths) -> Any:
        if terms == []:  # all of this kind are rare
            return None
        settings = {"analyzer": analyzer, "ngram_range": tuple(lengths), "dtype": np.float32}
        if analyzer == "word":
            settings["token_pattern"] = WORD
        if self.hash_size is not None:
            return HashingVectorizer(
                n_features=self.hash_size, norm=None, alternate_sign=False, **settings
            )
        return CountVectorizer(vocabulary=terms, **settings)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_vectorizers": None, "_idf": None}

    # ------------------------------------------------------------------ in a model file

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.hash_size or sum(map(len, self.terms or []))

    def to_parts(self) -> dict[str, Any]:
        """Parts of a model file: the columns that occur, as gaps, and their frequencies."""
        parts: dict[str, Any] = {
            "words": _plain(self.words),
            "characters": _plain(self.characters),
            "hash_size": self.hash_size,
            "n_texts": self.n_texts,
        }
        if self.terms is not None:
            parts["terms"] = [Texts.of(terms) for terms in self.terms]
        if self.frequencies is not None:
            columns = np.flatnonzero(self.frequencies)
            parts["columns"] = Counts.of(np.diff(columns, prepend=-1) - 1)
            parts["frequencies"] = Counts.of(self.frequencies[columns])
        return parts

    @classmethod
    def from_parts(
        cls,
        words: Lengths | None,
        characters: Lengths | None,
        hash_size: int | None,
        n_texts: int,
        terms: list[Texts] | None = None,
        columns: Counts | None = None,
        frequencies: Counts | None = None,
    ) -> TextFeatures:
        """Features of the parts of a model file, or a ValueError."""
        features = cls(words, characters, hash_size, n_texts=n_texts)
        lengths = [each for each in (words, characters) if each is not None]
        if not lengths or not all(map(is_range, lengths)):
            raise ValueError("words and characters must be lengths of terms")
        if (hash_size is None) == (terms is None) or not 0 <= n_texts < 2**53:
            raise ValueError("text features are either hashed, or have terms")
        if terms is not None:
            features.terms = [each.values() for each in terms]
            if len(terms) != len(lengths) or any(
                len(set(each)) < len(each) for each in features.terms
            ):
                raise ValueError("terms must be distinct, words and then characters")
        elif not 1 <= (hash_size or 0) < 2**31:
            raise ValueError(f"hash_size must be from 1 to 2**31 - 1, got {hash_size}")
        if columns is not None and frequencies is not None:
            counts = frequencies.values(features.n_columns)
            gaps = columns.values(features.n_columns)
            if len(counts) != len(gaps) or (counts < 1).any() or (counts > n_texts).any():
                raise ValueError("frequencies of terms must be from 1 to n_texts")
            occurring = starts_of(gaps)[1:] + np.arange(len(gaps))
            if occurring.max(initial=-1) >= features.n_columns:
                raise ValueError("a column of the text features is out of range")
            features.frequencies = np.zeros(features.n_columns, np.int64)
            features.frequencies[occurring] = counts
        return features


def checked_texts(X: Any) -> list[str]:
    """Texts as a list, or an error that names the first that is not a text."""
    if isinstance(X, str | bytes):
        raise ValueError("X must be a sequence of texts, got one text: wrap it in a list")
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__iter__"):
        raise ValueError(
            f"X must be a one-dimensional sequence of texts, got {type(X).__name__}"
            + (f" of shape {X.shape}" if hasattr(X, "shape") else "")
        )
    texts = list(X)
    if not texts:
        raise ValueError("X contains no texts (0 samples): at least one is needed")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"X[{row}] must be a text, got {text!r}")
    return texts


def _plain(lengths: Any) -> Lengths | None:
    return None if lengths is None else (int(lengths[0]), int(lengths[1]))


def is_range(lengths: Any) -> bool:
    """Whether these are a smallest and a largest length."""
    if not isinstance(lengths, tuple | list) or len(lengths) != 2:
        return False
    return all(isinstance(length, int) for length in lengths) and 1 <= lengths[0] <= lengths[1]


def _side_by_side(parts: list[Any]) -> Any:
    """Columns of several matrices in one CSR matrix."""
    return sparse.csr_matrix(parts[0] if len(parts) == 1 else sparse.hstack(parts, "csr"))


def _no_columns(texts: list[str]) -> Any:
    return sparse.csr_matrix((len(texts), 0), dtype=np.float32)
