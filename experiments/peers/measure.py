"""Train and measure one system in this process; the child of :func:`peers.run_peer`.

    python measure.py module:Class data_folder work_folder seed

prints one line of JSON. The system's own output, also from C++, goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# The script's own folder would shadow packages with the name of a file here.
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).parent]

from peers.system import IntArray, Rows, System  # noqa: E402

SINGLE_ROWS = 200
ENOUGH_SECONDS = 5
TOP = 5
TAIL = 4  # training rows of a class that counts as rare, at most


def load_rows(folder: Path, part: str) -> tuple[Rows, IntArray]:
    """Rows and classes of ``train`` or ``test``."""
    X = sparse.csr_matrix(sparse.load_npz(folder / f"{part}.npz"), dtype=np.float32)
    X.sort_indices()
    with np.load(folder / "labels.npz") as labels:
        y = labels[f"y_{part}"].astype(np.int64)
    texts = folder / f"{part}.txt"
    if not texts.is_file():
        return Rows(X), y
    return Rows(X, texts.read_text(encoding="utf-8").split("\n")[: len(y)]), y


def wall_and_cpu(action: Callable[[], Any]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of an action.

    CPU time hardly depends on how busy the machine is; for one idle thread both are about equal.
    """
    start = time.process_time()
    wall, _ = seconds(action)
    return wall, time.process_time() - start


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of an action, and its result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def peak_memory() -> float:
    """Peak memory of this process in megabytes."""
    status = Path("/proc/self/status")
    if status.is_file():
        # ru_maxrss of a child starts at the size of its parent.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def folder_bytes(folder: Path) -> int:
    """Bytes of all files in a folder and its subfolders."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def row_microseconds(system: System, rows: Rows) -> float:
    """Median time to predict one row, for a caller with one row at a time.

    Measured on 200 rows across the set, or on fewer if they take more than five seconds.
    """
    times: list[float] = []
    for i in np.linspace(0, rows.X.shape[0] - 1, SINGLE_ROWS).astype(int):
        one = system.inputs(rows[i : i + 1])
        times.append(seconds(partial(system.predict_one, one))[0])
        if sum(times) > ENOUGH_SECONDS:
            break
    return float(np.median(times)) * 1e6


def macro_f1(found: IntArray, y: IntArray) -> float:
    """Mean F1 of all classes that occur among the predictions or the labels."""
    classes, numbers = np.unique(np.concatenate([found, y]), return_inverse=True)
    found, y = numbers[: len(y)], numbers[len(y) :]
    n_classes = len(classes)
    right = np.bincount(y[found == y], minlength=n_classes)
    named = np.bincount(found, minlength=n_classes) + np.bincount(y, minlength=n_classes)
    return float(np.mean(2 * right / named))


def tail_accuracy(found: IntArray, y: IntArray, y_train: IntArray) -> float | None:
    """Accuracy on rows whose class has few training rows; None if there are no such rows."""
    n_rows = np.bincount(y_train, minlength=int(max(y.max(), 0)) + 1)
    rare = (y >= 0) & (n_rows[np.maximum(y, 0)] <= TAIL)
    return float(np.mean(found[rare] == y[rare])) if rare.any() else None


def warm_up(system: System, rows: Rows, y: IntArray, work: Path, seed: int) -> None:
    """Compile the kernels by a small training: a cost per machine, not per model."""
    few = slice(None, None, max(1, len(y) // 200))  # from everywhere: rows may be sorted
    _, small = np.unique(y[few], return_inverse=True)
    system.train(system.training_inputs(rows[few], small, work), small, work, seed)


def measure(system: System, data: Path, work: Path, seed: int) -> dict[str, Any]:
    """The row of a system: train, save, load, predict."""
    rows, y = load_rows(data, "train")
    model = work / "model"
    model.mkdir()
    if system.compiles:
        warm_up(type(system)(), rows, y, work, seed)
    inputs = system.training_inputs(rows, y, work)
    wall, cpu = wall_and_cpu(lambda: system.train(inputs, y, work, seed))
    system.save(model)
    train_memory = peak_memory()
    system.load(model)
    del rows, inputs

    y_train = y
    rows, y = load_rows(data, "test")
    inputs = system.inputs(rows)
    system.predict(system.inputs(rows[:2]))  # set-up of the first call
    system.predict_one(system.inputs(rows[:1]))
    predict_seconds, found = seconds(lambda: system.predict(inputs))
    top5 = None
    if system.has_top_k:
        best = system.predict_top_k(inputs, TOP)
        top5 = float(np.mean((best == y[:, np.newaxis]).any(axis=1)))
    return {
        "train_seconds": wall,
        "train_cpu_seconds": cpu,
        "peak_memory_mb": train_memory,
        "model_bytes": folder_bytes(model),
        "predict_seconds": predict_seconds,
        "batch_microseconds": predict_seconds / len(y) * 1e6,
        "row_microseconds": row_microseconds(system, rows),
        "accuracy": float(np.mean(found == y)),
        "top5_accuracy": top5,
        "macro_f1": macro_f1(found, y),
        "tail_accuracy": tail_accuracy(found, y, y_train),
        "version": version(system.package),
    }


def version(package: str) -> str:
    """Version of the package of a system."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from source
        return str(importlib.import_module(package).__version__)


def main() -> None:
    """Measure the system named on the command line."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, data, work, seed = sys.argv[1:]
    module, _, cls = name.partition(":")
    system = getattr(importlib.import_module(module), cls)()
    row = measure(system, Path(data), Path(work), int(seed))
    answer.write(json.dumps(row) + "\n")
    answer.flush()


if __name__ == "__main__":
    main()
