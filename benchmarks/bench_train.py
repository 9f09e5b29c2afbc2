"""Training time, in units of a lower bound and beside other systems, with one thread.

    python benchmarks/bench_train.py [--peers]

1. Independent AROW, epoch by epoch, in units of SciPy's product of the training rows with a float32
   matrix of |E| columns: on icd10cm (short rows) and on made-up documents (150 words per row).
2. Local SVM on icd10cm at b = 40, from X and y to a fitted model, with one thread and with two.
   With --peers also PECOS XR-Linear and omikuji Parabel (three trees), with their default settings.
   They are installed into environments of their own in experiments/.cache.
3. A first fit before any kernel is compiled.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from common import best_time, load, load_set, long_rows
from peers import PEERS, run_peer
from sets import kept_folder
from trials import CACHE
from xtrellis import TrellisClassifier


def arow_epochs(label: str, X, y) -> None:
    ratios = []
    for _ in range(4):
        model = TrellisClassifier.paper(10, epochs=5, random_state=0, n_jobs=1).fit(X, y)
        W = np.ones((X.shape[1], model.trellis_.n_edges), np.float32)
        ratios.append(np.array(model.history_.seconds) / best_time(lambda W=W: X @ W, 3))
    shown = ", ".join(f"{ratio:.2f}" for ratio in np.min(ratios, axis=0))
    print(f"AROW, b = 10, {label}: epochs take {shown} products")


def local_svm() -> float:
    """Print the times of one and two threads; return that of one."""
    X, y, X_test, y_test = load("icd10cm")

    def fit(n_jobs):
        return TrellisClassifier(40, C=3, random_state=0, n_jobs=n_jobs).fit(X, y)

    def seconds(n_jobs):
        start = time.perf_counter()
        fit(n_jobs)
        return time.perf_counter() - start

    accuracy = fit(1).score(X_test, y_test)
    one, two = np.min([(seconds(1), seconds(2)) for _ in range(8)], axis=0)  # alternating
    print(f"local SVM, icd10cm, b = 40: {one:.2f} s, accuracy {accuracy:.2%}")
    print(f"  two threads: {two:.2f} s, {one / two:.2f} times as fast")
    return float(one)


def peers(ours: float) -> None:
    folder = kept_folder(load_set("icd10cm"), CACHE)
    for name in ("pecos", "parabel"):
        rows = [run_peer(name, folder, CACHE) for _ in range(3)]
        if failed := [row["failed"] for row in rows if "failed" in row]:
            print(f"  {PEERS[name].title}: {failed[0]}")
            continue
        best = min(rows, key=lambda row: row["train_seconds"])
        print(
            f"  {PEERS[name].title}: {best['train_seconds']:.2f} s, accuracy "
            f"{best['accuracy']:.2%}; xtrellis takes {ours / best['train_seconds']:.2f} of its time"
        )


def cold_fit() -> None:
    code = (
        "import time; s = time.perf_counter(); from xtrellis import TrellisClassifier; "
        "from sklearn.datasets import load_digits; X, y = load_digits(return_X_y=True); "
        "t = time.perf_counter(); model = TrellisClassifier(random_state=0).fit(X / 16, y); "
        "u = time.perf_counter(); model.predict(X / 16); "
        "print(t - s, u - t, time.perf_counter() - u)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        for state in ("nothing compiled", "kernels cached"):
            run = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True,
                env=environment,
            )  # fmt: skip
            imports, fit, predict = map(float, run.stdout.split())
            print(
                f"digits, {state}: import {imports:.1f} s, first fit {fit:.1f} s, "
                f"first predict {predict:.1f} s"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="also run PECOS and omikuji")
    arguments = parser.parse_args()
    start = time.perf_counter()
    arow_epochs("icd10cm, 12 words per row", *load("icd10cm")[:2])
    arow_epochs("made-up documents, 150 words per row", *long_rows())
    ours = local_svm()
    if arguments.peers:
        peers(ours)
    cold_fit()
    print(f"({time.perf_counter() - start:.0f} s in total)")


if __name__ == "__main__":
    main()
