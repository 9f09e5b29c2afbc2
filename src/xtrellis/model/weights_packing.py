"""Weights in the file: only the features that occur, and a check of every bound on the way back.

Kernels read the weights without looking where they read. Whatever a file holds, what comes out of
:func:`unpack_weights` keeps them within their arrays.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray
from .packed_arrays import Counts, starts_of
from .weights import EdgeWeights, edge_type, least_bytes

_MAX_FEATURES = 2**31  # rows number their columns with 32 bits


def pack_weights(weights: EdgeWeights) -> dict[str, Any]:
    """Weights as parts of a model file.

    ``features`` are the gaps between the features that occur, ``counts`` how many weights each of
    them has in ``edges`` and ``values``; 0 stands for the next row of ``dense``.
    """
    if weights.others:
        edge, _, estimator = weights.others[0]
        raise ValueError(
            f"edge {edge} has a {type(estimator).__name__}, which is not linear and cannot be "
            f"saved without pickle: save the model with joblib, or use a linear learner"
        )
    _check_finite(weights.bias, weights.dense, weights.values)
    counts = np.diff(weights.starts)
    features = np.flatnonzero((counts > 0) | (weights.place >= 0))
    return {
        "n_features": weights.n_features,
        "features": Counts.of(np.diff(features, prepend=-1) - 1),
        "counts": Counts.of(counts[features]),
        "bias": weights.bias,
        "dense": weights.dense,
        "edges": weights.edges,
        "values": weights.values,
        "twins": np.array(weights.twins),
    }


def unpack_weights(
    n_features: int,
    features: Counts,
    counts: Counts,
    bias: Float32Array,
    dense: Float32Array,
    edges: npt.NDArray[np.integer[Any]],
    values: Float32Array,
    twins: IntArray,
) -> EdgeWeights:
    """Weights of their parts, or a ValueError that names what does not fit."""
    n_edges = len(bias)
    _require(bias.ndim == 1, "bias")
    _require(dense.ndim == 2 and dense.shape[1] == n_edges, "dense")
    _require(edges.ndim == 1 and edges.dtype == edge_type(n_edges), "edges")
    _require(values.shape == edges.shape, "values")
    _require(0 < n_features <= _MAX_FEATURES, "n_features")
    # Each feature that occurs has a weight or a row: there cannot be more of them.
    most = min(n_features, len(values) + len(dense))
    gaps, lengths = features.values(most), counts.values(most)
    _require(len(gaps) == len(lengths), "counts")
    occurring = starts_of(gaps)[1:] + np.arange(len(gaps))
    _require(occurring.max(initial=-1) < n_features, "features")
    _require(lengths.max(initial=0) <= n_edges, "counts")
    starts = starts_of(lengths)
    _require(starts[-1] == len(values), "counts")
    in_rows = lengths == 0
    _require(np.count_nonzero(in_rows) == len(dense), "dense")
    _require(edges.max(initial=0) < max(n_edges, 1) and edges.min(initial=0) >= 0, "edges")
    _require(twins.ndim == 2 and len(twins) == 2, "twins")
    _require(twins.min(initial=0) >= 0 and twins.max(initial=0) < max(n_edges, 1), "twins")
    _require(bool((np.diff(twins[0]) > 0).all()), "twins")
    _require(not np.isin(twins[1], twins[0]).any(), "twins")
    _check_finite(bias, dense, values)
    _check_memory(n_features, n_edges)
    place = np.full(n_features, -1, np.int32)
    place[occurring[in_rows]] = np.arange(len(dense))
    all_starts = np.zeros(n_features + 1, np.int64)
    all_starts[occurring + 1] = lengths
    np.cumsum(all_starts, out=all_starts)
    pair = np.ascontiguousarray(twins[0]), np.ascontiguousarray(twins[1])
    return EdgeWeights(bias, place, dense, all_starts, edges, values, twins=pair)  # type: ignore[arg-type]


def _check_finite(bias: Float32Array, dense: Float32Array, values: Float32Array) -> None:
    for name, numbers in (("bias", bias), ("dense", dense), ("values", values)):
        # A NaN makes both of them NaN, and no array of marks is needed.
        if numbers.size and not (np.isfinite(numbers.min()) and np.isfinite(numbers.max())):
            raise ValueError(f"weights must be finite, but {name} holds NaN or infinity")


def _check_memory(n_features: int, n_edges: int) -> None:
    """Refuse what this machine cannot hold, before the system ends the process."""
    needed = least_bytes(n_features, n_edges)
    if hasattr(os, "sysconf") and needed > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise ValueError(f"its {n_features} features take more memory than this machine has")


def _require(sound: bool | np.bool_, what: str) -> None:
    if not sound:
        raise ValueError(f"{what} of the weights does not fit the rest")
