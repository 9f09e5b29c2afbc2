"""Calibration: the decoding loss of a model, fitted on rows that were held out of training.

For local training the costs are those of a softmax at each vertex; its temperature in each slice,
and whether it takes the margins or their hinges, are chosen so that the true paths of held-out rows
are most likely. Its probabilities are in ``confidence``. Where the costs need all margins,
``p(path) = exp(-cost / T) / sum over all paths``, and T, which changes probabilities but no
prediction, is chosen so that confidence matches accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray, IntArray, canonical_csr
from .._threads import in_threads
from ..graph.trellis import Trellis
from ..model.weights import EdgeWeights
from .lazy import search_settings
from .losses import DecodingLoss
from .losses import Tempered as Tempered
from .paths import checked_costs, path_log_probabilities
from .vertex_losses import VertexSoftmax

# Where fitting starts, and what holds without it. A normalisation of 0.75 is within 0.3 points of
# the best of 0, 0.25, 0.5, 0.75 and 1 in all eight settings of benchmarks/bench_decoding.py.
LOCAL = VertexSoftmax(temperature=0.6, power=2, normalisation=0.75)
_STARTS = {0: 0.25, 2: 0.6, 3: 1.4}
_BOUNDS = 0.02, 50.0
_ENOUGH = 1_000  # rows to fit the temperature of whole paths on
_PART = 250  # of them that a thread takes at a time
_SMALL = 2**18  # numbers: for fewer, NumPy is done before a kernel would be compiled
_COLD = np.float32(1e6)  # 1 / T at which only paths without a detour have a probability
_PRIOR = 5.0  # rows that speak for the starting point, so that few rows cannot mislead


class Evidence(NamedTuple):
    """Weights, and rows they were trained without, with their paths and how much they count."""

    weights: EdgeWeights
    X: Any
    paths: IntArray
    sample_weight: FloatArray


def fit_softmax(
    trellis: Trellis, evidence: Sequence[Evidence], n_jobs: int | None = None
) -> VertexSoftmax:
    """Softmax under which the edges that these rows' paths take are most likely.

    Only the margins of the vertices on a row's own path are computed.
    """
    steps = [_all_choices(trellis, evidence, step) for step in range(trellis.n_slices)]
    sample_weight = np.concatenate([each.sample_weight for each in evidence])
    unit = float(sample_weight.mean())

    def fit_step(power_and_step: tuple[int, int]) -> tuple[float, float]:
        power, step = power_and_step
        margins, taken, rows = steps[step]
        if len(rows) == 0 or margins.shape[1] < 2:
            return _STARTS[power], 0.0
        z = margins if power == 0 else -(np.maximum(0, 1 - margins) ** power)
        return _minimise(_softmax_loss(z, taken, sample_weight[rows]), _STARTS[power], unit)

    cases = list(product(_STARTS, range(len(steps))))
    fitted = dict(zip(cases, in_threads(fit_step, cases, n_jobs), strict=True))
    best, least = LOCAL, np.inf
    for power in _STARTS:
        found = [fitted[power, step] for step in range(len(steps))]
        total = sum(loss for _, loss in found)
        if total < least:
            temperatures = (*(temperature for temperature, _ in found), _STARTS[power])
            best, least = replace(LOCAL, temperature=temperatures, power=power), total
    # Of the margins themselves only a full normalisation keeps all costs above zero.
    return best if best.power else replace(best, normalisation=1.0)


def fit_temperature(
    trellis: Trellis,
    margins: FloatArray,
    paths: IntArray,
    weights: FloatArray,
    loss: DecodingLoss,
    n_jobs: int | None = None,
) -> float:
    """Temperature under which the best paths are, on average, as probable as they are right.

    Minimises the squared difference between their mean probability and their accuracy, in units
    of the accuracy's standard error.
    """
    from ..kernels import calibrate

    # Some of them from all over: callers' rows may come class by class.
    some = np.random.default_rng(0).permutation(len(paths))[:_ENOUGH]
    margins, paths, weights = margins[some], paths[some], weights[some]
    if margins.size < _SMALL:
        margins = margins.astype(np.float64)  # float32 goes to kernels
    detours = np.empty((len(paths), trellis.n_edges), np.float32)
    probabilities = np.empty(len(paths))
    parts = [slice(k, k + _PART) for k in range(0, len(paths), _PART)]

    def prepare(part: slice) -> None:
        costs = checked_costs(trellis, margins[part], loss)
        calibrate.edge_detours(costs, trellis.arrays, detours[part])

    in_threads(prepare, parts, n_jobs)
    shares = weights / weights.sum()
    edges = trellis.path_edges(paths)
    own = np.take_along_axis(detours, np.maximum(edges, 0), axis=1)
    right = ((own == 0) | (edges < 0)).all(axis=1)  # a best path makes no detour
    # Of n best paths that tie, as with a row without known features, one in n is the right one.
    calibrate.best_path_probabilities(detours, trellis.arrays, _COLD, probabilities)
    right = right * probabilities
    accuracy = float(shares @ right)
    n_rows = 1 / float(shares @ shares)  # that would tell as much, if they counted alike
    variance = max(accuracy * (1 - accuracy), 1 / n_rows) / n_rows

    def misfit(temperature: float) -> float:
        scale = np.float32(1 / temperature)

        def evaluate(part: slice) -> None:
            of_part = detours[part], trellis.arrays, scale, probabilities[part]
            calibrate.best_path_probabilities(*of_part)

        in_threads(evaluate, parts, n_jobs)
        return (float(shares @ probabilities) - accuracy) ** 2 / variance

    return _minimise(misfit, 1.0, 1.0)[0]


def path_costs(
    trellis: Trellis, weights: EdgeWeights, X: Any, paths: IntArray, loss: DecodingLoss
) -> npt.NDArray[np.float64]:
    """Cost of one path per row under a bounded loss, from the vertices on that path alone."""
    scales, power, normalisation = search_settings(loss, trellis)
    costs = np.zeros(len(paths))
    for step in range(trellis.n_slices):
        # A vertex without a choice has a margin of 1, which costs nothing.
        margins, taken, rows = _choices(trellis, weights, X, paths, step)
        if len(rows) == 0:
            continue
        z = margins if power == 0 else -(np.maximum(0, 1 - margins) ** power)
        z = z * scales[step]
        top = z.max(axis=1)
        log_sums = top + np.log(np.exp(z - top[:, np.newaxis]).sum(axis=1))
        costs[rows] += normalisation * log_sums - z[np.arange(len(rows)), taken]
    return costs


def log_loss(
    trellis: Trellis,
    margins: Iterable[FloatArray],
    paths: IntArray,
    loss: DecodingLoss,
    weights: FloatArray | None = None,
) -> float:
    """Mean of -log2 p(true path) over batches of margins; at least the share of wrong best paths.

    A path that is not the best has a probability of at most one half, and so adds at least 1.
    """
    log_p, start = [], 0
    for batch in margins:
        truth = paths[start : start + len(batch), np.newaxis]
        log_p.append(path_log_probabilities(trellis, batch, truth, loss)[:, 0])
        start += len(batch)
    return float(-np.average(np.concatenate(log_p), weights=weights) / np.log(2))


def _all_choices(
    trellis: Trellis, evidence: Sequence[Evidence], step: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """The choices in this step of the rows of all weights, one after the other."""
    parts = [_choices(trellis, each.weights, each.X, each.paths, step) for each in evidence]
    if len(parts) == 1:
        return parts[0]
    width = max(margins.shape[1] for margins, _, _ in parts)
    starts = np.cumsum([0, *(len(each.paths) for each in evidence)])
    return (
        np.concatenate([_widened(margins, width) for margins, _, _ in parts]),
        np.concatenate([taken for _, taken, _ in parts]),
        np.concatenate([rows + start for (_, _, rows), start in zip(parts, starts, strict=False)]),
    )


def _widened(margins: FloatArray, width: int) -> FloatArray:
    """Margins with columns of -inf behind the last one."""
    behind = np.full((len(margins), width - margins.shape[1]), -np.inf)
    return np.concatenate([margins, behind], axis=1)


def _choices(
    trellis: Trellis, weights: EdgeWeights, X: Any, paths: IntArray, step: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """Margins at the vertex that each path decides at in this step, and which edge it takes.

    Returns a row for each path that gets so far and has a choice there, with -inf behind the last
    edge of its vertex.
    """
    taken = trellis.path_edges(paths)[:, step]
    rows = np.flatnonzero(taken >= 0)
    if step == 0:
        vertices = np.zeros(len(rows), np.int64)
    else:
        vertices = (
            1 + (step - 1) * trellis.slice_width + trellis.path_vertices(paths)[rows, step - 1]
        )
    first, last = (weights.column_starts[weights.vertex_starts[vertices + each]] for each in (0, 1))
    choice = last - first > 1
    rows, vertices, first, last = rows[choice], vertices[choice], first[choice], last[choice]
    if len(rows) == 0:
        return np.empty((0, 0)), rows, rows
    margins = np.full((len(rows), int((last - first).max())), -np.inf, np.float32)
    weights.vertex_margins(canonical_csr(X[rows]), vertices, margins)
    column = np.empty(trellis.n_edges, np.int64)
    column[weights.edges] = np.arange(len(weights.edges))
    return margins.astype(np.float64), column[taken[rows]] - first, rows


def _softmax_loss(
    scores: FloatArray, taken: IntArray, weights: FloatArray
) -> Callable[[float], float]:
    """Negative log-likelihood of the taken columns, as a function of the temperature."""
    from ..kernels import calibrate

    below_top = scores - scores.max(axis=1, keepdims=True)
    own = float(weights @ below_top[np.arange(len(taken)), taken])
    finite = np.maximum(below_top, -1e30).astype(np.float32)

    def loss(temperature: float) -> float:
        scale = np.float32(1 / temperature)
        if finite.size < _SMALL:
            log_sums = float(weights @ np.log(np.exp(finite * scale).sum(axis=1)))
        else:
            log_sums = float(calibrate.softmax_log_sums(finite, weights, scale))
        return log_sums - own / temperature

    return loss


def _minimise(
    loss: Callable[[float], float], start: float, row_weight: float
) -> tuple[float, float]:
    """Temperature of least loss, found on a logarithmic scale, and the loss.

    To the loss is added that of a normal prior around ``start``, worth a few rows.
    """
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda log_t: (
            loss(float(np.exp(log_t))) + _PRIOR * row_weight * (log_t - np.log(start)) ** 2
        ),
        bounds=np.log(_BOUNDS),
        method="bounded",
        options={"xatol": 0.05},
    )
    return float(np.exp(found.x)), float(found.fun)
