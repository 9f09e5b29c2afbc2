"""The side-by-side runner: figures for who runs, a reason for who does not."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import peers
from data import topics
from peers import PEERS, environments, run_peer
from peers.system import k_largest, padded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="memory is measured on POSIX")


@pytest.fixture
def data_folder(tmp_path):
    X, y = topics(n_classes=6, n_rows=300)
    sparse.save_npz(tmp_path / "train.npz", X[:200])
    sparse.save_npz(tmp_path / "test.npz", X[200:])
    np.savez(tmp_path / "labels.npz", y_train=y[:200], y_test=y[200:])
    return tmp_path


def test_a_peer_has_all_its_figures(data_folder):
    row = run_peer("dismec", data_folder, data_folder / "cache", timeout=300)
    assert "failed" not in row
    assert 0.7 < row["accuracy"] <= row["top5_accuracy"] <= 1
    for figure in ("train_seconds", "peak_memory_mb", "model_bytes", "predict_seconds"):
        assert row[figure] > 0
    assert row["row_microseconds"] > 0
    assert row["version"]


def test_a_peer_that_fails_says_why(tmp_path):
    row = run_peer("dismec", tmp_path, tmp_path / "cache")
    assert list(row) == ["failed"]
    assert "train.npz" in row["failed"]


def test_a_peer_that_is_late_is_stopped(data_folder):
    assert run_peer("dismec", data_folder, data_folder, timeout=0.01) == {
        "failed": "stopped after 0 s"
    }


def test_a_peer_that_cannot_be_installed_leaves_no_environment(tmp_path, monkeypatch):
    def run(command, **_):
        wrong = int("pip" in command)
        return subprocess.CompletedProcess(command, wrong, "", "ERROR: No such thing\nhint: none")

    monkeypatch.setattr(environments.subprocess, "run", run)
    monkeypatch.setitem(
        peers.PEERS, "absent", replace(PEERS["napkinxc"], requirements=("nothing==0",))
    )
    row = run_peer("absent", tmp_path, tmp_path)
    assert row == {"failed": "cannot be installed: ERROR: No such thing"}
    assert not (tmp_path / "envs" / "napkinxc").exists()


def test_every_peer_with_requirements_has_an_environment():
    for peer in PEERS.values():
        assert bool(peer.requirements) == bool(peer.environment)
        assert (len(peer.system.split(":"))) == 2


def test_tables_of_best_classes():
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]])
    np.testing.assert_array_equal(k_largest(scores, 2), [[1, 2], [0, 1]])
    np.testing.assert_array_equal(k_largest(scores, 1), [[1], [0]])
    np.testing.assert_array_equal(padded([[3], [1, 2, 4]], 2), [[3, -1], [1, 2]])
