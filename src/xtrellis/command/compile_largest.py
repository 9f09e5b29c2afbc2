"""Compile the search into the cache: ``python -m xtrellis.command.compile_search``.

Started by ``compiling``.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._arrays import canonical_csr
from ..decoding.calibration import LOCAL
from ..decoding.confidence import BestPaths
from ..graph.assignment import given_assignment
from ..graph.trellis import Trellis
from ..model.weights import gather_blocks
from ..prediction import TrellisModel


def smallest_model() -> TrellisModel:
    """A model of two classes that has learned nothing."""
    trellis, n_features = Trellis(2, 2), 1
    tails, _ = trellis.endpoints()
    leaving = [np.flatnonzero(tails == vertex) for vertex in range(trellis.n_vertices)]
    weights = gather_blocks([], leaving, n_features, np.ones(trellis.n_edges, np.float32))
    paths = given_assignment(trellis, np.arange(2))
    return TrellisModel(np.arange(2), trellis, paths, weights, LOCAL, BestPaths(), "local")


if __name__ == "__main__":
    row = sparse.csr_matrix(np.ones((1, 1), np.float32))
    smallest_model().k_best(canonical_csr(row), 1)
