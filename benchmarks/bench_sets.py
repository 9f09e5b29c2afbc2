"""Sets of classes: how often they contain the true class, and how large they are.

    python benchmarks/bench_sets.py [SET ...]

The sets are the bundled ones and those in the folder that XTRELLIS_DATA names, unless given. Models
are trained with all defaults, on training rows of which a fifth, at most 5,000, are set aside. A
Markdown table has one line per data set and coverage asked for: how many held-out rows ``fit``
calibrated sets on; the accuracy on the rows set aside, and on the test rows; the coverage of both,
which is the share of rows whose set contains the true class; and for test rows the mean and the
median size of sets, the share of empty ones, and the milliseconds per row. Rows of classes that
training lacks can be in no set, and are left out. A test part that is harder than the training part
is covered less often than asked: compare the two accuracies.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from common import known_sets, load
from xtrellis import TrellisClassifier

COVERAGES = (0.8, 0.9, 0.95)
COLUMNS = (
    *("set", "classes", "calibrated on", "accuracy, set aside", "accuracy, test", "asked"),
    *("coverage, set aside", "coverage, test", "mean size", "median", "empty", "ms per row"),
)


def table_rows(name: str) -> list[str]:
    """The lines of a data set."""
    X, y, X_test, y_test = load(name)
    order = np.random.default_rng(0).permutation(len(y))
    n_aside = min(len(y) // 5, 5_000)
    inside, aside = order[n_aside:], order[:n_aside]
    clf = TrellisClassifier(n_jobs=-1, random_state=0).fit(X[inside], y[inside])
    parts = [
        (rows[known], labels[known])
        for rows, labels in ((X[aside], y[aside]), (X_test, y_test))
        if (known := np.isin(labels, clf.classes_)).any()
    ]
    sets = clf.model_.conformal
    if sets is None:
        return [f"| {Path(name).name} | {len(clf.classes_):,} | too few rows held out |"]
    accuracies = [f"{clf.score(*part):.1%}" for part in parts]
    first = (Path(name).name, f"{len(clf.classes_):,}", f"{sets.n_rows:,}", *accuracies)
    lines = []
    for asked in COVERAGES:
        coverages = []
        for rows, labels in parts:
            start = time.perf_counter()
            found = clf.predict_set(rows, asked)
            seconds = time.perf_counter() - start
            covered = np.mean([label in own for label, own in zip(labels, found, strict=True)])
            coverages.append(f"{covered:.1%}")
        sizes = np.array([len(own) for own in found])
        cells = (
            *(*first, f"{asked:.0%}", *coverages, f"{sizes.mean():.2f}", f"{np.median(sizes):.0f}"),
            *(f"{np.mean(sizes == 0):.1%}", f"{1e3 * seconds / len(sizes):.2f}"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    for name in sys.argv[1:] or known_sets():
        for line in table_rows(name):
            print(line, flush=True)


if __name__ == "__main__":
    main()
