"""The README's table: a dozen systems on ICD-10-CM, from the trials that ``make paper`` has kept.

python experiments/headline.py
"""

from __future__ import annotations

from output import one_line_endings, table
from trade_off import run_peers

# Rows of the table, by the name of the system in ``peers.PEERS``.
SYSTEMS = {
    "ltls": "LTLS",
    "wltls": "W-LTLS as in the paper, b = 10",
    "ovr": "one-vs-rest AROW",
    "napkinxc": "napkinXC PLT",
    "dismec": "DiSMEC",
    "pd_sparse": "PD-Sparse",
    "pecos": "PECOS XR-Linear",
    "bonsai": "omikuji Bonsai, 3 trees",
    "xtrellis": "**xtrellis, all defaults**",
    "pruned": "**xtrellis, pruned**",
    "ensemble": "**xtrellis, 3 trellises**",
    "ensemble_pruned": "**xtrellis, 3 trellises, pruned**",
}


def main() -> None:
    """Print the table in Markdown."""
    found = run_peers("icd10cm")
    header = ["system", "test accuracy", "model file", "training", "test set"]
    lines = table(header, [_row(name, found[name]) for name in SYSTEMS]).splitlines()
    lines[1] = "| --- | ---: | ---: | ---: | ---: |"
    print("\n".join(lines))


def _row(name: str, figures: dict) -> list[str]:
    if "failed" in figures:
        return [SYSTEMS[name], figures["failed"], "–", "–", "–"]
    seconds = figures["train_seconds"]
    return [
        SYSTEMS[name],
        f"{figures['accuracy']:.1%}".replace("%", " %"),
        f"{_short(figures['model_bytes'] / 1e6)} MB",
        f"{seconds:.1f} s" if seconds < 20 else f"{seconds:.0f} s",
        f"{figures['predict_seconds']:.2f} s",
    ]


def _short(megabytes: float) -> str:
    """Two digits below 1, one decimal below 100, whole numbers above."""
    return f"{megabytes:.{2 if megabytes < 1 else 1 if megabytes < 100 else 0}f}"


if __name__ == "__main__":
    with one_line_endings("stopped"):
        main()
