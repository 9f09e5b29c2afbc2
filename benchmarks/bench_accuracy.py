"""Test accuracy on real data with fixed seeds, and the least that each setting must reach.

    python benchmarks/bench_accuracy.py [set ...]          (by default icd10cm wordnet_hypernym)
    python benchmarks/bench_accuracy.py bible_verse        (31,102 classes; takes minutes)

Prints accuracy, top-5 accuracy, expected calibration error, size of the weights, seconds of `fit` and
microseconds per row of `predict`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from common import load
from xtrellis import LTLSClassifier, TrellisClassifier


def arow(width: int, **settings) -> TrellisClassifier:
    return TrellisClassifier(
        width, training="independent", learner="arow", calibration=0.0, **settings
    )


RUNS = {
    "icd10cm": [
        ("LTLS", lambda s: LTLSClassifier(random_state=s), [0], None),
        ("paper, b = 10, 5 epochs", lambda s: TrellisClassifier.paper(10, epochs=5, random_state=s),
         range(5), 85.5),
        ("independent AROW, b = 10", lambda s: arow(10, random_state=s), [0, 1, 2], 86.9),
        ("independent AROW, b = 20", lambda s: arow(20, random_state=s), [0, 1, 2], 87.5),
        ("local SVM, C = 3, b = 10", lambda s: TrellisClassifier(10, C=3, random_state=s), [0, 1, 2], 88.4),
        ("local SVM, C = 3, b = 20", lambda s: TrellisClassifier(20, C=3, random_state=s), [0, 1, 2], 88.6),
        ("local SVM, C = 3, b = 40", lambda s: TrellisClassifier(40, C=3, random_state=s), [0, 1, 2], 89.4),
        ("all defaults", lambda s: TrellisClassifier(random_state=s), [0, 1, 2], None),
        ("one-vs-rest SVM, C = 3", lambda s: TrellisClassifier(
            1597, C=3, training="independent", random_state=s, calibration=0.0), [0], None),
    ],
    "wordnet_hypernym": [
        ("paper, b = 10, 3 epochs", lambda s: TrellisClassifier.paper(10, epochs=3, random_state=s),
         range(3), 37.5),
        ("the same, squared decoding", lambda s: TrellisClassifier.paper(
            10, epochs=3, random_state=s, decoding="squared"), range(3), None),
        ("independent AROW, b = 10", lambda s: arow(10, epochs=3, random_state=s), [0, 1, 2], None),
        ("local AROW, b = 30", lambda s: TrellisClassifier(30, learner="arow", random_state=s),
         [0, 1, 2], 46.9),
        ("local SVM, b = 30", lambda s: TrellisClassifier(30, random_state=s), [0, 1, 2], 47.4),
        ("local SVM, b = 86 (all defaults)", lambda s: TrellisClassifier(86, random_state=s), [0, 1, 2], 48.9),
    ],
    "bible_verse": [
        ("independent AROW, b = 30, 1 epoch", lambda s: arow(30, epochs=1, random_state=s), [0], 83.5),
        ("local SVM, b = 32", lambda s: TrellisClassifier(32, random_state=s), [0], None),
        ("local SVM, b = 100", lambda s: TrellisClassifier(100, random_state=s), [0], None),
        ("local SVM, b = 177 (all defaults)", lambda s: TrellisClassifier(random_state=s), [0], None),
    ],
}  # fmt: skip
# Of any other set, such as clinc150 or lshtc1_dry_rdf.
DEFAULT = [("all defaults", lambda s: TrellisClassifier(random_state=s), [0, 1, 2], None)]


def calibration_error(probabilities: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """Expected calibration error of the top class, in bins of equal width."""
    bins = np.minimum((probabilities * n_bins).astype(int), n_bins - 1)
    gaps = [
        np.mean(bins == b) * abs(right[bins == b].mean() - probabilities[bins == b].mean())
        for b in np.unique(bins)
    ]
    return float(sum(gaps))


def main() -> None:
    sets = sys.argv[1:] or ["icd10cm", "wordnet_hypernym"]
    print(f"{'data':17} {'setting':34} {'accuracy':>17} {'at least':>9} {'top 5':>7} {'ECE':>6}"
          f" {'weights':>9} {'fit':>7} {'predict':>9}")  # fmt: skip
    for name in sets:
        X, y, X_test, y_test = load(name)
        for label, make, seeds, least in RUNS.get(name, DEFAULT):
            accuracies = []
            for seed in seeds:
                start = time.perf_counter()
                model = make(seed).fit(X, y)
                middle = time.perf_counter()
                accuracies.append(100 * model.score(X_test, y_test))
                end = time.perf_counter()
            labels, probabilities = model.predict_top_k(X_test, 5)
            top = (labels == y_test[:, np.newaxis]).any(axis=1).mean()
            error = calibration_error(probabilities[:, 0], labels[:, 0] == y_test)
            spread = f" ± {np.std(accuracies):.2f}" if len(accuracies) > 1 else ""
            print(
                f"{name:17} {label:34} {np.mean(accuracies):>9.2f}{spread:8} "
                f"{least or '':>9} {top:>7.2%} {error:>6.3f} "
                f"{model.weights_.nbytes / 2**20:>6.1f} MB {middle - start:>5.1f} s "
                f"{(end - middle) / X_test.shape[0] * 1e6:>6.1f} us",
                flush=True,
            )


if __name__ == "__main__":
    main()
