"""Bounds of what the cheapest edge of a vertex costs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from decoding.test_lazy import LOSSES, model_with, rows
from xtrellis.graph import Trellis
from xtrellis.kernels import blocks, bounds
from xtrellis.kernels._jit import FIXED


@njit(error_model="numpy", fastmath=FIXED)
def bounds_of(indices, data, w, width, scale, power, normalisation, at_rest, least):
    size = data.size + 1
    lows, highs = np.empty(size, np.int64), np.empty(size, np.int64)
    spans = np.empty(size, np.int64)
    tops = np.empty(w.column_starts.size - 1, np.float32)
    blocks.find_features(indices, 0, data.size, w.slots, lows, highs, spans)
    return bounds.least_costs(
        data, 0, data.size, lows, highs, w, width, scale, power, normalisation, at_rest, tops, least
    )  # fmt: skip


@given(st.sampled_from(LOSSES), st.integers(0, 10**6), st.booleans(), st.integers(1, 3))
def test_no_edge_of_a_vertex_is_cheaper_than_its_bound(loss, seed, tied, parts):
    trellis = Trellis(41, 7)
    model, X = model_with(trellis, loss, seed, tied, parts), rows(seed + 1, tied)
    X.data *= 10.0 ** (seed % 5 - 2)
    costs = loss.edge_costs(trellis, model.margins(X).astype(np.float64))
    tails = trellis.endpoints()[0]
    w, width, _, _, scales, power, normalisation, at_rest = model._graph_arguments
    for i in range(X.shape[0]):
        row, least = X[i], np.full(width, np.nan)
        found = bounds_of(
            row.indices, row.data, w, width, scales[1], power, normalisation, at_rest, least
        )
        assert found == (row.data >= 0).all()
        if found:
            actual = [costs[i, tails == 1 + v].min() for v in range(width)]
            assert (least / bounds.RESOLUTION <= actual).all()
            assert (least >= 0).all()
            if row.nnz == 0:
                np.testing.assert_allclose(least / bounds.RESOLUTION, actual, atol=2e-3)
