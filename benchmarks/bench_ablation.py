"""What each choice that ``fit`` makes is worth: all defaults, and all but one.

    python benchmarks/bench_ablation.py [SET ...] [--seeds N]

The sets are the bundled ones and those in the folder that XTRELLIS_DATA names, unless given. One
thread. Prints a Markdown table with a line per set and variant; figures are means over the seeds:

- all defaults;
- C = 1: neither C nor the order of the classes nor the width is chosen;
- order by rarity, plain order: that order of the classes, and width √K; everything else chosen;
- width √K: wider slices are not tried;
- features as they are: C is not relative to the length of a typical row;
- no pruning: only the smallest weights are dropped, of at most a hundredth of a block's largest;
- re-ranked never, whatever held-out rows say;
- centroids of 20 entries: never more, where models are re-ranked;
- no rivals: re-ranked by centroids alone.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from common import known_sets, load
from xtrellis import TrellisClassifier, engine, fitting, held_out
from xtrellis import choosing_reranking as reranking
from xtrellis.engine import Engine
from xtrellis.evaluation import evaluate

COLUMNS = ("set", "variant", "accuracy", "top-5", "ECE", "file, MB", "training, CPU s")


@contextmanager
def settings(variant: str) -> Iterator[dict[str, Any]]:
    """Parameters of a variant; what is no parameter is replaced meanwhile."""
    replaced: list[Any] = []
    if variant in ("order by rarity", "plain order"):
        order = "plain" if variant == "plain order" else "by_rarity"
        replaced.append(mock.patch.object(Engine, "orders", (order,)))
        replaced.append(mock.patch.object(Engine, "with_usual_order", lambda self: self))
    if variant == "width √K":
        replaced.append(mock.patch.object(engine, "WIDER", ()))
    if variant == "features as they are":
        replaced.append(
            mock.patch.object(fitting, "in_units_of_rows", lambda estimator, learner, *_: learner)
        )
    if variant == "no pruning":
        replaced.append(mock.patch.object(held_out, "choose_threshold", return_value=0.0))
    if variant.startswith("centroids"):
        replaced.append(mock.patch.object(reranking, "N_TERMS", reranking.N_TERMS[:1]))
    if variant == "no rivals":
        replaced.append(mock.patch.object(reranking, "_may_gain", return_value=False))
    for each in replaced:
        each.start()
    yield {"C = 1": {"C": 1.0}, "re-ranked never": {"rerank": 0}}.get(variant, {})
    for each in replaced:
        each.stop()


VARIANTS = (
    *("all defaults", "C = 1", "order by rarity", "plain order", "width √K"),
    *("features as they are", "no pruning", "re-ranked never", "centroids of 20 entries"),
    "no rivals",
)


def figures(variant: str, data: tuple[Any, ...], seed: int) -> list[float]:
    """Accuracy, top-5 accuracy, calibration error, bytes and seconds of one training."""
    X, y, X_test, y_test = data
    start = time.process_time()
    with settings(variant) as given:
        model = TrellisClassifier(random_state=seed, **given).fit(X, y)
    seconds = time.process_time() - start
    found = evaluate(model, X_test, y_test)
    with tempfile.TemporaryDirectory() as folder:
        size = model.save(Path(folder) / "model.xtrellis")
    return [
        found.accuracy,
        found.top_k_accuracy[5],
        found.expected_calibration_error,
        size,
        seconds,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="all that are known if omitted")
    parser.add_argument("--seeds", type=int, default=1, help="trainings per line (1)")
    wanted = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n| --- | --- |{' ---: |' * (len(COLUMNS) - 2)}", flush=True)
    for name in wanted.sets or known_sets():
        data = load(name)
        figures("C = 1", tuple(each[:500] for each in data), 0)  # kernels are loaded
        for variant in VARIANTS:
            runs = [figures(variant, data, seed) for seed in range(wanted.seeds)]
            accuracy, top_5, error, size, seconds = np.mean(runs, axis=0)
            cells = f"{accuracy:.2%} | {top_5:.2%} | {error:.3f} | {size / 1e6:.2f} | {seconds:.1f}"
            print(f"| {Path(name).name} | {variant} | {cells} |".replace("%", " %"), flush=True)


if __name__ == "__main__":
    main()
