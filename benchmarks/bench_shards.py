"""Training from disk: memory and time against the same training in memory.

Made-up texts of a given size are written to a folder of shards, and trained on twice, each time in
a process of its own: in memory, and by ``fit_shards`` within a quarter of their size, which the
operating system enforces (``RLIMIT_DATA``). Then the two ways to come by the rows of a vertex:
spilled by vertex in one sweep, or gathered in one sweep for as many vertices as fit.

    python benchmarks/bench_shards.py [megabytes]
"""

from __future__ import annotations

import ctypes
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

N_CLASSES, N_FEATURES, N_TERMS, N_OWN = 400, 30_000, 180, 8


def batches(megabytes: float, seed: int = 0, n_rows: int = 1_000) -> Iterator[tuple[Any, Any]]:
    """Rows of about so many megabytes: words by Zipf's law, and some of the class's own."""
    rng = np.random.default_rng(seed)
    own = np.random.default_rng(0).integers(0, N_FEATURES, (N_CLASSES, 60))
    own[:, :30] = own[np.arange(N_CLASSES) // 20 * 20, :30]  # shared with neighbours
    for _ in range(max(1, round(megabytes * 1e6 / (8 * 0.9 * N_TERMS) / n_rows))):
        y = rng.integers(0, N_CLASSES, n_rows)
        common = np.exp(rng.random((n_rows, N_TERMS - N_OWN)) * np.log(N_FEATURES)).astype(np.int64)
        places = rng.integers(0, own.shape[1], (n_rows, N_OWN))
        columns = np.hstack([common, np.take_along_axis(own[y], places, axis=1)])
        values = np.ones(columns.size, np.float32)
        indptr = np.arange(0, columns.size + 1, N_TERMS)
        X = sparse.csr_matrix((values, columns.ravel(), indptr), (n_rows, N_FEATURES))
        X.sum_duplicates()
        X.data = 1 + np.log(X.data)
        X = sparse.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))), dtype=np.float32)
        yield X, y


# ---------------------------------------------------------------------- in a process of its own


def peak() -> int:
    """Largest resident memory so far, in bytes."""
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def train(folder: str, how: str, settings: dict[str, Any]) -> dict[str, float]:
    """Train on a folder; its memory is counted from after a small training of the same kind."""
    from xtrellis import TrellisClassifier
    from xtrellis.data import open_shards, write_shards

    def fit(name: str, memory: int) -> Any:
        clf = TrellisClassifier(random_state=0, **settings)
        if how == "disk":
            return clf.fit_shards(name, memory=memory)
        shards = open_shards(name)
        rows = shards.all_rows()
        X = rows.matrix(shards.n_features, shards.first_feature == 0)
        y = rows.y
        del rows
        return clf.fit(X, y)

    with tempfile.TemporaryDirectory() as small:
        write_shards(batches(2.5), small, shard_bytes=100_000)
        fit(small, 19_000_000)  # imports and compiles everything
    shards = open_shards(folder)
    memory = shards.nbytes // 4
    ctypes.CDLL(None).malloc_trim(0)  # what was freed is no part of the baseline
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    if how == "disk":
        limit = _status("VmData") + memory
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    start = time.perf_counter()
    clf = fit(folder, memory)
    seconds = time.perf_counter() - start
    used = peak() - before
    X, y = next(batches(1.0, seed=1))
    return {"seconds": seconds, "peak": used, "accuracy": clf.score(X, y)}


def in_process(folder: Path, how: str, **settings: Any) -> dict[str, float]:
    """What :func:`train` says, in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "--train", str(folder), how, json.dumps(settings)],
        check=True,
        stdout=subprocess.PIPE,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


# ---------------------------------------------------------------------- rows of a vertex


def spilled_or_gathered(folder: Path) -> tuple[float, float]:
    """Seconds to read the rows of all vertices of the first slice, in a quarter of their memory."""
    from xtrellis.data import open_shards
    from xtrellis.graph import Trellis, random_assignment
    from xtrellis.learning.stored_rows import spill, survey

    shards = open_shards(folder)
    rows, y = survey(shards), shards.encoded_labels()
    trellis = Trellis(N_CLASSES, 20)
    paths = random_assignment(trellis, 0).path_of_class
    vertices = trellis.path_vertices(paths)[y, 0].astype(np.int32)
    start = time.perf_counter()
    found = spill(rows, vertices, 20)
    for vertex in range(20):
        found.pieces(vertex).whole()
    found.close()
    middle = time.perf_counter()
    for first in range(0, 20, 3):  # with one copy, 3 of 20 vertices are a seventh of the rows
        rows.gather(np.flatnonzero((vertices >= first) & (vertices < first + 3)))
    return middle - start, time.perf_counter() - middle


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 200.0
    from xtrellis.data import write_shards

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "rows"
        shards = write_shards(batches(megabytes), folder, shard_bytes=int(megabytes * 1e6 / 100))
        size = shards.nbytes
        print(f"{shards.n_rows:,} rows, {size / 1e6:.0f} MB in {len(shards)} shards")
        for settings in ({"C": 1.0}, {}):
            for how in ("memory", "disk"):
                found = in_process(folder, how, **settings)
                print(
                    f"C={settings.get('C', 'auto')} {how:6}: {found['seconds']:6.1f} s, peak "
                    f"{found['peak'] / 1e6:6.0f} MB ({found['peak'] / size:.0%} of the rows), "
                    f"accuracy {found['accuracy']:.4f}"
                )
        seconds = spilled_or_gathered(folder)
        print(f"rows of all vertices: spilled {seconds[0]:.2f} s, gathered {seconds[1]:.2f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        print(json.dumps(train(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))))
    else:
        main()
