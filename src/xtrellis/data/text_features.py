"""Texts as rows of numbers: TF-IDF weights of their words and character n-grams.

With ``tf`` the number of times a term occurs in the text, ``df`` the number of training texts it
occurs in, and n the number of training texts,

    x_term = (1 + log tf) * (1 + log((1 + n) / (1 + df))),  divided by the row's Euclidean norm.

The columns are the terms seen in training or, for streams, hashes (see ``terms``). The weighting is
that of scikit-learn's ``TfidfTransformer(sublinear_tf=True)``. A text has many more n-grams of
characters than words, which would hardly count beside them; so the share of the row's squared norm
that its words make up can be set, as with a ``FeatureUnion`` of two vectorisers and weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, SparseRows
from .._checks import check_integer
from ..model.packed_arrays import Counts, Texts, starts_of
from .terms import Lengths, TermCounts, TermFinder

FEW_TEXTS = 64  # for which making a matrix, or starting threads, takes longer than prediction
MAX_LENGTH = 1_000  # of a term, in words or characters


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
    word_share : float or None
        Share of a row's squared norm that its words make up, if it has terms of both kinds; None
        leaves it as it comes.
    """

    words: Lengths | None
    characters: Lengths | None
    hash_size: int | None
    terms: list[list[str]] | None = None
    frequencies: npt.NDArray[np.int64] | None = None
    n_texts: int = 0
    word_share: float | None = None

    def __post_init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """Drop what is made when it is first needed."""
        self._finder: TermFinder | None = None
        self._rarity: Float32Array | None = None

    def fit_transform(self, texts: list[str], min_df: int = 1) -> Any:
        """Learn the terms and their frequencies, and return the features of the texts."""
        self._forget()
        self.n_texts = len(texts)
        if self.hash_size is not None:
            counts = self._count(texts)
            self.frequencies = np.bincount(counts.indices, minlength=self.hash_size)
        else:
            counts, self.terms, self.frequencies = TermFinder.learn(
                self.words, self.characters, texts, min_df
            )
            self._check_terms(min_df)
        self._weigh(counts)
        return self._matrix(counts)

    def learn_more(self, texts: list[str]) -> TermCounts:
        """Counts of terms of one batch of texts, numbered as they come; new terms are learned.

        After the last batch, :meth:`finish` says which columns the numbers stand for.
        """
        if self._finder is None:
            self._finder = TermFinder(self.words, self.characters, self.hash_size, None)
        self.n_texts += len(texts)
        if self.hash_size is None:
            return self._finder.learn_more(texts)
        counts = self._finder.count(texts)
        found = np.bincount(counts.indices, minlength=self.hash_size)
        self.frequencies = found if self.frequencies is None else self.frequencies + found
        return counts

    def finish(self, min_df: int = 1) -> npt.NDArray[np.int32] | None:
        """Keep what was learned from all batches; the column of each number, -1 for none.

        None if terms are hashed: numbers are columns.
        """
        if self.hash_size is not None:
            return None
        assert self._finder is not None
        self.terms, columns, self.frequencies = self._finder.vocabulary(min_df)
        self._forget()
        self._check_terms(min_df)
        return columns

    def weigh(self, counts: TermCounts) -> None:
        """Turn counts of columns into features, in place."""
        self._weigh(counts)

    def _check_terms(self, min_df: int) -> None:
        if not any(self.terms or []):
            raise ValueError(
                "the texts contain no terms at all"
                if min_df == 1
                else f"no term occurs in min_df={min_df} texts: lower it"
            )

    def transform(self, texts: list[str]) -> Any:
        """Features of texts."""
        return self._matrix(self.weighted(texts))

    def rows(self, texts: list[str]) -> SparseRows:
        """The same without the cost of making a SciPy matrix: for a few texts."""
        counts = self.weighted(texts)
        return SparseRows(counts.indptr, counts.indices, counts.data, (len(texts), self.n_columns))

    def row(self, text: str) -> tuple[npt.NDArray[np.int32], Float32Array]:
        """Features of one text: columns and values, without the cost of making a SciPy matrix.

        >>> features = TextFeatures((1, 1), None, None)
        >>> X = features.fit_transform(["red wine", "white wine"])
        >>> features.row("wine, more wine")
        (array([2], dtype=int32), array([1.], dtype=float32))
        """
        counts = self.weighted([text])
        return counts.indices, counts.data

    def weighted(self, texts: list[str]) -> TermCounts:
        """Features of texts as plain arrays."""
        counts = self._count(texts)
        self._weigh(counts)
        return counts

    def _count(self, texts: list[str]) -> TermCounts:
        """Number of times each term occurs in each text."""
        if self._finder is None:
            self._finder = TermFinder(self.words, self.characters, self.hash_size, self.terms)
        return self._finder.count(texts)

    def _weigh(self, counts: TermCounts) -> None:
        """Logarithms of counts, times the rarity of terms, scaled to rows of norm 1."""
        from ..kernels.terms import weigh_terms

        if self._rarity is None:  # set in one step: another thread may look at it meanwhile
            found = self.frequencies
            self._rarity = (
                np.empty(0, np.float32) if found is None else _rarity(found, self.n_texts)
            )
        share = -1.0 if self.word_share is None else self.word_share
        n_words = len(self.terms[0]) if self.terms is not None else 0
        weigh_terms(counts.indptr, counts.indices, counts.data, self._rarity, n_words, share)

    def _matrix(self, counts: TermCounts) -> Any:
        """Weighted counts as a CSR matrix."""
        from scipy import sparse

        shape = len(counts.indptr) - 1, self.n_columns
        matrix = sparse.csr_matrix((counts.data, counts.indices, counts.indptr), shape)
        matrix.has_canonical_format = True
        return matrix

    def equals(self, other: TextFeatures) -> bool:
        """Whether texts have the same features."""
        names = "words", "characters", "hash_size", "n_texts", "word_share"
        same = all(_listed(getattr(self, n)) == _listed(getattr(other, n)) for n in names)
        return (
            same
            and self.terms == other.terms
            and np.array_equal(self.frequencies, other.frequencies)  # type: ignore[arg-type]
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_finder": None, "_rarity": None}

    # ------------------------------------------------------------------ in a model file

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.hash_size or sum(map(len, self.terms or []))

    def term(self, column: int) -> Any:
        """Term of a column; the number of the column if terms are hashed."""
        for terms in self.terms or []:
            if column < len(terms):
                return terms[column]
            column -= len(terms)
        return column

    def to_parts(self) -> dict[str, Any]:
        """Parts of a model file: the columns that occur, as gaps, and their frequencies."""
        parts: dict[str, Any] = {
            "words": _plain(self.words),
            "characters": _plain(self.characters),
            "hash_size": self.hash_size,
            "n_texts": self.n_texts,
        }
        if self.word_share is not None:
            parts["word_share"] = self.word_share
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
        word_share: float | None = None,
    ) -> TextFeatures:
        """Features of the parts of a model file, or a ValueError."""
        features = cls(words, characters, hash_size, n_texts=n_texts, word_share=word_share)
        check_word_share(word_share, words, characters, hash_size)
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


