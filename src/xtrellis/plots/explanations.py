"""What the features of a row contributed, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .axes import FAMILIES, INK, WIDTHS_SIZE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..explanation import Explanation


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
    shown = explanation.contributions[: explanation.top if top is None else top]
    size = WIDTHS_SIZE[0], 1.4 + 0.32 * max(len(shown), 3)
    ax = new_axes(size) if ax is None else ax
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
        color = FAMILIES[(step.slice + 1) % len(FAMILIES)]
        ax.barh(
            np.arange(len(shown)),
            amounts,
            left=starts,
            color=color,
            label=f"edge from {label}" if first else None,
        )
        ends[side, np.arange(len(shown))] += amounts
    ax.plot([each.amount for each in shown], range(len(shown)), "D", ms=5, color=INK, label="sum")
    ax.set_yticks(range(len(shown)), [str(each.feature) for each in shown])
    ax.invert_yaxis()
    ax.axvline(0, color=INK, lw=1)
    ax.set_xlabel("contribution to the margins of the path")
    ax.set_title(f"{explanation.label}: {explanation.probability:.1%}")
    for side_name in ("top", "right", "left"):
        ax.spines[side_name].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5)
    return ax
