"""PECOS XR-Linear: a tree of label clusters with linear rankers, and beam search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from scipy import sparse

from peers.system import IntArray, System, padded


class XRLinear(System):
    """Its defaults, with one thread."""

    package = "libpecos"

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        Y = sparse.csr_matrix((np.ones(len(y), np.float32), (np.arange(len(y)), y)))
        labels = LabelEmbeddingFactory.create(Y, inputs, method="pifa")
        clusters = Indexer.gen(labels, threads=1, seed=seed)
        self.model = XLinearModel.train(inputs, Y, C=clusters, threads=1)

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))

    def load(self, folder: Path) -> None:
        self.model = XLinearModel.load(str(folder), is_predict_only=True)

    def predict_top_k(self, inputs: Any, k: int) -> IntArray:
        found = self.model.predict(inputs, only_topk=k, threads=1)
        ends = zip(found.indptr, found.indptr[1:])
        return padded([_best_first(found, start, end) for start, end in ends], k)


def _best_first(found: Any, start: int, end: int) -> list[int]:
    order = np.argsort(-found.data[start:end], kind="stable")
    return found.indices[start:end][order].tolist()
