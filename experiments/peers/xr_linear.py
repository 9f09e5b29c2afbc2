"""PECOS XR-Linear: a tree of label clusters with linear rankers, and beam search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from scipy import sparse

from peers.system import IntArray, System, best_candidate, padded


class XRLinear(System):
    """Its defaults, with one thread."""

    package = "libpecos"
    C = 1.0  # of positive and negative examples

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        Y = sparse.csr_matrix((np.ones(len(y), np.float32), (np.arange(len(y)), y)))
        labels = LabelEmbeddingFactory.create(Y, inputs, method="pifa")
        clusters = Indexer.gen(labels, threads=1, seed=seed)
        self.model = XLinearModel.train(inputs, Y, C=clusters, threads=1, Cp=self.C, Cn=self.C)

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))

    def load(self, folder: Path) -> None:
        self.model = XLinearModel.load(str(folder), is_predict_only=True)

    def predict_top_k(self, inputs: Any, k: int) -> IntArray:
        found = self.model.predict(inputs, only_topk=k, threads=1)
        ends = zip(found.indptr, found.indptr[1:])
        return padded([_best_first(found, start, end) for start, end in ends], k)


class TunedXRLinear(XRLinear):
    """The same with the best of three values of C on held-out rows, and trained with it on all."""

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        def accuracy(C: float, inside: Any, outside: Any) -> float:
            self.C = C
            super(TunedXRLinear, self).train(inputs[inside], y[inside], work, seed)
            return float(np.mean(self.predict_top_k(inputs[outside], 1)[:, 0] == y[outside]))

        self.C = best_candidate(y, accuracy)
        super().train(inputs, y, work, seed)


def _best_first(found: Any, start: int, end: int) -> list[int]:
    order = np.argsort(-found.data[start:end], kind="stable")
    return found.indices[start:end][order].tolist()
