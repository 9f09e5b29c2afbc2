"""Time to read an svmlight file, beside scikit-learn's reader, and to load the bundled texts.

    python benchmarks/bench_readers.py [folder]

The folder holds train.svm, compressed or not. By default the TF-IDF rows of the bundled WordNet texts
are written to a temporary file.
"""

from __future__ import annotations

import argparse
import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from common import best_time, load
from sets import set_file
from xtrellis import load_icd10cm, load_wordnet
from xtrellis.data import read_svmlight


def compare(what: str, ours, theirs) -> None:
    here, there = best_time(ours, 5), best_time(theirs, 5)
    print(f"{what:24} xtrellis {here:6.3f} s   scikit-learn {there:6.3f} s   {there / here:5.1f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as made:
        if folder is None:
            X, y, _, _ = load("wordnet_hypernym")
            plain = io.BytesIO()
            dump_svmlight_file(X, y, plain, zero_based=False)
            Path(made, "train.svm.gz").write_bytes(gzip.compress(plain.getvalue()))
        report(set_file(folder or made, "train"))


def report(file: Path) -> None:
    text = (gzip.decompress if file.suffix == ".gz" else bytes)(file.read_bytes())
    X, y = read_svmlight(file)
    Z, z = load_svmlight_file(str(file), dtype=np.float32)
    assert np.array_equal(y, z)
    assert (X != Z).nnz == 0
    print(f"{X.shape[0]:,} rows, {X.nnz:,} values, {len(text) / 1e6:.1f} MB")
    compare(
        "file",
        lambda: read_svmlight(file),
        lambda: load_svmlight_file(str(file), dtype=np.float32),
    )
    compare(
        "plain, in memory",
        lambda: read_svmlight(io.BytesIO(text)),
        lambda: load_svmlight_file(io.BytesIO(text), dtype=np.float32),
    )
    for bundled in (load_icd10cm, load_wordnet):
        print(f"{bundled.__name__} {best_time(bundled, 5):.3f} s")


if __name__ == "__main__":
    main()
