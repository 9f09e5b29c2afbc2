"""Prediction against its floor: SciPy's product of the test rows with a float32 matrix.

    python benchmarks/bench_predict.py

For icd10cm (short rows): batch prediction, margins to classes, in units of ``X_test @ W`` with one
column an edge, one thread, best of several runs; and one row at a time, median microseconds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import timeit

import numpy as np

from sets import load
from xtrellis import TrellisClassifier


def best(call, repeat: int = 7) -> float:
    call()
    return min(timeit.repeat(call, number=1, repeat=repeat))


def batch(name: str, model: TrellisClassifier, label: str) -> TrellisClassifier:
    X, y, X_test, y_test = load(name)
    model.fit(X, y)
    W = np.random.default_rng(0).standard_normal((X.shape[1], model.trellis_.n_edges))
    W = W.astype(np.float32)
    floor = best(lambda: X_test @ W)
    ours = best(lambda: model.predict(X_test))
    print(
        f"{name} {label:34} |E| = {model.trellis_.n_edges:>5}  floor {floor * 1e3:7.1f} ms  "
        f"predict {ours * 1e3:7.1f} ms  ratio {ours / floor:5.2f}  "
        f"({ours / X_test.shape[0] * 1e6:.1f} us a row, accuracy {model.score(X_test, y_test):.2%})"
    )
    return model


def one_row(name: str, model: TrellisClassifier) -> None:
    X_test = load(name)[2]
    classify = model.row_predictor()
    rows = [(X_test[i].indices, X_test[i].data) for i in range(2000)]
    classify(*rows[0])
    times = []
    for indices, values in rows:
        start = time.perf_counter()
        classify(indices, values)
        times.append(time.perf_counter() - start)
    print(f"{name} one row at a time: median {statistics.median(times) * 1e6:.1f} us")


def warm_process() -> None:
    """Import to first prediction in a new process, kernels compiled before."""
    code = (
        "import time; s = time.perf_counter(); import pickle, sys; "
        "model, X = pickle.load(open(sys.argv[1], 'rb')); model.predict(X); "
        "print(time.perf_counter() - s)"
    )
    import pickle
    import tempfile

    X, y, X_test, _ = load("clinc150")
    model = TrellisClassifier(random_state=0).fit(X, y)
    model.predict(X_test[:1])
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump((model, X_test[:1]), file)
        file.flush()
        runs = [
            float(
                subprocess.run(
                    [sys.executable, "-c", code, file.name],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            for _ in range(3)
        ]
    print(f"warm process, import to first prediction of a loaded model: {min(runs):.2f} s")


def main() -> None:
    batch("icd10cm", TrellisClassifier.paper(10, random_state=0), "paper, b = 10, dense")
    batch("icd10cm", TrellisClassifier(10, C=3, random_state=0), "local SVM, b = 10, sparse")
    model = batch(
        "icd10cm", TrellisClassifier(40, C=3, random_state=0), "local SVM, b = 40, sparse"
    )
    one_row("icd10cm", model)
    warm_process()


if __name__ == "__main__":
    main()
