"""Compile one of the two largest kernels into the cache.

``compiling`` starts it as a process of its own: ``python -m xtrellis.command.compile_largest NAME``
with ``svm_round`` or ``k_best`` as the name.
"""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
from scipy import sparse

from .._arrays import canonical_csr
from ..decoding.calibration import LOCAL
from ..decoding.confidence import BestPaths
from ..graph.assignment import given_assignment
from ..graph.trellis import Trellis
from ..kernels import svm
from ..model.weights import gather_blocks
from ..prediction import TrellisModel


def train_nothing() -> None:
    """A round over no rows, of the types that training has.

    (To have one row trained would mean to import scikit-learn.)
    """
    f32 = np.float32
    rows = np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, f32), np.empty(0, np.int64)
    edges = np.empty((0, 1), np.int32), np.empty(0, f32), np.empty(0, f32), f32(1), f32(1)
    weights = np.empty((0, 1), f32), np.empty((0, 1), f32), np.empty(1, f32)
    svm.svm_round(*rows, 1, *edges, *weights, np.empty(0, f32), np.empty(1), np.empty(1))


def smallest_model() -> TrellisModel:
    """A model of two classes that has learned nothing."""
    trellis, n_features = Trellis(2, 2), 1
    tails, _ = trellis.endpoints()
    leaving = [np.flatnonzero(tails == vertex) for vertex in range(trellis.n_vertices)]
    weights = gather_blocks([], leaving, n_features, np.ones(trellis.n_edges, np.float32))
    paths = given_assignment(trellis, np.arange(2))
    return TrellisModel(np.arange(2), trellis, paths, weights, LOCAL, BestPaths(), "local")


def search_for_nothing() -> None:
    """A search in the smallest model."""
    row = sparse.csr_matrix(np.ones((1, 1), np.float32))
    smallest_model().k_best(canonical_csr(row), 1)


def end_with_starter() -> None:
    """End when the process that holds the other end of standard input has ended."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_starter, daemon=True).start()
    {"svm_round": train_nothing, "k_best": search_for_nothing}[sys.argv[1]]()
