"""Pruning of fitted classifiers: the rows that a threshold is found on, and what changes with it.

How the threshold is found, and what it does to weights, is in ``learning.pruning``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ._arrays import IntArray, canonical_csr
from ._changing import built_aside
from ._checks import check_fraction, check_pruning, encoded_labels, row_weights
from .learning.checkpoint import in_subfolder
from .learning.pruning import Accuracy, Pruning, prune_together
from .model.weights import EdgeWeights
from .prediction import TrellisModel
from .sets import with_sets


class PrunableMixin:
    """The method that makes a fitted model smaller. Subclasses define ``_prune``."""

    def prune(
        self,
        X: Any = None,
        y: Any = None,
        *,
        max_drop: float = 0.01,
        threshold: float | None = None,
        validation_fraction: float | None = None,
        bits: int = 8,
        sample_weight: Any = None,
    ) -> Self:
        """Set small weights to zero and store the others sparsely; Section 6.2 of the paper.

        All trellises of an ensemble are pruned at one threshold, by the accuracy of the ensemble.

        Parameters
        ----------
        X, y, sample_weight
            Validation rows: rows that the model was not trained on. With ``validation_fraction``,
            the training rows.
        max_drop : float, default=0.01
            Accuracy on the validation rows that may be lost; 0.01 is one point.
        threshold : float, default=None
            Prune weights of at most this size, instead of searching for the largest threshold that
            loses no more than ``max_drop``. Validation rows, if given, are then only used to
            measure the accuracy.
        validation_fraction : float, default=None
            If there are no rows to spare: share of the training rows to set aside as validation
            rows. A clone is trained without them and pruned on them, and the threshold found is
            that of this model, which was trained on all rows. Leaving rows out of training costs
            more accuracy than pruning does. ``random_state`` is the seed of the split.
        bits : {8, 32}, default=8
            Bits of each weight in the model file: 8 rounds the weights.

        Returns
        -------
        self
            ``pruning_`` describes what was done.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from xtrellis import TrellisClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = TrellisClassifier(random_state=0).fit(X[:1200] / 16, y[:1200])
        >>> clf.prune(X[1200:] / 16, y[1200:], max_drop=0.02).pruning_.n_after < 400
        True

        Without validation rows:

        >>> clf = TrellisClassifier(random_state=0).fit(X / 16, y)
        >>> clf.prune(X / 16, y, validation_fraction=0.1).pruning_.n_after < 1_000
        True
        """
        check_is_fitted(self)
        check_pruning(max_drop, threshold, bits)
        if validation_fraction is not None:
            if threshold is not None:
                raise ValueError("pass either threshold or validation_fraction, not both")
            threshold = _threshold_without(validation_fraction, self, X, y, max_drop, sample_weight)
            X = y = sample_weight = None
        with built_aside(self) as aside:
            new: Any = aside
            new._prune(X, y, max_drop, threshold, bits, sample_weight)
        return self


class PrunableRowsMixin(PrunableMixin):
    """The same for classifiers of rows, which have one model or several that vote.

    Subclasses define ``_models``, ``_set_models`` and ``_classify``.
    """

    pruning_: Pruning

    def _prune(
        self: Any,
        X: Any,
        y: Any,
        max_drop: float,
        threshold: float | None,
        bits: int,
        sample_weight: Any,
    ) -> None:
        models: list[TrellisModel] = self._models()
        accuracy: Accuracy | None = None
        if given := X is not None and y is not None:
            _, rows = self._checked_rows(X)
            share_right = _accuracy_on(self.classes_, rows, y, sample_weight)

            def accuracy(weights: list[EdgeWeights]) -> float:
                return share_right(self._classify(_with_weights(models, weights), rows))

        weights, self.pruning_ = prune_together(
            [model.weights for model in models], accuracy, max_drop, threshold, bits
        )
        pruned = _with_weights(models, weights)
        # Several trellises have no sets in common.
        if given and len(pruned) == 1 and pruned[0].conformal is not None:
            pruned = [_with_new_sets(pruned[0], rows, np.asarray(y), sample_weight)]
        self._set_models(pruned)


def _threshold_without(
    share: float, estimator: Any, X: Any, y: Any, max_drop: float, sample_weight: Any
) -> float:
    """Threshold of a clone that is trained without a share of the rows, and pruned on these."""
    check_fraction("validation_fraction", share)
    if X is None or y is None:
        raise ValueError("validation_fraction needs the training rows X and y")
    y = np.asarray(y)
    check_consistent_length(X, y)
    weights = None if sample_weight is None else row_weights(sample_weight, len(y))
    rng = check_random_state(getattr(estimator, "classifier_", estimator).random_state)
    outside, inside = np.split(rng.permutation(len(y)), [int(share * len(y))])
    outside, inside = np.sort(outside), np.sort(inside)
    outside = outside[np.isin(y[outside], y[inside])]
    if len(outside) == 0:
        raise ValueError("there are too few rows to set some aside: prune on validation rows")

    def some(rows: IntArray) -> tuple[Any, Any, Any]:
        return _safe_indexing(X, rows), y[rows], None if weights is None else weights[rows]

    model = in_subfolder(clone(estimator), "threshold").fit(*some(inside))
    X, y, weights = some(outside)
    model.prune(X, y, max_drop=max_drop, sample_weight=weights)
    return float(getattr(model, "classifier_", model).pruning_.threshold)


def _accuracy_on(
    classes: npt.NDArray[Any], rows: Any, y: Any, sample_weight: Any
) -> Callable[[IntArray], float]:
    """Share of labelled rows that are right, as a function of the predicted class numbers."""
    y = np.asarray(y)
    check_consistent_length(rows, y)
    truth = encoded_labels(classes, y)  # a label never seen, -1, is never right
    weights = row_weights(sample_weight, rows.shape[0])
    if not weights.any():
        raise ValueError("sample_weight is zero for every row: no row is left to measure on")
    return lambda encoded: float(np.average(encoded == truth, weights=weights))


def _with_weights(
    models: Sequence[TrellisModel], weights: Sequence[EdgeWeights]
) -> list[TrellisModel]:
    """The same models with other weights."""
    return [replace(model, weights=own) for model, own in zip(models, weights, strict=True)]


def _with_new_sets(
    model: TrellisModel, rows: Any, y: npt.NDArray[Any], sample_weight: Any
) -> TrellisModel:
    """The model with sets calibrated once more, on rows of known classes, if they are enough."""
    encoded, weights = encoded_labels(model.classes, y), row_weights(sample_weight, len(y))
    known = (encoded >= 0) & (weights > 0)
    new = with_sets(model, canonical_csr(rows[known]), encoded[known], weights[known])
    return model if new.conformal is None else new
