"""Settings found by ``fit`` on rows held out of training: order of the classes, C and slice width.

Accuracy alone is a coarse judge: between two values of C it changes by a few rows, while the
classes behind the best one get better or worse unnoticed. So the log loss decides which settings
are good, and accuracy which of the good ones is taken. The order of the classes is chosen first, at
one value of C, then C, then the width: another order than the usual one must be clearly better, and
a wider trellis more accurate, by more than chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..graph.similarity import Order

FIRST_C, HIGHER, LOWER = 1.0, (3.0, 10.0, 30.0), (0.3,)  # the orders are compared at the first
ORDERS: tuple[Order, ...] = ("plain", "by_rarity")
MEANT = 0.6  # of the rows are nearest to their own vertex: with fewer, another order is looked at,
CLEARER = 4 / 3  # and becomes the usual one if so many times as many are found by nearness
WIDER = (2, 4)  # times the default width
CLOSE, FAIR = 0.01, 0.05  # above the least log loss: settings within are as good, or nearly
STEP = 0.005  # of the log loss: a step to a larger C that gained so much helped clearly
WIDTH_GAIN = 0.0025  # of accuracy, for a wider trellis to be worth its training


@dataclass(frozen=True)
class Trial:
    """What held-out rows say of an order of the classes, a value of C and a slice width."""

    order: str
    C: float
    slice_width: int
    log_loss: float
    accuracy: float
    top_5_accuracy: float


@dataclass(frozen=True)
class Selection:
    """The settings that were chosen, and all that were tried.

    Trials may be of some of the classes only, ``n_classes`` of them, with narrower slices.
    """

    order: str
    C: float
    slice_width: int
    n_classes: int
    trials: tuple[Trial, ...]


def choose(trials: Sequence[Trial], n_rows: int) -> int:
    """The most accurate of those whose log loss is close to the least: the first that is nearly so.

    One whose log loss is not quite as close is taken if it is clearly more accurate, beyond what
    may be chance on so many rows.

    >>> trials = [Trial("plain", 1.0, 9, 0.97, 0.88, 0.9), Trial("plain", 3.0, 9, 0.94, 0.89, 0.9)]
    >>> choose(trials, n_rows=500)
    1
    """

    def most_accurate(tolerance: float) -> int:
        least = min(trial.log_loss for trial in trials)
        good = [i for i, trial in enumerate(trials) if trial.log_loss <= least * (1 + tolerance)]
        best = max(trials[i].accuracy for i in good)
        near = best - deviation(n_rows) / 2  # a larger C for less than that is not worth its time
        return next(i for i in good if trials[i].accuracy >= near)

    likely, fair = most_accurate(CLOSE), most_accurate(FAIR)
    gain = trials[fair].accuracy - trials[likely].accuracy
    return fair if gain > 2 * deviation(n_rows) else likely


def deviation(n_rows: int) -> float:
    """Standard deviation of the difference of two accuracies that differ by chance.

    Of two models that are as good, some 2 % of the rows change sides.
    """
    return float(np.sqrt(0.02 / n_rows))


def is_worth_it(wider: Trial, trial: Trial, n_rows: int) -> bool:
    """Whether a wider trellis is more accurate, by more than chance on so many rows, and as sure.

    >>> narrow = Trial("plain", 1.0, 40, 0.97, 0.88, 0.9)
    >>> is_worth_it(Trial("plain", 1.0, 80, 0.95, 0.89, 0.9), narrow, n_rows=5_000)
    True
    """
    gain = wider.accuracy - trial.accuracy
    as_sure = wider.log_loss <= trial.log_loss * (1 + CLOSE)
    return as_sure and gain > max(WIDTH_GAIN, 2 * deviation(n_rows))


def is_better_order(trial: Trial, usual: Trial, n_rows: int) -> bool:
    """Whether an order of the classes is clearly better than the usual one.

    Either more accurate by more than chance, and as sure; or much surer, and as accurate. Smaller
    differences say nothing: held out another time, other rows prefer the other order.
    """
    is_surer = trial.log_loss < (1 - FAIR) * usual.log_loss
    return is_worth_it(trial, usual, n_rows) or (is_surer and trial.accuracy >= usual.accuracy)


def is_clearly_better(trial: Trial, before: Trial, least: float, n_rows: int) -> bool:
    """Whether a step to another C was worth it, so that one more may be, too.

    Either its log loss is clearly below the least so far; or it is more accurate, by more than
    chance, and as sure.

    >>> before = Trial("plain", 1.0, 40, 2.793, 0.575, 0.763)
    >>> after = Trial("plain", 3.0, 40, 2.791, 0.605, 0.769)
    >>> is_clearly_better(after, before, before.log_loss, n_rows=1_000)
    True
    """
    if trial.log_loss < (1 - STEP) * least:
        return True
    gain = trial.accuracy - before.accuracy
    return trial.log_loss <= (1 + CLOSE) * least and gain > 2 * deviation(n_rows)


def is_dominated(trial: Trial, by: Trial, margin: float = 0.0) -> bool:
    """Whether another trial will always be chosen in place of this one.

    A later one must be more accurate by a margin: of nearly equal ones the first is chosen.
    """
    return by.log_loss <= trial.log_loss and by.accuracy >= trial.accuracy + margin
