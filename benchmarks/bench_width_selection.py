"""Width selection on real data: the widths tried, the choice, and test accuracy at every width.

    python benchmarks/bench_width_selection.py [--picture folder] [set ...]

The choice uses training rows alone; test accuracies are for comparison.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from common import load
from xtrellis import TrellisClassifier, select_slice_width

SETS = ["icd10cm", "wordnet_hypernym"]
MODELS = {
    "paper": TrellisClassifier.paper(2, epochs=3, random_state=0),
    "local": TrellisClassifier(random_state=0),
}


def main() -> None:
    names, folder = sys.argv[1:], None
    if names[:1] == ["--picture"]:
        folder, names = Path(names[1]), names[2:]
    for name in names or SETS:
        X, y, X_test, y_test = load(name)
        for kind, model in MODELS.items():
            start = time.perf_counter()
            selection = select_slice_width(X, y, estimator=model)
            seconds = time.perf_counter() - start
            print(f"\n{name}, {kind}: b = {selection.slice_width} after {seconds:.0f} s")
            print(selection)
            for trial in selection.trials:
                model.set_params(slice_width=trial.slice_width).fit(X, y)
                accuracy = model.score(X_test, y_test)
                print(f"test accuracy at b = {trial.slice_width}: {accuracy:.2%}", flush=True)
            if folder is not None:
                selection.plot(folder / f"{name}-{kind}.png")


if __name__ == "__main__":
    main()
