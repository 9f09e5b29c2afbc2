"""Features of texts: time of ours and of scikit-learn's vectorisers, in batches and one by one.

    python benchmarks/bench_text.py [file of label<TAB>text ...]      (by default the bundled sets)

At most 10,000 texts of each are taken, spread over the file. Before anything is timed, counts of terms are compared with those of scikit-learn: they are equal.
Times are of one thread, the best of several runs. "one" is a single text, in microseconds: the
features alone, and the label by ``TrellisTextClassifier.row_predictor()`` and ``predict([text])``.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from common import best_time
from xtrellis import TrellisClassifier, TrellisTextClassifier, load_icd10cm, load_wordnet
from xtrellis.data import read_text
from xtrellis.data.terms import TermFinder
from xtrellis.data.text_features import TextFeatures

KINDS = [("words 1-2", (1, 2), None), ("characters 3-5", None, (3, 5))]
HASHED = 2**20


def settings(words: Any, characters: Any) -> dict[str, Any]:
    """What makes scikit-learn's vectorisers find the same terms."""
    if words is None:
        return {"analyzer": "char_wb", "ngram_range": characters, "dtype": np.float32}
    return {"token_pattern": r"(?u)\b\w+\b", "ngram_range": words, "dtype": np.float32}


def check(texts: list[str], words: Any, characters: Any) -> None:
    """Compare the counts of all terms."""
    options = settings(words, characters)
    counts, (terms,), _ = TermFinder.learn(words, characters, texts, 1)
    theirs = CountVectorizer(**options)
    expected = theirs.fit_transform(texts)
    assert terms == theirs.get_feature_names_out().tolist()
    hashed = HashingVectorizer(n_features=HASHED, norm=None, alternate_sign=False, **options)
    for found, wanted in (
        (counts, expected),
        (TermFinder(words, characters, None, [terms]).count(texts), expected),
        (TermFinder(words, characters, HASHED, None).count(texts), hashed.transform(texts)),
    ):
        ours = sparse.csr_matrix((found.data, found.indices, found.indptr), wanted.shape)
        assert (ours != wanted).nnz == 0


def one_by_one(call: Callable[[str], Any], texts: list[str]) -> float:
    """Microseconds per call."""
    some = texts[:300]
    call(some[0])
    return min(timeit.repeat(lambda: [call(text) for text in some], number=1, repeat=3)) / 3e2 * 1e6


def compare(name: str, texts: list[str]) -> None:
    """Print a line for each kind of terms and way to count them."""
    for kind, words, characters in KINDS:
        check(texts, words, characters)
        options = settings(words, characters)
        for way, ours, theirs in (
            (
                "vocabulary",
                TextFeatures(words, characters, None),
                TfidfVectorizer(sublinear_tf=True, **options),
            ),
            (
                "hashes",
                TextFeatures(words, characters, HASHED),
                HashingVectorizer(n_features=HASHED, alternate_sign=False, **options),
            ),
        ):
            calls = [
                [lambda o=each: o.fit_transform(texts), lambda o=each: o.transform(texts)]
                for each in (ours, theirs)
            ]
            fit, transform = ([best_time(own[i], 3) for own in calls] for i in range(2))
            one = (
                one_by_one(ours.row, texts),
                one_by_one(lambda t, o=theirs: o.transform([t]), texts),
            )
            print(
                f"{name:17} {kind:15} {way:11} {len(texts):7,}   "
                + "   ".join(
                    f"{a:8.3f} {b:8.3f} {b / a:5.1f}x" for a, b in (fit, transform)
                )
                + f"   {one[0]:6.0f} {one[1]:6.0f}",
                flush=True,
            )  # fmt: skip


def label_times(name: str, texts: list[str], labels: Any) -> None:
    """Print the time from a single text to its label."""
    model = TrellisTextClassifier(TrellisClassifier(C=3, random_state=0)).fit(texts, labels)
    classify = model.row_predictor()
    print(
        f"{name:17} one text to its label: row_predictor {one_by_one(classify, texts):.0f} µs, "
        f"predict {one_by_one(lambda text: model.predict([text]), texts):.0f} µs "
        f"({len(model.classes_):,} classes, {model.features_.n_columns:,} terms)",
        flush=True,
    )


def main() -> None:
    print(f"{'':53} seconds of fit_transform     seconds of transform       one text, µs")
    print(f"{'set':17} {'terms':15} {'columns':11} {'texts':>7}   " +
          2 * "    ours   theirs  ratio   " + "  ours theirs")  # fmt: skip
    files = sys.argv[1:]
    sets = [(file, read_text(file)) for file in files] or [
        ("icd10cm", (load_icd10cm().train_texts, load_icd10cm().train_labels)),
        ("wordnet_hypernym", (load_wordnet().train_texts, load_wordnet().train_labels)),
    ]
    sets = [
        (name, [part[:: -(-len(texts) // 10_000)] for part in (texts, labels)])
        for name, (texts, labels) in sets
    ]
    for name, (texts, _) in sets:
        compare(name, texts)
    for name, (texts, labels) in sets:
        label_times(name, texts, labels)


if __name__ == "__main__":
    main()
