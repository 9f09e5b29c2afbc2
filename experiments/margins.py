"""Average margin (E.4) and share of non-zero weights against b."""

from __future__ import annotations

import numpy as np

from output import (
    Claim,
    Picture,
    but,
    picture,
    run,
    steps_that,
    table,
    title_of,
    write_page,
)
from sweep import local_specs, paper_specs
from trials import run_trials
from xtrellis.plots.axes import tidy_axes

FAMILIES = {"W-LTLS": paper_specs, "local": local_specs}
STYLES = {"W-LTLS": ("o-", "#c2410c"), "local": ("s-", "#0b5fd3")}


def main(sets: list[str]) -> list[Claim]:
    """Write the table and the plot of each set."""
    parts: list[str | Picture] = [__doc__ or ""]
    claims: list[Claim] = []
    for data in sets:
        series = {}
        for name, specs in FAMILIES.items():
            found = run_trials(specs(data), f"{data}: {name}")
            for b in dict.fromkeys(spec.width for spec in found):
                own = [figures for spec, figures in found.items() if spec.width == b]
                series.setdefault(name, {})[b] = tuple(
                    float(np.mean([f[key] for f in own]))
                    for key in ("average_margin", "share_nonzero")
                )
        rows = [
            [f"{name}, b = {b}", f"{margin:.3f}", f"{100 * share:.1f}"]
            for name, by_width in series.items()
            for b, (margin, share) in by_width.items()
        ]
        parts += [
            f"## {title_of(data)}",
            table(["model", "average margin", "non-zero weights (%)"], rows),
            _draw(data, series),
        ]
        claims.append(_claim(data, {b: margin for b, (margin, _) in series["W-LTLS"].items()}))
    write_page("margins", "Margins and non-zero weights", parts, claims, sets)
    return claims


def _draw(data, series) -> Picture:
    figure, axes, file = picture("margins", data, panels=2)
    for at, (ax, label) in enumerate(
        zip(axes, ("average margin |f|", "non-zero weights (%)"), strict=True)
    ):
        for name, by_width in series.items():
            style, color = STYLES[name]
            values = [(100 if at else 1) * row[at] for row in by_width.values()]
            ax.plot(list(by_width), values, style, ms=5, lw=1.3, color=color, label=name)
        widths = sorted({b for by_width in series.values() for b in by_width})
        tidy_axes(ax, "slice width b", label, ticks=widths)
    figure.suptitle(f"Margins and non-zero weights on {title_of(data)}", fontsize=11)
    return Picture(figure, file, "average margin and share of non-zero weights against b")


def _claim(data: str, margins: dict[int, float]) -> Claim:
    """Claim that margins grow with every step of b, or where they do not."""
    narrow, wide = min(margins), max(margins)
    falls = steps_that(lambda step: step <= 0, margins)
    numbers = f"{margins[narrow]:.2f} at b = {narrow}, {margins[wide]:.2f} at b = {wide}"
    return Claim(data, "margins grow with b", not falls, numbers + but(falls))


if __name__ == "__main__":
    run(main, __doc__ or "")
