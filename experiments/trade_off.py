"""Accuracy against model size and prediction time (Figure 5, table E.5), beside other systems.

The first table shows trellises at several widths, as means of five seeds, trained on all cores.
The second one shows every system of the paper and today's alternatives, each in a process of its
own, with one thread and the settings in its row. All prediction times are for one thread. Single
rows are predicted by the call that a system offers for them: ``row_predictor`` for our single
trellises, the call for any number of rows for all others.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from output import (
    Claim,
    Picture,
    but,
    mean_and_interval,
    megabytes,
    name_points,
    percent,
    picture,
    run,
    table,
    title_of,
    write_page,
)
from peers import OURS, PEERS, run_peer, stop_peers
from sets import kept_folder, load_set
from sweep import local_specs, ltls_specs, one_vs_rest_spec, paper_specs
from trials import CACHE, run_cached, run_trials
from xtrellis.plots.axes import tidy_axes

MANY_CLASSES = 5_000


def seconds_allowed(data: str) -> float:
    """Seconds after which a peer is stopped; fewer if all of them would take an hour."""
    default = 200 if load_set(data).n_classes <= MANY_CLASSES else 120
    return float(os.environ.get("XTRELLIS_PEER_SECONDS", default))


@dataclass(frozen=True)
class PeerKey:
    """A peer on a set."""

    data: str
    peer: str
    timeout: float
    seed: int = 0


def main(sets: list[str]) -> list[Claim]:
    """Write the tables and the plot of each set."""
    parts: list[str | Picture] = [__doc__ or ""]
    claims: list[Claim] = []
    for data in sets:
        ours = {
            "LTLS": run_trials(ltls_specs(data), f"{data}: LTLS"),
            "W-LTLS": run_trials(paper_specs(data), f"{data}: W-LTLS"),
            "local": run_trials(local_specs(data), f"{data}: local"),
            "one-vs-rest": run_trials([one_vs_rest_spec(data)], f"{data}: one-vs-rest"),
        }
        peers = run_peers(data)
        n_test = len(load_set(data).y_test)
        parts += [
            f"## {title_of(data)}",
            "### Widths",
            _widths_table(ours, n_test),
            "### Side by side",
            f"A system that takes longer than {seconds_allowed(data):.0f} s is stopped.",
            _peers_table(peers),
            _draw(data, ours, peers, n_test),
        ]
        claims += _claims(data, ours)
    write_page("trade_off", "Accuracy, size and time", parts, claims, sets)
    return claims


def run_peers(data: str) -> dict[str, Any]:
    """Rows of all peers."""
    folder = kept_folder(load_set(data), CACHE)
    timeout = seconds_allowed(data)
    keys = {PeerKey(data, name, timeout): name for name in PEERS if not name.endswith("_tuned")}
    # Two at a time: each has one thread, and there are at least two cores.
    found = run_cached(
        {
            key: lambda name=name: run_peer(name, folder, CACHE, timeout=timeout)
            for key, name in keys.items()
        },
        f"{data}: peers",
        workers=2,
        stop=stop_peers,
    )
    return {keys[key]: row for key, row in found.items()}


def _widths_table(ours, n_test) -> str:
    rows = []
    for name, found in ours.items():
        for b in dict.fromkeys(spec.width for spec in found):
            own = [figures for spec, figures in found.items() if spec.width == b]
            rows.append(
                [
                    f"{name}, b = {b}" if name != "one-vs-rest" else "one-vs-rest AROW, b = K",
                    f"{own[0]['n_edges']:,}",
                    percent([f["accuracy"] for f in own]),
                    megabytes(own[0]["dense_bytes"]),
                    megabytes(np.mean([f["file_bytes"] for f in own])),
                    f"{min(f['predict_seconds'] for f in own) / n_test * 1e6:.1f}",
                    f"{np.median([f['train_seconds'] for f in own]):.1f}",
                ]
            )
    header = [
        "model",
        "edges",
        "accuracy (%)",
        "dense (MB)",
        "file (MB)",
        "per row (µs)",
        "training (s)",
    ]
    return table(header, rows)


def _peers_table(peers) -> str:
    rows = []
    for name, row in peers.items():
        peer = PEERS[name]
        about = [peer.title, f"{peer.stands_for}; {peer.settings}"]
        if "failed" in row:
            rows.append([*about, *["–"] * 6, row["failed"]])
            continue
        top5 = row["top5_accuracy"]
        rows.append(
            [
                *about,
                f"{100 * row['accuracy']:.2f}",
                "–" if top5 is None else f"{100 * top5:.2f}",
                megabytes(row["model_bytes"]),
                f"{row['train_seconds']:.1f}",
                f"{row['predict_seconds']:.2f}",
                f"{row['row_microseconds']:,.0f}",
                f"{row['peak_memory_mb']:,.0f} MB peak",
            ]
        )
    header = [
        "system",
        "what",
        "accuracy (%)",
        "top 5 (%)",
        "model (MB)",
        "training (s)",
        "test set (s)",
        "one row (µs)",
        "memory, or reason of failure",
    ]
    return table(header, rows)


def _draw(data, ours, peers, n_test) -> Picture:
    figure, axes, file = picture("trade_off", data, panels=2)
    colors = {"LTLS": "#0f9d76", "W-LTLS": "#c2410c", "local": "#0b5fd3", "one-vs-rest": "#1d2633"}
    costs = (
        ("file_bytes", 1e6, "model_bytes", 1e6, "model file (MB)"),
        (
            "predict_seconds",
            n_test / 1e6,
            "predict_seconds",
            n_test / 1e6,
            "prediction, one thread (µs per row)",
        ),
    )
    numbered = []
    drawn = [
        name
        for name, row in peers.items()
        if "failed" not in row and name not in ("xtrellis", "wltls", "ltls", "ovr")
    ]
    for ax, (key, unit, peer_key, peer_unit, label) in zip(axes, costs, strict=True):
        named: list[tuple[float, float, str]] = []
        for name, found in ours.items():
            points = []
            for b in dict.fromkeys(spec.width for spec in found):
                own = [figures for spec, figures in found.items() if spec.width == b]
                mean, half = mean_and_interval([100 * f["accuracy"] for f in own])
                x = min(f[key] for f in own) if "seconds" in key else np.mean([f[key] for f in own])
                points.append((x / unit, mean, half))
            x, y, half = zip(*points, strict=True)
            ax.errorbar(
                x,
                y,
                np.nan_to_num(half),
                fmt="o-",
                ms=4,
                lw=1.3,
                capsize=2,
                color=colors[name],
                label=name,
            )
        for number, name in enumerate(drawn, 1):
            x, y = peers[name][peer_key] / peer_unit, 100 * peers[name]["accuracy"]
            color = "#8e44ad" if PEERS[name].stands_for == OURS else "#8a94a6"
            ax.plot(x, y, "D", ms=4.5, color=color)
            named.append((x, y, str(number)))
        numbered.append(named)
        ax.margins(0.06, 0.08)
        tidy_axes(ax, label, "test accuracy (%)")
    # There is no room for all names beside the points: numbers there, and names below the plot.
    names = [f"{number} {PEERS[name].title}" for number, name in enumerate(drawn, 1)]
    half = -(-len(names) // 2)
    lines = ["     ".join(names[:half]), "     ".join(names[half:])]
    figure.supxlabel("\n".join(lines), fontsize=8)
    figure.draw_without_rendering()  # lays out the axes, which the numbers need
    for ax, points in zip(axes, numbered, strict=True):
        name_points(ax, points)
    figure.suptitle(f"{title_of(data)}: accuracy against size and time", fontsize=11)
    return Picture(figure, file, "accuracy against model size and prediction time")


def _claims(data, ours) -> list[Claim]:
    (rest,) = ours["one-vs-rest"].values()
    claims = []
    for name in ("W-LTLS", "local"):
        by_width = {}
        for spec, figures in ours[name].items():
            by_width.setdefault(spec.width, []).append(figures)
        accuracy = {b: np.mean([f["accuracy"] for f in own]) for b, own in by_width.items()}
        near = [b for b in by_width if accuracy[b] >= rest["accuracy"] - 0.01]
        text = f"{name} is within a point of one-vs-rest, at a fraction of its size"
        if near:
            b = min(near)
            share = by_width[b][0]["dense_bytes"] / rest["dense_bytes"]
            file_share = by_width[b][0]["file_bytes"] / rest["file_bytes"]
            numbers = (
                f"{100 * accuracy[b]:.2f} at b = {b} against {100 * rest['accuracy']:.2f}, "
                f"{share:.1%} of the dense size, {file_share:.1%} of the file"
            )
            reasons = ["that is not under half of the dense size"] if share >= 0.5 else []
            claims.append(Claim(data, text, not reasons, numbers + but(reasons)))
        else:
            b = max(accuracy, key=accuracy.get)
            claims.append(
                Claim(
                    data,
                    text,
                    False,
                    f"at most {100 * accuracy[b]:.2f} (b = {b}) "
                    f"against {100 * rest['accuracy']:.2f}",
                )
            )
    return claims


if __name__ == "__main__":
    run(main, __doc__ or "")
