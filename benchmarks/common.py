"""What benchmarks share: data sets, timing, and made-up documents.

Sets are loaded, and other systems are run, by the code of ``experiments/``. Bundled sets need
nothing; other sets are looked up in the folder that the environment variable XTRELLIS_DATA names.
"""

from __future__ import annotations

import os
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

from sets import BUNDLED, load_set


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """X, y, X_test and y_test of a set."""
    data = load_set(name)
    return data.X, data.y, data.X_test, data.y_test


def known_sets() -> list[str]:
    """The bundled sets, and those in the folder that XTRELLIS_DATA names."""
    folder = os.environ.get("XTRELLIS_DATA")
    found = sorted(Path(folder).glob("*/train.*")) if folder else []
    return list(dict.fromkeys([*BUNDLED, *(file.parent.name for file in found)]))


def best_time(call: Callable[[], Any], repeat: int = 7) -> float:
    """Seconds of the fastest of ``repeat`` calls, after one that is not timed."""
    call()
    return min(timeit.repeat(call, number=1, repeat=repeat))


def long_rows(
    n_rows: int = 20_000, n_classes: int = 1_000, n_features: int = 50_000
) -> tuple[Any, Any]:
    """Made-up documents of about 150 words: words drawn by Zipf's law, and words of the class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_rows)
    common = np.minimum(rng.zipf(1.3, (n_rows, 110)) - 1, n_features - 1)
    own = rng.integers(0, n_features, (n_classes, 60))[
        labels[:, np.newaxis], rng.integers(0, 60, (n_rows, 90))
    ]
    columns = np.concatenate([common, own], axis=1)
    rows = np.repeat(np.arange(n_rows), columns.shape[1])
    X = sparse.csr_matrix(
        (np.ones(columns.size, np.float32), (rows, columns.ravel())), (n_rows, n_features)
    )
    X.data = 1 + np.log(X.data)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)))
    return sparse.csr_matrix(X.multiply(1 / norms), dtype=np.float32), labels
