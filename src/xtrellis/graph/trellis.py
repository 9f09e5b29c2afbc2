"""The trellis graph: slices, edges, and the arithmetic between paths and their numbers.

Algorithm 1 of the paper (Appendix C). Write K in base b: digits ``A[0]`` (least significant) to
``A[L]``, ``L = floor(log_b K)``. Inner slices 0 to L stand between a source and a sink; each has
b vertices, but of slice L only the ``A[L]`` vertices that reach the sink are kept. The source
leads to every vertex of slice 0, every vertex to every vertex of the next slice, and the first
``A[i]`` vertices of slice i lead to the sink: its *exits*. A vertex of slice i is reached by
``b**i`` paths, so the sink is reached by ``sum_i A[i] * b**i = K`` of them.

Nothing here grows with K: paths and edges are numbered by formulas, never listed in a table.

* **Vertices**: the source is 0, vertex v of slice i is ``1 + i*b + v``, the sink comes last.
* **Edges** are numbered as in the paper's figure of Appendix C: source edges, then the edges
  from slice to slice, then the exits, the last slice's exits first.
* **Paths** are numbered depth first, the first slice most significant, at each vertex its exit
  before its longer paths. ``T[i] = K // b**i`` paths run from slice i to the sink, so
  ``T[i+1]``, and one more if it has an exit, from each of its vertices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray, IntArray
from .._checks import checked_integer

MAX_CLASSES = 2**60  # path and edge numbers stay within 64-bit integers


class TrellisArrays(NamedTuple):
    """A trellis as the kernels take it; ``kernels/graph.py`` reads it.

    Attributes
    ----------
    slice_width : int
        ``b``.
    digits, path_counts : ndarray of int64
        ``A`` and ``T``, as of :class:`Trellis`.
    exit_starts : ndarray of int64
        Number of the first exit of each slice.
    n_edges : int
    slices : ndarray of int64, shape (n_slices + 2, 5)
        One row for the source, for each slice and for the sink: its number of vertices, its first
        edge to the next slice, its number of exits, the first of them, and the number of paths
        from each of its vertices to the sink that go on to the next slice.
    """

    slice_width: int
    digits: IntArray
    path_counts: IntArray
    exit_starts: IntArray
    n_edges: int
    slices: IntArray


@dataclass(frozen=True)
class EdgeTable:
    """The edges that leave one slice, or the source, as a table: one row per vertex, exits last.

    Attributes
    ----------
    inner, exits : slice
        Numbers of the edges to the next slice, vertex by vertex, and to the sink.
    n_vertices, n_heads : int
        Number of vertices of this slice, and of the next one.
    """

    inner: slice
    exits: slice
    n_vertices: int
    n_heads: int

    def gather(self, values: FloatArray, fill: float) -> FloatArray:
        """Values of the edges, (n, n_vertices, n_heads + 1); ``fill`` where there is no exit."""
        table = np.full((len(values), self.n_vertices, self.n_heads + 1), fill, values.dtype)
        table[..., :-1] = values[:, self.inner].reshape(len(values), self.n_vertices, self.n_heads)
        table[:, : self.exits.stop - self.exits.start, -1] = values[:, self.exits]
        return table

    def scatter(self, table: FloatArray, into: FloatArray) -> None:
        """Write such a table back to the columns of the edges."""
        into[:, self.inner] = table[..., :-1].reshape(len(into), self.n_vertices * self.n_heads)
        into[:, self.exits] = table[:, : self.exits.stop - self.exits.start, -1]


@dataclass(frozen=True)
class Trellis:
    """A directed graph with exactly ``n_classes`` source-sink paths.

    Parameters
    ----------
    n_classes : int
        Number of paths K, at least 2.
    slice_width : int
        Vertices per slice, b, from 2 (LTLS) to ``n_classes`` (one-vs-rest).

    Attributes
    ----------
    digits : tuple of int
        ``A``: K in base b, least significant digit first; ``digits[i]`` exits leave slice i.
    path_counts : tuple of int
        ``T``: ``path_counts[i]`` paths lead from slice i to the sink; one 0 more at the end.

    Examples
    --------
    >>> from xtrellis.graph import Trellis
    >>> trellis = Trellis(n_classes=9, slice_width=2)      # the example of Appendix C
    >>> trellis.n_edges, trellis.slice_sizes, trellis.digits
    (14, (2, 2, 2, 1), (1, 0, 0, 1))
    >>> trellis.path_edges([0, 1, 8])                      # short paths end in -1
    array([[ 0, 13, -1, -1, -1],
           [ 0,  2,  6, 10, 12],
           [ 1,  5,  9, 11, 12]])
    >>> trellis.path_numbers([[1, 5, 9, 11, 12]])
    array([8])
    >>> Trellis(10**12, 10).n_edges
    1121
    """

    n_classes: int
    slice_width: int
    digits: tuple[int, ...] = field(init=False, repr=False, compare=False)
    path_counts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        n_classes = checked_integer("n_classes", self.n_classes)
        slice_width = checked_integer("slice_width", self.slice_width)
        if not 2 <= n_classes <= MAX_CLASSES:
            raise ValueError(f"n_classes must be from 2 to 2**60, got {n_classes}")
        if not 2 <= slice_width <= n_classes:
            raise ValueError(
                f"slice_width must be from 2 to n_classes ({n_classes}), got {slice_width}"
            )
        # Repeated integer division, not a logarithm: log is off at exact powers.
        counts = [n_classes]
        while counts[-1]:
            counts.append(counts[-1] // slice_width)
        for name, value in {
            "n_classes": n_classes,
            "slice_width": slice_width,
            "digits": tuple(count % slice_width for count in counts[:-1]),
            "path_counts": tuple(counts),
        }.items():
            object.__setattr__(self, name, value)

    # ------------------------------------------------------------------ slices and vertices

    @property
    def n_slices(self) -> int:
        """Number of inner slices, ``L + 1``; always 2 or more."""
        return len(self.digits)

    @property
    def slice_sizes(self) -> tuple[int, ...]:
        """Number of vertices of each inner slice."""
        return (self.slice_width,) * (self.n_slices - 1) + self.digits[-1:]

    @property
    def n_vertices(self) -> int:
        """Number of vertices, source and sink included."""
        return sum(self.slice_sizes) + 2

    # ------------------------------------------------------------------ edges

    @property
    def n_edges(self) -> int:
        """Number of edges, the length of a codeword."""
        return self.exit_start(-1)

    def inner_start(self, index: int) -> int:
        """Number of the first edge from slice ``index`` to the next; -1 stands for the source."""
        return 0 if index < 0 else self.slice_width + index * self.slice_width**2

    def exit_start(self, index: int) -> int:
        """Number of the first exit of slice ``index``: behind the exits of all later slices."""
        width = self.slice_width
        first = self.inner_start(self.n_slices - 2) + width * self.digits[-1]
        return first + sum(self.digits[index + 1 :])

    def leaving_edges(self, index: int, vertices: npt.ArrayLike) -> IntArray:
        """Edges that leave each of the given vertices of slice ``index`` (-1: the source).

        Returns an array with one more axis than ``vertices``: the edges to the next slice, then
        the exit, -1 for a vertex without one.

        >>> Trellis(9, 2).leaving_edges(0, [0, 1])
        array([[ 2,  3, 13],
               [ 4,  5, -1]])
        """
        if not -1 <= index < self.n_slices:
            raise ValueError(f"index must be from -1 (source) to {self.n_slices - 1}, got {index}")
        table = self.edge_tables[index + 1]
        here = np.asarray(vertices, np.int64)[..., np.newaxis]
        inner = table.inner.start + here * table.n_heads + np.arange(table.n_heads)
        n_exits = table.exits.stop - table.exits.start
        exits = np.where(here < n_exits, table.exits.start + here, -1)
        return np.concatenate([inner, exits], axis=-1)

    def vertex_edges(self, index: int, vertex: int) -> IntArray:
        """Edges that leave one vertex of slice ``index`` (-1: the source), its exit last.

        >>> Trellis(9, 2).vertex_edges(0, 0)
        array([ 2,  3, 13])
        """
        edges = self.leaving_edges(index, vertex)
        return edges[edges >= 0]

    @cached_property
    def edge_tables(self) -> tuple[EdgeTable, ...]:
        """Where the edges lie that leave the source, and those that leave each slice."""
        sizes, digits = (1, *self.slice_sizes, 0), (0, *self.digits)
        tables = []
        for index, (size, heads, n_exits) in enumerate(
            zip(sizes[:-1], sizes[1:], digits, strict=True), start=-1
        ):
            leave = self.exit_start(index)
            inner = self.inner_start(index) if heads else leave
            inner_slice = slice(inner, inner + size * heads)
            tables.append(EdgeTable(inner_slice, slice(leave, leave + n_exits), size, heads))
        return tuple(tables)

    def twin_edges(self) -> tuple[IntArray, IntArray]:
        """Edges with the same column in the coding matrix as another one, and those others.

        A vertex with one way in and one way out has twins on its two sides. There are such in
        slice 0 of graphs whose second slice is the last and has one vertex: K < 2b, so
        one-vs-rest.

        >>> Trellis(4, 4).twin_edges()
        (array([4, 5, 6, 7]), array([0, 1, 2, 3]))
        """
        if self.n_slices > 2 or self.digits[1] > 1:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        vertices = np.arange(self.digits[0], self.slice_width)
        return self.inner_start(0) + vertices, vertices

    def endpoints(self, edges: npt.ArrayLike | None = None) -> tuple[IntArray, IntArray]:
        """Tail and head vertex of the given edges, by default of all of them.

        >>> tails, heads = Trellis(9, 2).endpoints()
        >>> [f"{t}>{h}" for t, h in zip(tails[:3], heads[:3])]
        ['0>1', '0>2', '1>3']
        """
        b, last = self.slice_width, self.n_slices - 1
        numbers = np.arange(self.n_edges) if edges is None else self._checked("edges", edges)
        # Edges between slices: the run that starts behind the source edges, b*b edges per slice.
        square = min(b * b, 4 * MAX_CLASSES)  # where b*b > K there is one such run only
        index = np.clip((numbers - b) // square, 0, last - 1)
        size = np.where(index == last - 1, self.digits[-1], b)
        tail, head = np.divmod(numbers - b - index * square, size)
        tails, heads = 1 + index * b + tail, 1 + (index + 1) * b + head
        source = numbers < b
        tails[source], heads[source] = 0, 1 + numbers[source]
        for i, exits in enumerate(self.digits):
            place = numbers - self.exit_start(i)
            leaves = (place >= 0) & (place < exits)
            tails[leaves], heads[leaves] = 1 + i * b + place[leaves], self.n_vertices - 1
        return tails, heads

    @cached_property
    def arrays(self) -> TrellisArrays:
        """The graph as a named tuple of numbers and arrays, for kernels.

        >>> Trellis(9, 2).arrays.exit_starts
        array([13, 13, 13, 12])
        """
        slices = np.zeros((self.n_slices + 2, 5), np.int64)
        for row, table, longer in zip(slices, self.edge_tables, self.path_counts, strict=False):
            n_exits = table.exits.stop - table.exits.start
            row[:] = table.n_vertices, table.inner.start, n_exits, table.exits.start, longer
        return TrellisArrays(
            self.slice_width,
            np.array(self.digits, np.int64),
            np.array(self.path_counts, np.int64),
            slices[1:-1, 3].copy(),
            self.n_edges,
            slices,
        )

    # ------------------------------------------------------------------ paths

    def path_vertices(self, paths: npt.ArrayLike) -> IntArray:
        """Vertex, counted within its slice, that each path visits in each slice.

        Returns an array with one more axis than ``paths``, of length ``n_slices``; after the
        slice where a path leaves for the sink stands -1.

        >>> Trellis(9, 2).path_vertices([0, 8])
        array([[ 0, -1, -1, -1],
               [ 1,  1,  1,  0]])
        """
        rest = self._checked("paths", paths).copy()
        vertices = np.full((*rest.shape, self.n_slices), -1, dtype=np.int64)
        on_the_way = np.ones(rest.shape, dtype=bool)
        for i, exits in enumerate(self.digits):
            # The first A[i] vertices carry T[i+1] + 1 paths each, the others T[i+1].
            longer = self.path_counts[i + 1]
            in_exits = rest < exits * (longer + 1)
            past_exits = rest - exits * (longer + 1)
            vertex = np.where(in_exits, rest // (longer + 1), exits + past_exits // max(longer, 1))
            vertices[on_the_way, i] = vertex[on_the_way]
            rest = np.where(in_exits, rest % (longer + 1), past_exits % max(longer, 1))
            on_the_way &= ~in_exits | (rest > 0)
            rest = np.where(on_the_way, rest - in_exits, 0)
        return vertices

    def path_edges(self, paths: npt.ArrayLike) -> IntArray:
        """Edges of each numbered path, from the source to the sink.

        Returns an array with one more axis than ``paths``, of length ``n_slices + 1``, filled up
        with -1 behind the exit of a shorter path.
        """
        vertices = self.path_vertices(paths)
        sizes = self.slice_sizes
        edges = np.full((*vertices.shape[:-1], self.n_slices + 1), -1, dtype=np.int64)
        edges[..., 0] = vertices[..., 0]
        for i in range(self.n_slices):
            here = vertices[..., i]
            leaving = here >= 0
            if i + 1 < self.n_slices:
                there = vertices[..., i + 1]
                onward = self.inner_start(i) + here * sizes[i + 1] + there
                edges[..., i + 1] = np.where(there >= 0, onward, -1)
                leaving &= there < 0
            edges[..., i + 1] = np.where(leaving, self.exit_start(i) + here, edges[..., i + 1])
        return edges

    def path_numbers(self, edges: npt.ArrayLike) -> IntArray:
        """Numbers of the paths with these edges: the inverse of :meth:`path_edges`.

        A path's number is the count of paths before it: at each vertex it visits, those of the
        vertices above, ``v * T[i+1] + min(v, A[i])``, and the exit that it passes by.
        """
        steps = np.asarray(edges)
        if steps.size == 0:
            return np.empty(steps.shape[:-1], np.int64)
        if steps.dtype.kind not in "iu" or steps.ndim == 0 or steps.shape[-1] != self.n_slices + 1:
            raise ValueError(
                f"edges must hold integers and have a last axis of length {self.n_slices + 1}, "
                f"got {steps.dtype} of shape {steps.shape}"
            )
        steps = steps.astype(np.int64)
        number = np.zeros(steps.shape[:-1], dtype=np.int64)
        for i, (size, exits) in enumerate(zip(self.slice_sizes, self.digits, strict=True)):
            edge = steps[..., i]
            tail, vertex = np.divmod(edge - self.inner_start(i - 1), size)
            before = vertex * self.path_counts[i + 1] + np.minimum(vertex, exits)
            if i > 0:
                before += tail < self.digits[i - 1]
            number += np.where((edge >= 0) & (edge < self.exit_start(self.n_slices - 1)), before, 0)
        found = self.path_edges(np.clip(number, 0, self.n_classes - 1))
        wrong = np.flatnonzero((found != steps).any(axis=-1))
        if wrong.size:
            row = steps.reshape(-1, steps.shape[-1])[wrong[0]]
            raise ValueError(f"edges[{wrong[0]}] = {row.tolist()} is not a source-sink path")
        return number

    def _checked(self, name: str, numbers: npt.ArrayLike) -> IntArray:
        """Integers from 0 to the number of ``name`` there are, or a ValueError."""
        array = np.asarray(numbers)
        if array.size == 0:
            return array.astype(np.int64)
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must hold integers, got {array.dtype}")
        end = self.n_classes if name == "paths" else self.n_edges
        for extreme in (array.min(), array.max()):
            if not 0 <= extreme < end:
                raise ValueError(f"{name} must be from 0 to {end - 1}, got {extreme}")
        return array.astype(np.int64)
