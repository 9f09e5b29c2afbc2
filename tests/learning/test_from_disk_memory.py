"""Training from disk, and prediction, take less than a quarter of the rows' size in memory."""

import json
import os
import subprocess
import sys

import pytest

CHILD = """
import ctypes, json, resource, sys
from pathlib import Path
import numpy as np
from scipy import sparse
from xtrellis import TrellisClassifier
from xtrellis.data import open_shards, write_shards

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name + ":"))

def batches(n_batches, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n_batches):
        y = rng.integers(0, 60, 1000)
        columns = rng.integers(0, 10_000, (1000, 300))
        columns[:, :10] = (31 * y[:, None] + 97 * rng.integers(0, 10, (1000, 10))) % 9_000
        indptr = np.arange(0, columns.size + 1, 300)
        X = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), indptr), (1000, 10_001))
        X.sum_duplicates()
        X.data[:] = 0.06
        yield X, y

def trained_and_asked(folder, n_batches, memory, limited):
    shards = write_shards(batches(n_batches, 0), folder, shard_bytes=300_000)
    memory = memory or shards.nbytes // 4
    if limited:  # what was freed is no part of the baseline
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    limits = {resource.RLIMIT_DATA: "VmData", resource.RLIMIT_AS: "VmSize"} if limited else {}
    for limit, name in limits.items():
        resource.setrlimit(limit, (status(name) + memory, resource.RLIM_INFINITY))
    clf = TrellisClassifier(**SETTINGS).fit_shards(shards, memory=memory)
    labels = np.concatenate([clf.predict(X) for X, _ in open_shards(folder)])
    peak = status("VmHWM") - before
    for limit in limits:
        resource.setrlimit(limit, (resource.RLIM_INFINITY,) * 2)
    return clf, shards, peak, labels

SETTINGS = {"random_state": 0, **json.loads(sys.argv[2])}
folder = Path(sys.argv[1])
trained_and_asked(folder / "small", 3, 12_000_000, False)  # everything is imported and compiled
clf, shards, peak, labels = trained_and_asked(folder / "large", 20, None, True)
X, y = shards.in_memory()
in_memory = TrellisClassifier(**SETTINGS).fit(X, y)
X_new, y_new = next(batches(1, 1))
print(
    shards.nbytes,
    peak,
    (labels == clf.predict(X)).mean(),
    (labels == in_memory.predict(X)).mean(),
    (clf.predict(X_new) == in_memory.predict(X_new)).mean(),
    clf.score(X_new, y_new),
)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "settings",
    [{}, {"slice_width": 10, "C": 1.0, "assignment": "random"}],
    ids=["default", "two slices"],
)
def test_a_quarter_of_the_rows_memory_is_enough(tmp_path, settings):
    """Enforced by the operating system, in a process of its own; for predictions, too.

    The default for so few classes is one-vs-rest: all edges leave the source.
    """
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), json.dumps(settings)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 0, done.stderr
    size, peak, as_if_read, as_fitted, as_fitted_on_new, accuracy = map(float, done.stdout.split())
    assert size > 40e6
    assert peak < size / 4
    assert as_if_read == 1
    assert as_fitted > 0.99
    assert as_fitted_on_new > 0.95
    assert accuracy > 0.8
    assert not list((tmp_path / "large").glob("tmp*"))
