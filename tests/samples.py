"""Small made-up text-like data, and the real data sets where they are at hand."""

import bz2
import gzip
import lzma
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from xtrellis import load_icd10cm, load_wordnet
from xtrellis.data.text_features import TextFeatures

# Of bytes; gzip's own would hold the time of day, and so never be the same twice.
PACKERS = {
    "plain": bytes,
    "gz": partial(gzip.compress, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
NOUNS = ["fever", "fracture", "burn", "cough", "rash", "sprain", "cramp", "bite", "cut", "ache"]
PLACES = ["hand", "foot", "left arm", "right arm", "head"]
SHARED = Path(
    os.environ.get("XTRELLIS_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)


def topics(n_classes=30, n_features=400, n_rows=900, seed=0):
    """Sparse rows of a few words; each class has favourite words, shared with its neighbours."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    favourites = rng.integers(0, n_features, (n_classes, 6))
    favourites[:, :2] = favourites[np.arange(n_classes) // 5 * 5, :2]
    columns = np.concatenate(
        [
            np.take_along_axis(favourites[labels], rng.integers(0, 6, (n_rows, 4)), axis=1),
            rng.integers(0, n_features, (n_rows, 2)),
        ],
        axis=1,
    )
    X = sparse.csr_matrix(
        (np.ones(columns.size), (np.repeat(np.arange(n_rows), 6), columns.ravel())),
        (n_rows, n_features),
    )
    X = sparse.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))), dtype=np.float32)
    return X, labels


def reports(n_rows=300, seed=0):
    """Short made-up reports, and what they are about."""
    rng = np.random.default_rng(seed)
    nouns = rng.choice(NOUNS, n_rows)
    words = rng.choice(["mild", "severe", "old", "new", "3rd", "x"], (n_rows, 2))
    texts = [
        f"{w[0]} {noun} of the {rng.choice(PLACES)}, {w[1]}"
        for noun, w in zip(nouns, words, strict=True)
    ]
    return texts, nouns


def shared_set(name):
    """Train and test part of a real data set; skips the test where it is absent.

    The two that are bundled never are.
    """
    bundled = {"icd10cm": (load_icd10cm, (1, 2)), "wordnet_hypernym": (load_wordnet, (1, 1))}
    if name in bundled:
        load, words = bundled[name]
        split, features = load(), TextFeatures(words, None, None)
        X = features.fit_transform(split.train_texts, 1)
        classes, y = np.unique(split.train_labels, return_inverse=True)
        return (
            X,
            y,
            features.transform(split.test_texts),
            np.searchsorted(classes, split.test_labels),
        )
    from sklearn.datasets import load_svmlight_files

    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"{name} is not here")
    files = [str(folder / f"{part}.svm.gz") for part in ("train", "test")]
    X, y, X_test, y_test = load_svmlight_files(files, dtype=np.float32)
    return X, y.astype(int), X_test, y_test.astype(int)
