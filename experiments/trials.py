"""Trials: models that are trained and measured once, for all tables and figures.

A :class:`Spec` describes a trial. Its figures are kept as JSON, so that an interrupted sweep is
resumed, and scripts share the trials they have in common.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import xtrellis
from sets import Set, load_set
from xtrellis import LTLSClassifier, TrellisClassifier
from xtrellis.decoding import best_paths, get_loss
from xtrellis.model.atomic import replacing

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
RESULTS = HERE / "results"

LOSSES = ("exponential", "squared_hinge", "hinge", "log", "squared")
EPOCHS = {"icd10cm": 5, "wordnet_hypernym": 3}  # for AROW; 5 for other sets
SEEDS = (0, 1, 2, 3, 4)
SAMPLE = 5_000  # training rows that diagnostics are measured on


@dataclass(frozen=True)
class Spec:
    """What to train, on which set, with which seed."""

    data: str
    training: str  # "independent", "local" or "joint"
    width: int
    assignment: str = "similarity"  # or "random"; "greedy" for joint training
    learner: str = "svm"  # or "arow", "perceptron" for joint training
    seed: int = 0
    prune: bool = False  # also prune, at a threshold found by a second training

    def estimator(self) -> Any:
        """Estimator to train."""
        epochs = EPOCHS.get(self.data, 5)
        if self.training == "joint":
            return LTLSClassifier(self.width, epochs=epochs, random_state=self.seed, n_jobs=-1)
        return TrellisClassifier(
            self.width,
            training=self.training,
            assignment=self.assignment,
            learner=self.learner,
            epochs=epochs if self.learner == "arow" else None,
            calibration=0.1 if self.training == "local" else 0.0,
            random_state=self.seed,
            n_jobs=-1,
        )


def paper_spec(data: str, width: int, seed: int = 0, prune: bool = False) -> Spec:
    """W-LTLS as in the paper: independent AROW, random assignment, exponential decoding."""
    return Spec(data, "independent", width, "random", "arow", seed, prune)


def local_spec(data: str, width: int, seed: int = 0, prune: bool = False) -> Spec:
    """Ours: local SVM, similar classes on paths that share edges."""
    return Spec(data, "local", width, seed=seed, prune=prune)


def ltls_spec(data: str, seed: int = 0, width: int = 2) -> Spec:
    """LTLS: joint training, greedy assignment."""
    return Spec(data, "joint", width, "greedy", "perceptron", seed)


# ---------------------------------------------------------------------- one trial


def run_trial(spec: Spec) -> dict[str, Any]:
    """Train and measure."""
    data = load_set(spec.data)
    warm_up(spec.data, spec.training, spec.assignment, spec.learner)
    model = spec.estimator()
    start = time.perf_counter()
    model.fit(data.X, data.y)
    figures: dict[str, Any] = {"train_seconds": time.perf_counter() - start}
    model.n_jobs = 1
    figures.update(
        n_edges=model.trellis_.n_edges,
        # The paper's size: four bytes per feature and edge.
        dense_bytes=4 * data.X.shape[1] * model.trellis_.n_edges,
        nonzeros=model.weights_.n_nonzero,
        **_measured(model, data),
    )
    if spec.training != "local":
        figures["accuracy_by_loss"] = _accuracy_by_loss(model, data)
    figures.update(_diagnosed(model, data))
    if spec.prune:
        figures["pruned"] = _pruned(model, data)
    return figures


@cache
def warm_up(data: str, training: str, assignment: str, learner: str) -> None:
    """Compile the kernels by a small training: a cost per machine, not per model."""
    rows = load_set(data)
    some = slice(None, None, max(1, len(rows.y) // 300))  # from everywhere: rows may be sorted
    Spec(data, training, 2, assignment, learner).estimator().fit(rows.X[some], rows.y[some])


def _measured(model: Any, data: Set) -> dict[str, Any]:
    """File size, and accuracy and time (one thread, best of three) on the test rows."""
    with tempfile.TemporaryDirectory() as folder:
        n_bytes = model.save(Path(folder) / "model")
    times = []
    for _ in range(3):
        start = time.perf_counter()
        predicted = model.predict(data.X_test)
        times.append(time.perf_counter() - start)
    accuracy = float((predicted == data.y_test).mean())
    return {"file_bytes": n_bytes, "predict_seconds": min(times), "accuracy": accuracy}


def _accuracy_by_loss(model: Any, data: Set) -> dict[str, float]:
    """Test accuracy of the same weights decoded with each loss (Figure 4)."""
    losses = [get_loss(name) for name in LOSSES]
    shares = accuracies_by_loss(model, data.X_test, data.y_test, losses)
    return dict(zip(LOSSES, shares, strict=True))


def accuracies_by_loss(model: Any, X: Any, y: Any, losses: Sequence[Any]) -> list[float]:
    """Accuracy of a fitted model on rows X if it is decoded with each of the losses."""
    right = np.zeros(len(losses))
    for margins, truth in _margin_batches(model, X, y):
        for number, loss in enumerate(losses):
            paths = best_paths(model.trellis_, margins, loss)
            right[number] += (model.assignment_.class_of_path[paths] == truth).sum()
    return (right / len(y)).tolist()


def _margin_batches(model: Any, X: Any, y: Any) -> Iterable[tuple[Any, Any]]:
    size = max(64, 2**22 // model.trellis_.n_edges)
    for start in range(0, X.shape[0], size):
        yield model.margins(X[start : start + size]), y[start : start + size]


def _diagnosed(model: Any, data: Set) -> dict[str, Any]:
    """Average binary loss, bound, training error, margin and non-zeros, on training rows."""
    rows = np.sort(np.random.RandomState(0).permutation(len(data.y))[:SAMPLE])
    X, y = data.X[rows], data.y[rows]
    found = asdict(model.diagnose(X, y, loss="squared_hinge"))
    found["training_error"] = float((model.predict(X) != y).mean())
    return found


def _pruned(model: Any, data: Set) -> dict[str, Any]:
    """The model pruned at the threshold that costs a point on held-out training rows."""
    model.prune(data.X, data.y, max_drop=0.01, validation_fraction=0.1)
    return {
        "threshold": model.pruning_.threshold,
        "nonzeros": model.weights_.n_nonzero,
        **_measured(model, data),
    }


# ---------------------------------------------------------------------- many trials, kept


def run_trials(specs: Iterable[Spec], title: str) -> dict[Spec, dict[str, Any]]:
    """Figures of all specs, from the cache or measured now, with a progress bar."""
    return run_cached({spec: lambda spec=spec: run_trial(spec) for spec in specs}, title)


def run_cached(
    work: dict[Any, Callable[[], dict[str, Any]]],
    title: str,
    workers: int = 1,
    stop: Callable[[], None] = lambda: None,
) -> dict[Any, Any]:
    """Results of all work by its key, from the cache or run now, ``workers`` at a time.

    ``stop`` is called when this thread is interrupted, to end the work of the other threads.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    found = {key: _read(key) for key in work}
    missing = [key for key, figures in found.items() if figures is None]
    console = Console(stderr=True)
    if not missing:
        console.print(
            f"{title}: {len(found)} of {len(found)} kept", highlight=False, soft_wrap=True
        )
        return found
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=len(missing))
        for key, figures in _results({key: work[key] for key in missing}, workers, stop):
            if "failed" not in figures or figures["failed"].startswith("stopped after"):
                _write(
                    key, figures
                )  # other failures, such as a failed installation, are tried again
            found[key] = figures
            progress.advance(task)
    return found


def _results(
    work: dict[Any, Callable[[], dict[str, Any]]], workers: int, stop: Callable[[], None]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Keys and results, in the order in which they finish."""
    if workers == 1:  # in this thread, the one that Ctrl-C interrupts
        for key, run in work.items():
            yield key, run()
        return
    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(run): key for key, run in work.items()}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise


def _path(key: Any) -> Path:
    """File of the results for a key; it depends on the version of the library and on the data."""
    digest = load_set(key.data).digest
    content = json.dumps([xtrellis.__version__, type(key).__name__, asdict(key), digest])
    name = hashlib.sha256(content.encode()).hexdigest()[:20]
    return CACHE / "results" / f"{name}.json"


def _read(key: Any) -> dict[str, Any] | None:
    path = _path(key)  # loads the set, whose errors must not be caught below
    try:
        return json.loads(path.read_text())["figures"]
    except (OSError, ValueError, KeyError):  # missing or incomplete
        return None


def _write(key: Any, figures: dict[str, Any]) -> None:
    path = _path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as beside:
        beside.write_text(json.dumps({"key": asdict(key), "figures": figures}, indent=1))
