"""fastText: averaged word vectors and a softmax, learned together from texts."""

from __future__ import annotations

import re
from pathlib import Path

import fasttext

from peers.system import IntArray, Rows, System, padded

LABEL = "__label__"


class FastText(System):
    """Words and pairs of words, one thread.

    Its defaults, 5 passes at rate 0.1, are meant for far more rows. These settings come from a few
    tries on rows held out of the training part of icd10cm. A softmax takes O(K) per row, so that
    the hierarchical one replaces it above 2,000 classes, as fastText's manual advises. If a set has
    no texts, its features are used as words.
    """

    package = "fasttext-numpy2-wheel"
    softmax_up_to = 2000
    softmax = {"loss": "softmax", "lr": 1.0, "epoch": 10, "dim": 50}
    hierarchical = {"loss": "hs", "lr": 0.5, "epoch": 50, "dim": 100}

    def inputs(self, rows: Rows) -> list[str]:
        if rows.texts is not None:
            return [" ".join(re.findall(r"\w+", text.lower())) for text in rows.texts]
        X = rows.X
        return [
            " ".join(f"f{j}" for j in X.indices[start:end])
            for start, end in zip(X.indptr, X.indptr[1:])
        ]

    def training_inputs(self, rows: Rows, y: IntArray, work: Path) -> Path:
        file = work / "train.txt"
        lines = (f"{LABEL}{label} {text}\n" for label, text in zip(y, self.inputs(rows)))
        file.write_text("".join(lines), encoding="utf-8")
        return file

    def train(self, inputs: Path, y: IntArray, work: Path, seed: int) -> None:
        few = int(y.max()) < self.softmax_up_to
        settings = self.softmax if few else self.hierarchical
        self.model = fasttext.train_supervised(
            str(inputs), wordNgrams=2, bucket=200_000, thread=1, seed=seed, verbose=0, **settings
        )

    def save(self, folder: Path) -> None:
        self.model.save_model(str(folder / "model.bin"))

    def load(self, folder: Path) -> None:
        self.model = fasttext.load_model(str(folder / "model.bin"))

    def predict_top_k(self, inputs: list[str], k: int) -> IntArray:
        found, _ = self.model.predict(inputs, k=k)
        return padded([[int(label[len(LABEL) :]) for label in best] for best in found], k)
