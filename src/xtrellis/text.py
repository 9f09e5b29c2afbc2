"""Text: raw strings in, labels out, with no vocabulary to manage.

``data.text_features`` turns texts into rows of numbers, and a trellis classifier classifies these.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ._changing import built_aside
from ._checks import row_weights
from ._nested import DefaultEstimatorMixin
from .base import RowClassifier, TrellisPredictor
from .choosing_terms import Labelled, best_terms
from .classifier import TrellisClassifier
from .data.class_texts import described_rows
from .data.labels import unlikely_labels
from .data.tables import check_layout
from .data.terms import Lengths
from .data.text_features import FEW_TEXTS, TextFeatures, checked_texts, new_features
from .fitting_from_disk import MEMORY
from .model.model_file import SavableMixin
from .prunable import PrunableMixin
from .selection.terms import CHARACTERS, USUAL, WORDS, Terms, TermTrial

if TYPE_CHECKING:
    from .ensemble import TrellisEnsemble
    from .explanation import Explanation

Auto = Literal["auto"]


class TrellisTextClassifier(
    DefaultEstimatorMixin, PrunableMixin, SavableMixin, ClassifierMixin, BaseEstimator
):
    """Classifier of texts: TF-IDF features and a trellis classifier in one.

    Parameters
    ----------
    classifier : TrellisClassifier, LTLSClassifier, TrellisEnsemble or None, default=None
        Classifier of the features; None means ``TrellisClassifier()``. Its parameters can be set
        as ``classifier__C`` and so on, also if it is None.
    words : (int, int), None or "auto", default="auto"
        Smallest and largest number of words in a term; None for no words.
    characters : (int, int), None or "auto", default="auto"
        Smallest and largest number of characters in a term; terms do not cross words. If both
        ``words`` and ``characters`` are "auto", ``fit`` chooses on texts that it holds out: one and
        two words, one to four characters, or both. If one of them is given, "auto" means None for
        the other.
    word_share : float or None, default=None
        Share of a row's squared norm that its words make up where there are terms of both kinds.
        None leaves it as it comes, or to ``fit`` if it chooses the terms.
    min_df : int, default=1
        Number of training texts that a term must occur in.
    hash_size : int or None, default=None
        Number of columns that terms are hashed to. Then the terms are not kept, and
        :meth:`partial_fit` can learn from a stream. None keeps the terms.

    Attributes
    ----------
    classifier_ : the fitted classifier
    features_ : TextFeatures
        What texts become; ``features_.words``, ``.characters`` and ``.word_share`` were chosen.
    term_trials_ : tuple of TermTrial
        The terms that ``fit`` tried, and how accurate a quick model of each was on held-out texts.
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

    classifier_: Any
    features_: TextFeatures
    term_trials_: tuple[TermTrial, ...]
    layout_: dict[str, Any]  # how the command read the training rows: columns, delimiter, header

    _saved: ClassVar[dict[str, Any]] = {"classifier_": RowClassifier, "features_": Any}
    _saved_if_set: ClassVar[dict[str, Any]] = {
        "layout_": dict[str, str | bool],
        "term_trials_": tuple[TermTrial, ...],
    }

    def _check_parts(self) -> None:
        check_is_fitted(self.classifier_)
        if not isinstance(self.features_, TextFeatures):
            raise ValueError("features_ must be text features")
        check_layout(getattr(self, "layout_", {}))
        n_columns, n_features = self.features_.n_columns, self.classifier_.n_features_in_
        if n_columns != n_features:
            raise ValueError(f"features_ has {n_columns} columns, classifier_ takes {n_features}")

    def __init__(
        self,
        classifier: TrellisPredictor | TrellisEnsemble | None = None,
        *,
        words: Lengths | Auto | None = "auto",
        characters: Lengths | Auto | None = "auto",
        min_df: int = 1,
        hash_size: int | None = None,
        word_share: float | None = None,
    ) -> None:
        self.classifier = classifier
        self.words = words
        self.characters = characters
        self.word_share = word_share
        self.min_df = min_df
        self.hash_size = hash_size

    # The parameter whose own parameters can be set even if it is None, and what None stands for.
    _nested, _default = "classifier", TrellisClassifier

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        class_texts: Mapping[Any, str | list[str]] | None = None,
    ) -> Self:
        """Train on texts X with labels y.

        Warns if nearly every text has a label of its own, as when texts and labels are swapped.

        Parameters
        ----------
        X : sequence of str
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        class_texts : dict of label to str or list of str, default=None
            Descriptions of classes, such as their names. They are further training rows of weight
            1, which are never held out. A class with a description alone can be predicted, too.

        Examples
        --------
        >>> from xtrellis import TrellisTextClassifier
        >>> texts = ["red apple", "green apple", "fast car", "slow car"]
        >>> labels = ["fruit", "fruit", "vehicle", "vehicle"]
        >>> drinks = {"drink": ["wine or beer", "a glass of water"]}
        >>> clf = TrellisTextClassifier().fit(texts, labels, class_texts=drinks)
        >>> clf.predict(["a red wine"]).tolist()
        ['drink']
        """
        texts = checked_texts(X)
        check_consistent_length(texts, y)
        doubt = unlikely_labels(y, texts)
        if doubt is not None:
            warnings.warn(doubt, stacklevel=2)
        options: dict[str, Any] = {}
        if class_texts is not None:
            n_rows = len(texts)
            descriptions, labels = described_rows(class_texts, y)
            texts = texts + descriptions
            y = np.concatenate([np.asarray(y), labels])
            if sample_weight is not None:
                weights = row_weights(sample_weight, n_rows)
                sample_weight = np.append(weights, np.ones(len(labels), np.float32))
            options["may_hold_out"] = np.arange(len(texts)) < n_rows
        with built_aside(self, fresh=True) as new:
            new.classifier_ = new._new_classifier()
            new.features_, new.term_trials_ = new._chosen_features(
                texts, y, sample_weight, options.get("may_hold_out")
            )
            rows = new.features_.fit_transform(texts, new.min_df)
            if new.features_.characters is None and _share_few_terms(rows):
                warnings.warn(
                    "most texts share no term with any other text, so that little can be learned "
                    "from them; n-grams of characters may help: set characters, such as 3 to 5",
                    stacklevel=2,
                )
            new.classifier_.fit(rows, y, sample_weight, **options)
        return self

    def fit_shards(self, shards: Any, *, memory: int = MEMORY) -> Self:
        """Train on a folder of texts that may be larger than memory.

        See :meth:`TrellisClassifier.fit_shards`. The terms are those that
        :func:`~xtrellis.data.write_shards` was told to find when it made the folder.
        """
        from .data.shards import as_shards

        shards = as_shards(shards)
        if shards.features is None:
            raise ValueError(f"{shards.folder}: its rows are not texts; use a TrellisClassifier")
        with built_aside(self, fresh=True) as new:
            new.features_, new.classifier_ = shards.features, new._new_classifier()
            if hasattr(new.classifier_, "fit_shards"):
                new.classifier_.fit_shards(shards, memory=memory)
            else:
                new.classifier_.fit(*shards.in_memory())
        return self

    @available_if(lambda self: hasattr(self._new_classifier(), "partial_fit"))
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch of a stream; for online learners, and with ``hash_size``.

        Terms are not weighted by how rare they are, which is not known of a stream; a model that
        was fitted before keeps its weights of terms.
        """
        texts = checked_texts(X)
        check_consistent_length(texts, y)
        with built_aside(self) as new:
            if new.__sklearn_is_fitted__():
                new.classifier_ = copy.copy(new.classifier_)
            elif new.hash_size is None:
                raise ValueError("partial_fit needs hash_size: the terms are not known")
            else:
                new.features_, new.classifier_ = new.new_features(), new._new_classifier()
            rows = new.features_.transform(texts)
            new.classifier_.partial_fit(rows, y, classes, sample_weight)
        return self

    @available_if(lambda self: hasattr(self._new_classifier(), "add_classes"))
    def add_classes(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the classes of y that are new, on texts of all classes; terms stay as they are.

        See :meth:`TrellisClassifier.add_classes`.

        >>> from xtrellis import TrellisClassifier, TrellisTextClassifier
        >>> texts = ["red apple", "green apple", "fast car", "slow car", "red wine", "white wine"]
        >>> labels = ["fruit", "fruit", "vehicle", "vehicle", "drink", "drink"]
        >>> clf = TrellisTextClassifier(TrellisClassifier(max_classes=9, random_state=0))
        >>> clf.fit(texts[:4], labels[:4]).add_classes(texts, labels).predict(["wine"]).tolist()
        ['drink']
        """
        check_is_fitted(self)
        texts = checked_texts(X)
        check_consistent_length(texts, y)
        with built_aside(self) as new:
            new.classifier_ = copy.copy(new.classifier_)
            new.classifier_.add_classes(new.features_.transform(texts), y, sample_weight)
        return self

    @available_if(lambda self: hasattr(self._new_classifier(), "remove_classes"))
    def remove_classes(self, labels: Any) -> Self:
        """Forget some classes; see :meth:`TrellisClassifier.remove_classes`."""
        check_is_fitted(self)
        with built_aside(self) as new:
            new.classifier_ = copy.copy(new.classifier_)
            new.classifier_.remove_classes(labels)
        return self

    def new_features(self, terms: Terms | None = None) -> TextFeatures:
        """Features with these settings, not fitted, or an error that names the wrong setting.

        Where the terms are left to ``fit``, they are the usual ones, unless they are given here.
        """
        if not self._chooses_terms:
            words = _beside(self.words, self.characters, WORDS)
            characters = _beside(self.characters, self.words, CHARACTERS)
            return new_features(words, characters, self.min_df, self.hash_size, self.word_share)
        if self.word_share is not None:
            raise ValueError("word_share needs words and characters: pass both, or leave it out")
        terms = terms or USUAL
        lengths = terms.words, terms.characters
        return new_features(*lengths, self.min_df, self.hash_size, terms.word_share)

    @property
    def _chooses_terms(self) -> bool:
        """Whether the terms are left to ``fit``."""
        return _is_auto(self.words) and _is_auto(self.characters)

    def _chosen_features(
        self, texts: list[str], y: Any, sample_weight: Any, may_hold_out: Any
    ) -> tuple[TextFeatures, tuple[TermTrial, ...]]:
        """Features with the terms that suit the texts best, and what was tried to find them."""
        usual, y_encoded = self.new_features(), _numbered(y)
        if not self._chooses_terms or y_encoded is None or len(y_encoded) != len(texts):
            return usual, ()  # labels that are wrong are refused when the classifier is trained
        every = np.ones(len(texts), bool)
        mask = every if may_hold_out is None else may_hold_out
        data = Labelled(texts, y_encoded, row_weights(sample_weight, len(texts)), mask)
        jobs = getattr(self._new_classifier(), "n_jobs", None)
        terms, trials = best_terms(data, self.min_df, self.hash_size, jobs)
        return self.new_features(terms), trials

    def _new_classifier(self) -> Any:
        return self._default() if self.classifier is None else clone(self.classifier)

    # ------------------------------------------------------------------ prediction

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_") and hasattr(self.classifier_, "classes_")

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Labels, sorted."""
        return self._as_fitted().classifier_.classes_

    def predict(
        self, X: Any, *, min_probability: float | None = None, otherwise: Any = None
    ) -> npt.NDArray[Any]:
        """Most likely class of each text.

        If ``min_probability`` is given, texts without a class of at least this probability get
        ``otherwise`` instead.
        """
        options: dict[str, Any] = {"min_probability": min_probability, "otherwise": otherwise}
        now = self._as_fitted()
        return now.classifier_.predict(now._rows(X), **options)

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        allow_empty: bool = True,
        return_proba: bool = False,
    ) -> Any:
        """Small sets of classes that contain the true class as often as asked.

        See :meth:`TrellisClassifier.predict_set`.
        """
        now = self._as_fitted()
        return now.classifier_.predict_set(
            now.transform(X), coverage, allow_empty=allow_empty, return_proba=return_proba
        )

    def row_predictor(self) -> Callable[[str], Any]:
        """Function that classifies one text at a time, without the overhead of ``predict``.

        It takes a text and returns its label: for services that answer one request after the
        other. It keeps the model as it is now.

        >>> from xtrellis import TrellisTextClassifier
        >>> texts = ["red apple", "green apple", "fast car", "slow car"]
        >>> clf = TrellisTextClassifier().fit(texts, ["fruit", "fruit", "vehicle", "vehicle"])
        >>> classify = clf.row_predictor()
        >>> str(classify("my car"))
        'vehicle'
        """
        now = self._as_fitted()
        features = now.features_
        classify = copy.copy(now.classifier_)._checked_row_predictor()
        features.row("")  # makes the table of terms

        def classify_text(text: str) -> Any:
            if not isinstance(text, str):
                raise ValueError(f"the function takes one text, got {text!r}")
            return classify(*features.row(text))

        return classify_text

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """The k best classes of each text, best first, and their probabilities."""
        now = self._as_fitted()
        return now.classifier_.predict_top_k(now._rows(X), k)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities of all K classes."""
        now = self._as_fitted()
        return now.classifier_.predict_proba(now.transform(X))

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Log-probabilities of all K classes."""
        now = self._as_fitted()
        return now.classifier_.predict_log_proba(now.transform(X))

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Decision function of the classifier."""
        now = self._as_fitted()
        return now.classifier_.decision_function(now.transform(X))

    def explain(self, text: str, label: Any = None, top: int = 10) -> Explanation:
        """Which terms of a text spoke for and against a class; see TrellisClassifier.explain.

        Terms that are hashed are shown as numbers of columns.
        """
        if not isinstance(text, str):
            raise ValueError(f"explain takes one text, got {type(text).__name__}")
        now = self._as_fitted()
        found = now.classifier_.explain(now.transform([text]), label, top)
        return found.renamed(now.features_.term)

    def top_features(self, label: Any, top: int = 10) -> list[tuple[Any, float]]:
        """Terms of the largest weights for a class; see TrellisClassifier.top_features."""
        now = self._as_fitted()
        found = now.classifier_.top_features(label, top)
        return [(now.features_.term(column), weight) for column, weight in found]

    def transform(self, X: Any) -> Any:
        """Features of texts, (n_samples, n_features) CSR."""
        check_is_fitted(self)
        return self.features_.transform(checked_texts(X))

    def _rows(self, X: Any) -> Any:
        """Features of texts; of a few, without the cost of making and checking a matrix."""
        texts = checked_texts(X)
        if len(texts) <= FEW_TEXTS and isinstance(self.classifier_, TrellisPredictor):
            return self.features_.rows(texts)
        return self.features_.transform(texts)

    def _as_fitted(self) -> Self:
        """The classifier as it is now: terms and weights that belong together.

        Another thread that fits replaces both in one step, which must not come between them.
        """
        now = copy.copy(self)
        check_is_fitted(now)
        return now

    # ------------------------------------------------------------------ smaller, and in a file

    def _prune(self, X: Any, y: Any, *settings: Any) -> None:
        self.classifier_ = copy.copy(self.classifier_)
        self.classifier_._prune(None if X is None else self.transform(X), y, *settings)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _share_few_terms(rows: Any) -> bool:
    """Whether most texts have no term that occurs in another text."""
    if rows.shape[0] < FEW_TEXTS:
        return False
    shared = np.bincount(rows.indices, minlength=rows.shape[1])[rows.indices] > 1
    found = np.concatenate([[0], np.cumsum(shared)])[rows.indptr]
    return bool(np.mean(np.diff(found) == 0) > 0.5)


def _is_auto(lengths: Any) -> bool:
    return isinstance(lengths, str) and lengths == "auto"


def _beside(lengths: Any, others: Any, usual: Lengths) -> Any:
    """Lengths of terms of one kind, given those of the other kind."""
    if not _is_auto(lengths):
        return lengths
    return usual if others is None else None


def _numbered(y: Any) -> npt.NDArray[np.int64] | None:
    """Labels as numbers of their classes; None if they cannot be sorted."""
    try:
        return np.unique(np.ravel(np.asarray(y)), return_inverse=True)[1].astype(np.int64)
    except (TypeError, ValueError):
        return None
