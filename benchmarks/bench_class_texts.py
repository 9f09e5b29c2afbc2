"""What descriptions of classes add to accuracy: test rows with and without ``class_texts``.

    python benchmarks/bench_class_texts.py [icd10cm] [wordnet_hypernym] [mesh_terms]

A class of wordnet_hypernym is described by the word of its synset, one of icd10cm by the title of
its category (which needs the package simple-icd-10-cm), one of mesh_terms by its heading. Titles
and headings are themselves among the rows of these sets: test rows that are a description word for
word are left out, of both figures. mesh_terms is looked up in the folder that XTRELLIS_DATA names.
Tail: classes with at most four training rows.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xtrellis import TrellisClassifier, TrellisTextClassifier, load_icd10cm, load_wordnet
from xtrellis.data import read_text


@dataclass(frozen=True)
class Described:
    """Training and test texts, descriptions of the classes, and the terms that suit the texts."""

    texts: list[str]
    labels: npt.NDArray[Any]
    test_texts: list[str]
    test_labels: npt.NDArray[Any]
    names: dict[str, str]
    terms: dict[str, Any]


def icd10cm() -> Described:
    try:
        import simple_icd_10_cm as titles
    except ModuleNotFoundError:
        raise SystemExit("icd10cm: pip install simple-icd-10-cm, which has the titles") from None

    split = load_icd10cm()
    codes = np.unique(split.train_labels).tolist()
    return Described(*split, {code: titles.get_description(code) for code in codes}, {})


def wordnet_hypernym() -> Described:
    split = load_wordnet()
    labels = np.unique(split.train_labels).tolist()
    names = {label: label.partition(".")[2].replace("_", " ") for label in labels}
    return Described(*split, names, {"words": (1, 1)})


def mesh_terms() -> Described:
    folder = Path(os.environ.get("XTRELLIS_DATA", ".")) / "mesh_terms"
    train, test = (read_text(folder / f"{part}.txt.gz") for part in ("train", "test"))
    headings, _ = read_text(folder / "labels.txt.gz", format="lines", labelled=False)
    names = {str(number): heading for number, heading in enumerate(headings)}
    terms = {"words": None, "characters": (3, 5), "min_df": 2}
    return Described(*train, *test, names, terms)


SETS = {"icd10cm": icd10cm, "wordnet_hypernym": wordnet_hypernym, "mesh_terms": mesh_terms}


def main() -> None:
    print("set               descriptions  test rows  accuracy  top-5   tail    fit")
    for name in sys.argv[1:] or ["icd10cm", "wordnet_hypernym"]:
        data = SETS[name]()
        known = set(data.names.values())
        kept = [row for row, text in enumerate(data.test_texts) if text not in known]
        texts, labels = [data.test_texts[row] for row in kept], data.test_labels[kept]
        classes, counts = np.unique(data.labels, return_counts=True)
        tail = np.isin(labels, classes[counts <= 4])
        for descriptions in (None, data.names):
            model = TrellisTextClassifier(TrellisClassifier(random_state=0, n_jobs=2), **data.terms)
            start = time.perf_counter()
            model.fit(data.texts, data.labels, class_texts=descriptions)
            seconds = time.perf_counter() - start
            right = model.predict_top_k(texts, 5)[0] == labels[:, np.newaxis]
            print(
                f"{name:17} {'with' if descriptions else 'without':12} {len(labels):10,} "
                f"{right[:, 0].mean():9.2%} {right.any(axis=1).mean():6.2%} "
                f"{right[tail, 0].mean():6.2%} {seconds:5.0f}s",
                flush=True,
            )


if __name__ == "__main__":
    main()
