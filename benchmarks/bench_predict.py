"""Prediction time, in units of SciPy's product of the test rows with a float32 matrix.

    python benchmarks/bench_predict.py

On icd10cm (short rows): `predict` in units of ``X_test @ W``, W with one column per edge, with one
thread, best of several runs; and `row_predictor`, one row at a time, median microseconds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from common import best_time, load
from xtrellis import LTLSClassifier, TrellisClassifier


def batch(name: str, model: TrellisClassifier, label: str) -> TrellisClassifier:
    X, y, X_test, y_test = load(name)
    model.fit(X, y)
    W = np.random.default_rng(0).standard_normal((X.shape[1], model.trellis_.n_edges))
    W = W.astype(np.float32)
    floor = best_time(lambda: X_test @ W)
    ours = best_time(lambda: model.predict(X_test))
    print(
        f"{name} {label:34} |E| = {model.trellis_.n_edges:>5}  product {floor * 1e3:7.1f} ms  "
        f"predict {ours * 1e3:7.1f} ms  ratio {ours / floor:5.2f}  "
        f"({ours / X_test.shape[0] * 1e6:.1f} us per row, accuracy {model.score(X_test, y_test):.2%})"
    )
    return model


def one_row(name: str, model: TrellisClassifier, label: str) -> None:
    X_test = load(name)[2]
    classify = model.row_predictor()
    rows = [(X_test[i].indices, X_test[i].data) for i in range(2000)]
    classify(*rows[0])
    times = []
    for indices, values in rows:
        start = time.perf_counter()
        classify(indices, values)
        times.append(time.perf_counter() - start)
    print(f"{name} {label:34} one row at a time: median {statistics.median(times) * 1e6:.1f} us")


def warm_process() -> None:
    """Time from the import to a first prediction in a new process, with cached kernels."""
    code = (
        "import time; s = time.perf_counter(); import sys; from xtrellis import load_model; "
        "model = load_model(sys.argv[1]); model.predict([[0.5] * 64]); "
        "print(time.perf_counter() - s)"
    )
    X, y = load_digits(return_X_y=True)
    model = TrellisClassifier(random_state=0).fit(X / 16, y)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.xtrellis")
        model.save(file)
        command = [sys.executable, "-c", code, file]
        runs = [
            float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(4)
        ]
    print(f"new process, import to the first prediction of a loaded model: {min(runs):.2f} s")


def main() -> None:
    for label, model in {
        "paper, b = 10": TrellisClassifier.paper(10, random_state=0),
        "local SVM, b = 10": TrellisClassifier(10, random_state=0),
        "all defaults": TrellisClassifier(random_state=0),
        "LTLS": LTLSClassifier(random_state=0),
    }.items():
        one_row("icd10cm", batch("icd10cm", model, label), label)
    warm_process()


if __name__ == "__main__":
    main()
