"""The two orders of the classes, beside each other on splits of the training rows.

    python benchmarks/bench_orders.py [SET ...] [--splits N] [--C C]

The sets are the bundled ones and those in the folder that XTRELLIS_DATA names, unless given. Of each
class, 15 % of the training rows are set aside; test rows are not looked at. C and the width are
fixed, so that the order is all that differs: it is from this table that the usual one was chosen.
Sets of at most 256 classes are left out, as one-vs-rest has no order.
"""

from __future__ import annotations

import argparse

import numpy as np

from common import known_sets, load_set
from xtrellis import TrellisClassifier
from xtrellis.graph import Trellis, similarity_assignment
from xtrellis.learning.rows import hold_out_rows
from xtrellis.selection.default_width import FEW_CLASSES, default_slice_width
from xtrellis.selection.settings import ORDERS

SHARE = 0.15  # of the training rows are set aside


def shares_right(X, y, X_aside, y_aside, order: str, C: float) -> tuple[float, float]:
    """Accuracy and top-5 accuracy on the rows set aside."""
    n_classes = int(y.max()) + 1
    trellis = Trellis(n_classes, default_slice_width(n_classes))
    paths = similarity_assignment(trellis, X, y, random_state=0, order=order).path_of_class
    clf = TrellisClassifier(trellis.slice_width, C=C, assignment=paths, random_state=0).fit(X, y)
    hits = clf.predict_top_k(X_aside, k=5)[0] == y_aside[:, np.newaxis]
    return float(hits[:, 0].mean()), float(hits.any(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="all that are known if omitted")
    parser.add_argument("--splits", type=int, default=2, help="splits of each set")
    parser.add_argument("--C", type=float, default=3.0)
    wanted = parser.parse_args()
    print("| set | rows set aside | order | accuracy | top-5 |\n| --- | ---: | --- | ---: | ---: |")
    for name in wanted.sets or known_sets():
        data = load_set(name)
        if data.n_classes <= FEW_CLASSES:
            continue
        found: dict[str, list[tuple[float, float]]] = {order: [] for order in ORDERS}
        n_aside = 0
        for split in range(wanted.splits):
            aside = hold_out_rows(data.y, SHARE, np.random.RandomState(split), None)
            n_aside += int(aside.sum())
            parts = data.X[~aside], data.y[~aside], data.X[aside], data.y[aside]
            for order in ORDERS:
                found[order].append(shares_right(*parts, order, wanted.C))
        for order, shares in found.items():
            accuracy, top_5 = 100 * np.mean(shares, axis=0)
            cells = f"{n_aside:,} | {order} | {accuracy:.2f} % | {top_5:.2f} %"
            print(f"| {data.name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
