"""What a prediction costs, in microseconds per row: one thread, best of several runs.

    python benchmarks/bench_predict.py [SET ...]

The sets are the bundled ones and those in the folder that XTRELLIS_DATA names, unless given. The
models are trained with all defaults. A Markdown table has one line per set:

- all margins: margins of all edges, their costs, then the shortest path;
- lazy: ``predict``, which computes the margins of the vertices that it opens, and re-ranks the
  best classes if the model does (an R marks such models);
- ratio of the two, and the mean number of vertices that ``predict`` opens;
- top-5: ``predict_top_k(X, 5)``, with probabilities, and the vertices that it opens;
- one row: median of ``row_predictor``, called with one row at a time;
- three trellises: ``predict`` of a TrellisEnsemble, whose trellises make choices of their own.

Below it: the paper's W-LTLS and LTLS on icd10cm, which compute all margins, beside SciPy's product
of the rows with a dense matrix; and a new process, from the import to a first prediction.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_digits

from common import best_time, known_sets, load
from xtrellis import (
    LTLSClassifier,
    TrellisClassifier,
    TrellisEnsemble,
    TrellisTextClassifier,
    load_icd10cm,
)
from xtrellis._arrays import canonical_csr

COLUMNS = (
    *("set", "all margins µs", "lazy µs", "ratio", "vertices opened", "top-5 µs"),
    *("vertices for top-5", "one row µs", "three trellises µs"),
)


def one_row(model: Any, X: Any) -> float:
    """Median microseconds of the row predictor."""
    classify = model.row_predictor()
    rows = [(X[i].indices, X[i].data) for i in range(min(2000, X.shape[0]))]
    classify(*rows[0])
    times = []
    for indices, values in rows:
        start = time.perf_counter()
        classify(indices, values)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def table_row(name: str) -> str:
    """The line of a set."""
    X, y, X_test, _ = load(name)
    X_test = canonical_csr(X_test)
    ensemble = TrellisEnsemble(n_estimators=3, random_state=0).fit(X, y)
    one = TrellisClassifier(random_state=0).fit(X, y)
    model = one.model_
    searched = model.k_best(X_test, 1)[0][:, 0]  # not re-ranked, as all margins are not
    differing = int(np.sum(searched != model._paths_step_by_step(X_test)))
    if differing:
        print(f"{name}: {differing} rows are answered differently from all margins")

    def per_row(call: Any) -> float:
        return best_time(call) / X_test.shape[0] * 1e6

    full = per_row(lambda: model._paths_step_by_step(X_test))
    lazy = per_row(lambda: one.predict(X_test))
    cells = (
        Path(name).name,
        f"{full:.1f}",
        f"{lazy:.1f}{' R' if model.reranks else ''}",
        f"{full / lazy:.1f}",
        f"{model.opened(X_test).mean():.1f} of {model.trellis.n_vertices:,}",
        f"{per_row(lambda: one.predict_top_k(X_test, 5)):.1f}",
        f"{model.opened(X_test, 5).mean():.1f}",
        f"{one_row(one, X_test):.1f}",
        f"{per_row(lambda: ensemble.predict(X_test)):.1f}",
    )
    return f"| {' | '.join(cells)} |"


def papers_code() -> None:
    """Models that compute all margins, beside the product that a dense matrix would take."""
    X, y, X_test, _ = load("icd10cm")
    models = {"W-LTLS, b = 10": TrellisClassifier.paper(10, random_state=0)}
    models["LTLS"] = LTLSClassifier(random_state=0)
    for label, model in models.items():
        model.fit(X, y)
        W = np.ones((X.shape[1], model.trellis_.n_edges), np.float32)
        product = best_time(lambda W=W: X_test @ W)
        ours = best_time(lambda model=model: model.predict(X_test))
        print(
            f"icd10cm, {label}: {ours / X_test.shape[0] * 1e6:.1f} µs per row, "
            f"{ours / product:.2f} of X_test @ W; one row at a time {one_row(model, X_test):.1f} µs"
        )


def new_process() -> None:
    """Time from the import to a first prediction, with cached kernels."""
    code = (
        "import time; s = time.perf_counter(); import sys; from xtrellis import load_model; "
        "model = load_model(sys.argv[1]); model.predict([[0.5] * 64]); "
        "print(time.perf_counter() - s)"
    )
    X, y = load_digits(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.xtrellis")
        TrellisClassifier(random_state=0).fit(X / 16, y).save(file)
        command = [sys.executable, "-c", code, file]
        runs = [
            float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(4)
        ]
    print(f"new process, import to the first prediction of a loaded model: {min(runs):.2f} s")


def one_text() -> None:
    """Time of ``echo text | xtrellis predict``, with cached kernels: best of seven runs."""
    data, runs = load_icd10cm(), []
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.xtrellis")
        TrellisTextClassifier().fit(data.train_texts, data.train_labels).save(file)
        command = [sys.executable, "-m", "xtrellis", "predict", file]
        for _ in range(8):  # the first may compile
            before, start = os.times(), time.perf_counter()
            subprocess.run(command, input=b"sinusitis\n", capture_output=True, check=True)
            wall, after = time.perf_counter() - start, os.times()
            cpu = sum(after[2:4]) - sum(before[2:4])
            runs.append((wall, cpu))
    wall, cpu = (min(times) for times in zip(*runs[1:], strict=True))
    print(f"echo text | xtrellis predict: {wall:.2f} s, {cpu:.2f} s of CPU time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="all that are known if omitted")
    names = parser.parse_args().sets
    print(f"| {' | '.join(COLUMNS)} |\n| --- |{' ---: |' * (len(COLUMNS) - 1)}")
    for name in names or known_sets():
        print(table_row(name), flush=True)
    if not names:
        print()
        papers_code()
        new_process()
        one_text()


if __name__ == "__main__":
    main()
