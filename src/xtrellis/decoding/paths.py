"""Decoding: from the margins of a batch of rows to paths, exactly.

Sections 4 and 5 of the paper. ``losses`` turns margins into edge costs; the shortest path under
them is the path of least total loss. The same recursion over the slices gives the k best paths
and, read as ``p(path) ~ exp(-cost)``, the log-partition over all K paths and the probability of
any path. All of it is O(|E|) per row, O(log K) at a fixed width; the recursion itself is in
``kernels/decode.py``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray, IntArray
from .._checks import checked_integer
from ..graph.trellis import Trellis, TrellisArrays
from .losses import DecodingLoss, Function, Tempered, get_loss

AnyLoss = str | Function | DecodingLoss


def best_paths(trellis: Trellis, margins: npt.ArrayLike, loss: AnyLoss = "exponential") -> IntArray:
    """Number of the path of least total loss, for each row of margins.

    Of paths whose losses are the same in floating point, the one with the lowest number.

    Parameters
    ----------
    trellis : Trellis
        The graph.
    margins : array-like of shape (n, n_edges)
        Margin of each edge's learner.
    loss : str, callable or decoding loss, default="exponential"
        See :func:`~xtrellis.decoding.get_loss`; for locally trained edges pass
        ``get_loss(name, code="local")``, :class:`~xtrellis.decoding.PathHinge` or
        :class:`~xtrellis.decoding.VertexSoftmax`.

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis.graph import Trellis, codewords
    >>> from xtrellis.decoding import best_paths
    >>> trellis = Trellis(1000, 10)
    >>> margins = codewords(trellis, [123, 7]) + np.random.default_rng(0).normal(0, 0.3, (2, 221))
    >>> best_paths(trellis, margins)
    array([123,   7])
    """
    return shortest_paths(trellis, checked_costs(trellis, margins, loss))


def shortest_paths(trellis: Trellis, costs: FloatArray) -> IntArray:
    """Path of least cost for each row of edge costs, which are not checked."""
    from ..kernels import decode

    paths = np.empty(len(costs), dtype=np.int64)
    decode.best_paths(costs, trellis.arrays, paths)
    return paths


def k_best_paths(
    trellis: Trellis, margins: npt.ArrayLike, k: int, loss: AnyLoss = "exponential"
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The k paths of least total loss for each row, best first, and their total losses.

    Of paths with the same loss, those with the lowest numbers come first.

    Parameters
    ----------
    trellis, margins, loss
        As for :func:`best_paths`.
    k : int
        How many paths, from 1 to ``n_classes``.

    Returns
    -------
    paths : ndarray of int64, shape (n, k)
    losses : ndarray of float64, shape (n, k)
        ``sum_j L(M_j f_j)`` of each path.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.decoding import k_best_paths
    >>> trellis = Trellis(9, 2)
    >>> margins = np.linspace(-1, 1, trellis.n_edges)[np.newaxis]
    >>> paths, losses = k_best_paths(trellis, margins, k=3, loss="squared")
    >>> paths
    array([[8, 7, 4]])
    >>> losses.round(2)
    array([[16.  , 17.23, 17.85]])
    """
    k = checked_k(k, trellis.n_classes)
    margins = checked_margins(trellis, margins)
    decoding_loss = get_loss(loss)
    paths, above_best = k_shortest_paths(trellis, checked_costs(trellis, margins, decoding_loss), k)
    # Path costs omit what all paths share; the best path's loss by its definition puts it back.
    least = decoding_loss.total_loss(trellis, margins, paths[:, 0])
    return paths, least[:, np.newaxis] + above_best


