"""omikuji: Parabel and Bonsai, ensembles of label trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from omikuji import Model

from peers.system import IntArray, Rows, System, best_candidate, padded

Pairs = list[tuple[int, float]]


class Parabel(System):
    """Three balanced binary trees, omikuji's defaults; trained from a file."""

    package = "omikuji"

    C = 1.0

    def settings(self) -> Any:
        """Settings of training."""
        settings = Model.default_hyper_param()
        settings.linear_c = self.C
        return settings

    def inputs(self, rows: Rows) -> list[Pairs]:
        X = rows.X
        ends = zip(X.indptr, X.indptr[1:])
        return [list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist())) for a, b in ends]

    def training_inputs(self, rows: Rows, y: IntArray, work: Path) -> Path:
        file = work / "train.txt"
        with file.open("w") as out:
            out.write(f"{rows.X.shape[0]} {rows.X.shape[1]} {int(y.max()) + 1}\n")
            for label, found in zip(y, self.inputs(rows)):
                pairs = found or [(0, 0.0)]  # it refuses rows without features
                out.write(f"{label} {' '.join(f'{j}:{value:.6g}' for j, value in pairs)}\n")
        return file

    def train(self, inputs: Path, y: IntArray, work: Path, seed: int) -> None:
        self.model = Model.train_on_data(str(inputs), self.settings(), n_threads=1)

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))

    def load(self, folder: Path) -> None:
        self.model = Model.load(str(folder))
        self.model.init_prediction_thread_pool(1)
        self.model.densify_weights(0.1)  # as its own command does before predicting

    def predict_top_k(self, inputs: list[Pairs], k: int) -> IntArray:
        found = (self.model.predict(pairs, top_k=k) for pairs in inputs)
        return padded([[label for label, _ in best] for best in found], k)


class Bonsai(Parabel):
    """Three shallow trees of up to 100 unbalanced branches, as omikuji's manual sets Bonsai."""

    def settings(self) -> Any:
        settings = super().settings()
        settings.cluster_balanced = False
        settings.cluster_k = 100
        settings.max_depth = 3
        return settings


class TunedBonsai(Bonsai):
    """Bonsai with the best of three values of C on held-out rows, and trained with it on all."""

    def train(self, inputs: Path, y: IntArray, work: Path, seed: int) -> None:
        header, *lines = inputs.read_text().splitlines()

        def accuracy(C: float, inside: Any, outside: Any) -> float:
            self.C = C
            _, n_features, n_classes = header.split()
            part = work / "part.txt"
            chosen = "\n".join(lines[i] for i in inside)
            part.write_text(f"{len(inside)} {n_features} {n_classes}\n{chosen}\n")
            super(TunedBonsai, self).train(part, y[inside], work, seed)
            self.model.init_prediction_thread_pool(1)
            rows = [
                [(int(j), float(x)) for j, x in (pair.split(":") for pair in lines[i].split()[1:])]
                for i in outside
            ]
            return float(np.mean(self.predict_top_k(rows, 1)[:, 0] == y[outside]))

        self.C = best_candidate(y, accuracy)
        super().train(inputs, y, work, seed)
