"""fastText: averaged word vectors and a softmax, learned together, from texts."""

from __future__ import annotations

import re
from pathlib import Path

import fasttext

from peers.system import IntArray, Rows, System, padded

LABEL = "__label__"


class FastText(System):
    """Words and pairs of words; its tutorial's learning rate and passes, one thread.

    Its defaults, 5 passes at rate 0.1, are for millions of rows and leave these sets unlearned.
    Where a set has no texts, its features are the words.
    """

    package = "fasttext-numpy2-wheel"
    rate, epochs, buckets = 1.0, 25, 200_000

    def inputs(self, rows: Rows) -> list[str]:  # noqa: D102
        if rows.texts is not None:
            return [" ".join(re.findall(r"\w+", text.lower())) for text in rows.texts]
        X = rows.X
        return [
            " ".join(f"f{j}" for j in X.indices[start:end])
            for start, end in zip(X.indptr, X.indptr[1:])
        ]

    def training_inputs(self, rows: Rows, y: IntArray, work: Path) -> Path:  # noqa: D102
        file = work / "train.txt"
        lines = (f"{LABEL}{label} {text}\n" for label, text in zip(y, self.inputs(rows)))
        file.write_text("".join(lines), encoding="utf-8")
        return file

    def train(self, inputs: Path, y: IntArray, work: Path, seed: int) -> None:  # noqa: D102
        self.model = fasttext.train_supervised(
            str(inputs), lr=self.rate, epoch=self.epochs, wordNgrams=2, bucket=self.buckets,
            loss="hs", thread=1, seed=seed, verbose=0,
        )  # fmt: skip

    def save(self, folder: Path) -> None:  # noqa: D102
        self.model.save_model(str(folder / "model.bin"))

    def load(self, folder: Path) -> None:  # noqa: D102
        self.model = fasttext.load_model(str(folder / "model.bin"))

    def predict_top_k(self, inputs: list[str], k: int) -> IntArray:  # noqa: D102
        found, _ = self.model.predict(inputs, k=k)
        return padded([[int(label[len(LABEL) :]) for label in best] for best in found], k)
