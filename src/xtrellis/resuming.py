"""An estimator's checkpoint: whether its settings allow one, and what tells its training apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .data.shards import Shards
from .learning.checkpoint import keeping_blocks
from .learning.learners import Learner, SklearnLearner

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .fitting import LabelledRows


@contextmanager
def kept_blocks(estimator: TrellisClassifier, data: LabelledRows | Shards | None) -> Iterator[None]:
    """Keep finished blocks in the estimator's checkpoint, if it has one."""
    if estimator.checkpoint is None or data is None:
        yield
        return
    settings = estimator.get_params(deep=False)
    for name in ("checkpoint", "n_jobs", "verbose"):  # which change nothing
        del settings[name]
    if isinstance(data, Shards):  # blocks of rows on disk are others than those of rows in memory
        settings["memory"] = "less than the rows need"
    with keeping_blocks(estimator.checkpoint, settings, _identity(data)):
        yield


def _identity(data: LabelledRows | Shards) -> list[npt.NDArray[Any]]:
    """Arrays that tell these rows from others."""
    if isinstance(data, Shards):
        return [np.frombuffer(data.digest(), np.uint8)]
    X = data.X
    arrays = [X.data, X.indices, X.indptr, np.array(X.shape)]
    arrays += [data.y_encoded, data.sample_weight, data.classes]
    return arrays if data.may_hold_out is None else [*arrays, data.may_hold_out]


def check_checkpoint(estimator: TrellisClassifier, learner: Learner) -> None:
    """Raise an error if blocks could not be kept, or not be found again."""
    if estimator.checkpoint is None:
        return
    if not isinstance(estimator.checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must name a folder or be None, got {estimator.checkpoint!r}")
    if not isinstance(estimator.random_state, int | np.integer):
        raise ValueError(
            f"checkpoint needs a number for random_state, or a training could not be resumed; "
            f"got {estimator.random_state!r}"
        )
    if estimator.early_stopping:
        raise ValueError("checkpoint keeps finished blocks, and early_stopping has none to keep")
    if isinstance(learner, SklearnLearner):
        raise ValueError(
            f"checkpoint keeps the weights of the library's learners, not learner="
            f"{estimator.learner!r}"
        )
