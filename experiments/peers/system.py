"""The interface of a system in the side-by-side table.

A system converts rows to its own input (not timed), trains on it (timed), and writes all that it
needs for predictions to a folder. It is loaded from that folder before it predicts, so that the
size of the folder is the size of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Rows as features and, if the set has them, as texts."""

    X: Any
    texts: list[str] | None = None

    def __getitem__(self, rows: slice) -> Rows:
        return Rows(self.X[rows], None if self.texts is None else self.texts[rows])


class System:
    """One row of the table."""

    package: ClassVar[str] = "xtrellis"  # its version is reported
    has_top_k: ClassVar[bool] = True  # whether it ranks more than one class
    compiles: ClassVar[bool] = False  # whether kernels are compiled at first use, untimed

    def inputs(self, rows: Rows) -> Any:
        """Convert rows for prediction."""
        return rows.X

    def training_inputs(self, rows: Rows, y: IntArray, work: Path) -> Any:
        """Convert rows for training; ``work`` is a folder for files."""
        return self.inputs(rows)

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        """Train, with one thread."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write what predictions need."""
        raise NotImplementedError

    def load(self, folder: Path) -> None:
        """Read it back."""
        raise NotImplementedError

    def predict(self, inputs: Any) -> IntArray:
        """Class of each row."""
        return self.predict_top_k(inputs, 1)[:, 0]

    def predict_one(self, inputs: Any) -> Any:
        """Class of a single row, by the call that the system offers for single rows."""
        return self.predict(inputs)

    def predict_top_k(self, inputs: Any, k: int) -> IntArray:
        """The k best classes of each row, best first; -1 where there are fewer."""
        raise NotImplementedError


CANDIDATES = (1.0, 3.0, 10.0)  # values of C that are tried for a system


def best_candidate(y: IntArray, accuracy: Callable[[float, Any, Any], float]) -> float:
    """The value of C of the highest accuracy on a tenth of the rows, held out of training.

    ``accuracy`` trains with a value on some rows, and is measured on the others.
    """
    held_out = np.random.RandomState(0).random_sample(len(y)) < 0.1
    _, first = np.unique(y, return_index=True)
    held_out[first] = False  # every class is trained on
    inside, outside = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    return max(CANDIDATES, key=lambda C: accuracy(C, inside, outside))


def padded(classes: list[list[int]], k: int) -> IntArray:
    """Lists of at most k classes as one array, with -1 where a list is shorter."""
    table = np.full((len(classes), k), -1, np.int64)
    for row, found in enumerate(classes):
        table[row, : len(found)] = found[:k]
    return table


def k_largest(scores: npt.NDArray[Any], k: int) -> IntArray:
    """Columns of the k largest scores of each row, largest first."""
    k = min(k, scores.shape[1])
    if k == 1:
        return np.argmax(scores, axis=1)[:, np.newaxis]
    columns = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


class SparseLinear(System):
    """A system whose model is one sparse matrix, classes × features, and one bias per class.

    The class is argmax_k ⟨w_k, x⟩ + b_k.
    """

    batch: ClassVar[int] = 1024  # rows scored at once, to limit memory

    def fit(self, X: Any, y: IntArray, seed: int) -> tuple[sparse.csr_matrix, npt.NDArray[Any]]:
        """Weights, classes × features, and biases."""
        raise NotImplementedError

    def train(self, inputs: Any, y: IntArray, work: Path, seed: int) -> None:
        self.weights, self.bias = self.fit(inputs, y, seed)

    def save(self, folder: Path) -> None:
        W = self.weights.astype(np.float32)
        sparse.save_npz(folder / "weights.npz", W, compressed=False)
        np.save(folder / "bias.npy", self.bias.astype(np.float32))

    def load(self, folder: Path) -> None:
        # Features first: a row then only reads the weights of its own features.
        self.weights = sparse.load_npz(folder / "weights.npz").T.tocsr()
        self.bias = np.load(folder / "bias.npy")

    def predict_top_k(self, inputs: Any, k: int) -> IntArray:
        found = [
            k_largest((inputs[start : start + self.batch] @ self.weights).toarray() + self.bias, k)
            for start in range(0, inputs.shape[0], self.batch)
        ]
        return np.concatenate(found)
