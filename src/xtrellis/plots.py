"""Plots: the trellis, the choice of its width, and trade-offs, as in the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import FloatArray
from ._checks import checked_integer
from .graph.trellis import Trellis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .evaluation.results import Evaluation
    from .explanation import Explanation
    from .selection.width_trials import WidthSelection

__all__ = ["draw_curve", "draw_explanation", "draw_trade_off", "draw_trellis", "draw_widths"]

_MAX_EDGES = 5_000  # a larger graph is drawn as a black rectangle
_EDGE, _EXIT, _PATH, _INK = "#b8c0cc", "#8a94a6", "#0b5fd3", "#1d2633"
_ERROR = "#c2410c"
_FAMILIES = (  # distinct for colour-blind readers, too
    "#0b5fd3",
    "#c2410c",
    "#1d2633",
    "#0f9d76",
    "#8e44ad",
    "#b8860b",
    "#d6336c",
    "#5f6b7a",
)
WIDTHS_SIZE = 7.0, 4.5  # inches


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
    ax = _new_axes(trellis) if ax is None else ax
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
                edgecolor=_PATH if chosen else _EXIT if head == sink else _EDGE,
                zorder=2 if chosen else 1,
            )
        )
    visited = set(trellis.endpoints(sorted(on_path))[1].tolist()) | ({0} if on_path else set())
    for vertex, (x, y) in enumerate(position):
        fill = _PATH if vertex in visited else "white"
        ax.plot(x, y, "o", ms=10, mfc=fill, mec=_INK, mew=1.1, zorder=3)
    ax.text(-0.16, 0, "source", ha="right", va="center", color=_INK)
    ax.text(position[sink][0] + 0.16, 0, "sink", ha="left", va="center", color=_INK)
    for i in range(trellis.n_slices):
        ax.text(i + 1, -top - 0.4, f"slice {i}", ha="center", va="top", color=_INK, fontsize=9)
    title = f"K = {trellis.n_classes:,}, b = {trellis.slice_width}: {trellis.n_edges:,} edges"
    ax.set_title(title + ("" if path is None else f", path {path}"))
    ax.set_axis_off()
    ax.set_xlim(-0.9, trellis.n_slices + 1.7)
    ax.set_ylim(-top - 0.9, ceiling + 0.3)
    return ax


def draw_widths(selection: WidthSelection, ax: Axes | None = None) -> Axes:
    """Draw training error and bound against model size, one point per width; mark the choice.

    This is the second row of the paper's figure in Appendix E.2, on logarithmic axes. If the width
    was chosen by the log loss, the log loss takes the place of the bound.

    Parameters
    ----------
    selection : WidthSelection
        The result of :func:`select_slice_width`.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis.plots import draw_widths
    >>> from xtrellis import select_slice_width
    >>> X, y = load_digits(return_X_y=True)
    >>> selection = select_slice_width(X / 16, y, widths=[2, 4], random_state=0)
    >>> draw_widths(selection).get_xlabel()
    'weights (MB)'
    """
    from matplotlib import pyplot as plt

    if ax is None:
        ax = plt.subplots(figsize=WIDTHS_SIZE, layout="constrained")[1]
    by_bound = selection.criterion == "bound"
    label = "its bound ℓε / (ρ L(0))" if by_bound else "log loss (bits)"
    sizes = [trial.model_bytes / 1e6 for trial in selection.trials]
    values = [getattr(trial, selection.criterion) for trial in selection.trials]
    # An error of zero has no place on a logarithmic axis.
    errors = [trial.training_error or np.nan for trial in selection.trials]
    ax.plot(sizes, errors, "s-", ms=5, lw=1.4, color=_ERROR, label="training error")
    ax.plot(sizes, values, "o-", ms=5, lw=1.4, color=_PATH, label=label)
    for trial, size, value in zip(selection.trials, sizes, values, strict=True):
        if trial.slice_width == selection.slice_width:
            ax.plot(size, value, "o", ms=12, mfc="none", mec=_INK, mew=1.6, ls="", label="chosen")
            ax.axvline(size, color=_EDGE, lw=1, ls="--", zorder=0)
        _name_point(ax, f"b = {trial.slice_width}\n{value:.3g}", (size, value))
    ax.set_yscale("log")
    ax.margins(0.08, 0.18)
    tidy_axes(ax, "weights (MB)", f"training error and {'its bound' if by_bound else label}")
    ax.set_title(f"slice width chosen: b = {selection.slice_width}")
    return ax


def draw_trade_off(
    groups: Mapping[str, Sequence[tuple[float, float, str]]],
    x_label: str,
    y_label: str = "test accuracy (%)",
    ax: Axes | None = None,
) -> Axes:
    """Draw the value of systems against their cost: a point per system, a line per family.

    Parameters
    ----------
    groups : dict of str to list of (cost, value, label)
        The points of each family, joined by a line.
    x_label, y_label : str
        Labels of the axes. The axis of costs is logarithmic.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from xtrellis.plots import draw_trade_off
    >>> draw_trade_off(
    ...     {"ours": [(0.5, 89.4, "b = 40"), (0.3, 88.5, "b = 10")], "OVR": [(30, 89.0, "")]},
    ...     "model file (MB)").get_xlabel()
    'model file (MB)'
    """
    from matplotlib import pyplot as plt

    if ax is None:
        ax = plt.subplots(figsize=WIDTHS_SIZE, layout="constrained")[1]
    for number, (name, points) in enumerate(groups.items()):
        points = sorted(points)
        color = _FAMILIES[number % len(_FAMILIES)]
        marker = "osD^vPX*"[number % 8]
        style = "-" if len(points) > 1 else ""
        xs, ys = [point[0] for point in points], [point[1] for point in points]
        ax.plot(xs, ys, marker + style, ms=6, lw=1.4, color=color, label=name)
    ax.margins(0.1, 0.12)
    tidy_axes(ax, x_label, y_label)
    _name_points(ax, [point for points in groups.values() for point in points])
    return ax


def draw_explanation(
    explanation: Explanation, top: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what the strongest features contributed to a class, each edge of its path in a colour.

    Parameters
    ----------
    explanation : Explanation
        The result of ``clf.explain``.
    top : int, optional
        How many features; by default as many as the explanation shows.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import TrellisClassifier
    >>> from xtrellis.plots import draw_explanation
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TrellisClassifier(random_state=0).fit(X / 16, y)
    >>> draw_explanation(clf.explain(X[0] / 16)).get_xlabel()
    'contribution to the margins of the path'
    """
    from matplotlib import pyplot as plt

    shown = explanation.contributions[: explanation.top if top is None else top]
    if ax is None:
        size = WIDTHS_SIZE[0], 1.4 + 0.32 * max(len(shown), 3)
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    places = {each.feature: place for place, each in enumerate(shown)}
    ends = np.zeros((2, len(shown)))  # of the bars so far, to the left and to the right
    for step in explanation.steps:
        label = "source" if step.slice < 0 else f"slice {step.slice}"
        first = step.trellis == 0
        amounts = np.zeros(len(shown))
        for each in step.contributions:
            if each.feature in places:
                amounts[places[each.feature]] = each.amount / explanation.n_trellises
        if not amounts.any():
            continue
        side = (amounts > 0).astype(int)
        starts = ends[side, np.arange(len(shown))]
        color = _FAMILIES[(step.slice + 1) % len(_FAMILIES)]
        ax.barh(
            np.arange(len(shown)),
            amounts,
            left=starts,
            color=color,
            label=f"edge from {label}" if first else None,
        )
        ends[side, np.arange(len(shown))] += amounts
    ax.plot([each.amount for each in shown], range(len(shown)), "D", ms=5, color=_INK, label="sum")
    ax.set_yticks(range(len(shown)), [str(each.feature) for each in shown])
    ax.invert_yaxis()
    ax.axvline(0, color=_INK, lw=1)
    ax.set_xlabel("contribution to the margins of the path")
    ax.set_title(f"{explanation.label}: {explanation.probability:.1%}")
    for side_name in ("top", "right", "left"):
        ax.spines[side_name].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5)
    return ax


