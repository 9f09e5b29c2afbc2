"""Probabilities and sets of classes: whether they are right as often as they claim.

    python benchmarks/bench_sets.py [SET ...]

The sets are the bundled ones and those in the folder that XTRELLIS_DATA names, unless given. Models
are trained with all defaults, on training rows of which a fifth, at most 5,000, are set aside. A
Markdown table has one line per data set and coverage asked for: how many held-out rows ``fit``
calibrated on; the accuracy on the rows set aside, and on the test rows; the coverage of both,
which is the share of rows whose set contains the true class; and for test rows the mean and the
median size of sets, the share of empty ones, and the milliseconds per row. Rows of classes that
training lacks can be in no set, and are left out. A test part that is harder than the training part
is covered less often than asked: compare the two accuracies.

A second table has the expected calibration error of models that were trained on all training rows:
the test accuracy, the mean probability of the class predicted, the error, and what it would be by
chance alone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from common import known_sets, load
from xtrellis import TrellisClassifier
from xtrellis.evaluation.measures import calibration_error_by_chance, expected_calibration_error

COVERAGES = (0.8, 0.9, 0.95)
COLUMNS = (
    *("set", "classes", "calibrated on", "accuracy, set aside", "accuracy, test", "asked"),
    *("coverage, set aside", "coverage, test", "mean size", "median", "empty", "ms per row"),
)
CALIBRATION_COLUMNS = ("set", "test rows", "accuracy", "mean probability", "ECE", "by chance")


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


def calibration_row(name: str) -> str:
    """The line of a data set in the table of calibration errors."""
    X, y, X_test, y_test = load(name)
    clf = TrellisClassifier(n_jobs=-1, random_state=0).fit(X, y)
    best, probabilities = clf.predict_top_k(X_test, 1)
    right, confidence = best[:, 0] == y_test, probabilities[:, 0]
    cells = (
        *(Path(name).name, f"{len(y_test):,}", f"{right.mean():.1%}", f"{confidence.mean():.1%}"),
        f"{expected_calibration_error(right, confidence):.3f}",
        f"{calibration_error_by_chance(confidence):.3f}",
    )
    return f"| {' | '.join(cells)} |"


def print_header(columns: tuple[str, ...]) -> None:
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)


def main() -> None:
    names = sys.argv[1:] or known_sets()
    print_header(COLUMNS)
    for name in names:
        for line in table_rows(name):
            print(line, flush=True)
    print()
    print_header(CALIBRATION_COLUMNS)
    for name in names:
        print(calibration_row(name), flush=True)


if __name__ == "__main__":
    main()
