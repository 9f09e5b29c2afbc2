"""The paper's sparse competitors, from ``baselines``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from baselines.dismec import fit_dismec
from baselines.fastxml import Forest, fit_fastxml
from baselines.pd_sparse import fit_pd_sparse
from baselines.ppd_sparse import fit_ppd_sparse
from peers.system import IntArray, SparseLinear, System


class DiSMEC(SparseLinear):
    """One-vs-rest SVMs, C = 1, weights under 0.01 removed."""

    package = "scikit-learn"

    def fit(self, X: Any, y: IntArray, seed: int) -> tuple[Any, npt.NDArray[Any]]:
        return fit_dismec(X, y, seed=seed)


class PDSparse(SparseLinear):
    """Multiclass hinge with an L1 penalty, without bias."""

    compiles = True

    def fit(self, X: Any, y: IntArray, seed: int) -> tuple[Any, npt.NDArray[Any]]:
        weights = fit_pd_sparse(X, y, seed=seed).weights
        return weights, np.zeros(weights.shape[0])


class PPDSparse(SparseLinear):
    """Squared hinge with an L1 penalty, class by class."""

    compiles = True

    def fit(self, X: Any, y: IntArray, seed: int) -> tuple[Any, npt.NDArray[Any]]:
        weights = sparse.csc_matrix(fit_ppd_sparse(X, y, seed=seed))
        return sparse.csr_matrix(weights[:, :-1]), weights[:, -1].toarray().ravel()


class FastXML(System):
    """The tree ensemble, with 25 trees: half of the authors' number, in half of the time."""

    compiles = True
    n_trees = 25

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        self.forest = fit_fastxml(inputs, y, self.n_trees, seed=seed)

    def save(self, folder: Path) -> None:
        self.forest.save(folder / "forest.npz")

    def load(self, folder: Path) -> None:
        self.forest = Forest.load(folder / "forest.npz")

    def predict_top_k(self, inputs: Any, k: int) -> IntArray:
        return self.forest.predict_top_k(inputs, k)
