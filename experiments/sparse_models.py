"""Sparse models (Figure 6, table E.6): threshold, size and accuracy before and after pruning.

The threshold is the largest that loses at most one point on a tenth of the training rows, for a
model trained without them. The model that is pruned is trained on all rows.
"""

from __future__ import annotations

from output import (
    Claim,
    Picture,
    but,
    megabytes,
    picture,
    run,
    table,
    title_of,
    write_page,
)
from sweep import local_specs, paper_specs
from trials import run_trials
from xtrellis.plots.axes import tidy_axes

FAMILIES = {"W-LTLS": paper_specs, "local": local_specs}
COLORS = {"W-LTLS": "#c2410c", "local": "#0b5fd3"}


def main(sets: list[str]) -> list[Claim]:
    """Write the table and the plot of each set."""
    parts: list[str | Picture] = [__doc__ or ""]
    claims: list[Claim] = []
    for data in sets:
        found = {
            name: {
                spec.width: figures
                for spec, figures in run_trials(
                    [spec for spec in specs(data) if spec.prune], f"{data}: pruning {name}"
                ).items()
            }
            for name, specs in FAMILIES.items()
        }
        rows = [
            [
                f"{name}, b = {b}",
                f"{f['pruned']['threshold']:.3f}",
                megabytes(f["file_bytes"]),
                megabytes(f["pruned"]["file_bytes"]),
                f"{f['file_bytes'] / f['pruned']['file_bytes']:.1f} x",
                f"{100 * f['accuracy']:.2f}",
                f"{100 * f['pruned']['accuracy']:.2f}",
            ]
            for name, by_width in found.items()
            for b, f in by_width.items()
        ]
        header = ["model", "λ", "file (MB)", "pruned (MB)", "smaller", "accuracy (%)", "pruned (%)"]
        parts += [f"## {title_of(data)}", table(header, rows), _draw(data, found)]
        claims += _claims(data, found)
    write_page("sparse_models", "Sparse models", parts, claims, sets)
    return claims


def _draw(data, found) -> Picture:
    figure, (ax,), file = picture("sparse_models", data)
    for name, by_width in found.items():
        full = [(f["file_bytes"] / 1e6, 100 * f["accuracy"]) for f in by_width.values()]
        small = [
            (f["pruned"]["file_bytes"] / 1e6, 100 * f["pruned"]["accuracy"])
            for f in by_width.values()
        ]
        ax.plot(*zip(*full, strict=True), "o-", color=COLORS[name], ms=5, lw=1.3, label=name)
        ax.plot(
            *zip(*small, strict=True),
            "o--",
            color=COLORS[name],
            mfc="white",
            ms=5,
            lw=1.3,
            label=f"{name}, pruned",
        )
    tidy_axes(ax, "model file (MB)", "test accuracy (%)")
    ax.set_title(f"Pruning on {title_of(data)}", fontsize=11)
    return Picture(figure, file, "accuracy against file size before and after pruning")


def _claims(data, found) -> list[Claim]:
    by_width = found["W-LTLS"]
    kept = {b: f["pruned"]["nonzeros"] / f["nonzeros"] for b, f in by_width.items()}
    narrow, wide = min(kept), max(kept)
    left = {b: f"{kept[b]:.1%}" for b in (narrow, wide)}
    numbers = f"{left[narrow]} of the weights are left at b = {narrow}, {left[wide]} at b = {wide}"
    reasons = []
    if narrow == wide:
        reasons.append("there is only one width")
    elif kept[wide] >= kept[narrow]:
        reasons.append(f"no fewer are left at b = {wide}")
    return [Claim(data, "wider graphs prune better", not reasons, numbers + but(reasons))]


if __name__ == "__main__":
    run(main, __doc__ or "")
