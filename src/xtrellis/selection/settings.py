"""Settings found by ``fit`` on rows held out of training: the order of the classes, and C.

Accuracy alone is a coarse judge: between two values of C it changes by a few rows, while the
classes behind the best one get better or worse unnoticed. So the log loss decides which settings
are good, and accuracy which of the good ones is taken. The order of the classes is chosen first, at
one value of C, then C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.similarity import Order

if TYPE_CHECKING:
    from ..prediction import TrellisModel

FIRST_C, HIGHER, LOWER = 1.0, (3.0, 10.0, 30.0), (0.3,)  # the orders are compared at the first
ORDERS: tuple[Order, ...] = ("by_rarity", "plain")
TOLERANCE = 0.01  # of the least log loss: settings within it are equally good


@dataclass(frozen=True)
class Trial:
    """What held-out rows say of an order of the classes and a value of C."""

    order: str
    C: float
    log_loss: float
    accuracy: float
    top_5_accuracy: float


@dataclass(frozen=True)
class Selection:
    """The settings that were chosen, and all that were tried."""

    order: str
    C: float
    trials: tuple[Trial, ...]


def choose(trials: Sequence[Trial]) -> int:
    """Which is the most accurate of those whose log loss is close to the least: the first such.

    >>> choose([Trial("plain", 1.0, 0.97, 0.88, 0.9), Trial("plain", 3.0, 0.94, 0.89, 0.9)])
    1
    """
    good = [i for i, trial in enumerate(trials) if is_good(trial, trials)]
    return max(good, key=lambda i: trials[i].accuracy)


def is_good(trial: Trial, trials: Sequence[Trial]) -> bool:
    """Whether the log loss of a trial is close to the least of all."""
    return trial.log_loss <= min(each.log_loss for each in trials) * (1 + TOLERANCE)


def trial_of(order: str, C: float, model: TrellisModel, data: Any) -> Trial:
    """What rows say of a model that was trained without them."""
    best, _ = model.top_k(data.X, min(5, model.n_classes))
    hits = best == data.y_encoded[:, np.newaxis]
    share = data.sample_weight / data.sample_weight.sum()
    return Trial(
        order,
        C,
        model.log_loss(data.X, data.y_encoded, data.sample_weight),
        float(share @ hits[:, 0]),
        float(share @ hits.any(axis=1)),
    )
