"""Any backend of joblib trains the same bits; without one, threads of this process do."""

import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import joblib
import pytest

from clusters import bits
from samples import topics
from xtrellis import TrellisClassifier
from xtrellis.learning import LinearSVM


def watched_svm(folder):
    """An SVM that leaves a file with the process's number for each block."""

    @dataclass
    class WatchedSVM(LinearSVM):
        folder: str = ""

        def start(self, block):
            Path(self.folder, f"{os.getpid()}-{uuid.uuid4().hex}").touch()
            return super().start(block)

    return WatchedSVM(folder=str(folder))


def trained_by(folder):
    return {int(path.name.split("-")[0]) for path in folder.iterdir()}


@pytest.mark.parametrize("config", [{}, {"backend": "threading"}])
def test_threads_are_the_default(config, tmp_path):
    X, y = topics(n_rows=300)
    with joblib.parallel_config(**config):
        TrellisClassifier(5, learner=watched_svm(tmp_path), n_jobs=2, random_state=0).fit(X, y)
    assert trained_by(tmp_path) == {os.getpid()}


@pytest.mark.parametrize("max_nbytes", [None, 1000], ids=["pickled", "mapped"])
def test_processes_train_the_same_bits(max_nbytes, tmp_path):
    X, y = topics()
    model = TrellisClassifier(5, learner=watched_svm(tmp_path), n_jobs=2, random_state=0)
    expected = bits(model.fit(X, y))
    for path in tmp_path.iterdir():
        path.unlink()
    with joblib.parallel_config(backend="loky", max_nbytes=max_nbytes):
        assert bits(model.fit(X, y)) == expected
    assert os.getpid() not in trained_by(tmp_path)
    assert trained_by(tmp_path)


def test_dask_is_not_imported_unless_it_is_used():
    code = (
        "import sys\n"
        "from sklearn.datasets import load_digits\n"
        "from xtrellis import TrellisClassifier\n"
        "TrellisClassifier(n_jobs=2).fit(*load_digits(return_X_y=True))\n"
        "sys.exit(int('dask' in sys.modules or 'distributed' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False).returncode == 0
