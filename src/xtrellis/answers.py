"""Answers beyond plain labels: explanations, "none of these", and predictions row by row."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._arrays import Float32Array
from ._checks import check_fraction, check_integer
from .explanation import Explanation, explain_row, strongest_features


class AnswersMixin:
    """Explanations for estimators of one trellis, or of several that vote."""

    def explain(
        self: Any, row: Any, label: Any = None, top: int = 10, *, feature_names: Any = None
    ) -> Explanation:
        """Which features of a row spoke for and against a class, at each edge and in total.

        The explanation is exact, as the model is linear at each edge. With several trellises, the
        totals are averaged over them.

        Parameters
        ----------
        row : array-like of shape (n_features,) or (1, n_features), dense or sparse
        label : default=None
            Class to explain; None means the most likely one.
        top : int, default=10
            How many features ``print`` shows; the explanation contains all of them.
        feature_names : array-like of shape (n_features,), default=None
            What to call the features, such as ``pipe[:-1].get_feature_names_out()`` for the last
            step of a pipeline. None means the column names of the training data, or numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from xtrellis import TrellisClassifier
        >>> X, y = np.tile(np.eye(4), (3, 1)), [0, 1, 2, 3] * 3
        >>> clf = TrellisClassifier(random_state=0).fit(X, y)
        >>> explanation = clf.explain(X[2])
        >>> explanation.label, explanation.in_favour[0].feature
        (2, 2)
        """
        check_integer("top", top, 1)
        row = _as_rows(row)
        now, rows = self._checked_rows(row)
        if rows.shape[0] != 1:
            raise ValueError(f"explain takes one row, got {rows.shape[0]}: pass one of them")
        labels, probabilities = now.predict_top_k(row, 1)
        predicted, probability = now._number_of(labels[0, 0]), float(probabilities[0, 0])
        encoded = predicted if label is None else now._number_of(label)
        own = probability if encoded == predicted else float(now.predict_proba(row)[0, encoded])
        found = explain_row(now._models(), rows, encoded, own, predicted, probability, int(top))
        names = now._names(feature_names)
        return found if names is None else found.renamed(lambda feature: names[feature])

    def top_features(
        self: Any, label: Any, top: int = 10, *, feature_names: Any = None
    ) -> list[tuple[Any, float]]:
        """Features with the largest weights for a class, summed over the edges of its path.

        Features with negative weights, which speak against the class, are left out.
        ``feature_names`` are as in :meth:`explain`.

        >>> import numpy as np
        >>> from xtrellis import TrellisClassifier
        >>> X, y = np.tile(np.eye(4), (3, 1)), [0, 1, 2, 3] * 3
        >>> clf = TrellisClassifier(random_state=0).fit(X, y)
        >>> clf.top_features(3, top=1)[0][0]
        3
        """
        check_is_fitted(self)
        check_integer("top", top, 1)
        now = copy.copy(self)
        found = strongest_features(now._models(), now._number_of(label), int(top))
        names = now._names(feature_names)
        return found if names is None else [(names[feature], weight) for feature, weight in found]

    def _names(self: Any, feature_names: Any) -> Any:
        """What to call the features, by number; None if they have no names."""
        if feature_names is None:
            return getattr(self, "feature_names_in_", None)
        if len(feature_names) != self.n_features_in_:
            raise ValueError(
                f"feature_names must have {self.n_features_in_} names, one for each feature; got "
                f"{len(feature_names)}"
            )
        return np.asarray(feature_names, object)

    def _number_of(self: Any, label: Any) -> int:
        """Number of a class, or an error that names the label."""
        found = np.flatnonzero(self.classes_ == label)
        if len(found) == 0:
            alike = [each for each in self.classes_.tolist() if str(each) == str(label)]
            hint = f"; {alike[0]!r} is one of them" if alike else ""
            raise ValueError(f"label must be one of classes_, got {label!r}{hint}")
        return int(found[0])


def _as_rows(row: Any) -> Any:
    """One row as a table of one row; a table as it is."""
    if hasattr(row, "to_frame"):  # a row of a data frame
        return row.to_frame().T
    return np.reshape(row, (1, -1)) if not hasattr(row, "tocsr") and np.ndim(row) == 1 else row


# ---------------------------------------------------------------------- none of these


def answered(
    labels: npt.NDArray[Any], probabilities: Any, min_probability: float, otherwise: Any
) -> npt.NDArray[Any]:
    """Labels, with ``otherwise`` in place of those that are not likely enough.

    >>> answered(np.array([3, 4]), np.array([0.9, 0.2]), 0.5, otherwise=-1)
    array([ 3, -1])
    >>> answered(np.array([3, 4]), np.array([0.9, 0.2]), 0.5, otherwise="unknown")
    array([3, 'unknown'], dtype=object)
    """
    check_fraction("min_probability", min_probability)
    other = np.asarray(otherwise)
    if other.ndim:
        raise ValueError(f"otherwise must be one label, got {otherwise!r}")
    if other.dtype.kind != labels.dtype.kind:
        labels, other = labels.astype(object), np.array(otherwise, object)
    return np.where(np.asarray(probabilities) >= min_probability, labels, other)


def check_otherwise(otherwise: Any) -> None:
    """Raise an error about an ``otherwise`` that would never be returned."""
    if otherwise is not None:
        raise ValueError("otherwise needs min_probability: below it, otherwise is returned")


# ---------------------------------------------------------------------- one row at a time


def checked_row(
    classify_checked: Callable[[npt.NDArray[Any], Float32Array], Any], n_features: int
) -> Callable[[npt.ArrayLike, npt.ArrayLike], Any]:
    """Function that checks the features and values of one row before it is classified."""
    from .kernels.row_checks import NOT_FINITE, OUT_OF_RANGE, SOUND, row_fault

    index_type = np.dtype(np.int32 if n_features <= 2**31 else np.int64)

    def classify(indices: npt.ArrayLike, values: npt.ArrayLike) -> Any:
        # Copies, since kernels are compiled for arrays that are contiguous and writeable.
        features, data = np.array(indices), np.array(values, np.float32)
        if features.ndim != 1 or features.shape != data.shape:
            raise ValueError(
                f"indices and values must be two lists of one length, "
                f"got shapes {features.shape} and {data.shape}"
            )
        if features.dtype != index_type:
            if features.size and features.dtype.kind not in "iu":
                raise ValueError(f"indices must be integers, got {features.dtype}")
            features = features.astype(np.int64)
        fault = row_fault(features, data, n_features)
        if fault != SOUND:
            if fault == OUT_OF_RANGE:
                raise ValueError(f"indices must be from 0 to {n_features - 1}")
            if fault == NOT_FINITE:
                raise ValueError("values must be finite numbers that fit float32")
            features, places = np.unique(features, return_inverse=True)
            data = np.bincount(places, data).astype(np.float32)
        return classify_checked(features.astype(index_type, copy=False), data)

    return classify
