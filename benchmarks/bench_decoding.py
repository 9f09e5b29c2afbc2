"""Test accuracy of the default model against the normalisation of its softmax.

    python benchmarks/bench_decoding.py [set ...]

1 is a softmax at every vertex, 0 the plain sum of the scores.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from common import load
from trials import accuracies_by_loss
from xtrellis import TrellisClassifier

SETS = {"icd10cm": [10, None], "wordnet_hypernym": [30, None]}  # widths; None: the default
NORMALISATIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


def main() -> None:
    print(f"{'data':24} {'b':>4}" + "".join(f"{value:>8}" for value in NORMALISATIONS))
    for name in sys.argv[1:] or SETS:
        X, y, X_test, y_test = load(name)
        for width in SETS.get(name, [None]):
            accuracies = []
            for seed in (0, 1):
                model = TrellisClassifier(width, random_state=seed).fit(X, y)
                losses = [replace(model.loss_, normalisation=value) for value in NORMALISATIONS]
                accuracies.append(accuracies_by_loss(model, X_test, y_test, losses))
            shown = "".join(f"{value:>8.2%}" for value in np.mean(accuracies, axis=0))
            print(f"{name:24} {model.trellis_.slice_width:>4}{shown}", flush=True)


if __name__ == "__main__":
    main()
