"""All defaults, beside other systems with theirs: one thread each.

    python benchmarks/bench_defaults.py [SET ...] [--systems NAME ...] [--timeout SECONDS]
                                        [--picture FILE]

The sets are the bundled ones and those in the folder that XTRELLIS_DATA names, unless given; a
folder with train.svm and test.svm is a set, too. Every system is trained, saved, loaded and measured
by ``experiments/peers`` in a process of its own; those that need packages are installed into
environments in experiments/.cache.

Prints a Markdown table, and a line for every cell where a system of others is ahead of xtrellis.
Ensembles of ours have a row, but are not compared. Tail accuracy is that of classes with at most
four training rows; µs per row are those of predicting the whole test set. The picture shows
accuracy against the size of the file.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import known_sets, load_set
from peers import OURS, PEERS, run_peer
from sets import write_folder
from trials import CACHE

SYSTEMS = (
    *("xtrellis", "ensemble", "pecos", "parabel", "bonsai", "napkinxc"),
    *("pecos_tuned", "bonsai_tuned"),
)


def per_cent(share: float) -> str:
    """Share, as tables show it."""
    return f"{share:.2%}".replace("%", " %")


@dataclass(frozen=True)
class Figure:
    """A column of the table: what ``peers`` calls it, how it is shown, and which end is better."""

    title: str
    key: str
    shown: Callable[[float], str]
    more_is_better: bool = False

    def cell(self, row: dict[str, Any]) -> str:
        """The figure of a system; a dash if it has none."""
        value = row.get(self.key)
        return "–" if value is None else self.shown(value)

    def is_ahead(self, row: dict[str, Any], ours: dict[str, Any]) -> bool:
        """Whether a system is better than ours by at least the last digit shown."""
        theirs, own = row.get(self.key), ours.get(self.key)
        if theirs is None or own is None or self.shown(theirs) == self.shown(own):
            return False
        return bool(theirs > own) if self.more_is_better else bool(theirs < own)


FIGURES = (
    Figure("accuracy", "accuracy", per_cent, more_is_better=True),
    Figure("top-5", "top5_accuracy", per_cent, more_is_better=True),
    Figure("macro-F1", "macro_f1", per_cent, more_is_better=True),
    Figure("tail accuracy", "tail_accuracy", per_cent, more_is_better=True),
    Figure("file", "model_bytes", lambda n: f"{n / 1e6:.2f} MB"),
    Figure("training, CPU", "train_cpu_seconds", lambda s: f"{s:.1f} s"),
    Figure("peak memory", "peak_memory_mb", lambda n: f"{n:,.0f} MB"),
    Figure("µs per row", "batch_microseconds", lambda t: f"{t:.1f}"),
)


def measured(name: str, systems: list[str], timeout: float) -> dict[str, dict[str, Any]]:
    """Rows of all systems on one set, printed as they are finished."""
    rows = {}
    with tempfile.TemporaryDirectory(prefix="defaults-") as folder:
        data = load_set(name)
        write_folder(data, Path(folder))
        for system in systems:
            row = rows[system] = run_peer(system, Path(folder), CACHE, timeout=timeout)
            cells = [row["failed"]] if "failed" in row else [each.cell(row) for each in FIGURES]
            cells += [""] * (len(FIGURES) - len(cells))
            print(f"| {data.name} | {PEERS[system].title} | {' | '.join(cells)} |", flush=True)
    return rows


def lines_ahead(name: str, rows: dict[str, dict[str, Any]]) -> list[str]:
    """A line for every figure in which another system is ahead of ours."""
    ours = rows.get("xtrellis", {})
    return [
        f"- {name}, {figure.title}: {PEERS[system].title} {figure.cell(row)}, "
        f"xtrellis {figure.cell(ours)}"
        for figure in FIGURES
        for system, row in rows.items()
        if PEERS[system].stands_for != OURS and figure.is_ahead(row, ours)
    ]


def draw(results: dict[str, dict[str, dict[str, Any]]], path: Path) -> None:
    """A panel for each set: accuracy of each system against the size of its file."""
    from matplotlib import figure, ticker

    n_columns = min(3, len(results))
    n_lines = -(-len(results) // n_columns)
    size = 3.6 * n_columns, 2.6 * n_lines + 0.6
    picture = figure.Figure(figsize=size, layout="constrained")
    panels = picture.subplots(n_lines, n_columns, squeeze=False).ravel()
    systems = list(dict.fromkeys(system for rows in results.values() for system in rows))
    shown: dict[str, Any] = {}  # the legend
    for axes, (name, rows) in zip(panels, results.items(), strict=False):
        for system, row in rows.items():
            if "failed" not in row:
                number, title = systems.index(system), PEERS[system].title
                shown[title] = axes.scatter(
                    row["model_bytes"] / 1e6, 100 * row["accuracy"],
                    s=110 if system == "xtrellis" else 36,
                    marker="osD^vPX*"[number % 8], color=f"C{number % 10}",
                )  # fmt: skip
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set_title(name, fontsize=10)
        axes.tick_params(labelsize=8)
        axes.margins(0.15)
        axes.grid(alpha=0.3)
    for axes in panels[len(results) :]:
        axes.set_axis_off()
    picture.supxlabel("size of the model file, MB", fontsize=10)
    picture.supylabel("accuracy, %", fontsize=10)
    picture.legend(shown.values(), shown.keys(), loc="outside upper center", ncols=4, fontsize=8)
    picture.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="all that are known if omitted")
    parser.add_argument(
        "--systems", nargs="+", choices=[*PEERS], default=[*SYSTEMS], metavar="NAME",
        help=f"{', '.join(SYSTEMS)} if omitted",
    )  # fmt: skip
    parser.add_argument("--timeout", type=float, default=1800, help="seconds per system and set")
    parser.add_argument("--picture", type=Path, help="where to draw it")
    wanted = parser.parse_args()
    titles = ("set", "system", *(figure.title for figure in FIGURES))
    print(f"| {' | '.join(titles)} |\n| --- | --- |{' ---: |' * len(FIGURES)}", flush=True)
    ahead, results = [], {}
    for name in wanted.sets or known_sets():
        rows = results[Path(name).name] = measured(name, wanted.systems, wanted.timeout)
        ahead += lines_ahead(Path(name).name, rows)
        if wanted.picture:
            draw(results, wanted.picture)
    if set(wanted.systems) > {"xtrellis"} and "xtrellis" in wanted.systems:
        print("\nOthers are ahead of xtrellis in:\n" if ahead else "\nNo other system is ahead.")
        print("\n".join(ahead))


if __name__ == "__main__":
    main()
