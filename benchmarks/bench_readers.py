"""Time to read an svmlight file, against scikit-learn's reader; and the bundled texts.

    python benchmarks/bench_readers.py [set]

The set is a folder of svmlight files as told in sets.py, by default wordnet_hypernym.
"""

from __future__ import annotations

import argparse
import gzip
import io
import sys
import time

import numpy as np
from sklearn.datasets import load_svmlight_file

from sets import FOLDER
from xtrellis import load_icd10cm, load_wordnet
from xtrellis.data import read_svmlight


def best_time(function, tries: int = 5) -> float:
    """Seconds of the fastest of some tries, after one that does not count."""
    function()
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(what: str, ours, theirs) -> None:
    here, there = best_time(ours), best_time(theirs)
    print(f"{what:24} xtrellis {here:6.3f} s   scikit-learn {there:6.3f} s   {there / here:5.1f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", nargs="?", default="wordnet_hypernym")
    file = FOLDER / parser.parse_args().set / "train.svm.gz"
    if not file.is_file():
        sys.exit(f"{file} is not here; set XTRELLIS_DATA to the folder with the data sets")
    text = gzip.decompress(file.read_bytes())
    X, y = read_svmlight(file)
    Z, z = load_svmlight_file(str(file), dtype=np.float32)
    assert np.array_equal(y, z)
    assert (X != Z).nnz == 0
    print(f"{file.parent.name}: {X.shape[0]:,} rows, {X.nnz:,} values, {len(text) / 1e6:.1f} MB")
    compare(
        "gzip file",
        lambda: read_svmlight(file),
        lambda: load_svmlight_file(str(file), dtype=np.float32),
    )
    compare(
        "plain, in memory",
        lambda: read_svmlight(io.BytesIO(text)),
        lambda: load_svmlight_file(io.BytesIO(text), dtype=np.float32),
    )
    print(
        f"load_icd10cm {best_time(load_icd10cm):.3f} s   load_wordnet {best_time(load_wordnet):.3f} s"
    )


if __name__ == "__main__":
    main()
