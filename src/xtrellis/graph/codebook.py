"""The output code that a trellis induces: codewords, Hamming distance, minimum distance.

Section 3 of the paper. The codeword of a path has one entry per edge: +1 on the path's edges, -1
on the others. The K x |E| coding matrix is never stored; these functions make the rows asked for.

Local training reads the same graph as the *local* code, ternary in the sense of Allwein et al.: +1
on the path's edges, -1 on the other edges that leave its vertices, 0 (don't care) on edges that
leave vertices it does not visit. Independent training has the paper's, the *independent* code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from .trellis import Trellis

Code = Literal["independent", "local"]


def codewords(
    trellis: Trellis, paths: npt.ArrayLike, code: Code = "independent"
) -> npt.NDArray[np.int8]:
    """Rows of the coding matrix for the given path numbers.

    Parameters
    ----------
    trellis : Trellis
        The graph.
    paths : array-like of int
        Path numbers, of any shape.
    code : {"independent", "local"}, default="independent"
        The paper's code of -1 and +1, or local training's of -1, 0 and +1.

    Returns
    -------
    ndarray of int8, shape (*paths.shape, n_edges)

    Examples
    --------
    >>> from xtrellis.graph import Trellis, codewords
    >>> codewords(Trellis(4, 2), [0, 3])
    array([[ 1, -1,  1, -1, -1, -1,  1, -1,  1],
           [-1,  1, -1, -1, -1,  1, -1,  1,  1]], dtype=int8)
    >>> codewords(Trellis(4, 2), [0], code="local")
    array([[ 1, -1,  1, -1,  0,  0,  1,  0,  1]], dtype=int8)
    """
    edges = trellis.path_edges(paths)
    rows = edges.reshape(-1, edges.shape[-1])
    row_index, step = np.nonzero(rows >= 0)
    on_path = rows[row_index, step]
    words = np.full((len(rows), trellis.n_edges), -1, dtype=np.int8)
    if code == "local":
        tails, heads = trellis.endpoints()
        visited = np.zeros((len(rows), trellis.n_vertices), dtype=bool)
        visited[:, 0] = True
        visited[row_index, heads[on_path]] = True
        words[~visited[:, tails]] = 0
    elif code != "independent":
        raise ValueError(f"code must be 'independent' or 'local', got {code!r}")
    words[row_index, on_path] = 1
    return words.reshape(*edges.shape[:-1], trellis.n_edges)


def hamming_distance(
    trellis: Trellis, paths: npt.ArrayLike, others: npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Number of edges that are on one path of each pair and not on the other.

    ``rho(a, b) = sum_j (1 - M[a, j] * M[b, j]) / 2``, counted from the edges of the two paths
    without making the codewords. The shapes of ``paths`` and ``others`` broadcast.

    Examples
    --------
    >>> from xtrellis.graph import Trellis, hamming_distance
    >>> hamming_distance(Trellis(9, 2), 0, [0, 1, 8])
    array([0, 5, 7])
    """
    # Step i of a path is an edge into slice i or an exit of slice i - 1: an edge that two paths
    # share is the same step of both.
    first, second = trellis.path_edges(paths), trellis.path_edges(others)
    lengths = (first >= 0).sum(axis=-1) + (second >= 0).sum(axis=-1)
    shared = ((first == second) & (first >= 0)).sum(axis=-1)
    return np.asarray(lengths - 2 * shared, dtype=np.int64)


def minimum_distance(trellis: Trellis, code: Code = "independent") -> float:
    """Smallest distance rho between two codewords: ``min sum_j (1 - M[a, j] * M[b, j]) / 2``.

    For the paper's code this is the Hamming distance: 3 if two neighbouring digits of K in base b
    are both non-zero, else 4. For the local code, where a product with 0 counts one half, it is
    ``(|E| - T + 5) / 2``, with T the number of edges that leave the vertices of the path with the
    most of them. Both take O(log K).

    Proof, independent. *Paths that leave at the same slice* have the same number of edges, and
    where they differ they visit different vertices on a run of r >= 1 slices. Each such run costs
    both paths r + 1 edges (from the vertex before the run to the one after it, or to the sink), so
    the distance is at least 2 * (1 + 1) = 4. It is reached by two paths that differ in their vertex
    of slice 0 alone, which exist as b >= 2.
    *Paths that leave at slices i < j* have i + 2 and j + 2 edges. The exit of the first is not
    on the second, so they share at most i + 1 edges: the distance is at least
    (i + 2) + (j + 2) - 2 * (i + 1) = j - i + 2 >= 3. It is 3 just when j = i + 1 and the second
    path continues the first from its last vertex; there are such paths if and only if slices i
    and i + 1 both have exits: A[i] > 0 and A[i+1] > 0.

    Proof, local. Only edges that leave a vertex on both paths have a product other than 0. With
    g edges the vertex adds g to the sum of products if both paths take the same one, and g - 4 if
    they part there. So the sum is the number of edges that leave common vertices, less 4 for each
    parting. All common, it would be T, reached by the vertex with an exit, if there is one, in
    every slice; but two paths part at least once, and miss at least one vertex of the last slice
    but one or the last, or the last alone. The smallest loss of common edges is 1: if A[L] >= 2,
    part at slice L - 1 to two vertices of slice L, with one edge each; else if slice L - 1 has
    exits, one path leaves there; else let the paths differ in slice L - 1 alone, whose vertices
    have one edge each. So the largest sum is T - 4 - 1.  QED

    Examples
    --------
    >>> from xtrellis.graph import Trellis, minimum_distance
    >>> minimum_distance(Trellis(64, 4)), minimum_distance(Trellis(105, 5))
    (4.0, 3.0)
    >>> minimum_distance(Trellis(64, 4), code="local")
    16.0
    """
    digits = trellis.digits
    if code == "independent":
        return 3.0 if any(a and b for a, b in pairwise(digits)) else 4.0
    if code != "local":
        raise ValueError(f"code must be 'independent' or 'local', got {code!r}")
    onward = sum(trellis.slice_sizes) + 1  # from the source, from slice to slice, to the sink
    exits = sum(digit > 0 for digit in digits[:-1])
    return (trellis.n_edges - (onward + exits) + 5) / 2
