"""scikit-learn's systems: random output codes, and one-vs-rest by stochastic gradient descent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OutputCodeClassifier
from sklearn.svm import LinearSVC

from peers.system import IntArray, System, k_largest


class OutputCode(System):
    """Random codewords over linear SVMs; the nearest codeword wins, and there is no top 5.

    Codes have about 10 log2 K bits, the length Allwein et al. (2000) use for dense random codes;
    scikit-learn's default of 1.5 K would be thousands of hard problems.
    """

    package = "scikit-learn"
    has_top_k = False

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        n_classes = len(np.unique(y))
        self.model = OutputCodeClassifier(
            LinearSVC(random_state=seed),
            code_size=10 * np.log2(n_classes) / n_classes,
            random_state=seed,
        ).fit(inputs, y)

    def save(self, folder: Path) -> None:
        joblib.dump(self.model, folder / "model.joblib")

    def load(self, folder: Path) -> None:
        self.model = joblib.load(folder / "model.joblib")

    def predict(self, inputs: Any) -> IntArray:
        return self.model.predict(inputs)


class SGD(OutputCode):
    """One-vs-rest linear SVMs by stochastic gradient descent; defaults, except for the passes."""

    has_top_k = True
    passes = 5

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        self.model = SGDClassifier(max_iter=self.passes, tol=None, random_state=seed)
        self.model.fit(inputs, y)

    def predict_top_k(self, inputs: Any, k: int) -> IntArray:
        batches = range(0, inputs.shape[0], 1024)
        scores = (self.model.decision_function(inputs[start : start + 1024]) for start in batches)
        return self.model.classes_[np.concatenate([k_largest(part, k) for part in scores])]
