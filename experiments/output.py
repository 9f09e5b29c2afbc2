"""What the scripts write: pages with tables, plots, and claims that hold or do not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from trials import RESULTS
from xtrellis.data import DataError
from xtrellis.data.downloads import DownloadError

DEFAULT_SETS = ("icd10cm", "wordnet_hypernym")
TITLES = {"icd10cm": "ICD-10-CM", "wordnet_hypernym": "WordNet hypernyms"}


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, checked on a set."""

    data: str
    text: str
    holds: bool
    numbers: str

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'DOES NOT HOLD'}: {self.text}, {self.numbers}"


@dataclass(frozen=True)
class Picture:
    """A figure, saved beside the page that shows it."""

    figure: Any
    file: str
    caption: str

    def __str__(self) -> str:
        return f"![{self.caption}]({self.file})"


# ---------------------------------------------------------------------- how a script runs


def run(main: Callable[[list[str]], object], description: str) -> None:
    """Run a script on the sets named on the command line."""
    sets = sets_asked_for(description)
    with one_line_endings("stopped; finished trials are kept, and the same command resumes"):
        main(sets)


@contextmanager
def one_line_endings(stopped: str) -> Iterator[None]:
    """End with one line instead of a traceback on Ctrl-C, a failed download or bad data."""
    try:
        yield
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        sys.exit(130)
    except (DownloadError, DataError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(1)


def sets_asked_for(description: str) -> list[str]:
    """Names of sets on the command line."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("sets", nargs="*", default=list(DEFAULT_SETS), help="names or folders")
    return list(parser.parse_args().sets)


def results_folder(sets: Sequence[str]) -> Path:
    """Folder of pages and plots; only the default sets use that of the repository."""
    if tuple(sets) == DEFAULT_SETS:
        return RESULTS
    return RESULTS / "own" / "-".join(map(short_name, sets))


def short_name(data: str) -> str:
    """Name of a set in file names."""
    return Path(data).resolve().name


def title_of(data: str) -> str:
    """Name of a set in headings."""
    return TITLES.get(data, short_name(data))


# ---------------------------------------------------------------------- numbers and tables


def mean_and_interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and half the width of its 95 % confidence interval by Student's t."""
    from scipy.stats import t

    if len(values) < 2:
        return float(np.mean(values)), float("nan")
    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(half)


def percent(values: Sequence[float]) -> str:
    """Mean of shares and its confidence interval, in per cent."""
    mean, half = mean_and_interval(values)
    return f"{100 * mean:.2f}" + ("" if np.isnan(half) else f" ± {100 * half:.2f}")


def megabytes(n_bytes: float) -> str:
    """Size in MB, to three digits."""
    return f"{n_bytes / 1e6:,.3g}" if n_bytes < 1e9 else f"{n_bytes / 1e6:,.0f}"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Table in Markdown: the first column and texts aligned left, numbers right."""
    cells = [[str(cell) for cell in row] for row in rows]
    sides = ["---"] + [
        "---:" if all(_is_number(row[at]) for row in cells) else "---"
        for at in range(1, len(header))
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, sides, *cells])


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, perhaps with an interval or a times sign, or a dash."""
    try:
        [float(word) for word in cell.replace(",", "").split() if word not in ("±", "x", "–")]
    except ValueError:
        return False
    return True


def steps_that(fail: Callable[[float], bool], values: dict[int, float]) -> list[str]:
    """Steps from one width to the next that contradict a claim."""
    return [
        f"{values[after] - values[before]:+.2g} from b = {before} to b = {after}"
        for before, after in pairwise(values)
        if fail(values[after] - values[before])
    ]


def but(reasons: Iterable[str]) -> str:
    """Why a claim does not hold, to follow its numbers; empty if it holds."""
    text = ", ".join(reasons)
    return f"; but {text}" if text else ""


# ---------------------------------------------------------------------- plots and pages


def picture(name: str, data: str, panels: int = 1) -> tuple[Any, Any, str]:
    """A new figure, its axes, and the file it will be saved to."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.2 * panels, 4.4), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0], f"{name}_{short_name(data)}.png"


def name_points(ax: Any, points: Sequence[tuple[float, float, str]]) -> None:
    """Write names beside points without overlaps; a thin line connects those that are far."""
    from matplotlib.patheffects import withStroke

    scale = ax.figure.dpi / 72
    half, letter = 4.5 * scale, 3.9 * scale  # pixels of half a line, and of a letter
    drawn = _drawn_places(ax, 4 * scale)
    boxes: list[tuple[float, float, float, float]] = []
    for x, y, name in sorted(points, key=lambda point: -point[1]):
        centre = ax.transData.transform((x, y))
        for radius, angle in product((7, 12, 18, 26, 36, 48, 62), _ANGLES):
            dx, dy = scale * radius * np.cos(angle), scale * radius * np.sin(angle)
            width = letter * len(name)
            left = centre[0] + dx - width * (0 if dx > 1 else 1 if dx < -1 else 0.5)
            middle = centre[1] + dy
            box = left, left + width, middle - half, middle + half
            if _is_free(box, ax.bbox, drawn, boxes):
                break
        boxes.append(box)
        ax.annotate(
            name,
            (x, y),
            ax.transData.inverted().transform((left, middle)),
            fontsize=7,
            va="center",
            path_effects=[withStroke(linewidth=2, foreground="white")],
            arrowprops={"arrowstyle": "-", "color": "#8a94a6", "lw": 0.5} if radius > 8 else None,
        )


# Directions in which a name is tried: right and left first.
_ANGLES = np.radians([0, 180, 25, -25, 155, -155, 55, -55, 125, -125, 90, -90])


def _drawn_places(ax: Any, step: float) -> Any:
    """Pixels that markers and lines cover, sampled every few pixels."""
    places = []
    for line in ax.get_lines():
        corners = ax.transData.transform(np.column_stack(line.get_data()).astype(float))
        places.append(corners)
        if line.get_linestyle() != "None":
            for start, stop in pairwise(corners):
                n_steps = int(np.linalg.norm(stop - start) / step) + 1
                places.append(np.linspace(start, stop, n_steps + 1))
    return np.concatenate(places)


def _is_free(box: Any, frame: Any, drawn: Any, boxes: Any) -> bool:
    """Whether a box is inside the frame and overlaps nothing."""
    left, right, low, high = box
    if left < frame.x0 or right > frame.x1 or low < frame.y0 or high > frame.y1:
        return False
    x, y = drawn.T
    if ((left - 3 < x) & (x < right + 3) & (low - 1 < y) & (y < high + 1)).any():
        return False
    return not any(
        left < other[1] and other[0] < right and low < other[3] and other[2] < high
        for other in boxes
    )


def write_page(
    name: str,
    title: str,
    parts: Iterable[str | Picture],
    claims: Sequence[Claim],
    sets: Sequence[str],
) -> None:
    """Write a page and its plots to the folder of these sets, and print its claims."""
    folder = results_folder(sets)
    folder.mkdir(parents=True, exist_ok=True)
    parts = list(parts)
    for part in parts:
        if isinstance(part, Picture):
            part.figure.savefig(folder / part.file, dpi=130)
    checked = [f"- **{title_of(claim.data)}**: {claim}." for claim in claims]
    content = [f"# {title}", *map(str, parts)]
    if checked:
        content += ["## Checked", "\n".join(checked)]
    page = folder / f"{name}.md"
    page.write_text("\n\n".join(content) + "\n", encoding="utf-8")
    print(f"\n{title}: {page}")
    for claim in claims:
        print(f"  {title_of(claim.data)}: {claim}")
