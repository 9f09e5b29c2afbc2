"""Compile every kernel that serving needs: ``python -m xtrellis.serving.compile_kernels``.

Run this when building a container image: the server then starts at once, even on a read-only file
system.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..classifier import TrellisClassifier
from ..data.text_features import TextFeatures
from ..decoding.rivals import Rivals
from ..ensemble import TrellisEnsemble
from ..text import TrellisTextClassifier
from .answers import answer
from .models import ModelHolder
from .requests import PredictRequest

_N_CLASSES, _N_ROWS = 6, 1_200


def compile_kernels() -> None:
    """Train small models of each kind, load them from a file, and send them every request."""
    numbers = np.random.default_rng(0).integers(0, 40, _N_ROWS)
    labels = np.array([f"class {number % _N_CLASSES}" for number in numbers])
    texts = [f"word{number} of text {i}" for i, number in enumerate(numbers)]
    requests: list[Any] = [{"texts": texts[:3]}, {"text": texts[0], "explain": True}]
    classifiers: list[Any] = [
        TrellisClassifier(random_state=0, rerank=0.0),
        TrellisClassifier(random_state=0, rerank=1.0),
        TrellisClassifier.paper(3, random_state=0),
        TrellisEnsemble(n_estimators=2, random_state=0),
    ]
    for classifier in classifiers:
        _ask(TrellisTextClassifier(classifier).fit(texts, labels), requests)
    rivalled = TrellisTextClassifier(classifiers[1]).fit(texts, labels)
    inner = rivalled.classifier_
    inner.model_ = replace(inner.model_, rivals=Rivals.none(inner.model_.n_classes))
    _ask(rivalled, requests)
    _ask(classifiers[0].fit(TextFeatures((1, 1), None, None).fit_transform(texts, 1), labels), [])
    many = TrellisClassifier(
        random_state=0, calibration=0.3
    )  # enough held-out rows for sets of classes
    characters = TrellisTextClassifier(many, characters=(3, 4), hash_size=1000)
    sets = {"texts": texts[:3], "coverage": 0.8}
    _ask(characters.fit(texts, labels), [*requests, sets])


def _ask(estimator: Any, requests: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xtrellis"
        estimator.save(path)
        served = ModelHolder(path).current
        if not served.takes_texts:
            requests = [{"rows": [{"indices": [1, 2], "values": [1.0, 0.5]}], "explain": True}]
        for request in requests:
            answer(served, PredictRequest(**request))


if __name__ == "__main__":
    compile_kernels()
