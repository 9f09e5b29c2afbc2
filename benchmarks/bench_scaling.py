"""What training costs per non-zero and edge, what blocks weigh, and what a cluster must move.

    python benchmarks/bench_scaling.py [set ...]

For each set a local SVM at C = 1 and the default width, with one thread: the constants that
docs/scaling.md extrapolates from.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

from common import load
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.graph import Trellis, similarity_assignment
from xtrellis.learning import LinearSVM
from xtrellis.learning.blocks import Plan, plan_blocks
from xtrellis.learning.retraining import retrain
from xtrellis.learning.rows import prepare_rows
from xtrellis.learning.training import train_block
from xtrellis.selection import default_slice_width


def constants(name: str) -> None:
    X, y, *_ = load(name)
    X = X.astype(np.float32)
    n_classes = int(y.max()) + 1
    trellis = Trellis(n_classes, default_slice_width(n_classes))
    start = time.perf_counter()
    assignment = similarity_assignment(trellis, X, y, random_state=0)
    assigning = time.perf_counter() - start
    weights, nothing = np.ones(len(y), np.float32), np.zeros(len(y), bool)
    rng = np.random.RandomState(0)
    rows = prepare_rows(trellis, X, assignment.path_of_class[y], weights, nothing, rng)
    learner = LinearSVM()
    plans = plan_blocks(trellis, rows, "local", learner)
    train_block(rows, plans[-1], learner, 2, 0)  # compiled
    start = time.perf_counter()
    results = [train_block(rows, plan, learner, learner.epochs, 0, 0.01) for plan in plans]
    seconds = time.perf_counter() - start
    work = sum(plan.work for plan in plans)
    epochs = sum(len(r.losses) * p.work for r, p in zip(results, plans)) / work
    at_source = [(p, r) for p, r in zip(plans, results) if p.vertex == (-1, 0)]
    largest = max(plan.work for plan in plans)
    finished = sum(result.finished.nbytes for result in results)
    print(
        f"{name}: n = {X.shape[0]:,}, d = {X.shape[1]:,}, K = {n_classes:,}, b = "
        f"{trellis.slice_width}, {X.nnz / X.shape[0]:.1f} non-zeros per row\n"
        f"  {len(plans)} blocks, {trellis.n_edges:,} edges; non-zeros x edges: {work:.3g}, "
        f"{sum(p.work for p, _ in at_source) / work:.0%} of them at the source, "
        f"{largest / work:.0%} in the largest block\n"
        f"  training: {seconds:.2f} s, {1e9 * seconds / work:.2f} ns per non-zero and edge, "
        f"{epochs:.1f} epochs of three passes\n"
        f"  rows: {sys.getsizeof(rows) / X.nnz:.1f} bytes per non-zero, "
        f"{sys.getsizeof(rows) / 1e6:.1f} MB\n"
        f"  finished blocks: {finished / 1e6:.2f} MB, {finished / len(plans) / 1e3:.1f} kB each, "
        f"{finished / X.nnz:.1f} bytes per non-zero of the rows\n"
        f"  assignment: {assigning:.2f} s, {1e9 * assigning / X.nnz:.0f} ns per non-zero"
    )


def by_width(name: str) -> None:
    """The source in blocks of fewer edges, which share less of a row's reading."""
    X, y, *_ = load(name)
    n_classes = int(y.max()) + 1
    trellis = Trellis(n_classes, default_slice_width(n_classes))
    assignment = similarity_assignment(trellis, X, y, random_state=0)
    weights, nothing = np.ones(len(y), np.float32), np.zeros(len(y), bool)
    rng, learner = np.random.RandomState(0), LinearSVM()
    rows = prepare_rows(
        trellis, X.astype(np.float32), assignment.path_of_class[y], weights, nothing, rng
    )
    edges, members = trellis.vertex_edges(-1, 0), np.arange(len(y))
    for width in sorted({1, 4, 8, trellis.slice_width // 2, trellis.slice_width}):
        block = Plan(edges[:width], members, vertex=(-1, 0))
        train_block(rows, block, learner, 2, 0)  # compiled
        start = time.perf_counter()
        train_block(rows, block, learner, learner.epochs, 0)
        nanoseconds = 1e9 * (time.perf_counter() - start) / (width * X.nnz)
        print(
            f"  a block of {width} edges at the source: {nanoseconds:.0f} ns per non-zero and edge"
        )


def source_on_a_sample(name: str) -> None:
    """Accuracy if the edges that leave the source learn from some of the rows only."""
    X, y, X_test, y_test = load(name)
    X, X_test = canonical_csr(X), canonical_csr(X_test)
    clf = TrellisClassifier(C=1.0, random_state=0, n_jobs=-1, weight_bits=32, rerank=0).fit(X, y)
    model, rng, found = clf.model_, np.random.RandomState(0), []
    for share in (1.0, 0.5, 0.25, 0.1):
        some = rng.permutation(len(y))[: int(share * len(y))]
        paths, ones = model.assignment.path_of_class[y[some]], np.ones(len(some), np.float32)
        nothing = np.zeros(len(some), bool)
        rows = prepare_rows(model.trellis, X[some], paths, ones, nothing, rng)
        settings = LinearSVM(), None, -1, 0, 0.01
        weights, _ = retrain(model.trellis, model.weights, rows, {(-1, 0)}, *settings)
        accuracy = np.mean(replace(model, weights=weights).classify(X_test) == y_test)
        found.append(f"{share:.0%} {accuracy:.2%}")
    print(f"  the source on a share of the rows: {', '.join(found)}")


def whole(name: str) -> None:
    """All of fit, with what is chosen on held-out rows, in units of one training."""
    X, y, *_ = load(name)
    times = {}
    for C in (1.0, "auto"):
        start = time.perf_counter()
        TrellisClassifier(C=C, random_state=0, n_jobs=1).fit(X, y)
        times[C] = time.perf_counter() - start
    print(f"  fit: {times[1.0]:.1f} s at C = 1, {times['auto']:.1f} s with C and the order chosen")


if __name__ == "__main__":
    for each in sys.argv[1:] or ["icd10cm", "wordnet_hypernym"]:
        constants(each)
        by_width(each)
        source_on_a_sample(each)
        whole(each)
