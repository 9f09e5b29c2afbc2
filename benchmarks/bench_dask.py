"""Training on a Dask cluster against threads: seconds, bytes moved, memory of each worker.

    python benchmarks/bench_dask.py [set ...]
    python benchmarks/bench_dask.py --memory [set ...]

Workers are processes of this machine with one thread each. Partitions are on the workers before
the clock starts. CPU seconds are those of all threads, or of each worker. Memory is by how much a worker's
peak in ``fit`` lies above what it had before, the partitions among it (Linux only).

With ``--memory``: what rows that fit no worker lose, trained from the leading worker's disk or
online, partition by partition.
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from sklearn.base import clone

from common import load
from xtrellis import TrellisClassifier
from xtrellis.dask import DaskTrellisClassifier

SETTINGS = {"C = 1": {"C": 1.0}, "C chosen": {}}
COUNTS = 1, 2  # of threads, and of workers
PARTITIONS = 8


def by_threads(X: Any, y: Any, n_jobs: int, settings: dict[str, Any]) -> tuple[Any, ...]:
    """The classifier, and seconds and CPU seconds of its training."""
    clf = TrellisClassifier(n_jobs=n_jobs, random_state=0, **settings)
    clf.fit(X[:500], y[:500])  # kernels are loaded
    start, used = time.perf_counter(), time.process_time()
    clf.fit(X, y)
    return clf, time.perf_counter() - start, [time.process_time() - used]


def by_workers(X: Any, y: Any, n_workers: int, settings: dict[str, Any]) -> tuple[Any, ...]:
    """The same, and the megabytes moved and the peak of each worker."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        clf = DaskTrellisClassifier(client=client, random_state=0, **settings)
        clf.fit(*partitions(client, X[:500], y[:500]))
        rows, labels = partitions(client, X, y)
        had = client.run(reset_peak)
        used, moved = client.run(time.process_time), client.run(sent)
        start = time.perf_counter()
        clf.fit(rows, labels)
        seconds = time.perf_counter() - start
        cpu = {each: now - used[each] for each, now in client.run(time.process_time).items()}
        total = sum(client.run(sent).values()) - sum(moved.values())
        peaks = {worker: most - had[worker] for worker, most in client.run(peak).items()}
        return clf.to_local(), seconds, cpu.values(), total / 1e6, [peaks[each] for each in cpu]


def without_memory(X: Any, y: Any, X_test: Any, y_test: Any) -> None:
    """Accuracy, time and memory of the ways to train without all rows on a worker."""
    classes = np.arange(y.max() + 1)
    shards = 8 * X.nnz + 12 * X.shape[0]  # their bytes on disk
    svm, arow = {"C": 1.0}, {"learner": "arow", "slice_width": 10}
    ways = {
        "SVM, all rows in memory": (svm, None),
        "SVM, from disk in 3/4 of the memory": (svm, 6 * shards),
        "SVM, from disk in 1/2": (svm, 4 * shards),
        "AROW, all rows in memory, b = 10": (arow, None),
        "AROW, by partitions, b = 10": (arow, 0),
    }
    print("| | accuracy | s | MB moved | MB above the start, per worker |")
    print("| --- | ---: | ---: | ---: | --- |")
    for title, (settings, memory_limit) in ways.items():
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            clf = DaskTrellisClassifier(client=client, random_state=0, **settings)
            learn(clf, partitions(client, X[:500], y[:500]), memory_limit, classes)
            clf, collections = clone(clf), partitions(client, X, y)
            had, moved, start = client.run(reset_peak), client.run(sent), time.perf_counter()
            learn(clf, collections, memory_limit, classes)
            seconds = time.perf_counter() - start
            total = sum(client.run(sent).values()) - sum(moved.values())
            peaks = [f"{most - had[worker]:.0f}" for worker, most in client.run(peak).items()]
            accuracy = np.mean(clf.predict(X_test) == y_test)
        cells = [title, f"{accuracy:.2%}", f"{seconds:.1f}", f"{total / 1e6:.1f}"]
        print("|", " | ".join([*cells, ", ".join(peaks)]), "|", flush=True)


def learn(clf: Any, collections: Any, memory_limit: int | None, classes: Any) -> None:
    """Train within so much memory; 0 means partition by partition."""
    if memory_limit == 0:
        clf.partial_fit(*collections, classes=classes)
    else:
        clf.fit(*collections, memory=memory_limit)


def partitions(client: Client, X: Any, y: Any) -> tuple[da.Array, da.Array]:
    """Dask arrays whose partitions are on the workers."""
    cuts = list(pairwise(np.linspace(0, X.shape[0], PARTITIONS + 1).astype(int)))
    parts = client.scatter([X[a:b] for a, b in cuts], hash=False)
    sizes = [b - a for a, b in cuts]
    rows = [
        da.from_delayed(dask.delayed(part), (size, X.shape[1]), X.dtype, meta=X[:0])
        for part, size in zip(parts, sizes, strict=True)
    ]
    collections = da.concatenate(rows), da.from_array(y, chunks=(tuple(sizes),))
    collections = client.persist(collections)
    wait(collections)
    return collections


def memory(name: str) -> float:
    """Megabytes of this process: VmRSS now, VmHWM at most."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024


def reset_peak() -> float:
    """Let the peak begin at what is used now, which is returned."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return memory("VmRSS")


def peak() -> float:
    """Megabytes at most since then."""
    return memory("VmHWM")


def sent(dask_worker: Any) -> float:
    """Bytes that a worker has sent to others."""
    return dask_worker.transfer_outgoing_bytes_total


def show(
    title: str, who: str, seconds: float, cpu: Any, moved: float | None = None, peaks: Any = ()
) -> None:
    """One line of the table."""
    cells = [title, who, f"{seconds:.1f}", ", ".join(f"{each:.1f}" for each in cpu)]
    cells += ["" if moved is None else f"{moved:.1f}", ", ".join(f"{each:.0f}" for each in peaks)]
    print("|", " | ".join(cells), "|", flush=True)


def with_workers(X: Any, y: Any) -> None:
    """Seconds, bytes and memory of threads and of workers."""
    print("| | trained by | s | CPU s | MB moved | MB above the start, per worker |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for title, settings in SETTINGS.items():
        for n in COUNTS:
            clf, *times = by_threads(X, y, n, settings)
            show(title, f"{n} thread{'s' * (n > 1)}", *times)
        for n in COUNTS:
            found, *figures = by_workers(X, y, n, settings)
            show(title, f"{n} worker{'s' * (n > 1)}", *figures)
            if not (found.weights_.values == clf.weights_.values).all():
                raise AssertionError("workers trained another model")


def main() -> None:
    """One table for each set."""
    names = sys.argv[1:]
    memory_only = names[:1] == ["--memory"]
    for name in names[memory_only:] or ["wordnet_hypernym", "mesh_terms"]:
        X, y, X_test, y_test = load(name)
        size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
        print(f"{name}: {X.shape[0]:,} rows, {y.max() + 1:,} classes, {size:.1f} MB\n")
        if memory_only:
            without_memory(X, y, X_test, y_test)
        else:
            with_workers(X, y)
        print()


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    main()
