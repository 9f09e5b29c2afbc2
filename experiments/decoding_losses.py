"""Decoding losses (Figure 4): accuracy of the same weights decoded with each of five losses."""

from __future__ import annotations

import numpy as np

from output import (
    Claim,
    Picture,
    but,
    megabytes,
    percent,
    picture,
    run,
    table,
    title_of,
    write_page,
)
from sweep import paper_specs, paper_widths
from trials import LOSSES, run_trials
from xtrellis.plots.axes import tidy_axes

NAMES = {"squared_hinge": "squared hinge"}
STYLES = dict(zip(LOSSES, ("o-", "s-", "^-", "D--", "v-"), strict=True))


def main(sets: list[str]) -> list[Claim]:
    """Write the table and the plot of each set."""
    parts: list[str | Picture] = [__doc__ or ""]
    claims: list[Claim] = []
    for data in sets:
        found = run_trials(paper_specs(data), f"{data}: W-LTLS")
        shares = {
            (spec.width, loss): [
                figures["accuracy_by_loss"][loss]
                for other, figures in found.items()
                if other.width == spec.width
            ]
            for spec in found
            for loss in LOSSES
        }
        sizes = {spec.width: figures["dense_bytes"] for spec, figures in found.items()}
        widths = paper_widths(data)
        rows = [
            [f"b = {b}", megabytes(sizes[b]), *(percent(shares[b, loss]) for loss in LOSSES)]
            for b in widths
        ]
        header = ["width", "dense size (MB)", *(NAMES.get(loss, loss) for loss in LOSSES)]
        parts += [
            f"## {title_of(data)}",
            "Test accuracy in per cent: mean of five seeds, with its 95 % confidence interval.",
            table(header, rows),
            _draw(data, widths, sizes, shares),
        ]
        claims += _claims(data, widths, shares)
    write_page("decoding_losses", "Decoding losses", parts, claims, sets)
    return claims


def _draw(data, widths, sizes, shares) -> Picture:
    figure, (left, right), file = picture("decoding_losses", data, panels=2)
    x = [sizes[b] / 1e6 for b in widths]
    means = {loss: np.array([100 * np.mean(shares[b, loss]) for b in widths]) for loss in LOSSES}
    for loss in LOSSES:
        name = NAMES.get(loss, loss)
        left.plot(x, means[loss], STYLES[loss], ms=5, lw=1.3, label=name)
        right.plot(x, means[loss] - means["squared"], STYLES[loss], ms=5, lw=1.3, label=name)
    tidy_axes(left, "dense model size (MB)", "test accuracy (%)")
    tidy_axes(right, "dense model size (MB)", "gain over the squared loss (points)")
    right.get_legend().remove()  # the same as on the left
    figure.suptitle(f"W-LTLS on {title_of(data)}: decoding losses", fontsize=11)
    return Picture(figure, file, "accuracy of five losses against model size")


def _claims(data, widths, shares) -> list[Claim]:
    widest = max(widths)
    means = {loss: 100 * float(np.mean(shares[widest, loss])) for loss in LOSSES}
    best = max(means, key=lambda loss: means[loss])
    numbers = ", ".join(f"{NAMES.get(loss, loss)} {means[loss]:.2f}" for loss in LOSSES)
    gain = means["exponential"] - means["squared"]
    return [
        Claim(
            data,
            f"exponential decoding is best at large b (b = {widest})",
            best == "exponential",
            numbers + but([] if best == "exponential" else [f"{NAMES.get(best, best)} is best"]),
        ),
        Claim(
            data,
            "the exponential loss gains over the squared loss, which LTLS decodes with",
            gain > 0,
            f"{gain:+.2f} points at b = {widest}",
        ),
    ]


if __name__ == "__main__":
    run(main, __doc__ or "")
