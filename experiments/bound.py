"""Average binary loss, training error and its bound against model size, and the width it picks.

These are the figures of E.2 and E.3. The bound is ℓε / (ρ L(0)), equation (3), for the squared
hinge and 5,000 training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from output import (
    Claim,
    Picture,
    but,
    megabytes,
    percent,
    picture,
    run,
    steps_that,
    table,
    title_of,
    write_page,
)
from sweep import paper_specs, paper_widths
from trials import run_trials
from xtrellis.plots.axes import tidy_axes

TOLERANCE = 0.02  # as in width selection: pick the narrowest width this close to the least bound
MOST_LOST_IN_A_STEP = 0.3  # points: accuracy may fall by this much, which is noise
MOST_LOST_BY_THE_BOUND = 2.5  # points between the best width and the one that the bound picks
ONE_WIDTH = "there is only one width"


def main(sets: list[str]) -> list[Claim]:
    """Write the table and the plot of each set."""
    parts: list[str | Picture] = [__doc__ or ""]
    claims: list[Claim] = []
    for data in sets:
        found = run_trials(paper_specs(data), f"{data}: W-LTLS")
        widths = paper_widths(data)

        def of(b, name, found=found):
            return [figures[name] for spec, figures in found.items() if spec.width == b]

        bound = {b: float(np.mean(of(b, "error_bound"))) for b in widths}
        accuracy = {b: float(np.mean(of(b, "accuracy"))) for b in widths}
        picked = min(b for b in widths if bound[b] <= (1 + TOLERANCE) * min(bound.values()))
        best = max(widths, key=lambda b: accuracy[b])
        rows = [
            [
                f"b = {b}" + (" (picked)" if b == picked else ""),
                f"{of(b, 'n_edges')[0]:,}",
                megabytes(of(b, "dense_bytes")[0]),
                f"{np.mean(of(b, 'average_binary_loss')):.5f}",
                f"{bound[b]:.3f}",
                percent(of(b, "training_error")),
                percent(of(b, "accuracy")),
            ]
            for b in widths
        ]
        header = [
            "width",
            "edges ℓ",
            "dense size (MB)",
            "ε",
            "bound",
            "training error (%)",
            "test accuracy (%)",
        ]
        parts += [
            f"## {title_of(data)}",
            f"The bound picks b = {picked} ({accuracy[picked]:.2%} on test). The best width on "
            f"test is b = {best} ({accuracy[best]:.2%}), with "
            f"{of(best, 'n_edges')[0] / of(picked, 'n_edges')[0]:.1f} times as many edges.",
            table(header, rows),
            _draw(data, widths, of, picked),
        ]
        claims += _claims(data, widths, of, bound, accuracy, picked, best)
    write_page("bound", "Binary loss, training error and its bound", parts, claims, sets)
    return claims


def _draw(data, widths, of, picked) -> Picture:
    figure, (left, right), file = picture("bound", data, panels=2)
    x = [of(b, "dense_bytes")[0] / 1e6 for b in widths]
    means = {
        key: np.array([np.mean(of(b, key)) for b in widths])
        for key in ("average_binary_loss", "error_bound", "training_error", "accuracy")
    }
    for ax, y, marker, color, label in (
        (left, means["average_binary_loss"], "o-", "#1d2633", "average binary loss ε"),
        (right, means["error_bound"], "o-", "#0b5fd3", "bound ℓε / (ρ L(0))"),
        (right, means["training_error"], "s-", "#c2410c", "training error"),
        (right, 1 - means["accuracy"], "^-", "#5f6b7a", "test error"),
    ):
        ax.plot(x, y, marker, ms=5, lw=1.3, color=color, label=label)
        ax.set_yscale("log")
    right.axvline(
        of(picked, "dense_bytes")[0] / 1e6,
        color="#b8c0cc",
        ls="--",
        lw=1,
        label=f"picked: b = {picked}",
    )
    tidy_axes(left, "dense model size (MB)", "average binary loss")
    tidy_axes(right, "dense model size (MB)", "error and its bound")
    figure.suptitle(f"W-LTLS on {title_of(data)}", fontsize=11)
    return Picture(figure, file, "binary loss, errors and the bound against model size")


def _claims(data, widths, of, bound, accuracy, picked, best) -> list[Claim]:
    epsilon = {b: float(np.mean(of(b, "average_binary_loss"))) for b in widths}
    percents = {b: 100 * accuracy[b] for b in widths}
    narrow, wide = widths[0], widths[-1]
    rises = steps_that(lambda step: step >= 0, epsilon)
    middle = (percents[narrow] + max(percents.values())) / 2
    half = next(b for b in widths if percents[b] >= middle)
    steps = [percents[b] - percents[a] for a, b in pairwise(widths)] or [0.0]
    unsaturated = _unsaturated(percents, steps)
    lost = percents[best] - percents[picked]
    unturned = _unturned(widths, picked, lost)
    return [
        Claim(
            data,
            "the average binary loss falls with b",
            not rises,
            f"from {epsilon[narrow]:.4f} at b = {narrow} to {epsilon[wide]:.4f} at b = {wide}"
            + but(rises),
        ),
        Claim(
            data,
            "accuracy rises with b and saturates",
            not unsaturated,
            f"{percents[narrow]:.2f} at b = {narrow}, half of the gain by b = {half}, "
            f"{percents[wide]:.2f} at b = {wide}; first step {steps[0]:+.2f}, "
            f"last {steps[-1]:+.2f}" + but(unsaturated),
        ),
        Claim(
            data,
            "the bound turns where accuracy saturates",
            not unturned,
            f"least at b = {min(bound, key=bound.get)}, picked b = {picked}, which is {lost:.2f} "
            f"points below the best width on test, b = {best}" + but(unturned),
        ),
    ]


def _unsaturated(percents: dict[int, float], steps: list[float]) -> list[str]:
    """Why accuracy does not rise and saturate: a step that loses, or a last step that gains."""
    if len(percents) == 1:
        return [ONE_WIDTH]
    reasons = steps_that(lambda step: step <= -MOST_LOST_IN_A_STEP, percents)
    if steps[-1] >= 0.25 * steps[0]:
        reasons.append("the last step is at least a quarter of the first")
    return reasons


def _unturned(widths: Sequence[int], picked: int, lost: float) -> list[str]:
    """Why the bound does not turn where accuracy saturates."""
    if len(widths) == 1:
        return [ONE_WIDTH]
    reasons = []
    if picked == widths[-1]:
        reasons.append(f"the bound still falls at b = {picked}")
    if lost >= MOST_LOST_BY_THE_BOUND:
        reasons.append(f"at least {MOST_LOST_BY_THE_BOUND} points are lost")
    return reasons


if __name__ == "__main__":
    run(main, __doc__ or "")
