"""What a better model costs: widths, systems, and rows left unanswered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .axes import (
    EDGE,
    ERROR,
    FAMILIES,
    INK,
    PATH,
    WIDTHS_SIZE,
    label_axes,
    name_point,
    name_points,
    new_axes,
    tidy_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..evaluation.results import Evaluation
    from ..selection.width_trials import WidthSelection


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
    ax = new_axes(WIDTHS_SIZE) if ax is None else ax
    by_bound = selection.criterion == "bound"
    label = "its bound ℓε / (ρ L(0))" if by_bound else "log loss (bits)"
    sizes = [trial.model_bytes / 1e6 for trial in selection.trials]
    values = [getattr(trial, selection.criterion) for trial in selection.trials]
    # An error of zero has no place on a logarithmic axis.
    errors = [trial.training_error or np.nan for trial in selection.trials]
    ax.plot(sizes, errors, "s-", ms=5, lw=1.4, color=ERROR, label="training error")
    ax.plot(sizes, values, "o-", ms=5, lw=1.4, color=PATH, label=label)
    for trial, size, value in zip(selection.trials, sizes, values, strict=True):
        if trial.slice_width == selection.slice_width:
            ax.plot(size, value, "o", ms=12, mfc="none", mec=INK, mew=1.6, ls="", label="chosen")
            ax.axvline(size, color=EDGE, lw=1, ls="--", zorder=0)
        name_point(ax, f"b = {trial.slice_width}\n{value:.3g}", (size, value))
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
        The points of each family, joined by a line in this order.
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
    ax = new_axes(WIDTHS_SIZE) if ax is None else ax
    for number, (name, points) in enumerate(groups.items()):
        color = FAMILIES[number % len(FAMILIES)]
        marker = "osD^vPX*"[number % 8]
        style = "-" if len(points) > 1 else ""
        xs, ys = [point[0] for point in points], [point[1] for point in points]
        ax.plot(xs, ys, marker + style, ms=6, lw=1.4, color=color, label=name)
    ax.margins(0.1, 0.12)
    tidy_axes(ax, x_label, y_label)
    name_points(ax, [point for points in groups.values() for point in points])
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
    ax = new_axes(WIDTHS_SIZE) if ax is None else ax
    shares = [100 * point.share for point in evaluation.curve]
    accuracies = [100 * point.accuracy for point in evaluation.curve]
    ax.plot(shares, accuracies, "o-", ms=4, lw=1.4, color=PATH)
    for point in evaluation.curve[::5]:
        text = f"p ≥ {point.min_probability:.2f}"
        name_point(ax, text, (100 * point.share, 100 * point.accuracy))
    ax.margins(0.08, 0.15)
    label_axes(ax, "rows answered (%)", "accuracy on them (%)")
    return ax
