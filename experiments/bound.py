"""Average binary loss, training error and its bound against size (E.2, E.3), and its choice of b.

The bound is ℓε / (ρ L(0)), equation (3), with the squared hinge, on 5,000 training rows.
"""

from __future__ import annotations

import numpy as np

from output import (
    Claim,
    megabytes,
    percent,
    picture,
    save_picture,
    sets_asked_for,
    table,
    title_of,
    write_page,
)
from sweep import paper_specs, paper_widths
from trials import run_trials
from xtrellis.plots import tidy_axes

TOLERANCE = 0.02  # of width selection: the narrowest width so near the least bound


def main(sets: list[str]) -> list[Claim]:
    """Table and picture for each set."""
    parts, claims = [__doc__ or ""], []
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
            f"The bound picks b = {picked} ({accuracy[picked]:.2%} on test); best on test is "
            f"b = {best} ({accuracy[best]:.2%}), with "
            f"{of(best, 'n_edges')[0] / of(picked, 'n_edges')[0]:.1f} times as many edges.",
            table(header, rows),
            _draw(data, widths, of, picked),
        ]
        claims += _claims(data, widths, of, bound, accuracy, picked, best)
    write_page("bound", "Binary loss, training error and its bound", parts, claims)
    return claims


def _draw(data, widths, of, picked) -> str:
    figure, (left, right), file = picture("bound", data, panels=2)
    x = [of(b, "dense_bytes")[0] / 1e6 for b in widths]
    left.plot(
        x,
        [np.mean(of(b, "average_binary_loss")) for b in widths],
        "o-",
        ms=5,
        lw=1.3,
        color="#1d2633",
        label="average binary loss ε",
    )
    left.set_yscale("log")
    right.plot(
        x,
        [np.mean(of(b, "error_bound")) for b in widths],
        "o-",
        ms=5,
        lw=1.3,
        color="#0b5fd3",
        label="bound ℓε / (ρ L(0))",
    )
    right.plot(
        x,
        [np.mean(of(b, "training_error")) for b in widths],
        "s-",
        ms=5,
        lw=1.3,
        color="#c2410c",
        label="training error",
    )
    right.plot(
        x,
        [1 - np.mean(of(b, "accuracy")) for b in widths],
        "^-",
        ms=5,
        lw=1.3,
        color="#5f6b7a",
        label="test error",
    )
    right.axvline(
        of(picked, "dense_bytes")[0] / 1e6,
        color="#b8c0cc",
        ls="--",
        lw=1,
        label=f"picked: b = {picked}",
    )
    right.set_yscale("log")
    tidy_axes(left, "dense model size (MB)", "average binary loss")
    tidy_axes(right, "dense model size (MB)", "error and its bound")
    figure.suptitle(f"W-LTLS on {title_of(data)}", fontsize=11)
    return save_picture(figure, file, "binary loss, errors and the bound against model size")


def _claims(data, widths, of, bound, accuracy, picked, best) -> list[Claim]:
    epsilon = [float(np.mean(of(b, "average_binary_loss"))) for b in widths]
    accuracies = [100 * accuracy[b] for b in widths]
    first, last = accuracies[0], accuracies[-1]
    half = next(i for i, a in enumerate(accuracies) if a >= first + 0.5 * (max(accuracies) - first))
    lost = 100 * (accuracy[best] - accuracy[picked])
    steps = np.diff(accuracies) if len(widths) > 1 else np.zeros(1)
    return [
        Claim(
            data,
            "the average binary loss falls with b",
            bool((np.diff(epsilon) < 0).all()),
            f"from {epsilon[0]:.4f} at b = {widths[0]} to {epsilon[-1]:.4f} at b = {widths[-1]}",
        ),
        Claim(
            data,
            "accuracy rises with b and saturates",
            bool((steps > -0.3).all()) and steps[-1] < 0.25 * steps[0],
            f"{first:.2f} at b = {widths[0]}, half of the gain by b = {widths[half]}, "
            f"{last:.2f} at b = {widths[-1]}; first step {steps[0]:+.2f}, last {steps[-1]:+.2f}",
        ),
        Claim(
            data,
            "the bound turns where accuracy saturates",
            picked < widths[-1] and lost < 2.5,
            f"least at b = {min(bound, key=bound.get)}, picked b = {picked}, which is {lost:.2f} "
            f"points below the best on test, b = {best}",
        ),
    ]


if __name__ == "__main__":
    main(sets_asked_for(__doc__ or ""))
