"""Probabilities and sets of classes: whether they are right as often as they claim.

    python benchmarks/bench_sets.py [--splits 4] [SET ...]

The sets are the bundled ones and those in the folder that XTRELLIS_DATA names, unless given. Models
are trained with all defaults, on training rows of which a fifth, at most 5,000, are set aside, so
often as ``--splits`` says, with other rows set aside. A Markdown table has one line per data set and
coverage asked for: how many held-out rows ``fit`` calibrated on; the accuracy on the rows set
aside, and on the test rows; the coverage of both, which is the share of rows whose set contains the
true class; the standard error that the coverage of the rows set aside would have if all splits were
independent; and for test rows the mean and the median size of sets, the share of empty ones, and
the milliseconds per row. All are means over the splits. Rows of classes that training lacks can be
in no set, and are left out. A test part that is harder than the training part is covered less often
than asked: compare the two accuracies.

A second table has the expected calibration error of models that were trained on all training rows:
the test accuracy, the mean probability of the class predicted, the error, and what it would be by
chance alone.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from common import known_sets, load
from xtrellis import TrellisClassifier
from xtrellis.evaluation.measures import calibration_error_by_chance, expected_calibration_error

COVERAGES = (0.8, 0.9, 0.95)
COLUMNS = (
    *("set", "classes", "calibrated on", "accuracy, set aside", "accuracy, test", "asked"),
    *("coverage, set aside", "±", "coverage, test", "mean size", "median", "empty", "ms per row"),
)
CALIBRATION_COLUMNS = ("set", "test rows", "accuracy", "mean probability", "ECE", "by chance")

# Classes, rows calibrated on, accuracies, and for each coverage what the table says.
Split = tuple[int, int, list[float], list[list[float]]]


def table_rows(name: str, n_splits: int) -> list[str]:
    """The lines of a data set."""
    data = load(name)
    measured = [of_split(data, seed) for seed in range(n_splits)]
    if any(split is None for split in measured):
        return [f"| {Path(name).name} | too few rows held out |"]
    n_classes, calibrated_on, accuracies, figures = (
        np.mean(part, axis=0) for part in zip(*measured, strict=True)
    )
    first = (Path(name).name, f"{n_classes:,.0f}", f"{calibrated_on:,.0f}")
    first += tuple(f"{accuracy:.1%}" for accuracy in accuracies)
    lines = []
    for asked, (aside, variance, test, size, median, empty, seconds) in zip(
        COVERAGES, figures, strict=True
    ):
        error = np.sqrt(variance / n_splits)
        cells = (
            *(*first, f"{asked:.0%}", f"{aside:.1%}", f"{100 * error:.1f}", f"{test:.1%}"),
            *(f"{size:.2f}", f"{median:.0f}", f"{empty:.1%}", f"{1e3 * seconds:.2f}"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def of_split(data: tuple[Any, Any, Any, Any], seed: int) -> Split | None:
    """What one model says of the rows that it was trained without."""
    X, y, X_test, y_test = data
    order = np.random.default_rng(seed).permutation(len(y))
    n_aside = min(len(y) // 5, 5_000)
    inside, aside = order[n_aside:], order[:n_aside]
    clf = TrellisClassifier(n_jobs=-1, random_state=seed).fit(X[inside], y[inside])
    parts = [
        (rows[known], labels[known])
        for rows, labels in ((X[aside], y[aside]), (X_test, y_test))
        if (known := np.isin(labels, clf.classes_)).any()
    ]
    if clf.model_.conformal is None:
        return None
    n_rows, n_tested = clf.model_.conformal.n_rows, len(parts[0][1])
    figures = []
    for asked in COVERAGES:
        coverages = []
        for rows, labels in parts:
            start = time.perf_counter()
            found = clf.predict_set(rows, asked)
            seconds = (time.perf_counter() - start) / len(labels)
            covered = [label in own for label, own in zip(labels, found, strict=True)]
            coverages.append(np.mean(covered))
        variance = asked * (1 - asked) * (1 / n_rows + 1 / n_tested)
        sizes = np.array([len(own) for own in found])
        of_sizes = (sizes.mean(), np.median(sizes), np.mean(sizes == 0))
        figures.append([coverages[0], variance, coverages[1], *of_sizes, seconds])
    return len(clf.classes_), n_rows, [clf.score(*part) for part in parts], figures


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
    parser = argparse.ArgumentParser(description="Coverage and size of sets; calibration errors.")
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--splits", type=int, default=4)
    given = parser.parse_args()
    names = given.sets or known_sets()
    print_header(COLUMNS)
    for name in names:
        for line in table_rows(name, given.splits):
            print(line, flush=True)
    print()
    print_header(CALIBRATION_COLUMNS)
    for name in names:
        print(calibration_row(name), flush=True)


if __name__ == "__main__":
    main()
