"""Model files before and after pruning: size, test accuracy and prediction time.

The threshold is found on a tenth of the training rows, with a model trained without them. The model
trained on all rows is then pruned at this threshold. Test rows are only used to measure.

    python benchmarks/bench_pruning.py [set ...]
"""

from __future__ import annotations

import copy
import sys
import tempfile
import time
from pathlib import Path

from common import load
from xtrellis import TrellisClassifier, load_model

SETTINGS = {
    "icd10cm": {
        "independent AROW, b = 20": (
            TrellisClassifier(20, training="independent", learner="arow"),
            (0.005, 0.01),
        ),
        "local SVM, b = 40, C = 3": (TrellisClassifier(40, C=3), (0.001, 0.005, 0.01)),
        "local SVM, b = 40": (TrellisClassifier(40), (0.005,)),
    },
    "wordnet_hypernym": {
        "local SVM, b = 86": (TrellisClassifier(86), (0.001, 0.005, 0.01)),
    },
}
DEFAULT = {"all defaults": (TrellisClassifier(), (0.005,))}


def measure(model, X_test, y_test, folder):
    """File size, accuracy, and best prediction time of five, of the model loaded from its file."""
    path = Path(folder) / "model.xtrellis"
    size = model.save(path)
    loaded = load_model(path)
    loaded.n_jobs = 1
    times = []
    for _ in range(5):
        start = time.perf_counter()
        predicted = loaded.predict(X_test)
        times.append(time.perf_counter() - start)
    return size, float((predicted == y_test).mean()), min(times)


def main():
    print(
        f"{'':32}{'max_drop':>9} {'lambda':>7} {'file':>9} {'smaller':>8} "
        f"{'accuracy':>9} {'drop':>6} {'time':>6}"
    )
    for name in sys.argv[1:] or SETTINGS:
        X, y, X_test, y_test = load(name)
        print(name)
        for title, (model, drops) in SETTINGS.get(name, DEFAULT).items():
            model.set_params(n_jobs=-1, random_state=0).fit(X, y)
            with tempfile.TemporaryDirectory() as folder:
                size, accuracy, seconds = measure(model, X_test, y_test, folder)
                print(
                    f"  {title:30}{'':>9} {'':>7} {size / 1e6:>6.2f} MB {'':>8} {accuracy:>9.2%}",
                    flush=True,
                )
                for drop in drops:
                    pruned = copy.copy(model).prune(X, y, max_drop=drop, validation_fraction=0.1)
                    threshold = pruned.pruning_.threshold
                    small, after, faster = measure(pruned, X_test, y_test, folder)
                    print(
                        f"  {'':30}{drop:>9} {threshold:>7.3f} {small / 1e6:>6.2f} MB "
                        f"{size / small:>6.1f} x {after:>9.2%} {100 * (accuracy - after):>6.2f} "
                        f"{faster / seconds:>6.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
