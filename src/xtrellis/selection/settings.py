"""Settings found by ``fit``: the SVM's C, by rows that were held out of training.

Accuracy alone is a coarse judge: between two values of C it changes by a few rows, while the
classes behind the best one get better or worse unnoticed. So the log loss decides which values are
good, and accuracy which of the good ones is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..prediction import TrellisModel

CANDIDATES = (0.3, 1.0, 3.0, 10.0, 30.0)
TOLERANCE = 0.02  # of the least log loss: values of C within it are equally good


@dataclass(frozen=True)
class Trial:
    """What held-out rows say of a value of C."""

    C: float
    log_loss: float
    accuracy: float
    top_5_accuracy: float


@dataclass(frozen=True)
class Selection:
    """The value of C that was chosen, and all that were tried."""

    C: float
    trials: tuple[Trial, ...]


def select_C(  # noqa: N802
    candidates: Sequence[float], models: Sequence[TrellisModel], data: Any
) -> Selection:
    """Choose among models trained without these rows, one for each candidate."""
    trials = tuple(_trial(C, model, data) for C, model in zip(candidates, models, strict=True))
    return Selection(choose(trials).C, trials)


def choose(trials: Sequence[Trial]) -> Trial:
    """The most accurate of those whose log loss is close to the least; of equal ones the first.

    >>> choose([Trial(1.0, 0.97, 0.88, 0.9), Trial(3.0, 0.94, 0.89, 0.9)]).C
    3.0
    """
    least = min(trial.log_loss for trial in trials)
    good = [trial for trial in trials if trial.log_loss <= least * (1 + TOLERANCE)]
    return max(good, key=lambda trial: trial.accuracy)


def _trial(C: float, model: TrellisModel, data: Any) -> Trial:
    best, _ = model.top_k(data.X, min(5, model.n_classes))
    hits = best == data.y_encoded[:, np.newaxis]
    share = data.sample_weight / data.sample_weight.sum()
    return Trial(
        C,
        model.log_loss(data.X, data.y_encoded, data.sample_weight),
        float(share @ hits[:, 0]),
        float(share @ hits.any(axis=1)),
    )
