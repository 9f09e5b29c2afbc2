"""TrellisClassifier: the scikit-learn estimator.

It holds no mathematics. It checks what it is given; ``fitting`` trains, and ``prediction`` answers.
"""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from . import growing
from ._arrays import canonical_csr
from ._changing import built_aside
from ._checks import check_magnitudes, class_weights, known_labels, row_weights, weighted
from ._online_method import OnlineMethod
from .base import TrellisPredictor
from .engine import assign_paths
from .fitting import (
    LabelledRows,
    check_settings,
    class_sizes,
    fit_trellis,
    labelled_rows,
    trellis_for,
)
from .fitting_from_disk import ShardsMixin
from .held_out import uncalibrated
from .learning.learners import Learner
from .learning.online import OnlineBlocks
from .learning.rows import online_rows
from .learning.training import History
from .resuming import check_checkpoint, kept_blocks
from .selection.settings import Selection
from .selection.width_trials import WidthSelection
from .selection.widths import select_slice_width


class TrellisClassifier(growing.GrowingMixin, ShardsMixin, TrellisPredictor):
    """Classifier for many classes, with one linear learner for each edge of a trellis.

    Parameters
    ----------
    slice_width : int, "auto" or None, default=None
        Vertices in a slice of the trellis, b, from 2 (smallest model) to the number of classes
        (one-vs-rest); larger widths mean the number of classes. None uses
        :func:`default_slice_width`, or one-vs-rest for SVMs of up to 256 classes; "auto" trains a
        ladder of widths and keeps the one that :func:`select_slice_width` chooses.
    training : {"local", "independent"}, default="local"
        Whether an edge learns from the rows whose path passes its tail, or from all rows.
    learner : {"svm", "arow", "perceptron"}, Learner or scikit-learn classifier, default="svm"
        The binary learner that is trained for each edge.
    assignment : {"similarity", "random"} or array-like, default="similarity"
        How classes are assigned to paths; or the path of each class, in the order of
        ``classes_``.
    decoding : str, callable or decoding loss, default="auto"
        Loss that paths are compared by. "auto" is the exponential loss for independent training;
        for local training, a :class:`~xtrellis.decoding.VertexSoftmax` fitted on held-out rows.
    epochs : int or None, default=None
        Passes over the rows; None uses the learner's own number.
    C : float or "auto", default="auto"
        Inverse regularisation strength; only used by ``learner="svm"``. "auto" tries 0.3, 1, 3, 10
        and 30, and takes the most accurate on held-out rows among those whose log loss there is
        close to the least; with fewer than 100 held-out rows it means 1. These values are relative
        to the length of a typical row, while a number is taken as it is. The parameters of other
        learners are their own: ``learner=Arow(r=0.1)``.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    calibration : float, default=0.1
        Share of the training rows that are held out first, to fit the decoding loss and the
        temperature of the probabilities on them; afterwards they are trained on, too. 0 leaves
        both at their defaults.
    early_stopping : bool, default=False
        Whether to stop when the accuracy on a validation part no longer rises, and keep the best
        epoch. Holds a dense state for all edges in memory.
    validation_fraction : float, default=0.1
        Share of the rows set aside for early stopping.
    n_iter_no_change : int, default=2
        Epochs without a better accuracy before training stops early.
    prune_threshold : float or "auto", default="auto"
        Weights of at most this size are dropped. "auto" finds the largest threshold that costs the
        held-out rows at most a tenth of a point of accuracy and of top-5 accuracy; without held-out
        rows it drops nothing.
    weight_bits : {8, 32}, default=8
        Bits of each weight in a model file. 8 rounds the weights when training ends, so that the
        model predicts the same before it is saved and after it is loaded.
    rerank : float or "auto", default="auto"
        How much the cosine with a class's centroid counts when the ten best classes of a row are
        ordered once more; 0 leaves them as they are. It helps classes with few rows, and takes
        several times as long to predict. "auto" re-ranks only if the held-out rows gain at least
        half a point of accuracy; also by an SVM of each class against its rivals, the rows of other
        classes that are mistaken for its own, if they gain half a point more. Only for local
        training.
    max_classes : int or None, default=None
        Room for classes to come, by :meth:`add_classes` or :meth:`partial_fit`: the number of paths
        of the trellis. None makes as many paths as there are classes. Only for local training.
    checkpoint : str, path or None, default=None
        Folder that finished blocks are kept in while ``fit`` trains. If training is killed and
        started again, it resumes where it stopped, with the same result. This needs a number for
        ``random_state``. When training succeeds, the folder is emptied.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of everything random.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    model_ : TrellisModel
        Everything that was learned. The next seven are parts of it.
    classes_ : ndarray of shape (n_classes,)
    trellis_ : Trellis
    assignment_ : PathAssignment
    weights_ : EdgeWeights
    loss_ : decoding loss
    calibration_ : BestPaths or Tempered
    temperature_ : float
    history_ : History
    prune_threshold_ : float
        Size up to which weights were dropped in ``fit``; ``pruning_`` says what :meth:`prune` did.
    held_out_loss_ : float
        Mean of -log2 p(true class) on the rows held out for calibration; nan unless width
        selection measured it.
    width_selection_ : WidthSelection
        With ``slice_width="auto"``: the widths tried. The width itself is that of ``trellis_``.
    selection_ : Selection
        With ``C="auto"``: the value chosen, ``selection_.C``, and what the held-out rows said of
        each, ``selection_.trials``.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import TrellisClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TrellisClassifier(random_state=0).fit(X[:1500] / 16, y[:1500])
    >>> clf.score(X[1500:] / 16, y[1500:]) > 0.8
    True
    >>> labels, probabilities = clf.predict_top_k(X[1500:1502] / 16, k=3)
    >>> labels.shape, bool((probabilities.sum(axis=1) <= 1).all())
    ((2, 3), True)
    """

    history_: History
    held_out_loss_: float
    prune_threshold_: float
    width_selection_: WidthSelection
    _online: OnlineBlocks | None

    _saved: ClassVar[dict[str, Any]] = {**TrellisPredictor._saved, "held_out_loss_": float}
    _saved_if_set: ClassVar[dict[str, Any]] = {
        **TrellisPredictor._saved_if_set,
        "selection_": Selection,
        "prune_threshold_": float,
    }
    _unsaved_settings = frozenset({"checkpoint"})  # a folder of the machine that trained

    def __init__(
        self,
        slice_width: int | str | None = None,
        *,
        training: str = "local",
        learner: Any = "svm",
        assignment: Any = "similarity",
        decoding: Any = "auto",
        epochs: int | None = None,
        C: float | str = "auto",
        class_weight: Any = None,
        calibration: float = 0.1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        prune_threshold: float | str = "auto",
        weight_bits: int = 8,
        rerank: float | str = "auto",
        max_classes: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.slice_width = slice_width
        self.training = training
        self.learner = learner
        self.assignment = assignment
        self.decoding = decoding
        self.epochs = epochs
        self.C = C
        self.class_weight = class_weight
        self.calibration = calibration
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.prune_threshold = prune_threshold
        self.weight_bits = weight_bits
        self.rerank = rerank
        self.max_classes = max_classes
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, slice_width: int | str, **parameters: Any) -> Self:
        """The paper's W-LTLS: independent AROW, random assignment, exponential decoding.

        >>> TrellisClassifier.paper(10, random_state=0)
        TrellisClassifier(assignment='random', calibration=0.0, learner='arow',
                          random_state=0, slice_width=10, training='independent',
                          weight_bits=32)
        """
        settings: dict[str, Any] = {
            "training": "independent",
            "learner": "arow",
            "assignment": "random",
            "calibration": 0.0,
            "weight_bits": 32,
        }
        return cls(slice_width, **{**settings, **parameters})

    # ------------------------------------------------------------------ all rows at once

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, may_hold_out: Any = None) -> Self:
        """Train on rows X with labels y.

        If it fails or is interrupted, the classifier stays as it was. Other threads may predict
        meanwhile: with the model as it was until training is complete.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type that sorts.
        sample_weight : array-like of shape (n_samples,), default=None
        may_hold_out : array-like of bool, shape (n_samples,), default=None
            Which rows look like those to be predicted: only these are held out to choose settings
            and to calibrate. None means all.
        """
        with built_aside(self, fresh=True) as new:
            learner = check_settings(new)
            check_checkpoint(new, learner)
            if new.slice_width == "auto":
                new._fit_auto(X, y, sample_weight, may_hold_out)
            else:
                new._fit(learner, X, y, sample_weight, may_hold_out)
        return self

    def _fit(self, learner: Learner, X: Any, y: Any, sample_weight: Any, may_hold_out: Any) -> None:
        data = labelled_rows(self, X, y, sample_weight, self.class_weight, may_hold_out)
        with kept_blocks(self, data):
            fitted = fit_trellis(self, learner, data)
        self.model_, self.history_ = fitted.model, fitted.history
        self.held_out_loss_ = fitted.held_out_loss
        self.prune_threshold_ = fitted.threshold
        if fitted.selection is not None:
            self.selection_ = fitted.selection

    def _fit_auto(self, X: Any, y: Any, sample_weight: Any, may_hold_out: Any) -> None:
        """Take over what the classifier that width selection chooses has learned."""
        data = None
        if self.checkpoint is not None:
            data = labelled_rows(copy(self), X, y, sample_weight, self.class_weight, may_hold_out)
        with kept_blocks(self, data):
            selection = select_slice_width(
                X,
                y,
                estimator=self,
                sample_weight=sample_weight,
                may_hold_out=may_hold_out,
                verbose=self.verbose,
            )
        chosen: Any = selection.classifier
        self.model_, self.history_ = chosen.model_, chosen.history_
        self.held_out_loss_ = chosen.held_out_loss_
        if hasattr(chosen, "selection_"):
            self.selection_ = chosen.selection_
        self.prune_threshold_ = chosen.prune_threshold_
        self.n_features_in_ = chosen.n_features_in_
        if hasattr(chosen, "feature_names_in_"):
            self.feature_names_in_ = chosen.feature_names_in_
        self.width_selection_ = replace(selection, classifier=None)

    # ------------------------------------------------------------------ batch by batch

    @OnlineMethod
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch of rows, each visited once. For online learners (AROW, perceptron).

        If it fails or is interrupted, nothing was learned from the batch.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        classes : array-like, default=None
            All classes there will be; needed at the first call, unless the model was fitted
            before. If the assignment is by similarity, the first batch decides which classes are
            alike. With ``max_classes`` it can be left out: labels that are new take the free path
            nearest to their rows in the batch.
        """
        with built_aside(self) as new:
            new._partial_fit(X, y, classes, sample_weight)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        learner = check_settings(self)
        first = not hasattr(self, "model_")
        if self.max_classes is not None and classes is None:
            classes = self._with_new_classes(X, y, first)
        known = self._checked_classes(classes, first)
        data = self._batch(X, y, known, sample_weight, first)
        if first:
            trellis = trellis_for(self, len(known))
            assignment = assign_paths(self, trellis, data, check_random_state(self.random_state))
            self.history_, online = History(), None
        else:
            trellis, assignment = self.model_.trellis, self.model_.assignment
            online = getattr(self, "_online", None)
        if online is None:
            training: Any = self.training
            fitted = None if first else self.model_.weights
            online = OnlineBlocks(trellis, training, learner, self.n_features_in_, fitted)
        counted = data.sample_weight > 0
        paths = assignment.path_of_class[data.y_encoded[counted]]
        rows = online_rows(trellis, data.X[counted], paths, data.sample_weight[counted])
        self._online, loss = online.after(rows)
        self.history_ = replace(self.history_, loss=[*self.history_.loss, loss])
        weights = self._online.weights()
        if first:
            model = uncalibrated(self, known, trellis, assignment, weights)
            self.model_ = replace(model, class_sizes=class_sizes(data))
            self.held_out_loss_ = float("nan")
        else:
            sizes = self.model_.class_sizes
            sizes = None if sizes is None else class_sizes(data, sizes)
            # Sets were calibrated for the old weights.
            self.model_ = replace(self.model_, weights=weights, conformal=None, class_sizes=sizes)

    def _with_new_classes(self, X: Any, y: Any, first: bool) -> Any:
        """All classes, those of a batch included; new ones are given paths."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32, reset=first)
        if first:
            return np.unique(y)
        self.model_, _ = growing.with_paths_for(self.model_, canonical_csr(X), y)
        return self.model_.classes

    def _checked_classes(self, classes: Any, first: bool) -> Any:
        """All classes, sorted; or an error that says what a batch cannot tell."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all rows at once: "
                f"give partial_fit a dict of weights"
            )
        if not first:
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError("classes must be the same at every call of partial_fit")
            return self.classes_
        if self.slice_width == "auto":
            raise ValueError(
                "slice_width='auto' needs all rows at once: give partial_fit a number, or None"
            )
        if classes is None:
            raise ValueError("classes must be given at the first call of partial_fit")
        known = np.unique(classes)
        if len(known) < 2:
            raise ValueError("classes must name at least two classes")
        return known

    def _batch(self, X: Any, y: Any, classes: Any, sample_weight: Any, first: bool) -> LabelledRows:
        """Checked rows of a batch, their classes as numbers, and their weights."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32, reset=first)
        y_encoded, weights = known_labels(classes, y), row_weights(sample_weight, X.shape[0])
        if self.class_weight is not None:
            weights = weighted(weights, class_weights(self.class_weight, classes, y)[y_encoded])
        X = canonical_csr(X)
        check_magnitudes(X, weights)
        return LabelledRows(X, y_encoded, weights, classes)
