"""Time and memory of the similarity assignment against the number of classes.

The rows are made up: classes in a hierarchy three levels deep, three rows per class, 15 words per row
drawn from the words of the class, its parent and its grandparent.

    python benchmarks/bench_assignment.py [K ...]      (by default 1000 10000 20000 100000)
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from scipy import sparse

from xtrellis.graph import Trellis, similarity_assignment


def hierarchical_rows(n_classes: int, n_features: int = 100_000, seed: int = 0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), 3)
    shuffled = rng.permutation(n_classes)[labels]
    columns = np.concatenate(
        [
            rng.integers(0, n_features, (groups, 10))[shuffled * groups // n_classes][:, :5]
            for groups in (max(n_classes // 1000, 2), max(n_classes // 30, 4), n_classes)
        ],
        axis=1,
    )
    X = sparse.csr_matrix(
        (np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, 15)),
        (len(labels), n_features),
    )
    X.sum_duplicates()
    return X, labels


def main() -> None:
    for n_classes in [int(arg) for arg in sys.argv[1:]] or [1_000, 10_000, 20_000, 100_000]:
        X, y = hierarchical_rows(n_classes)
        start = time.perf_counter()
        similarity_assignment(Trellis(n_classes, 30), X, y, random_state=0)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"K = {n_classes:>7,}: {seconds:6.1f} s, peak memory so far {peak:,.0f} MB", flush=True
        )


if __name__ == "__main__":
    main()