def draw_curve(evaluation: Evaluation, ax: Axes | None = None) -> Axes:
    """Draw accuracy against the share of rows answered, the most confident ones first.

    Parameters
    ----------
    evaluation : Evaluation
        The result of :func:`xtrellis.evaluation.evaluate`.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import TrellisClassifier
    >>> from xtrellis.evaluation import evaluate
    >>> from xtrellis.plots import draw_curve
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TrellisClassifier(random_state=0).fit(X[:1200] / 16, y[:1200])
    >>> draw_curve(evaluate(clf, X[1200:] / 16, y[1200:])).get_xlabel()
    'rows answered (%)'
    """
    from matplotlib import pyplot as plt

    if ax is None:
        ax = plt.subplots(figsize=WIDTHS_SIZE, layout="constrained")[1]
    shares = [100 * point.share for point in evaluation.curve]
    accuracies = [100 * point.accuracy for point in evaluation.curve]
    ax.plot(shares, accuracies, "o-", ms=4, lw=1.4, color=_PATH)
    for point in evaluation.curve[::5]:
        text = f"p ≥ {point.min_probability:.2f}"
        _name_point(ax, text, (100 * point.share, 100 * point.accuracy))
    ax.margins(0.08, 0.15)
    _label_axes(ax, "rows answered (%)", "accuracy on them (%)")
    return ax


