"""Where edges lie: the table of ``graph/trellis.py`` for kernels.

``slices`` is that of a :class:`~xtrellis.graph.trellis.TrellisArrays`. (Functions called for every
row take it alone: to pass the whole named tuple on would copy it and count references.) Slices
count from 0, and the source is slice -1 with one vertex. A vertex has one edge to every vertex of
the next slice, its *heads*, side by side from ``first_edge`` on, and may have one to the sink, its
exit.

All functions are inlined: they cost nothing, and are not compiled by themselves.
"""

from ._jit import kernel


@kernel(inline="always")
def n_slices(slices):
    """Number of slices, without source and sink."""
    return slices.shape[0] - 2


@kernel(inline="always")
def n_vertices(slices, i):
    """Number of vertices of slice ``i``."""
    return slices[i + 1, 0]


@kernel(inline="always")
def n_heads(slices, i):
    """Number of vertices of the next slice; none behind the last one."""
    return slices[i + 2, 0]


@kernel(inline="always")
def first_edge(slices, i, v):
    """Number of the edge from vertex ``v`` of slice ``i`` to the first of its heads."""
    return slices[i + 1, 1] + v * slices[i + 2, 0]


@kernel(inline="always")
def n_exits(slices, i):
    """Number of exits of slice ``i``: its first vertices have one each."""
    return slices[i + 1, 2]


@kernel(inline="always")
def first_exit(slices, i):
    """Number of the exit of the first vertex of slice ``i``; the others' follow."""
    return slices[i + 1, 3]


@kernel(inline="always")
def exit_edge(slices, i, v):
    """Number of the exit of a vertex, -1 if it has none."""
    return slices[i + 1, 3] + v if v < slices[i + 1, 2] else -1


@kernel(inline="always")
def paths_before(slices, i, v):
    """Number of paths that visit a vertex before ``v`` of slice ``i``, coming from one vertex."""
    return v * slices[i + 1, 4] + min(v, slices[i + 1, 2])
