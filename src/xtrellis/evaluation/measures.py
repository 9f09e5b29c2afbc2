"""The measures of an evaluation, computed from labels, predictions and their probabilities."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float64Array
from ..decoding.confidence import N_JUDGED, losses_in_bits
from .results import Bin, Confusion, CurvePoint, Level, SizeGroup

_CONFUSIONS, _EXAMPLES = 10, 3
_SEPARATORS = ("/", ">", "|")  # of levels in a label, tried in this order
_DEEPEST = 10  # the last level that is measured


# ---------------------------------------------------------------------- single numbers


def macro_f1(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float:
    """Mean of ``2 tp / (2 tp + fp + fn)`` over all classes among the labels or predictions.

    >>> round(macro_f1(np.array(["a", "a", "b"]), np.array(["a", "b", "b"])), 3)
    0.667
    """
    numbers: dict[Any, int] = {}  # a dictionary, as NumPy would convert labels of different types
    every = (*y.tolist(), *predicted.tolist())
    encoded = np.array([numbers.setdefault(label, len(numbers)) for label in every])
    truth, found = encoded[: len(y)], encoded[len(y) :]
    n = len(numbers)
    right = np.bincount(truth[truth == found], minlength=n)
    total = np.bincount(truth, minlength=n) + np.bincount(found, minlength=n)
    return float(np.mean(2 * right / total))


def log_loss(
    hits: npt.NDArray[np.bool_],
    probabilities: Float64Array,
    known: npt.NDArray[np.bool_],
    n_classes: int,
) -> float:
    """Mean of -log p(label); the classes after the 20 best share the remaining probability."""
    if not known.any():
        return float("nan")
    log_p = np.log(np.maximum(probabilities[:, :N_JUDGED], 1e-300))
    bits = losses_in_bits(log_p, hits[:, :N_JUDGED], n_classes)
    return float(bits[known].mean() * np.log(2))


def expected_calibration_error(
    right: npt.NDArray[Any], confidence: npt.NDArray[Any], n_bins: int = 15
) -> float:
    """Mean gap between accuracy and confidence, over bins of equal width.

    The gap of a bin is the difference between the accuracy and the mean confidence of its rows.
    Bins are weighted by their number of rows (Guo et al., ICML 2017).

    >>> right, confidence = np.array([True, False, True, True]), np.array([0.6, 0.6, 0.9, 0.9])
    >>> round(expected_calibration_error(right, confidence), 3)
    0.1
    """
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, right.astype(float) - confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(right))


def calibration_error_by_chance(confidence: npt.NDArray[Any], n_bins: int = 15) -> float:
    """The expected calibration error that a model without any would show on so few rows.

    The number of right answers in a bin varies by chance, with a variance of sum p (1 - p); a
    normal deviate's mean size is sqrt(2 / pi) times its standard deviation.

    >>> round(calibration_error_by_chance(np.full(100, 0.5)), 3)
    0.04
    """
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    variances = np.bincount(bins, confidence * (1 - confidence), minlength=n_bins)
    deviations = np.sqrt(np.maximum(variances, 0))
    return float(np.sqrt(2 / np.pi) * deviations.sum() / len(confidence))


# ---------------------------------------------------------------------- by confidence


def bins_of(right: npt.NDArray[Any], confidence: Float64Array, n_bins: int = 10) -> tuple[Bin, ...]:
    """Rows grouped by confidence into bins of equal width; empty bins are left out."""
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    return tuple(
        Bin(int(own.sum()), float(confidence[own].mean()), float(right[own].mean()))
        for own in (bins == number for number in range(n_bins))
        if own.any()
    )


def curve(
    right: npt.NDArray[Any], confidence: Float64Array, shares: Any = None
) -> tuple[CurvePoint, ...]:
    """Accuracy if only a share of the rows is answered: those with the most confident answers.

    >>> right, confidence = np.array([True, True, False, True]), np.array([0.9, 0.8, 0.7, 0.2])
    >>> [point.accuracy for point in curve(right, confidence, [0.5, 1.0])]
    [1.0, 0.75]
    """
    shares = np.arange(20, 0, -1) / 20 if shares is None else shares
    order = np.argsort(-confidence, kind="stable")
    sums = np.cumsum(right[order])
    numbers = [max(1, round(share * len(right))) for share in shares]
    return tuple(
        CurvePoint(n / len(right), float(confidence[order[n - 1]]), float(sums[n - 1] / n))
        for n in numbers
    )


# ---------------------------------------------------------------------- by class


def size_groups(
    sizes: npt.NDArray[np.int64], known: npt.NDArray[np.int64], right: npt.NDArray[Any]
) -> tuple[SizeGroup, ...]:
    """Accuracy on rows of large, medium-sized and small classes."""
    ordered = np.sort(sizes)
    third = ordered.sum() / 3
    small = ordered[np.searchsorted(np.cumsum(ordered), third)]
    large = ordered[::-1][np.searchsorted(np.cumsum(ordered[::-1]), third)]
    if small >= large:
        small, large = 0, 0
    limits = {"head": (large, np.inf), "middle": (small + 1, large - 1), "tail": (0, small)}
    if not large:
        limits = {"all": (0, np.inf)}
    groups = []
    for name, (least, most) in limits.items():
        own = (sizes >= least) & (sizes <= most)
        if not own.any():
            continue
        rows = right[(known >= 0) & own[known]]
        accuracy = float(rows.mean()) if len(rows) else float("nan")
        found = int(sizes[own].min()), int(sizes[own].max())
        groups.append(SizeGroup(name, *found, int(own.sum()), len(rows), accuracy))
    return tuple(groups)


def worst_confusions(
    X: Any, y: npt.NDArray[Any], predicted: npt.NDArray[Any]
) -> tuple[Confusion, ...]:
    """The most frequent pairs of a label and a wrong prediction."""
    wrong = np.flatnonzero(y != predicted)
    truth, found = y[wrong].tolist(), predicted[wrong].tolist()
    pairs: dict[Any, list[int]] = {}
    for row, pair in zip(wrong.tolist(), zip(truth, found, strict=True), strict=True):
        pairs.setdefault(pair, []).append(row)
    totals = Counter(y.tolist())
    worst = sorted(pairs.items(), key=lambda item: (-len(item[1]), totals[item[0][0]], item[1][0]))
    return tuple(
        Confusion(label, taken_for, len(rows), totals[label], _examples(X, rows[:_EXAMPLES]))
        for (label, taken_for), rows in worst[:_CONFUSIONS]
    )


def _examples(X: Any, rows: list[int]) -> tuple[Any, ...]:
    """The texts of some rows, or the numbers of the rows if they are not texts."""
    texts = [some_rows(X, row, row + 1) for row in rows]
    found = [each.iloc[0] if hasattr(each, "iloc") else each[0] for each in texts]
    return tuple(found) if all(isinstance(each, str) for each in found) else tuple(rows)


def level_accuracies(
    y: npt.NDArray[Any], predicted: npt.NDArray[Any], classes: npt.NDArray[Any], separator: Any
) -> tuple[Level, ...]:
    """Accuracy on the first parts of labels such as A/B/C; empty if labels have no parts."""
    names = [str(label) for label in classes.tolist()] if classes.dtype.kind in "UO" else []
    if separator is None:
        among = [
            each for each in _SEPARATORS if 2 * sum(each in name for name in names) > len(names)
        ]
        separator = among[0] if among else ""
    if not separator or not names:
        return ()
    parts = {str(label): str(label).split(separator) for label in {*names, *map(str, y.tolist())}}
    depth = min(max(len(parts[name]) for name in names), _DEEPEST)
    if depth < 2:
        return ()
    pairs = list(zip(map(str, y.tolist()), map(str, predicted.tolist()), strict=True))
    return tuple(
        Level(
            at,
            len({tuple(parts[name][:at]) for name in names}),
            float(np.mean([parts[a][:at] == parts[b][:at] for a, b in pairs])),
        )
        for at in range(1, depth + 1)
    )


def some_rows(X: Any, start: int, stop: int) -> Any:
    """Some rows of a matrix, a data frame or a list of texts."""
    return X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]
