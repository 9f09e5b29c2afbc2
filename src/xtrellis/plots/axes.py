"""What all plots have in common: colours, axes, and names of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EDGE, EXIT, PATH, INK = "#b8c0cc", "#8a94a6", "#0b5fd3", "#1d2633"
ERROR = "#c2410c"
FAMILIES = (  # distinct for colour-blind readers, too
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


def new_axes(size: tuple[float, float]) -> Axes:
    """Axes on a new figure of this size in inches."""
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


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
    label_axes(ax, x_label, y_label)
    ax.legend(frameon=False, fontsize=8.5)


def label_axes(ax: Axes, x_label: str, y_label: str) -> None:
    """Label the axes, draw a grid, and remove the frame."""
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(True, color="#e5e8ee", lw=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def name_points(ax: Axes, points: Sequence[tuple[float, float, str]]) -> None:
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
        name_point(ax, text, (x, y), tuple(offset))


def name_point(
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
        color=INK,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )
