"""Test accuracy of the default model against the normalisation of its softmax.

    python benchmarks/bench_decoding.py [set ...]

1 is a softmax at every vertex, 0 the plain sum of scores. ``calibration.LOCAL`` has 0.75.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from sets import load
from xtrellis import TrellisClassifier
from xtrellis.decoding import best_paths

SETS = {
    "clinc150": [None],
    "lshtc1_dry_rdf": [None],
    "icd10cm": [10, None],
    "omniglot_pixels": [None],
    "sector_pdsparse_partial": [None],
    "wordnet_hypernym": [30, None],
}
NORMALISATIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


def main() -> None:
    print(f"{'data':24} {'b':>4}" + "".join(f"{value:>8}" for value in NORMALISATIONS))
    for name in sys.argv[1:] or SETS:
        X, y, X_test, y_test = load(name)
        for width in SETS.get(name, [None]):
            accuracies = []
            for seed in (0, 1):
                model = TrellisClassifier(width, random_state=seed).fit(X, y)
                margins = model.margins(X_test)
                truth = model.assignment_.path_of_class[np.searchsorted(model.classes_, y_test)]
                losses = [replace(model.loss_, normalisation=value) for value in NORMALISATIONS]
                accuracies.append(
                    [np.mean(best_paths(model.trellis_, margins, loss) == truth) for loss in losses]
                )
            shown = "".join(f"{value:>8.2%}" for value in np.mean(accuracies, axis=0))
            print(f"{name:24} {model.trellis_.slice_width:>4}{shown}", flush=True)


if __name__ == "__main__":
    main()
