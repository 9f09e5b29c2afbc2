"""Text: raw strings in, labels out, with no vocabulary to manage.

A text becomes a row of TF-IDF weights of its words, pairs of words, or character n-grams: with
``tf`` the number of times a term occurs in the text, ``df`` the number of training texts it occurs
in, and n the number of training texts,

    x_term = (1 + log tf) * (1 + log((1 + n) / (1 + df))),  divided by the row's Euclidean norm.

scikit-learn splits and counts; the columns are the terms seen in training or, for streams, hashes.
The weighting is that of its ``TfidfTransformer(sublinear_tf=True)``, written out because that one
takes 1.2 ms for a single text, and these few lines 0.15 ms.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ._checks import check_integer
from ._nested import DefaultEstimatorMixin
from .base import RowClassifier, TrellisPredictor, all_or_nothing
from .classifier import TrellisClassifier
from .data.labels import unlikely_labels
from .model.model_file import SavableMixin
from .model.packed_arrays import Counts, Texts, starts_of

if TYPE_CHECKING:
    from .ensemble import TrellisEnsemble
    from .explanation import Explanation

Lengths = tuple[int, int]

WORD = r"(?u)\b\w+\b"  # single letters and digits, too: they distinguish diagnoses and products


class TrellisTextClassifier(DefaultEstimatorMixin, SavableMixin, ClassifierMixin, BaseEstimator):
    """Classifier of texts: TF-IDF features and a trellis classifier in one.

    Parameters
    ----------
    classifier : TrellisClassifier, LTLSClassifier, TrellisEnsemble or None, default=None
        Classifier of the features; None means ``TrellisClassifier()``. Its parameters can be set
        as ``classifier__C`` and so on, also if it is None.
    words : (int, int) or None, default=(1, 2)
        Smallest and largest number of words in a term.
    characters : (int, int) or None, default=None
        Smallest and largest number of characters in a term; terms do not cross words.
    min_df : int, default=1
        Number of training texts that a term must occur in.
    hash_size : int or None, default=None
        Number of columns that terms are hashed to. Then the terms are not kept, and
        :meth:`partial_fit` can learn from a stream. None keeps the terms.

    Attributes
    ----------
    classifier_ : the fitted classifier
    features_ : TextFeatures
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from xtrellis import TrellisClassifier, TrellisTextClassifier
    >>> texts = ["red apple", "green apple", "fast car", "slow car", "red wine", "white wine"]
    >>> labels = ["fruit", "fruit", "vehicle", "vehicle", "drink", "drink"]
    >>> clf = TrellisTextClassifier(TrellisClassifier(random_state=0)).fit(texts, labels)
    >>> clf.predict(["a car", "some apple"]).tolist()
    ['vehicle', 'fruit']
    >>> labels, probabilities = clf.predict_top_k(["an apple"], k=2)
    >>> labels[0, 0], bool(probabilities[0, 0] > probabilities[0, 1])
    (np.str_('fruit'), True)
    """

    _saved: ClassVar[dict[str, Any]] = {"classifier_": RowClassifier, "features_": Any}

    def _check_parts(self) -> None:
        check_is_fitted(self.classifier_)
        if not isinstance(self.features_, TextFeatures):
            raise ValueError("features_ must be text features")
        n_columns, n_features = self.features_.n_columns, self.classifier_.n_features_in_
        if n_columns != n_features:
            raise ValueError(f"features_ has {n_columns} columns, classifier_ takes {n_features}")

    def __init__(
        self,
        classifier: TrellisPredictor | TrellisEnsemble | None = None,
        *,
        words: Lengths | None = (1, 2),
        characters: Lengths | None = None,
        min_df: int = 1,
        hash_size: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.words = words
        self.characters = characters
        self.min_df = min_df
        self.hash_size = hash_size

    _nested = "classifier"  # the parameter whose own parameters can be set even if it is None

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on texts X with labels y.

        Warns if nearly every text has a label of its own, as when texts and labels are swapped.

        Parameters
        ----------
        X : sequence of str
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        """
        texts = checked_texts(X)
        check_consistent_length(texts, y)
        doubt = unlikely_labels(y, texts)
        if doubt is not None:
            warnings.warn(doubt, stacklevel=2)
        features = self.new_features()
        classifier: Any = self._new_classifier()
        classifier.fit(features.fit_transform(texts, self.min_df), y, sample_weight)
        self.features_, self.classifier_ = features, classifier
        return self

    @available_if(lambda self: hasattr(self._new_classifier(), "partial_fit"))
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch of a stream; for online learners, and with ``hash_size``.

        Terms are not weighted by how rare they are, which is not known of a stream; a model that
        was fitted before keeps its weights of terms.
        """
        texts = checked_texts(X)
        check_consistent_length(texts, y)
        with all_or_nothing(self):
            if not self.__sklearn_is_fitted__():
                if self.hash_size is None:
                    raise ValueError("partial_fit needs hash_size: the terms are not known")
                self.features_, self.classifier_ = self.new_features(), self._new_classifier()
            features = self.features_.transform(texts)
            self.classifier_.partial_fit(features, y, classes, sample_weight)
        return self

    def new_features(self) -> TextFeatures:
        """Features with these settings, not fitted, or an error that names the wrong setting."""
        for name, lengths in (("words", self.words), ("characters", self.characters)):
            if lengths is not None and not _is_range(lengths):
                raise ValueError(
                    f"{name} must be two lengths such as (1, 2), or None; got {lengths!r}"
                )
        if self.words is None and self.characters is None:
            raise ValueError("words and characters are both None: no terms are left")
        check_integer("min_df", self.min_df, 1)
        if self.hash_size is not None:
            check_integer("hash_size", self.hash_size, 1)
        hash_size = None if self.hash_size is None else int(self.hash_size)
        return TextFeatures(self.words, self.characters, hash_size)

    def _new_classifier(self) -> Any:
        return TrellisClassifier() if self.classifier is None else clone(self.classifier)

    # ------------------------------------------------------------------ prediction

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_") and hasattr(self.classifier_, "classes_")

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Labels, sorted."""
        return self._fitted().classes_

    def predict(
        self, X: Any, *, min_probability: float | None = None, otherwise: Any = None
    ) -> npt.NDArray[Any]:
        """Most likely class of each text.

        ``otherwise`` stands for it where no class is as likely as ``min_probability``, if given.
        """
        options: dict[str, Any] = {"min_probability": min_probability, "otherwise": otherwise}
        return self._fitted().predict(self.transform(X), **options)

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, allow_empty: bool = True
    ) -> list[npt.NDArray[Any]]:
        """Small sets of classes that hold the true one as often as asked.

        See :meth:`TrellisClassifier.predict_set`.
        """
        found: list[npt.NDArray[Any]] = self._fitted().predict_set(
            self.transform(X), coverage, allow_empty=allow_empty
        )
        return found

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """The k best classes of each text, best first, and their probabilities."""
        return self._fitted().predict_top_k(self.transform(X), k)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities of all K classes."""
        return self._fitted().predict_proba(self.transform(X))

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Log-probabilities of all K classes."""
        return self._fitted().predict_log_proba(self.transform(X))

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Decision function of the classifier."""
        return self._fitted().decision_function(self.transform(X))

    def explain(self, text: str, label: Any = None, top: int = 10) -> Explanation:
        """Which terms of a text spoke for and against a class; see TrellisClassifier.explain.

        Terms that are hashed are shown as numbers of columns.
        """
        if not isinstance(text, str):
            raise ValueError(f"explain takes one text, got {type(text).__name__}")
        found = self._fitted().explain(self.transform([text]), label, top)
        return found.renamed(self.features_.term)

    def top_features(self, label: Any, top: int = 10) -> list[tuple[Any, float]]:
        """Terms of the largest weights for a class; see TrellisClassifier.top_features."""
        found = self._fitted().top_features(label, top)
        return [(self.features_.term(column), weight) for column, weight in found]

    def transform(self, X: Any) -> Any:
        """Features of texts, (n_samples, n_features) CSR."""
        self._fitted()
        return self.features_.transform(checked_texts(X))

    def _fitted(self) -> TrellisPredictor | TrellisEnsemble:
        check_is_fitted(self)
        return self.classifier_

    # ------------------------------------------------------------------ smaller, and in a file

    def prune(self, X: Any = None, y: Any = None, **options: Any) -> Self:
        """Set small weights to zero; see :meth:`TrellisClassifier.prune`."""
        rows = None if X is None else self.transform(X)
        self._fitted().prune(rows, y, **options)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


# ---------------------------------------------------------------------- features


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
        if not lengths or not all(map(_is_range, lengths)):
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


def _is_range(lengths: Any) -> bool:
    if not isinstance(lengths, tuple | list) or len(lengths) != 2:
        return False
    return all(isinstance(length, int) for length in lengths) and 1 <= lengths[0] <= lengths[1]


def _side_by_side(parts: list[Any]) -> Any:
    """Columns of several matrices in one CSR matrix."""
    return sparse.csr_matrix(parts[0] if len(parts) == 1 else sparse.hstack(parts, "csr"))


def _no_columns(texts: list[str]) -> Any:
    return sparse.csr_matrix((len(texts), 0), dtype=np.float32)
