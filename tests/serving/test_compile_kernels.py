"""After ``compile_kernels``, a server has nothing left to compile: an image can be read-only."""

import json
import subprocess
import sys

from samples import reports, topics
from xtrellis import TrellisClassifier, TrellisTextClassifier

SIGNATURES = """
import importlib, json, pkgutil
import xtrellis.kernels
found = set()
for each in pkgutil.iter_modules(xtrellis.kernels.__path__):
    module = importlib.import_module(f"xtrellis.kernels.{each.name}")
    for name, value in vars(module).items():
        for signature in getattr(value, "signatures", ()):
            found.add(f"{value.__module__}.{name}{signature}")
print(json.dumps(sorted(found)))
"""
COMPILE = "from xtrellis.serving.compile_kernels import compile_kernels\ncompile_kernels()\n"
SERVE = """
import sys, json
from xtrellis.serving.answers import answer
from xtrellis.serving.models import ModelHolder
from xtrellis.serving.requests import PredictRequest
for path, request in json.loads(sys.argv[1]):
    answer(ModelHolder(path).current, PredictRequest(**request))
"""


def kernels_of(code, *arguments):
    """The kernels that a process has compiled or loaded, with the types of their arguments."""
    command = [sys.executable, "-c", code + SIGNATURES, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_nothing_is_left_to_compile(tmp_path):
    texts, labels = reports(200)
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0)).fit(texts, labels)
    clf.save(tmp_path / "texts")
    X, y = topics(n_classes=12, n_features=60, n_rows=1200)
    TrellisClassifier(C=1.0, random_state=0).fit(X, y).save(tmp_path / "rows")
    row = {"indices": X[0].indices.tolist(), "values": X[0].data.tolist()}
    served = [
        (str(tmp_path / "texts"), {"texts": texts, "top_k": 3}),
        (str(tmp_path / "texts"), {"text": texts[0], "explain": True}),
        (str(tmp_path / "rows"), {"rows": [row, row], "coverage": 0.7, "explain": True}),
    ]
    needed = kernels_of(SERVE, json.dumps(served))
    assert any("k_best" in kernel for kernel in needed)
    assert needed <= kernels_of(COMPILE)
