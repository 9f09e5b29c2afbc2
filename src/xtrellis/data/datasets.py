"""Data sets: two that come with the package, and the five of the paper by name.

The bundled ones are texts with labels; see ``bundled/README.md``. Those of the paper (see
the table of data sets in its appendix) are feature matrices in the layout and the splits of
PD-Sparse (Yen, Huang, et al., ICML 2016), from which the paper took them.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .downloads import data_home, download, unpack
from .readers import read_text
from .streams import DataError, MissingFileError
from .svmlight import read_svmlight_files

__all__ = [
    "PAPER_SETS",
    "FeatureSplit",
    "TextSplit",
    "fetch_paper_set",
    "load_icd10cm",
    "load_wordnet",
]


class TextSplit(NamedTuple):
    """Texts and labels to train on and to test on."""

    train_texts: list[str]
    train_labels: npt.NDArray[np.str_]
    test_texts: list[str]
    test_labels: npt.NDArray[np.str_]

    def __repr__(self) -> str:
        n_classes = len(np.unique(self.train_labels))
        return (
            f"TextSplit({len(self.train_texts):,} texts to train on, "
            f"{len(self.test_texts):,} to test on, {n_classes:,} classes)"
        )


class FeatureSplit(NamedTuple):
    """Features and labels to train on, to choose settings by, and to test on."""

    X_train: Any
    y_train: npt.NDArray[np.int64]
    X_valid: Any
    y_valid: npt.NDArray[np.int64]
    X_test: Any
    y_test: npt.NDArray[np.int64]


# ---------------------------------------------------------------------- bundled


def load_icd10cm() -> TextSplit:
    """Load diagnosis wordings and their ICD-10-CM categories: 1,597 classes.

    The label of a wording is the 3-character category that it is listed under. There are 47,041
    training rows and 11,760 test rows. In the public domain; see ``data/bundled/README.md``.

    Examples
    --------
    >>> from xtrellis import load_icd10cm
    >>> split = load_icd10cm()
    >>> print(split.train_labels[1], split.train_texts[1])
    F60 'Haltlose' type personality disorder
    >>> len(split.train_texts), len(split.test_texts), len(set(split.train_labels))
    (47041, 11760, 1597)
    """
    return _bundled("icd10cm")


def load_wordnet() -> TextSplit:
    """Load nouns of WordNet with their glosses, and their hypernyms: 7,319 classes.

    A label is the offset and first word of the first hypernym in WordNet 3.1. Many classes have
    few rows. There are 55,379 training rows and 13,817 test rows. WordNet's licence is in the
    package's ``data/bundled`` folder and must go with every copy.

    Examples
    --------
    >>> from xtrellis import load_wordnet
    >>> split = load_wordnet()
    >>> print(split.train_labels[2], split.train_texts[2], sep=" < ")
    00001930.physical_entity < thing : a separate and self-contained entity
    >>> len(split.train_texts), len(split.test_texts), len(set(split.train_labels))
    (55379, 13817, 7319)
    """
    return _bundled("wordnet")


def _bundled(name: str) -> TextSplit:
    parts: list[Any] = []
    for part in ("train", "test"):
        file = resources.files(__package__) / "bundled" / f"{name}.{part}.tsv.xz"
        with file.open("rb") as packed:
            parts += read_text(packed, format="tsv")
    return TextSplit(*parts)


# ---------------------------------------------------------------------- the paper's


@dataclass(frozen=True)
class PaperSet:
    """What the paper says about a data set, and where its files are."""

    n_classes: int
    n_features: int
    n_train: int
    url: str
    sha256: str | None = None  # of the archive; none is published


# Addresses: those of PD-Sparse's own examples/Makefile (github.com/a061105/ExtremeMulticlass, as of
# commit ff752c5), which its page www.cs.utexas.edu/~xrhuang/PDSparse points to; that Makefile
# leaves out imageNet's, which is from a public script that repeats all the others.
# dl=1 asks for the file rather than for a page about it.
_DROPBOX = "https://www.dropbox.com/s/"
PAPER_SETS = {
    "sector": PaperSet(105, 55_197, 7_793, _DROPBOX + "9qhaxn9rxb0n4mq/sector.tar.bz2?dl=1"),
    # The code of the paper's authors counts 636,949 features.
    "aloi.bin": PaperSet(
        1_000, 636_911, 90_000, _DROPBOX + "jwousxredtggq3y/aloi.bin.tar.bz2?dl=1"
    ),
    "imageNet": PaperSet(
        1_000, 1_000, 1_125_264, _DROPBOX + "898cgz76lmuz04a/imageNet.tar.bz2?dl=1"
    ),
    "Dmoz": PaperSet(11_947, 833_484, 335_068, _DROPBOX + "lq6vd7t6nz1w7iy/Dmoz.tar.bz2?dl=1"),
    "LSHTC1": PaperSet(12_294, 1_199_856, 83_805, _DROPBOX + "0mgarujfps4cb78/LSHTC1.tar.bz2?dl=1"),
}
_PARTS = ("train", "heldout", "test")


def fetch_paper_set(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    data_home: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
) -> FeatureSplit:
    r"""Fetch one of the paper's data sets: sector, aloi.bin, imageNet, Dmoz or LSHTC1.

    Parameters
    ----------
    name : str
        Which one.
    folder : path or None
        Folder that already contains the set as PD-Sparse packs it, ``sector/sector.train``,
        ``.heldout`` and ``.test``, or these files themselves, plain or compressed. Nothing is
        fetched then.
    data_home : path or None
        Where fetched sets are kept; by default the environment variable XTRELLIS_DATA_HOME,
        or else ``~/.cache/xtrellis``. What is there is not fetched again.
    base_url : str or None
        Fetch ``base_url/name.tar.bz2``, rather than from where PD-Sparse's authors put it.

    Returns
    -------
    FeatureSplit
        X_train, y_train, X_valid, y_valid, X_test, y_test. A warning is given if the numbers of
        classes, features or training rows differ from the paper's.

    Raises
    ------
    DataError
        If a file is missing from ``folder``, or wrong.
    DownloadError
        If the set cannot be fetched.

    Examples
    --------
    >>> import tempfile, warnings
    >>> from pathlib import Path
    >>> from xtrellis.data import fetch_paper_set
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")          # there are fewer rows than in the paper
    ...     for part in ("train", "heldout", "test"):
    ...         _ = Path(folder, f"sector.{part}").write_text("94 1:0.5 3:0.2\n12 2:0.1\n")
    ...     split = fetch_paper_set("sector", folder=folder)
    >>> split.X_train.shape, split.y_test
    ((2, 55197), array([94, 12]))
    """
    if name not in PAPER_SETS:
        raise ValueError(f"name must be one of {', '.join(PAPER_SETS)}, got {name!r}")
    if folder is None:
        files = _fetched(name, data_home, base_url)
    else:
        files = [_local_file(Path(folder), name, part) for part in _PARTS]
    split = FeatureSplit(*read_svmlight_files(files))
    for file, y in zip(files, split[1::2], strict=True):
        if y.dtype.kind != "i":
            raise DataError(f"{file}: labels must be whole numbers; is this the right file?")
    n_features = max(PAPER_SETS[name].n_features, split.X_train.shape[1])
    for X in split[::2]:
        X.resize(X.shape[0], n_features)
    _compare_with_paper(name, split)
    return split


def _local_file(folder: Path, name: str, part: str) -> Path:
    """One part of a set in a folder, in any of the layouts above."""
    for place in (folder / name, folder):
        for suffix in ("", ".gz", ".bz2", ".xz"):
            file = place / f"{name}.{part}{suffix}"
            if file.is_file():
                return file
    raise MissingFileError(
        f"{folder}: there is no {name}.{part} or {name}/{name}.{part}, compressed or not; "
        "pass the folder that contains it"
    )


def _fetched(name: str, home: str | os.PathLike[str] | None, base_url: str | None) -> list[Path]:
    """Files of a set, which are fetched if they are not there yet."""
    folder = data_home(home) / name
    files = [folder / f"{name}.{part}" for part in _PARTS]
    if not all(file.is_file() for file in files):
        known = PAPER_SETS[name]
        url = known.url if base_url is None else f"{base_url.rstrip('/')}/{name}.tar.bz2"
        archive = download(url, folder / f"{name}.tar.bz2", sha256=known.sha256)
        unpack(archive, folder, [file.name for file in files])
        archive.unlink(missing_ok=True)
    return files


def _compare_with_paper(name: str, split: FeatureSplit) -> None:
    known = PAPER_SETS[name]
    n_classes = len(np.unique(np.concatenate([split.y_train, split.y_valid, split.y_test])))
    found = {
        "classes": (n_classes, known.n_classes),
        "features": (split.X_train.shape[1], known.n_features),
        "training rows": (split.X_train.shape[0], known.n_train),
    }
    wrong = [
        f"{here:,} {what} ({there:,})" for what, (here, there) in found.items() if here != there
    ]
    if wrong:
        warnings.warn(
            f"{name} differs from the paper, whose numbers are in brackets: {', '.join(wrong)}",
            stacklevel=3,
        )
