"""What scripts write: pages of tables, pictures, and claims that hold or do not."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trials import RESULTS

DEFAULT_SETS = ("icd10cm", "wordnet_hypernym")
TITLES = {"icd10cm": "ICD-10-CM", "wordnet_hypernym": "WordNet hypernyms"}


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, checked on a set."""

    data: str
    text: str
    holds: bool
    numbers: str

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'DOES NOT HOLD'}: {self.text}, {self.numbers}"


def sets_asked_for(description: str) -> list[str]:
    """Names of sets on the command line."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("sets", nargs="*", default=list(DEFAULT_SETS), help="names or folders")
    return list(parser.parse_args().sets)


def title_of(data: str) -> str:
    """Name of a set to read."""
    return TITLES.get(data, Path(data).name)


def mean_and_interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and half the width of its 95 % confidence interval by Student's t."""
    from scipy.stats import t

    if len(values) < 2:
        return float(np.mean(values)), float("nan")
    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(half)


def percent(values: Sequence[float]) -> str:
    """Mean of shares and its interval, in per cent."""
    mean, half = mean_and_interval(values)
    return f"{100 * mean:.2f}" + ("" if np.isnan(half) else f" ± {100 * half:.2f}")


def megabytes(n_bytes: float) -> str:
    """Size to three digits."""
    return f"{n_bytes / 1e6:,.3g}" if n_bytes < 1e9 else f"{n_bytes / 1e6:,.0f}"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Table in Markdown; the first column to the left, numbers to the right."""
    lines = [" | ".join(map(str, header)), " | ".join(["---"] + ["---:"] * (len(header) - 1))]
    lines += [" | ".join(map(str, row)) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def picture(name: str, data: str, panels: int = 1) -> tuple[Any, Any, str]:
    """Figure, its axes, and the file that it will be saved to."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.2 * panels, 4.4), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0], f"{name}_{Path(data).name}.png"


def save_picture(figure: Any, file: str, caption: str) -> str:
    """Write a figure; returns the Markdown that shows it."""
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / file, dpi=130)
    return f"![{caption}]({file})"


def name_points(ax: Any, points: Sequence[tuple[float, float, str]]) -> None:
    """Write names beside points, apart from each other; with a line where they had to move."""
    scale = ax.figure.dpi / 72
    height, length = 8.5 * scale, 4.2 * scale  # pixels of a line of text, and of a letter
    taken: list[tuple[float, float, float]] = []
    for x, y, name in sorted(points, key=lambda point: -point[1]):
        left, middle = ax.transData.transform((x, y))
        left += 6 * scale
        right = left + length * len(name)
        if right > ax.bbox.x1 + 10 * scale:  # no room on this side
            left, right = left - 12 * scale - length * len(name), left - 12 * scale
        at = middle
        while any(abs(at - other) < height and left < b and a < right for a, b, other in taken):
            at -= height / 4
        taken.append((left, right, at))
        ax.annotate(
            name,
            (x, y),
            ax.transData.inverted().transform((left, at)),
            fontsize=7,
            va="center",
            arrowprops=None
            if abs(at - middle) < height
            else {"arrowstyle": "-", "color": "#b8c0cc", "lw": 0.6},
        )


def write_page(name: str, title: str, parts: Iterable[str], claims: Sequence[Claim]) -> None:
    """Write a page, and print its claims."""
    RESULTS.mkdir(exist_ok=True)
    checked = [f"- **{title_of(claim.data)}**: {claim}." for claim in claims]
    content = [f"# {title}", *parts]
    if checked:
        content += ["## Checked", "\n".join(checked)]
    (RESULTS / f"{name}.md").write_text("\n\n".join(content) + "\n", encoding="utf-8")
    print(f"\n{title}: {RESULTS / name}.md")
    for claim in claims:
        print(f"  {title_of(claim.data)}: {claim}")