def tidy_axes(ax: Axes, x_label: str, y_label: str, ticks: Sequence[float] = ()) -> None:
    """Label the axes, make the first one logarithmic, and remove the frame."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    if ticks:
        ax.set_xticks(ticks)
    else:
        subs = (1, 2, 5) if high < 200 * low else (1,)
        ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    _label_axes(ax, x_label, y_label)
    ax.legend(frameon=False, fontsize=8.5)


def _label_axes(ax: Axes, x_label: str, y_label: str) -> None:
    """Label the axes, draw a grid, and remove the frame."""
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(True, color="#e5e8ee", lw=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _name_points(ax: Axes, points: Sequence[tuple[float, float, str]]) -> None:
    """Write the name of each point where it hides no other name, nor another point.

    Above the point if that is free, else below, to the right or to the left.
    """
    places = ax.transData.transform([point[:2] for point in points]) * 72 / ax.figure.dpi
    names: list[FloatArray] = []  # where they are so far
    for number, (x, y, text) in enumerate(points):
        if not text:
            continue
        others = np.array([*np.delete(places, number, axis=0), *names])
        offsets = np.array([(0, 9), (0, -15), (26, -3), (-26, -3)])
        # The size of a name is about 30 by 10 points.
        away = np.abs(places[number] + offsets[:, np.newaxis] - others.reshape(-1, 2)) / (30, 10)
        nearest = away.max(axis=2).min(axis=1, initial=1.0)  # what is farther is far enough
        offset = offsets[nearest.argmax()]
        names.append(places[number] + offset)
        _name_point(ax, text, (x, y), tuple(offset))


def _name_point(
    ax: Axes, text: str, point: tuple[float, float], offset: tuple[float, float] = (0, 9)
) -> None:
    """Write a text above a point, or elsewhere, readable on top of lines."""
    from matplotlib.patheffects import withStroke

    ax.annotate(
        text,
        point,
        offset,
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=_INK,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def _positions(trellis: Trellis) -> list[tuple[float, float]]:
    """Coordinates of all vertices: one column per slice, vertex 0 at the top."""
    positions = [(0.0, 0.0)]
    for i, size in enumerate(trellis.slice_sizes):
        positions += [(i + 1.0, (size - 1) / 2 - v) for v in range(size)]
    return [*positions, (trellis.n_slices + 1.0, 0.0)]


def _new_axes(trellis: Trellis) -> Axes:
    """Axes on a new figure, sized for the graph."""
    from matplotlib import pyplot as plt

    width = float(np.clip(1.7 * (trellis.n_slices + 2), 6, 24))
    height = float(np.clip(0.75 * trellis.slice_width + 2.2, 3.6, 18))
    return plt.subplots(figsize=(width, height), layout="constrained")[1]
