"""Classes that arrive in ten groups, against all of them at once; and the time of adding one.

    python benchmarks/bench_growing.py [set ...]

For the SVM: fit on the first group with room for all, then ``add_classes`` group by group, on the
rows of all classes known so far. Beside it the same policy with all further groups at once, and
``fit`` on everything; and ten groups by other policies: a new class takes the free path that is
cheapest for its first row, as in LTLS, or the first that is free. For AROW: ``partial_fit`` on a stream of thirty batches, each row visited once,
in which the classes of a group begin to occur one tenth later than those of the one before; against
a stream in which all occur from the start.
"""

from __future__ import annotations

import sys
import time
from unittest import mock

import numpy as np

from common import load
from xtrellis import TrellisClassifier, growing
from xtrellis.learning import Arow

N_GROUPS = 10


def first_rows(X, y_encoded, n_classes):
    """Instead of centroids, the first row of each class, as in LTLS."""
    _, places = np.unique(y_encoded, return_index=True)
    return X[places]


def first_free(model, X, y_encoded, n_new):
    """The first free paths, whatever the classes are like."""
    return np.flatnonzero(model.assignment.class_of_path < 0)[:n_new]


def svm(name: str) -> None:
    X, y, X_test, y_test = load(name)
    n_classes = int(y.max()) + 1
    group = np.random.default_rng(0).permutation(n_classes) * N_GROUPS // n_classes

    def first():
        rows = group[y] == 0
        model = TrellisClassifier(max_classes=n_classes, random_state=0, n_jobs=-1)
        return model.fit(X[rows], y[rows])

    def in_groups():
        model, seconds = first(), []
        for last in range(1, N_GROUPS):
            rows = group[y] <= last
            start = time.perf_counter()
            model.add_classes(X[rows], y[rows])
            seconds.append(time.perf_counter() - start)
        return model, seconds

    model, seconds = in_groups()
    others = []
    for replaced, policy in (("_centroids", first_rows), ("_free_paths", first_free)):
        with mock.patch.object(growing, replaced, policy):
            others.append(in_groups()[0].score(X_test, y_test))
    at_once = first().add_classes(X, y)
    C = model.selection_.C if hasattr(model, "selection_") else 1.0
    same_C = TrellisClassifier(C=C, random_state=0, n_jobs=-1).fit(X, y)
    start = time.perf_counter()
    fitted = TrellisClassifier(random_state=0, n_jobs=-1).fit(X, y)
    full = time.perf_counter() - start
    scores = [each.score(X_test, y_test) for each in (model, at_once, same_C, fitted)]
    print(
        f"{name}, svm, K = {n_classes:,}: in ten groups {scores[0]:.2%} (by first rows "
        f"{others[0]:.2%}, first free paths {others[1]:.2%}), "
        f"the rest at once {scores[1]:.2%}, fit with their C {scores[2]:.2%}, fit {scores[3]:.2%}; "
        f"the last group took {seconds[-1]:.1f} s, fit {full:.1f} s"
    )


def arow(name: str) -> None:
    X, y, X_test, y_test = load(name)
    n_classes = int(y.max()) + 1
    rng = np.random.default_rng(0)
    group = rng.permutation(n_classes) * N_GROUPS // n_classes
    arrival = rng.uniform(group[y] / N_GROUPS, 1)
    scores = []
    for order in (np.argsort(arrival), rng.permutation(len(y))):
        model = TrellisClassifier(learner=Arow(), max_classes=n_classes, random_state=0)
        for batch in np.array_split(order, 3 * N_GROUPS):
            model.partial_fit(X[batch], y[batch])
        scores.append(model.score(X_test, y_test))
    print(f"{name}, arow: groups begin one by one {scores[0]:.2%}, all at once {scores[1]:.2%}")


def one_class(name: str) -> None:
    X, y, *_ = load(name)
    n_classes = int(y.max()) + 1
    rows = y < n_classes - 1
    model = TrellisClassifier(max_classes=n_classes, C=1.0, random_state=0, n_jobs=-1)
    start = time.perf_counter()
    model.fit(X[rows], y[rows])
    full = time.perf_counter() - start
    start = time.perf_counter()
    model.add_classes(X, y)
    print(
        f"{name}: one class more than {n_classes - 1:,} in {time.perf_counter() - start:.2f} s "
        f"({model.added_.n_blocks} blocks), fit at C = 1 {full:.2f} s"
    )


if __name__ == "__main__":
    for each in sys.argv[1:] or ["clinc150", "icd10cm"]:
        svm(each)
        arow(each)
        one_class(each)
