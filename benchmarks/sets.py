"""Data for benchmarks: the real sets in a folder of svmlight files, and made-up long rows.

The folder is that of the environment variable XTRELLIS_DATA, by default ``../shared/data`` beside
the repository: one folder a set, with ``train.svm.gz`` and ``test.svm.gz``.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_files

FOLDER = Path(
    os.environ.get("XTRELLIS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


@lru_cache(maxsize=2)
def load(name: str):
    """X, y, X_test, y_test of a set, or an exit that says where it was looked for."""
    files = [FOLDER / name / f"{part}.svm.gz" for part in ("train", "test")]
    for file in files:
        if not file.is_file():
            sys.exit(f"{file} is not here; set XTRELLIS_DATA to the folder with the data sets")
    X, y, X_test, y_test = load_svmlight_files([str(file) for file in files], dtype=np.float32)
    return X, y.astype(int), X_test, y_test.astype(int)


def long_rows(n_rows: int = 20_000, n_classes: int = 1_000, n_features: int = 50_000):
    """Rows of about 150 words, as of a document; words are drawn by Zipf's law and by class."""
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
