"""Training against its floor and against peers, as ratios within one run, one thread.

    python benchmarks/bench_train.py [--peers PYTHON]

1. Independent AROW, epoch by epoch, in units of SciPy's product of the training rows with a float32
   matrix of |E| columns: on icd10cm (short rows) and on made-up documents (150 words a row).
2. Local SVM on icd10cm at b = 40, from X and y to a ready model, beside PECOS XR-Linear and omikuji
   (one tree) with their defaults. They want NumPy below 2 and so an environment of their own:
   ``python -m venv peers; peers/bin/pip install 'libpecos==1.2.8' 'numpy<2' omikuji``, then
   ``--peers peers/bin/python``.
3. Two threads against one.
4. A cold first fit, with no kernel compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from sets import load, long_rows
from xtrellis import TrellisClassifier


def best(call, repeat: int) -> float:
    return min(timeit.repeat(call, number=1, repeat=repeat))


def arow_epochs(label: str, X, y) -> None:
    ratios = []
    for _ in range(4):
        model = TrellisClassifier.paper(10, epochs=5, random_state=0, n_jobs=1).fit(X, y)
        W = np.zeros((X.shape[1], model.trellis_.n_edges), np.float32)
        W[:] = 1
        ratios.append(np.array(model.history_.seconds) / best(lambda W=W: X @ W, 3))
    epochs = np.min(ratios, axis=0)
    print(
        f"AROW, b = 10, {label}: epochs take " + ", ".join(f"{r:.2f}" for r in epochs) + " products"
    )


def local_svm(peers: str | None) -> None:
    X, y, X_test, y_test = load("icd10cm")

    def fit(n_jobs):
        return TrellisClassifier(40, C=3, random_state=0, n_jobs=n_jobs).fit(X, y)

    fit(1)
    pairs = [(best(lambda: fit(1), 1), best(lambda: fit(2), 1)) for _ in range(8)]  # taking turns
    one, two = np.min(pairs, axis=0)
    accuracy = fit(1).score(X_test, y_test)
    print(f"local SVM, icd10cm, b = 40: {one:.2f} s, accuracy {accuracy:.2%}")
    print(f"  two threads: {two:.2f} s, {one / two:.2f} times as fast")
    if peers is None:
        print("  (peers not run: see --peers)")
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(
            file, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y,
            t_data=X_test.data, t_indices=X_test.indices, t_indptr=X_test.indptr, t_y=y_test,
        )  # fmt: skip
        command = [peers, str(Path(__file__).parent / "peers.py"), str(file)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        print(f"  peers failed: {result.stderr.strip().splitlines()[-1]}")
        return
    for name, figures in json.loads(result.stdout.strip().splitlines()[-1]).items():
        if isinstance(figures, str):
            print(f"  {name}: {figures}")
            continue
        seconds, accuracy = figures
        share = one / seconds
        print(f"  {name}: {seconds:.2f} s, accuracy {accuracy:.2%}; we take {share:.2f} of that")


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
        for state in ("cold", "then"):
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
    parser.add_argument("--peers", help="Python of an environment with libpecos and omikuji")
    arguments = parser.parse_args()
    start = time.perf_counter()
    arow_epochs("icd10cm, 12 words a row", *load("icd10cm")[:2])
    arow_epochs("made-up documents, 150 words a row", *long_rows())
    local_svm(arguments.peers)
    cold_fit()
    print(f"({time.perf_counter() - start:.0f} s in all)")


if __name__ == "__main__":
    main()
