"""Beyond the paper: path assignment (random, similarity, greedy) and training at every width."""

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
from sweep import beyond_specs
from trials import run_trials
from xtrellis.plots.axes import tidy_axes

STYLES = {
    "independent, random": ("o-", "#c2410c"),
    "independent, similarity": ("o--", "#c2410c"),
    "local, random": ("s-", "#0b5fd3"),
    "local, similarity": ("s--", "#0b5fd3"),
    "joint, greedy": ("^-", "#0f9d76"),
}


def main(sets: list[str]) -> list[Claim]:
    """Write the table and the plot of each set."""
    parts: list[str | Picture] = [
        __doc__ or "",
        "Independent training uses AROW, local training the SVM, joint training the "
        "averaged perceptron; one seed.",
    ]
    claims = []
    for data in sets:
        found = {
            name: run_trials(specs, f"{data}: {name}") for name, specs in beyond_specs(data).items()
        }
        rows = [
            [
                f"{name}, b = {spec.width}",
                f"{f['n_edges']:,}",
                f"{100 * f['accuracy']:.2f}",
                megabytes(f["file_bytes"]),
                f"{f['train_seconds']:.1f}",
                f"{f['predict_seconds']:.2f}",
            ]
            for name, trials in found.items()
            for spec, f in trials.items()
        ]
        header = [
            "training, assignment",
            "edges",
            "accuracy (%)",
            "file (MB)",
            "training (s)",
            "test set (s)",
        ]
        parts += [f"## {title_of(data)}", table(header, rows), _draw(data, found)]
        claims += _claims(data, found)
    write_page("beyond", "Beyond the paper: assignment and training", parts, claims, sets)
    return claims


def _draw(data, found) -> Picture:
    figure, axes, file = picture("beyond", data, panels=2)
    keys = (("file_bytes", 1e6, "model file (MB)"), ("train_seconds", 1, "training (s)"))
    for ax, (key, unit, label) in zip(axes, keys, strict=True):
        for name, trials in found.items():
            style, color = STYLES[name]
            points = [(f[key] / unit, 100 * f["accuracy"]) for f in trials.values()]  # by width
            ax.plot(*zip(*points, strict=True), style, ms=5, lw=1.3, color=color, label=name)
        tidy_axes(ax, label, "test accuracy (%)")
    figure.suptitle(f"Training and path assignment on {title_of(data)}", fontsize=11)
    return Picture(figure, file, "accuracy against size and training time")


def _claims(data, found) -> list[Claim]:
    def by_width(name):
        return {spec.width: 100 * f["accuracy"] for spec, f in found[name].items()}

    claims = []
    for training in ("independent", "local"):
        random, similar = by_width(f"{training}, random"), by_width(f"{training}, similarity")
        text = f"similar classes on neighbouring paths help ({training} training)"
        claims.append(_gain(data, text, similar, random))
    independent, local = by_width("independent, similarity"), by_width("local, similarity")
    text = "local training is more accurate than independent training"
    return [*claims, _gain(data, text, local, independent)]


def _gain(data: str, text: str, one: dict[int, float], other: dict[int, float]) -> Claim:
    """Claim that one is more accurate than the other at every width, or where it is not."""
    gains = {b: one[b] - other[b] for b in other}
    numbers = ", ".join(f"{gain:+.2f} at b = {b}" for b, gain in gains.items())
    reasons = [f"not at b = {b}" for b, gain in gains.items() if gain <= 0]
    return Claim(data, text, not reasons, numbers + but(reasons))


if __name__ == "__main__":
    run(main, __doc__ or "")
