"""How training and prediction grow with the number of classes, from a thousand to a million.

    python benchmarks/bench_growth.py [K ...] [--plot growth.png] [--rows-per-class 4]

Every class has rows of made-up texts: some words of its own, some of its group of classes, some that
all have, drawn by Zipf's law. For each K, once with all defaults and once with slices of ten
vertices (b = 10, C = 1), a new process trains on all cores, saves the model and predicts with one
thread. A Markdown table has seconds and CPU seconds of training, peak memory of the process, the size
of the data and of the file, accuracy, and microseconds per predicted row.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from xtrellis import TrellisClassifier

SIZES = (1_000, 10_000, 100_000)
MODELS = {"default": {}, "b = 10": {"slice_width": 10, "C": 1.0}}
COLUMNS = (
    *("classes", "model", "b", "training s", "CPU s", "peak MB", "data MB", "file MB"),
    *("accuracy", "µs per row"),
)


def texts(n_classes: int, n_rows: int, seed: int) -> tuple[Any, Any]:
    """Rows of words: three of four that are their class's, two of six of its group, three common."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), n_rows))
    group = y // 30
    n_groups = int(group.max()) + 1
    # A word belongs to two classes, or groups, on average: as in texts, to some that have no other
    # word in common. Which ones does not depend on the seed.
    drawn = np.random.default_rng(0)
    of_class = drawn.integers(0, 2 * n_classes, (n_classes, 4))
    of_group = drawn.integers(0, 3 * n_groups, (n_groups, 6)) + 2 * n_classes
    own = of_class[y[:, np.newaxis], rng.integers(0, 4, (len(y), 3))]
    shared = of_group[group[:, np.newaxis], rng.integers(0, 6, (len(y), 2))]
    common = 2 * n_classes + 3 * n_groups + np.minimum(rng.zipf(1.5, (len(y), 3)), 5_000) - 1
    columns = np.concatenate([own, shared, common], axis=1)
    indptr = np.arange(0, columns.size + 1, columns.shape[1])
    weights = np.repeat(np.float32([3.0, 2.0, 1.0]), [3, 2, 3])
    values = np.tile(weights / np.linalg.norm(weights), len(y))
    n_features = 2 * n_classes + 3 * n_groups + 5_000
    X = sparse.csr_matrix((values, columns.ravel(), indptr), (len(y), n_features))
    X.sum_duplicates()
    return X, y


def measure(n_classes: int, name: str, n_rows: int) -> dict[str, Any]:
    """Train, save and predict; in a process of its own."""
    X, y = texts(n_classes, n_rows, seed=0)
    X_test, y_test = texts(min(n_classes, 20_000), 1, seed=1)
    X_test.resize(X_test.shape[0], X.shape[1])
    if n_classes > 20_000:
        X_test, y_test = texts(n_classes, 1, seed=1)
        X_test, y_test = X_test[:20_000], y_test[:20_000]
    TrellisClassifier(random_state=0).fit(X[:2_000], y[:2_000] % 50).predict(X[:10])  # compiles
    start, cpu = time.perf_counter(), time.process_time()
    clf = TrellisClassifier(**MODELS[name], n_jobs=-1, random_state=0).fit(X, y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        size = clf.save(Path(folder, "model.xtrellis"))
    clf.n_jobs = 1
    clf.predict(X_test[:100])
    times = []
    for _ in range(3):
        start = time.perf_counter()
        found = clf.predict(X_test)
        times.append(time.perf_counter() - start)
    data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    return {
        "classes": f"{n_classes:,}",
        "model": name,
        "b": clf.trellis_.slice_width,
        "training s": round(seconds, 1),
        "CPU s": round(cpu, 1),
        "peak MB": round(peak),
        "data MB": round(data / 1e6),
        "file MB": round(size / 1e6, 2),
        "accuracy": f"{np.mean(found == y_test):.1%}",
        "µs per row": round(min(times) / X_test.shape[0] * 1e6, 1),
    }


def plot(rows: list[dict[str, Any]], path: str) -> None:
    """Four panels, one line per model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for axes, key in zip(panels, ("CPU s", "peak MB", "file MB", "µs per row"), strict=True):
        for name in MODELS:
            own = [row for row in rows if row["model"] == name]
            sizes = [int(row["classes"].replace(",", "")) for row in own]
            axes.loglog(sizes, [row[key] for row in own], marker="o", label=name)
        axes.set_xlabel("classes")
        axes.set_title(
            {"CPU s": "training, CPU seconds", "peak MB": "peak memory, MB"}.get(key, key)
        )
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="K")
    parser.add_argument("--plot", help="picture to draw")
    parser.add_argument("--rows-per-class", type=int, default=4)
    parser.add_argument("--one", choices=MODELS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.sizes[0], given.one, given.rows_per_class)))
        return
    print(f"| {' | '.join(COLUMNS)} |\n|{' ---: |' * len(COLUMNS)}")
    rows = []
    for n_classes in given.sizes:
        for name in MODELS:
            command = [sys.executable, __file__, str(n_classes), "--one", name]
            command += ["--rows-per-class", str(given.rows_per_class)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"| {' | '.join(str(rows[-1][each]) for each in COLUMNS)} |", flush=True)
    if given.plot:
        plot(rows, given.plot)


if __name__ == "__main__":
    main()
