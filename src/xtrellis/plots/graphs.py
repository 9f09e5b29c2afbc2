"""The trellis as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._checks import checked_integer
from ..graph.trellis import Trellis
from .axes import EDGE, EXIT, INK, PATH, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_EDGES = 5_000  # a larger graph is drawn as a black rectangle


def draw_trellis(trellis: Trellis, path: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the graph from source to sink, with one path highlighted.

    Exits before the last slice are dashed arcs over the slices in between.

    Parameters
    ----------
    trellis : Trellis
        The graph, with at most 5,000 edges.
    path : int, optional
        Number of the path to highlight.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.plots import draw_trellis
    >>> ax = draw_trellis(Trellis(9, 2), path=3)
    >>> ax.get_title()
    'K = 9, b = 2: 14 edges, path 3'
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if trellis.n_edges > _MAX_EDGES:
        raise ValueError(
            f"trellis has {trellis.n_edges} edges, too many to draw (at most {_MAX_EDGES})"
        )
    if path is not None and not 0 <= checked_integer("path", path) < trellis.n_classes:
        raise ValueError(f"path must be from 0 to {trellis.n_classes - 1}, got {path}")
    ax = _axes_for(trellis) if ax is None else ax
    position, sink = _positions(trellis), trellis.n_vertices - 1
    on_path = set() if path is None else set(trellis.path_edges(path).tolist()) - {-1}
    top = position[1][1]
    ceiling = top
    for edge, (tail, head) in enumerate(zip(*trellis.endpoints(), strict=True)):
        (x, y), (x_end, y_end) = position[tail], position[head]
        n_skipped = round(x_end - x) - 1
        points = [(x, y), (x_end, y_end)]
        if n_skipped:
            # A curve that rises, clears the slices in between and comes down on the sink.
            height = top + 0.55 + 0.6 * n_skipped
            points = [(x, y), (x + 0.35, height), (x_end - 0.5, height), (x_end, y_end)]
            ceiling = max(ceiling, (y + 3 * height + 3 * height + y_end) / 8)
        chosen = edge in on_path
        ax.add_patch(
            PathPatch(
                Path(
                    points,
                    [Path.MOVETO] + [Path.CURVE4 if n_skipped else Path.LINETO] * (len(points) - 1),
                ),
                facecolor="none",
                linewidth=2.4 if chosen else 0.9,
                linestyle="--" if n_skipped and not chosen else "-",
                edgecolor=PATH if chosen else EXIT if head == sink else EDGE,
                zorder=2 if chosen else 1,
            )
        )
    visited = set(trellis.endpoints(sorted(on_path))[1].tolist()) | ({0} if on_path else set())
    for vertex, (x, y) in enumerate(position):
        fill = PATH if vertex in visited else "white"
        ax.plot(x, y, "o", ms=10, mfc=fill, mec=INK, mew=1.1, zorder=3)
    ax.text(-0.16, 0, "source", ha="right", va="center", color=INK)
    ax.text(position[sink][0] + 0.16, 0, "sink", ha="left", va="center", color=INK)
    for i in range(trellis.n_slices):
        ax.text(i + 1, -top - 0.4, f"slice {i}", ha="center", va="top", color=INK, fontsize=9)
    title = f"K = {trellis.n_classes:,}, b = {trellis.slice_width}: {trellis.n_edges:,} edges"
    ax.set_title(title + ("" if path is None else f", path {path}"))
    ax.set_axis_off()
    ax.set_xlim(-0.9, trellis.n_slices + 1.7)
    ax.set_ylim(-top - 0.9, ceiling + 0.3)
    return ax


def _positions(trellis: Trellis) -> list[tuple[float, float]]:
    """Coordinates of all vertices: one column per slice, vertex 0 at the top."""
    positions = [(0.0, 0.0)]
    for i, size in enumerate(trellis.slice_sizes):
        positions += [(i + 1.0, (size - 1) / 2 - v) for v in range(size)]
    return [*positions, (trellis.n_slices + 1.0, 0.0)]


def _axes_for(trellis: Trellis) -> Axes:
    """Axes on a new figure, sized for the graph."""
    width = float(np.clip(1.7 * (trellis.n_slices + 2), 6, 24))
    height = float(np.clip(0.75 * trellis.slice_width + 2.2, 3.6, 18))
    return new_axes((width, height))
