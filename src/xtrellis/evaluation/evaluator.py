"""Evaluation of a fitted classifier.

Everything is computed from a list of each row's most likely classes and their probabilities, so
the cost does not grow with the number of classes.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from .._arrays import Float64Array
from .._checks import check_integer, encoded_labels
from .._progress import row_progress
from ..decoding.confidence import N_JUDGED
from .measures import (
    bins_of,
    calibration_error_by_chance,
    curve,
    expected_calibration_error,
    level_accuracies,
    log_loss,
    macro_f1,
    size_groups,
    some_rows,
    worst_confusions,
)
from .results import Evaluation

_BATCH = 2_048  # rows per step of the progress bar
_TIMED = 5_000  # rows on which prediction is timed


def evaluate(
    clf: Any, X: Any, y: Any, *, k: int = 5, separator: str | None = None, verbose: int = 0
) -> Evaluation:
    """Measure a fitted classifier on rows or texts with labels.

    Parameters
    ----------
    clf : TrellisClassifier, LTLSClassifier, TrellisEnsemble or TrellisTextClassifier
    X, y
        Rows or texts, and labels.
    k : int, default=5
        For top-k accuracy.
    separator : str, default=None
        What separates the levels of labels such as A/B/C. None detects whether most labels contain
        ``/``, ``>`` or ``|``; an empty string turns levels off.
    verbose : int, default=0
        1 shows a progress bar if the evaluation takes more than two seconds.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import TrellisClassifier
    >>> from xtrellis.evaluation import evaluate
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TrellisClassifier(random_state=0).fit(X[:1200] / 16, y[:1200])
    >>> found = evaluate(clf, X[1200:] / 16, y[1200:])
    >>> found.accuracy > 0.8, found.top_k_accuracy[5] >= found.accuracy
    (True, True)
    """
    check_integer("k", k, 1)
    y, classes = np.asarray(y), clf.classes_
    check_consistent_length(X, y)
    n_rows = len(y)
    if y.ndim != 1 or n_rows == 0:
        raise ValueError(f"y must contain one label per row, and at least one: got shape {y.shape}")
    n_best = min(max(k, N_JUDGED), len(classes))
    labels, probabilities = _best(clf, X, n_rows, n_best, verbose)
    microseconds = _time(clf, X, min(n_rows, _TIMED))
    hits = labels == y[:, np.newaxis]
    right, confidence = hits[:, 0], probabilities[:, 0]
    known = encoded_labels(classes, y)
    sizes, sizes_known = _class_sizes(clf, known)
    return Evaluation(
        n_rows,
        float(right.mean()),
        {j: float(hits[:, :j].any(axis=1).mean()) for j in sorted({min(k, len(classes))})},
        macro_f1(y, labels[:, 0]),
        log_loss(hits, probabilities, known >= 0, len(classes)),
        float(confidence.mean()),
        expected_calibration_error(right, confidence),
        calibration_error_by_chance(confidence),
        int((known < 0).sum()),
        microseconds,
        size_groups(sizes, known, right),
        sizes_known,
        worst_confusions(X, y, labels[:, 0]),
        level_accuracies(y, labels[:, 0], classes, separator),
        curve(right, confidence),
        bins_of(right, confidence),
    )


# ---------------------------------------------------------------------- predictions


def _best(
    clf: Any, X: Any, n_rows: int, n_best: int, verbose: int
) -> tuple[npt.NDArray[Any], Float64Array]:
    """The best classes of all rows and their probabilities, batch by batch."""
    parts = []
    with row_progress(verbose, n_rows) as report:
        for start in range(0, n_rows, _BATCH):
            batch = some_rows(X, start, start + _BATCH)
            parts.append(clf.predict_top_k(batch, n_best))
            report(min(_BATCH, n_rows - start))
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])


def _time(clf: Any, X: Any, n_rows: int) -> float:
    """Microseconds that a prediction takes per row; the kernels are already loaded."""
    rows = some_rows(X, 0, n_rows)
    start = time.perf_counter()
    clf.predict(rows)
    return (time.perf_counter() - start) / n_rows * 1e6


def _class_sizes(clf: Any, known: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], bool]:
    """Rows per class: training rows if the model knows their number, otherwise evaluated rows."""
    inside = getattr(clf, "classifier_", clf)
    model = getattr(getattr(inside, "estimators_", [inside])[0], "model_", None)
    sizes = None if model is None else model.class_sizes
    n_classes = len(clf.classes_)
    if sizes is not None:
        return sizes.values(n_classes), True
    return np.bincount(known[known >= 0], minlength=n_classes), False
