"""Trellis graphs, their codes, and exact decoding; pictures go to demo_output/."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from xtrellis import (
    Trellis,
    best_paths,
    codewords,
    draw_trellis,
    get_loss,
    k_best_paths,
    minimum_distance,
    path_log_probabilities,
)

OUTPUT = Path("demo_output")


def show_sizes() -> None:
    print("Edges, one binary learner each, for K classes and slice width b")
    print(f"{'K':>16}" + "".join(f"{f'b = {b}':>10}" for b in (2, 5, 10, 30)))
    for n_classes in (1_000, 100_000, 10_000_000, 10**12):
        counts = [Trellis(n_classes, b).n_edges for b in (2, 5, 10, 30)]
        print(f"{n_classes:>16,}" + "".join(f"{count:>10,}" for count in counts))


def show_decoding() -> None:
    trellis = Trellis(100_000, 10)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, trellis.n_classes, 200)
    signs = codewords(trellis, truth).astype(np.float32)
    print(f"\n200 noisy codewords of {trellis}, minimum distance {minimum_distance(trellis)}")
    for noise in (0.3, 0.5, 0.7):
        margins = signs + noise * rng.standard_normal(signs.shape).astype(np.float32)
        found = [
            np.mean(best_paths(trellis, margins, loss) == truth) for loss in ("squared", "hinge")
        ]
        print(f"  noise {noise}: right paths {found[0]:.1%} (squared loss), {found[1]:.1%} (hinge)")

    margins = signs[:1] + 0.5 * rng.standard_normal(signs[:1].shape).astype(np.float32)
    paths, losses = k_best_paths(trellis, margins, 3, "log")
    shares = np.exp(path_log_probabilities(trellis, margins, paths))
    print(f"  the three best paths of one row (the true one is {truth[0]}):")
    for path, loss, share in zip(paths[0], losses[0], shares[0], strict=True):
        print(f"    path {path:>6}  log loss {loss:8.2f}  probability {share:.3f}")

    def exhaustive() -> np.ndarray:
        """Loss-based decoding by its definition: the loss of each of the K codewords."""
        every, loss = np.arange(trellis.n_classes), get_loss("exponential")
        totals = [
            loss(codewords(trellis, part) * margins).sum(axis=1) for part in np.split(every, 100)
        ]
        return np.concatenate(totals).argmin()

    best_paths(trellis, margins)
    start = time.perf_counter()
    slow = exhaustive()
    middle = time.perf_counter()
    fast = best_paths(trellis, margins)[0]
    end = time.perf_counter()
    print(
        f"  one row by trying all {trellis.n_classes:,} codewords: path {slow}, "
        f"{middle - start:.2f} s; as a shortest path: path {fast}, "
        f"{(end - middle) * 1e6:.0f} microseconds"
    )


def draw() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    OUTPUT.mkdir(exist_ok=True)
    print()
    for n_classes, width, path in ((9, 2, 3), (64, 4, 17), (105, 5, 77)):
        target = OUTPUT / f"trellis_{n_classes}_{width}.png"
        draw_trellis(Trellis(n_classes, width), path).figure.savefig(target, dpi=120)
        print(f"picture: {target}")


if __name__ == "__main__":
    show_sizes()
    show_decoding()
    draw()
