"""Decoding time against K and b, beside the product that computes the margins.

For each graph, SciPy computes the margins of a batch of rows: a CSR row of 100 non-zeros times a
float32 matrix of |E| columns. They are then decoded with the exponential loss; its edge costs are
included. Microseconds per row, best of several runs, one thread.

    python benchmarks/bench_decode.py [--quick]

Writes benchmarks/results/decode.png (with Matplotlib) and prints a table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy import sparse

from common import best_time
from xtrellis.decoding import best_paths, k_best_paths
from xtrellis.graph import Trellis

N_FEATURES, N_NONZEROS = 20_000, 100
RESULTS = Path(__file__).parent / "results"


def measure(n_classes: int, width: int, repeat: int) -> dict[str, float]:
    """Microseconds per row of the product, of decoding and of the ten best paths, for one graph."""
    trellis = Trellis(n_classes, width)
    rng = np.random.default_rng(0)
    n_rows = int(np.clip(2_000_000 // trellis.n_edges, 50, 2_000))
    columns = rng.integers(0, N_FEATURES, n_rows * N_NONZEROS)
    values = rng.standard_normal(columns.size).astype(np.float32)
    rows = np.arange(0, columns.size + 1, N_NONZEROS)
    X = sparse.csr_matrix((values, columns, rows), (n_rows, N_FEATURES))
    weights = rng.standard_normal((N_FEATURES, trellis.n_edges)).astype(np.float32) / 10
    margins = X @ weights
    calls = {
        "product": lambda: X @ weights,
        "decode": lambda: best_paths(trellis, margins),
        "ten_best": lambda: k_best_paths(trellis, margins, 10),
    }
    times = {name: best_time(call, repeat) / n_rows * 1e6 for name, call in calls.items()}
    return {"edges": trellis.n_edges, **times}


def draw(results: dict[tuple[int, int], dict[str, float]], target: Path) -> None:
    from matplotlib import pyplot as plt

    widths = sorted({width for _, width in results})
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    colours = plt.colormaps["viridis"](np.linspace(0, 0.85, len(widths)))
    for colour, width in zip(colours, widths, strict=True):
        rows = [(k, r) for (k, b), r in results.items() if b == width]
        classes = [k for k, _ in rows]
        label = f"b = {width}"
        left.plot(classes, [r["decode"] for _, r in rows], "o-", color=colour, label=label)
        left.plot(classes, [r["product"] for _, r in rows], ":", color=colour)
        edges = [r["edges"] for _, r in rows]
        right.plot(edges, [r["decode"] for _, r in rows], "o", color=colour, label=label)
    left.set(xscale="log", yscale="log", xlabel="classes K", ylabel="microseconds per row")
    left.set_title("decoding (lines) and the product of the margins (dotted)")
    right.set(xscale="log", yscale="log", xlabel="edges |E|", ylabel="microseconds per row")
    right.set_title("decoding grows with |E|")
    for ax in (left, right):
        ax.grid(alpha=0.3)
    right.legend()  # for both: on the left it would cover the lines
    target.parent.mkdir(exist_ok=True)
    fig.savefig(target, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer graphs, fewer runs")
    quick = parser.parse_args().quick
    powers = (2, 4, 9) if quick else range(2, 10)
    widths = (2, 10) if quick else (2, 5, 10, 20, 50)
    results = {}
    print(
        "      K   b    |E|   product    decode  10 best   (microseconds per row)  decode/product"
    )
    for width in widths:
        for power in powers:
            row = measure(10**power, width, repeat=3 if quick else 7)
            results[10**power, width] = row
            print(
                f"  10^{power:<3} {width:>3} {row['edges']:>6} {row['product']:>9.2f} "
                f"{row['decode']:>9.2f} {row['ten_best']:>8.2f} "
                f"{row['decode'] / row['product']:>37.2f}"
            )
    at_ten = [row["decode"] / row["product"] for (_, b), row in results.items() if b == 10]
    print(f"at b = 10, decoding takes at most {max(at_ten):.2f} times as long as the product")
    if not quick:
        draw(results, RESULTS / "decode.png")
        print(f"plot: {RESULTS / 'decode.png'}")


if __name__ == "__main__":
    main()