def _rarity(frequencies: npt.NDArray[np.int64], n_texts: int) -> Float32Array:
    """Weight of each column; hashes share a few frequencies, whose logarithms are looked up."""
    most = int(frequencies.max(initial=0))
    each = np.arange(most + 1) if most < len(frequencies) else frequencies
    rarity = (1 + np.log((1 + n_texts) / (1 + each))).astype(np.float32)
    return rarity[frequencies] if each is not frequencies else rarity


def new_features(
    words: Any, characters: Any, min_df: Any = 1, hash_size: Any = None, word_share: Any = None
) -> TextFeatures:
    """Features with these settings, not fitted, or an error that names the wrong setting."""
    for name, lengths in (("words", words), ("characters", characters)):
        if lengths is not None and not is_range(lengths):
            raise ValueError(
                f"{name} must be two lengths such as (1, 2), None or 'auto'; got {lengths!r}"
            )
    if words is None and characters is None:
        raise ValueError("words and characters are both None: no terms are left")
    check_integer("min_df", min_df, 1)
    if hash_size is not None:
        check_integer("hash_size", hash_size, 1)
    hash_size = None if hash_size is None else int(hash_size)
    check_word_share(word_share, words, characters, hash_size)
    word_share = None if word_share is None else float(word_share)
    return TextFeatures(words, characters, hash_size, word_share=word_share)


def check_word_share(
    word_share: Any, words: Lengths | None, characters: Lengths | None, hash_size: int | None
) -> None:
    """Raise a ValueError unless this can be the share that words make up."""
    if word_share is None:
        return
    if not isinstance(word_share, Real) or not 0 < float(word_share) < 1:
        raise ValueError(f"word_share must be between 0 and 1, or None; got {word_share!r}")
    if words is None or characters is None:
        raise ValueError("word_share needs both words and characters: leave it out")
    if hash_size is not None:
        raise ValueError(
            "word_share and hash_size exclude each other, as hashes do not tell words "
            "from characters: leave one of them out"
        )


def checked_texts(X: Any) -> list[str]:
    """Texts as a list, or an error that names the first that is not a text."""
    if isinstance(X, str | bytes):
        raise ValueError("X must be a sequence of texts, got one text: wrap it in a list")
    if hasattr(X, "columns") and getattr(X, "ndim", 2) == 2:  # a data frame
        names = list(X.columns)
        if len(names) != 1:
            raise ValueError(
                f"X must have one column of texts, got a data frame with {len(names)}"
                + (f": pass one of them, such as X[{names[0]!r}]" if names else "")
            )
        X = X[names[0]]
    elif getattr(X, "ndim", 1) == 2 and X.shape[1] == 1 and not hasattr(X, "tocsr"):
        X = X[:, 0]  # of a frame with one column
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


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _plain(lengths: Any) -> Lengths | None:
    return None if lengths is None else (int(lengths[0]), int(lengths[1]))


def is_range(lengths: Any) -> bool:
    """Whether these are a smallest and a largest length."""
    if not isinstance(lengths, tuple | list) or len(lengths) != 2:
        return False
    whole = all(isinstance(length, int) for length in lengths)
    return whole and 1 <= lengths[0] <= lengths[1] <= MAX_LENGTH
