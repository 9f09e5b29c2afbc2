"""LOMTree (Choromanska and Langford, 2015): the logarithmic online tree of Vowpal Wabbit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from vowpalwabbit import Workspace

from peers.system import IntArray, Rows, System


class LOMTree(System):
    """``--log_multi K``, trained by Vowpal Wabbit's own driver from a file.

    The tree predicts one class per row, so that there is no top 5.
    """

    package = "vowpalwabbit"
    has_top_k = False
    # 2^26 weights: the predictors of all classes share one hashed table, and at 2^22 collisions
    # cost 17 points. Table size and rate were chosen on rows held out of the training part of
    # icd10cm. Without holdout_off, every tenth row would be left out of training.
    settings = "--passes 10 --bit_precision 26 --learning_rate 0.25 --holdout_off"

    def inputs(self, rows: Rows) -> list[str]:
        return [f"| {features}" for features in _lines(rows)]

    def training_inputs(self, rows: Rows, y: IntArray, work: Path) -> Path:
        file = work / "train.vw"
        lines = (f"{label + 1} | {features}\n" for label, features in zip(y, _lines(rows)))
        file.write_text("".join(lines))
        return file

    def train(self, inputs: Path, y: IntArray, work: Path, seed: int) -> None:
        self.file = work / "trained.vw"
        options = (
            f"--log_multi {int(y.max()) + 1} {self.settings} --random_seed {seed} --quiet "
            f"--data {inputs} --cache_file {work / 'cache'} --final_regressor {self.file}"
        )
        Workspace(options).finish()

    def save(self, folder: Path) -> None:
        self.file.rename(folder / "model.vw")

    def load(self, folder: Path) -> None:
        self.model = Workspace(f"--initial_regressor {folder / 'model.vw'} --testonly --quiet")

    def predict(self, inputs: list[str]) -> IntArray:
        return np.array([self.model.predict(row) for row in inputs], np.int64) - 1


def _lines(rows: Rows) -> Any:
    """Features of each row as ``index:value``."""
    X = rows.X
    for start, end in zip(X.indptr, X.indptr[1:]):
        pairs = zip(X.indices[start:end].tolist(), X.data[start:end].tolist())
        yield " ".join(f"{j}:{value:.6g}" for j, value in pairs)
