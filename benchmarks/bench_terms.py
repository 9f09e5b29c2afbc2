"""The terms that a classifier of texts chooses, beside each of those it chooses from.

    python benchmarks/bench_terms.py [SET ...]

The sets are the bundled ones and, in the folder that XTRELLIS_DATA names, those that have texts,
unless given; a folder with train.txt and test.txt, ``label<TAB>text``, is a set, too. Every row is a
model with all other defaults, trained with one thread on all training texts: accuracy and top-5 on
the test texts, the file, and CPU seconds of training; for "chosen" these include the trials. The rule
and its candidates (``selection/terms.py``) were chosen on splits of training texts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from xtrellis import TrellisClassifier, TrellisTextClassifier, load_icd10cm, load_wordnet
from xtrellis.data import read_text
from xtrellis.selection.terms import CANDIDATES, Terms

BUNDLED = {"icd10cm": load_icd10cm, "wordnet_hypernym": load_wordnet}


def known_sets() -> list[str]:
    """The bundled sets, and those with texts in the folder that XTRELLIS_DATA names."""
    folder = os.environ.get("XTRELLIS_DATA")
    found = sorted(Path(folder).glob("*/train.txt*")) if folder else []
    return list(dict.fromkeys([*BUNDLED, *(file.parent.name for file in found)]))


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """Training texts and labels, then those of the test."""
    if name in BUNDLED:
        split = BUNDLED[name]()
        return split.train_texts, split.train_labels, split.test_texts, split.test_labels
    folders = Path(name), Path(os.environ.get("XTRELLIS_DATA", "."), name)
    files = [
        next((each for folder in folders for each in folder.glob(f"{part}.txt*")), None)
        for part in ("train", "test")
    ]
    if files[0] is None or files[1] is None:
        raise SystemExit(
            f"{name} is neither a bundled set nor a folder with train.txt and test.txt"
        )
    return *read_text(files[0]), *read_text(files[1])


def measured(data: tuple[Any, Any, Any, Any], **settings: Any) -> tuple[str, Terms]:
    """Cells of a row, and the terms of the model."""
    texts, labels, test_texts, test_labels = data
    clf = TrellisTextClassifier(TrellisClassifier(random_state=0), **settings)
    start = time.process_time()
    clf.fit(texts, labels)
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        size = clf.save(Path(folder, "model.xtrellis"))
    hits = clf.predict_top_k(test_texts, k=5)[0] == np.asarray(test_labels)[:, np.newaxis]
    right, listed = hits[:, 0].mean(), hits.any(axis=1).mean()
    made = clf.features_
    cells = f"{right:.2%} | {listed:.2%} | {size / 1e6:.2f} MB | {seconds:.1f} s"
    return cells.replace("%", " %"), Terms(made.words, made.characters, made.word_share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="all that are known if omitted")
    wanted = parser.parse_args()
    print("| set | terms | accuracy | top-5 | file | training, CPU |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in wanted.sets or known_sets():
        data = load(name)
        TrellisTextClassifier().fit(data[0][:500], data[1][:500])  # compiles
        rows = [("chosen", *measured(data))]
        for terms in CANDIDATES:
            settings = {"words": terms.words, "characters": terms.characters}
            cells, _ = measured(data, **settings, word_share=terms.word_share)
            rows.append((str(terms), cells, terms))
        for title, cells, terms in rows:
            told = f"**chosen**: {terms}" if title == "chosen" else title
            told = told.replace("%", " %")
            print(f"| {Path(name).name} | {told} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
