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

CANDIDATES = (0.3, 1.0, 3.0, 10.0, 30.0)  # for C
ORDERS: tuple[Order, ...] = ("by_rarity", "plain")
ORDER_C = 3.0  # at which the orders are compared
TOLERANCE = 0.02  # of the least log loss: settings within it are equally good


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


def choose(trials: Sequence[Trial]) -> Trial:
    """The most accurate of those whose log loss is close to the least; of equal ones the first.

    >>> choose([Trial("plain", 1.0, 0.97, 0.88, 0.9), Trial("plain", 3.0, 0.94, 0.89, 0.9)]).C
    3.0
    """
    least = min(trial.log_loss for trial in trials)
    good = [trial for trial in trials if trial.log_loss <= least * (1 + TOLERANCE)]
    return max(good, key=lambda trial: trial.accuracy)


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
