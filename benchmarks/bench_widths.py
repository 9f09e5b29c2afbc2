"""Accuracy, size and time of the default model at several widths.

    python benchmarks/bench_widths.py [set ...]

The rule of ``default_slice_width``, b about sqrt(K), was chosen by this table. The bundled sets are
run by default, and the others of SETS if XTRELLIS_DATA is set.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from common import load
from sets import BUNDLED
from xtrellis import TrellisClassifier
from xtrellis.selection import default_slice_width

SETS = [
    "sector_pdsparse_partial",
    "clinc150",
    "lshtc1_dry_rdf",
    "icd10cm",
    "omniglot_pixels",
    "wordnet_hypernym",
]


def widths(n_classes: int) -> list[int]:
    """Fourth, third and square root of K, twice and four times that."""
    root = default_slice_width(n_classes)
    found = {int(np.ceil(n_classes ** (1 / 4))), int(np.ceil(n_classes ** (1 / 3))), root}
    return sorted(found | {width for width in (2 * root, 4 * root) if width <= n_classes})


def main() -> None:
    """Print a line per width, then a Markdown table of accuracies."""
    print(
        f"{'data':24} {'K':>6} {'b':>5} {'|E|':>7} {'accuracy':>9} {'weights':>10} {'fit':>8} {'predict':>10}"
    )
    table = []
    for name in sys.argv[1:] or (SETS if "XTRELLIS_DATA" in os.environ else BUNDLED):
        X, y, X_test, y_test = load(name)
        n_classes, cells = len(np.unique(y)), []
        for width in widths(n_classes):
            start = time.perf_counter()
            model = TrellisClassifier(width, random_state=0).fit(X, y)
            middle = time.perf_counter()
            accuracy = model.score(X_test, y_test)
            end = time.perf_counter()
            is_default = width == default_slice_width(n_classes)
            print(
                f"{name:24} {n_classes:>6} {width:>5} {model.trellis_.n_edges:>7} {accuracy:>9.2%} "
                f"{model.weights_.nbytes / 2**20:>7.1f} MB {middle - start:>6.1f} s "
                f"{(end - middle) / X_test.shape[0] * 1e6:>7.1f} us {'<- default' if is_default else ''}",
                flush=True,
            )
            shown = f"**{100 * accuracy:.2f}**" if is_default else f"{100 * accuracy:.2f}"
            cells.append(f"{shown} ({width})")
        table.append(f"| {name} | {n_classes:,} | {' | '.join(cells)} |")
    print("\n| data | K | K^¼ | K^⅓ | √K (default) | 2√K | 4√K |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    print("\n".join(table))


if __name__ == "__main__":
    main()
