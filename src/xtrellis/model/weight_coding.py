"""Weights as they are written: block by block, every part in as few bytes as it needs.

* ``gaps``: the features of a block, each as the distance to the one before.
* ``counts``: the entries of each feature, less one.
* ``columns``: of each entry, as the distance to the one before, except where a feature has an entry
  for every column.
* ``wide_gaps``, ``wide_counts``, ``wide_columns``: those of at least 255. Where they belong, 255
  stands in their place, so that one byte is enough for all others.
* ``values``: 8-bit codes and a scale per block if the weights were rounded, else float32.

Every number is checked before it is used: what is read from a file never leads a kernel outside its
arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .weights import MAX_COLUMNS, EdgeWeights, decode, encode

Arrays = dict[str, npt.NDArray[Any]]

_WIDE = 255  # a number that does not fit one byte

_NAMES = {
    *("vertex_starts", "widths", "edges", "bias", "sizes", "gaps", "wide_gaps", "counts"),
    *("wide_counts", "columns", "wide_columns", "twins", "values"),
}


class WeightsError(ValueError):
    """Weights in a file that cannot be right; the message names the array."""


def pack_weights(weights: EdgeWeights) -> dict[str, Any]:
    """Arrays to be written, and the numbers of features and edges."""
    if weights.nonlinear:
        column, _, estimator = weights.nonlinear[0]
        raise ValueError(
            f"edge {weights.edges[column]} has a {type(estimator).__name__}, which is not linear "
            f"and cannot be saved without pickle: save the model with joblib, or use a linear "
            f"learner"
        )
    for name in ("bias", "values"):
        if not np.isfinite(getattr(weights, name)).all():
            raise ValueError(f"weights must be finite, but {name} holds NaN or infinity")
    widths, sizes = np.diff(weights.column_starts), np.diff(weights.feature_starts)
    counts = np.diff(weights.entry_starts)
    gaps = np.asarray(np.diff(weights.features.astype(np.int64), prepend=0), np.int64)
    firsts = weights.feature_starts[:-1][sizes > 0]
    gaps[firsts] = weights.features[firsts]
    is_listed = counts != np.repeat(widths, sizes)
    columns = weights.columns[np.repeat(is_listed, counts)].astype(np.int64)
    steps = np.asarray(np.diff(columns, prepend=0), np.int64)
    firsts = _starts(counts[is_listed])[:-1]
    steps[firsts] = columns[firsts]
    parts: dict[str, Any] = {
        "n_features": weights.n_features,
        "n_edges": weights.n_edges,
        "vertex_starts": _smallest(weights.vertex_starts),
        "widths": _smallest(widths),
        "edges": _smallest(_edge_gaps(weights.edges)),
        "bias": weights.bias,
        "sizes": _smallest(sizes),
        **_in_bytes("gaps", gaps),
        **_in_bytes("counts", counts - 1),
        **_in_bytes("columns", steps),
        "twins": _smallest(np.array(weights.twins)),
    }
    if weights.scales is None:
        return {**parts, "values": weights.values}
    largest = np.repeat(weights.scales, np.diff(weights.entry_starts[weights.feature_starts]))
    return {**parts, "scales": weights.scales, "values": encode(weights.values, largest)}


def unpack_weights(arrays: Arrays, n_edges: int, n_features: int) -> EdgeWeights:
    """Weights of checked arrays; raises a :class:`WeightsError` if one cannot be right."""
    for name in _NAMES - arrays.keys():
        raise WeightsError(f"weights.{name} is missing")
    for name, array in arrays.items():
        _require(name in {*_NAMES, "scales"} and isinstance(array, np.ndarray), name)
    _require(0 < n_edges < 2**62 and 0 < n_features < 2**62, "n_edges")
    vertex_starts = _integers(arrays, "vertex_starts", highest=n_edges)
    widths = _integers(arrays, "widths", lowest=1, highest=min(n_edges, MAX_COLUMNS))
    sizes = _integers(arrays, "sizes", highest=min(n_features, arrays["gaps"].size))
    counts = _from_bytes(arrays, "counts", highest=MAX_COLUMNS - 1) + 1
    n_blocks = len(widths)
    _require(len(sizes) == n_blocks, "sizes")
    _require(
        len(vertex_starts) > 1
        and vertex_starts[0] == 0
        and vertex_starts[-1] == n_blocks
        and bool((np.diff(vertex_starts) >= 0).all()),
        "vertex_starts",
    )
    twins = _integers(arrays, "twins", highest=n_edges - 1, n_axes=2)
    _require(len(twins) == 2 and bool((np.diff(twins[0]) > 0).all()), "twins")
    column_starts = _starts(widths)
    _require(int(column_starts[-1]) == n_edges - twins.shape[1], "widths")
    edges = _edges(_integers(arrays, "edges", lowest=-n_edges, highest=n_edges), column_starts)
    stored = np.sort(np.concatenate([edges, twins[0]]))
    _require(len(stored) == n_edges and bool((stored == np.arange(n_edges)).all()), "edges")
    _require(not np.isin(twins[1], twins[0]).any(), "twins")
    feature_starts = _starts(sizes)
    features = _features(arrays, feature_starts, n_features)
    _require(len(counts) == len(features), "counts")
    width_of = np.repeat(widths, sizes)
    _require(bool((counts <= width_of).all()), "counts")
    entry_starts = _starts(counts)
    scales = arrays.get("scales")
    values = arrays["values"]
    _require(values.shape == (entry_starts[-1],), "values")
    columns = _columns(arrays, counts, width_of)
    if scales is not None:
        scales = _floats(scales, "scales", n_blocks)
        _require(values.dtype == np.int8 and bool((values > -128).all()), "values")
        per_block = np.diff(entry_starts[feature_starts])
        values = decode(values, np.repeat(scales, per_block))
    return EdgeWeights(
        n_features,
        vertex_starts,
        column_starts,
        edges,
        _floats(arrays["bias"], "bias", len(edges)),
        feature_starts,
        features,
        entry_starts,
        columns,
        _floats(values, "values", int(entry_starts[-1])),
        scales,
        twins=(twins[0].copy(), twins[1].copy()),
    )


# ---------------------------------------------------------------------- parts


def _edge_gaps(edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Edges less the ones before, plus one: mostly 0, and often nothing else."""
    gaps = np.diff(edges, prepend=-1) - 1
    places = np.flatnonzero(gaps)
    return np.concatenate([places, gaps[places]])


