"""The one loader of data sets, for experiments and benchmarks.

A set is named as one of

- ``icd10cm`` and ``wordnet_hypernym``: bundled texts, as TF-IDF rows of single words and, for
  icd10cm, pairs of words;
- the paper's five (``sector``, ...), which are downloaded;
- a folder with ``train.svm`` and ``test.svm``, compressed or not; or, if it has only texts, with
  ``train.txt`` and ``test.txt``, ``label<TAB>text``, whose terms are then 2 to 4 characters;
- the name of such a folder inside the folder that the environment variable ``XTRELLIS_DATA`` names.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from xtrellis import load_icd10cm, load_wordnet
from xtrellis.data import fetch_paper_set, read_svmlight, read_text
from xtrellis.data.datasets import PAPER_SETS

BUNDLED = {"icd10cm": (load_icd10cm, (1, 2)), "wordnet_hypernym": (load_wordnet, (1, 1))}


@dataclass(frozen=True)
class Set:
    """Training and test rows, with classes numbered from 0, and the texts if the set has them."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    texts: tuple[list[str], list[str]] | None = None

    @cached_property
    def digest(self) -> str:
        """Short hash of the rows and classes."""
        digest = hashlib.sha256()
        for X, y in ((self.X, self.y), (self.X_test, self.y_test)):
            for array in (X.data, X.indices, X.indptr, y):
                digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()[:12]

    @property
    def n_classes(self) -> int:
        """Number of classes in training."""
        return int(self.y.max()) + 1


@lru_cache(maxsize=2)
def load_set(name: str) -> Set:
    """Load a set by its name or its folder."""
    if name in BUNDLED:
        return _bundled(name)
    if name in PAPER_SETS:
        rows = fetch_paper_set(name)
        return Set(name, rows.X_train, *_numbered(rows.y_train, rows.X_test, rows.y_test))
    train, test = set_file(name, "train"), set_file(name, "test")
    if ".txt" in train.suffixes:
        return _texts(train, test)
    # Both files keep their feature numbers: one alone does not show whether they start at 0 or 1.
    X, y = read_svmlight(train, zero_based=True)
    X_test, y_test = read_svmlight(test, zero_based=True)
    X_test.resize(X_test.shape[0], X.shape[1])  # features that training lacks have no weights
    return Set(train.parent.name, X, *_numbered(y, X_test, y_test))


def _bundled(name: str) -> Set:
    """TF-IDF rows of bundled texts, as TrellisTextClassifier makes them."""
    load, words = BUNDLED[name]
    split = load()
    vectorizer = TfidfVectorizer(
        ngram_range=words, token_pattern=r"(?u)\b\w+\b", sublinear_tf=True, dtype=np.float32
    )
    X = vectorizer.fit_transform(split.train_texts)
    X_test = vectorizer.transform(split.test_texts)
    texts = split.train_texts, split.test_texts
    return Set(name, X, *_numbered(split.train_labels, X_test, split.test_labels), texts)


def _texts(train: Path, test: Path) -> Set:
    """TF-IDF rows of the characters of texts."""
    (texts, labels), (test_texts, test_labels) = (read_text(file) for file in (train, test))
    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), min_df=2, sublinear_tf=True, dtype=np.float32
    )
    X, X_test = vectorizer.fit_transform(texts), vectorizer.transform(test_texts)
    return Set(train.parent.name, X, *_numbered(labels, X_test, test_labels), (texts, test_texts))


def set_file(name: str, part: str) -> Path:
    """The svmlight or text file of a set's part; exits with one line if there is none."""
    folders = [Path(name)]
    if "XTRELLIS_DATA" in os.environ:
        folders.append(Path(os.environ["XTRELLIS_DATA"]) / name)
    for folder in folders:
        for kind, packed in product((".svm", ".txt"), ("", ".gz", ".bz2", ".xz")):
            if (path := folder / f"{part}{kind}{packed}").is_file():
                return path
    raise SystemExit(
        f"{name} is neither a known set ({', '.join([*BUNDLED, *PAPER_SETS])}) nor a folder with "
        f"{part}.svm, here or in the folder that XTRELLIS_DATA names"
    )


def _numbered(y: Any, X_test: Any, y_test: Any) -> tuple[Any, Any, Any]:
    """Number the classes; a class that training lacks is -1, and never predicted."""
    classes, y_encoded = np.unique(y, return_inverse=True)
    found = np.searchsorted(classes, y_test).clip(max=len(classes) - 1)
    return y_encoded, X_test, np.where(classes[found] == y_test, found, -1)


def kept_folder(data: Set, cache: Path) -> Path:
    """The folder of files that ``peers`` reads, written to the cache if it is not there yet."""
    folder = cache / "sets" / f"{data.name}-{data.digest}"
    return folder if is_written(folder) else write_folder(data, folder)


def is_written(folder: Path) -> bool:
    """Whether a folder has all files that :func:`write_folder` writes."""
    return all((folder / file).is_file() for file in ("train.npz", "test.npz", "labels.npz"))


def write_folder(data: Set, folder: Path) -> Path:
    """Write the files that ``peers`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    sparse.save_npz(folder / "train.npz", data.X)
    sparse.save_npz(folder / "test.npz", data.X_test)
    if data.texts is not None:
        for part, texts in zip(("train", "test"), data.texts, strict=True):
            lines = "\n".join(" ".join(text.split()) for text in texts)
            (folder / f"{part}.txt").write_text(lines, encoding="utf-8")
    np.savez(folder / "labels.npz", y_train=data.y, y_test=data.y_test)  # last: the rest is there
    return folder
