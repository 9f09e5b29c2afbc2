"""The systems of this library: all defaults, W-LTLS as in the paper, LTLS, and one-vs-rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from peers.system import IntArray, System
from xtrellis import LTLSClassifier, TrellisClassifier, TrellisEnsemble, load_model


class Trellis(System):
    """An estimator of this library."""

    compiles = True

    def estimator(self, n_classes: int, seed: int) -> Any:
        """Estimator to train."""
        raise NotImplementedError

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        self.model = self.estimator(len(np.unique(y)), seed).fit(inputs, y)

    def save(self, folder: Path) -> None:
        self.model.save(folder / "model.xtrellis")

    def load(self, folder: Path) -> None:
        self.model = load_model(folder / "model.xtrellis")
        self.classify = self.model.row_predictor()

    def predict(self, inputs: Any) -> IntArray:
        return self.model.predict(inputs)

    def predict_one(self, inputs: Any) -> Any:
        return self.classify(inputs.indices, inputs.data)

    def predict_top_k(self, inputs: Any, k: int) -> IntArray:
        return self.model.predict_top_k(inputs, k=k)[0]


class Default(Trellis):
    """All defaults."""

    def estimator(self, n_classes: int, seed: int) -> Any:
        return TrellisClassifier(random_state=seed)


class Pruned(Default):
    """All defaults, pruned at a threshold that loses at most half a point on held-out rows."""

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        estimator = self.estimator(len(np.unique(y)), seed)
        estimator.fit(inputs, y)
        self.model = estimator.prune(inputs, y, max_drop=0.005, validation_fraction=0.1)


class Ensemble(Trellis):
    """The mean of three trellises, all defaults."""

    def estimator(self, n_classes: int, seed: int) -> Any:
        return TrellisEnsemble(random_state=seed)

    def load(self, folder: Path) -> None:
        self.model = load_model(folder / "model.xtrellis")

    def predict_one(self, inputs: Any) -> Any:
        return self.model.predict(inputs)[0]


class PrunedEnsemble(Ensemble, Pruned):
    """Three trellises, pruned in the same way."""


class WLTLS(Trellis):
    """The paper's setting."""

    def estimator(self, n_classes: int, seed: int) -> Any:
        return TrellisClassifier.paper(min(10, n_classes), random_state=seed)


class LTLS(Trellis):
    """Trained jointly, with two vertices per slice."""

    def estimator(self, n_classes: int, seed: int) -> Any:
        return LTLSClassifier(random_state=seed)


class OneVsRest(Trellis):
    """The widest trellis: b = K."""

    def estimator(self, n_classes: int, seed: int) -> Any:
        return TrellisClassifier.paper(n_classes, random_state=seed)