def k_shortest_paths(
    trellis: Trellis, costs: FloatArray, k: int
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The k paths of least cost for each row of checked edge costs, and what they cost above it."""
    from ..kernels import decode

    if k == 1:  # a smaller kernel
        return shortest_paths(trellis, costs)[:, np.newaxis], np.zeros((len(costs), 1))
    paths = np.empty((len(costs), k), dtype=np.int64)
    above_best = np.empty((len(costs), k))
    decode.k_best_paths(costs, trellis.arrays, paths, above_best)
    return paths, above_best


def likely_paths(
    trellis: Trellis,
    margins: npt.ArrayLike,
    k: int,
    loss: DecodingLoss,
    probability_loss: DecodingLoss,
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The k best paths of each row under ``loss``, and their log-probabilities under the other.

    As :func:`k_best_paths` and :func:`path_log_probabilities`, but edge costs are computed once if
    the losses are the same but for a temperature.
    """
    costs = checked_costs(trellis, margins, loss)
    paths, _ = k_shortest_paths(trellis, costs, checked_k(k, trellis.n_classes))
    if isinstance(probability_loss, Tempered) and probability_loss.loss == loss:
        costs = probability_loss.temper(costs)
    elif probability_loss != loss:
        costs = checked_costs(trellis, margins, probability_loss)
    return paths, log_probabilities(trellis, costs, paths)


def log_partition(
    trellis: Trellis, margins: npt.ArrayLike, loss: AnyLoss = "log"
) -> npt.NDArray[np.float64]:
    """``log sum_P exp(-cost(P))`` over all K paths, for each row of margins.

    The cost of a path is the sum of its edge costs; with the log loss, ``-sum_{j in P} f_j``.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.decoding import log_partition
    >>> trellis = Trellis(1000, 10)
    >>> np.exp(log_partition(trellis, np.zeros((1, trellis.n_edges))))
    array([1000.])
    """
    from ..kernels import decode

    costs = checked_costs(trellis, margins, loss)
    log_sums = np.empty(len(costs))
    decode.log_partition(costs, trellis.arrays, log_sums)
    return log_sums


def path_log_probabilities(
    trellis: Trellis, margins: npt.ArrayLike, paths: npt.ArrayLike, loss: AnyLoss = "log"
) -> npt.NDArray[np.float64]:
    """Log-probability of given paths under ``p(P) = exp(-cost(P)) / sum_Q exp(-cost(Q))``.

    Parameters
    ----------
    trellis, margins
        As for :func:`best_paths`.
    paths : array-like of int, shape (n,), (n, k) or (1, k)
        One or several path numbers for each row, or the same ones for all rows.
    loss : str, callable or decoding loss, default="log"
        With the log loss, ``p(P) ~ exp(sum_{j in P} f_j)``.

    Returns
    -------
    ndarray of float64, shape (n,) or (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.decoding import path_log_probabilities
    >>> trellis = Trellis(4, 2)
    >>> np.exp(path_log_probabilities(trellis, np.zeros((1, trellis.n_edges)), [[0, 3]]))
    array([[0.25, 0.25]])
    """
    return log_probabilities(trellis, checked_costs(trellis, margins, loss), paths)


def log_probabilities(
    trellis: Trellis, costs: FloatArray, paths: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Log-probability of given paths, as above, from checked edge costs."""
    from ..kernels import decode

    edges = trellis.path_edges(paths)
    if edges.ndim not in (2, 3) or (len(edges) != len(costs) and edges.shape[:-2] != (1,)):
        raise ValueError(
            f"paths must have shape (n,), (n, k) or (1, k) with n = {len(costs)} rows of margins, "
            f"got shape {edges.shape[:-1]}"
        )
    vertices = trellis.path_vertices(paths)
    if edges.ndim == 2:
        edges, vertices = edges[:, np.newaxis], vertices[:, np.newaxis]
    result = np.empty((len(costs), edges.shape[1]))
    decode.path_log_probabilities(costs, trellis.arrays, vertices, edges, result)
    return result[:, 0] if np.ndim(paths) == 1 else result


def checked_k(k: int, n_classes: int) -> int:
    """A number of best classes, or a ValueError that says how many there can be."""
    k = checked_integer("k", k)
    if not 1 <= k <= n_classes:
        raise ValueError(f"k must be from 1 to n_classes ({n_classes}), got {k}")
    return k


def checked_margins(trellis: Trellis, margins: npt.ArrayLike) -> FloatArray:
    """Margins as a contiguous float32 or float64 array, or a ValueError that says what is wrong."""
    array = np.asarray(margins)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"margins must be an array of real numbers, got {array.dtype}")
    if array.dtype != np.float32:
        array = array.astype(np.float64, copy=False)
    if array.ndim != 2 or array.shape[1] != trellis.n_edges:
        raise ValueError(
            f"margins must have shape (n, {trellis.n_edges}), a column for each edge; "
            f"got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        row, edge = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(
            f"margins must be finite, got margins[{row}, {edge}] = {array[row, edge]}; "
            "scale the rows down"
        )
    return np.ascontiguousarray(array)


def checked_costs(trellis: Trellis, margins: npt.ArrayLike, loss: AnyLoss) -> FloatArray:
    """Costs of all edges, checked on the way in and out."""
    margins = checked_margins(trellis, margins)
    costs = np.ascontiguousarray(get_loss(loss).edge_costs(trellis, margins))
    if costs.dtype != np.float32:
        costs = costs.astype(np.float64, copy=False)
    if costs.shape != margins.shape:
        raise ValueError(f"loss gave edge costs of shape {costs.shape}, not {margins.shape}")
    if not np.isfinite(costs).all():
        row, edge = np.argwhere(~np.isfinite(costs))[0]
        raise ValueError(
            f"loss {loss!r} gave an edge cost of {costs[row, edge]} for the margin "
            f"{margins[row, edge]}; it must be finite"
        )
    return costs


def layout(trellis: Trellis) -> tuple[TrellisArrays]:
    """The trellis as the last argument of kernels that take one."""
    return (trellis.arrays,)
