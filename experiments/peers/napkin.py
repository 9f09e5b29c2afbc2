"""napkinXC: a probabilistic label tree over hierarchical k-means."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from napkinxc import models

from peers.system import IntArray, System, padded


class PLT(System):
    """Its defaults, with one thread."""

    package = "napkinxc"

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        self.folder = work / "napkin"
        models.PLT(str(self.folder), seed=seed, threads=1).fit(inputs, [[k] for k in y.tolist()])

    def save(self, folder: Path) -> None:
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def load(self, folder: Path) -> None:
        self.model = models.PLT(str(folder), threads=1)
        self.model.load()

    def predict_top_k(self, inputs: Any, k: int) -> IntArray:
        return padded(self.model.predict(inputs, top_k=k), k)