def _edges(
    packed: npt.NDArray[np.int64], column_starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The inverse of :func:`_edge_gaps`."""
    _require(len(packed) % 2 == 0, "edges")
    places, gaps = np.split(packed, 2)
    n_columns = int(column_starts[-1])
    _require(bool(((places >= 0) & (places < n_columns)).all()), "edges")
    steps = np.ones(n_columns, np.int64)
    steps[places] += gaps
    return np.cumsum(steps) - 1


def _features(
    arrays: Arrays, feature_starts: npt.NDArray[np.int64], n_features: int
) -> npt.NDArray[Any]:
    """Features of all blocks, ascending in each."""
    gaps = _from_bytes(arrays, "gaps", highest=n_features)
    _require(len(gaps) == feature_starts[-1] and len(gaps) < 2**31, "gaps")
    sums = np.concatenate([[0], np.cumsum(gaps)])
    sizes = np.diff(feature_starts)
    features = sums[1:] - np.repeat(sums[feature_starts[:-1]], sizes)
    _require(int(features.max(initial=0)) < n_features, "gaps")
    repeated = gaps == 0
    repeated[feature_starts[:-1][sizes > 0]] = False  # the first of a block may be feature 0
    _require(not repeated.any(), "gaps")
    return features.astype(np.int32 if n_features < 2**31 else np.int64)


def _columns(
    arrays: Arrays, counts: npt.NDArray[np.int64], widths: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint16]:
    """Columns of all entries; those of features with all of them are counted off."""
    is_full = counts == widths
    steps = _from_bytes(arrays, "columns", highest=MAX_COLUMNS - 1)
    starts = _starts(counts[~is_full])
    _require(len(steps) == starts[-1], "columns")
    later = np.ones(len(steps), bool)
    later[starts[:-1]] = False
    _require(bool((steps[later] > 0).all()), "columns")
    sums = np.concatenate([[0], np.cumsum(steps)])
    columns = np.arange(counts.sum()) - np.repeat(_starts(counts)[:-1], counts)
    columns[np.repeat(~is_full, counts)] = sums[1:] - np.repeat(sums[starts[:-1]], np.diff(starts))
    _require(bool((columns < np.repeat(widths, counts)).all()), "columns")
    return columns.astype(np.uint16)


def _in_bytes(name: str, values: npt.NDArray[np.int64]) -> Arrays:
    """Numbers, most of which fit one byte, as two arrays of a file."""
    small = np.minimum(values, _WIDE).astype(np.uint8)
    return {name: small, f"wide_{name}": _smallest(values[values >= _WIDE])}


def _from_bytes(arrays: Arrays, name: str, highest: int) -> npt.NDArray[np.int64]:
    """The inverse; all of them within bounds."""
    small = arrays[name]
    _require(small.dtype == np.uint8 and small.ndim == 1, name)
    wide = _integers(arrays, f"wide_{name}", lowest=_WIDE, highest=max(highest, _WIDE))
    values, marks = small.astype(np.int64), small == _WIDE
    _require(len(wide) == np.count_nonzero(marks), f"wide_{name}")
    values[marks] = wide
    _require(int(values.max(initial=0)) <= highest, name)
    return values


def _integers(
    arrays: Arrays, name: str, highest: int, lowest: int = 0, n_axes: int = 1
) -> npt.NDArray[np.int64]:
    """Integers of an array, all within bounds."""
    array = arrays[name]
    _require(array.dtype.kind in "iu" and array.ndim == n_axes, name)
    if array.size:
        _require(int(array.min()) >= lowest and int(array.max()) <= highest, name)
    return array.astype(np.int64)


def _floats(array: npt.NDArray[Any], name: str, size: int) -> npt.NDArray[np.float32]:
    """Finite numbers, as many as there must be."""
    _require(array.dtype == np.float32 and array.shape == (size,), name)
    _require(bool(np.isfinite(array).all()), name)
    return array


def _smallest(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Integers in the smallest type that holds them all."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for name in ("u1", "i1", "u2", "i2", "u4", "i4"):
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return values.astype(name)
    return values.astype(np.int64)


def _starts(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _require(sound: bool | np.bool_, name: str) -> None:
    if not sound:
        raise WeightsError(f"weights.{name} does not fit the other parts of the model")
