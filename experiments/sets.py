"""Data of the experiments: the bundled sets, any pair of svmlight files, the paper's sets.

A set is named by ``icd10cm`` or ``wordnet_hypernym`` (bundled texts, TF-IDF of words, and for the
first of pairs of words, too), by a folder with ``train.svm`` and ``test.svm`` (compressed or not),
or as one of the paper's five (``sector``, ...), which is then downloaded.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from xtrellis import load_icd10cm, load_wordnet
from xtrellis.data import fetch_paper_set
from xtrellis.data.datasets import PAPER_SETS
from xtrellis.data.readers import read_svmlight
from xtrellis.text import TextFeatures

BUNDLED = {"icd10cm": (load_icd10cm, (1, 2)), "wordnet_hypernym": (load_wordnet, (1, 1))}


@dataclass(frozen=True)
class Set:
    """Training and test rows; classes as numbers from 0; texts if there are."""

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
    """A set by its name, or by the folder it is in."""
    if name in BUNDLED:
        load, words = BUNDLED[name]
        split = load()
        features = TextFeatures(words, None, None)
        X = features.fit_transform(split.train_texts, 1)
        X_test = features.transform(split.test_texts)
        texts = split.train_texts, split.test_texts
        return Set(name, X, *_numbered(split.train_labels, X_test, split.test_labels), texts)
    if name in PAPER_SETS:
        rows = fetch_paper_set(name)
        return Set(name, rows.X_train, *_numbered(rows.y_train, rows.X_test, rows.y_test))
    folder = Path(name)
    # Features keep their numbers: which is the first cannot be told from one part alone.
    X, y = read_svmlight(_file(folder, "train"), zero_based=True)
    X_test, y_test = read_svmlight(_file(folder, "test"), n_features=X.shape[1], zero_based=True)
    return Set(folder.name, X, *_numbered(y, X_test, y_test))


def _file(folder: Path, part: str) -> Path:
    """File of a part, compressed or not."""
    for suffix in ("", ".gz", ".bz2", ".xz"):
        if (path := folder / f"{part}.svm{suffix}").is_file():
            return path
    raise SystemExit(
        f"{folder} is neither a set known here ({', '.join([*BUNDLED, *PAPER_SETS])}) nor a folder "
        f"with {part}.svm"
    )


def _numbered(y: Any, X_test: Any, y_test: Any) -> tuple[Any, Any, Any]:
    """Classes as numbers; a class that is not in training is -1, and never right."""
    classes, codes = np.unique(y, return_inverse=True)
    found = np.searchsorted(classes, y_test).clip(max=len(classes) - 1)
    return codes, X_test, np.where(classes[found] == y_test, found, -1)


def kept_folder(data: Set, cache: Path) -> Path:
    """The set as the files that ``peers`` takes, written into the cache if it is not there yet."""
    folder = cache / "sets" / f"{data.name}-{data.digest}"
    return folder if is_written(folder) else write_folder(data, folder)


def is_written(folder: Path) -> bool:
    """Whether a folder holds all that :func:`write_folder` writes."""
    return all((folder / file).is_file() for file in ("train.npz", "test.npz", "labels.npz"))


def write_folder(data: Set, folder: Path) -> Path:
    """The set as the files that ``peers`` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    sparse.save_npz(folder / "train.npz", data.X)
    sparse.save_npz(folder / "test.npz", data.X_test)
    if data.texts is not None:
        for part, texts in zip(("train", "test"), data.texts, strict=True):
            lines = "\n".join(" ".join(text.split()) for text in texts)
            (folder / f"{part}.txt").write_text(lines, encoding="utf-8")
    np.savez(folder / "labels.npz", y_train=data.y, y_test=data.y_test)  # last: all is there
    return folder
