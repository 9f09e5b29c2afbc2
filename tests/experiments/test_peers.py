"""The runner of other systems: figures for those that run, a reason for those that do not."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import f1_score

import peers
from peers import PEERS, __main__, environments, measure, run_peer
from peers.system import k_largest, padded
from samples import topics

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
    assert row["batch_microseconds"] > 0
    assert 0.6 < row["macro_f1"] <= 1
    assert row["tail_accuracy"] is None, "every class has many rows"
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


def test_macro_f1_is_scikit_learns():
    rng = np.random.default_rng(0)
    y, found = rng.integers(-1, 9, 50), rng.integers(0, 12, 50)
    assert measure.macro_f1(found, y) == pytest.approx(f1_score(y, found, average="macro"))


def test_tail_accuracy_counts_rows_of_rare_classes():
    y_train = np.repeat([0, 1, 2], [9, 4, 1])
    found, y = np.array([0, 1, 0, 2, 2]), np.array([0, 1, 1, 2, -1])
    assert measure.tail_accuracy(found, y, y_train) == pytest.approx(2 / 3)


def test_tables_of_best_classes():
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]])
    np.testing.assert_array_equal(k_largest(scores, 2), [[1, 2], [0, 1]])
    np.testing.assert_array_equal(k_largest(scores, 1), [[1], [0]])
    np.testing.assert_array_equal(padded([[3], [1, 2, 4]], 2), [[3, -1], [1, 2]])


def test_pecos_is_installed_without_what_only_its_neural_models_need(tmp_path, monkeypatch):
    commands = []

    def run(command, **_):
        commands.append(command)
        (tmp_path / "envs" / "pecos" / "bin").mkdir(parents=True, exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environments.subprocess, "run", run)
    peer = PEERS["pecos"]
    environments.environment_python(peer.environment, peer.requirements, tmp_path, peer.alone)
    assert [command[-2:] for command in commands if "libpecos" in command[-1]] == [
        ["--no-deps", peer.alone[0]]
    ]
    assert not any("libpecos" in package for package in peer.requirements)


def command_line(monkeypatch, *words):
    """Exit code of ``python -m peers``."""
    monkeypatch.setattr("sys.argv", ["peers", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    return ended.value.code


def test_the_command_takes_any_set(data_folder, tmp_path, monkeypatch, capsys):
    given = []
    monkeypatch.setattr(
        __main__, "run_peer", lambda name, folder, *_: given.append(folder) or {"accuracy": 1.0}
    )
    cache = tmp_path / "cache"
    assert command_line(monkeypatch, data_folder, "bonsai", "--cache", cache) == 0
    assert json.loads(capsys.readouterr().out) == {"peer": "bonsai", "accuracy": 1.0}
    X, y = topics(n_classes=6, n_rows=300)
    text = tmp_path / "text"
    text.mkdir()
    for part in ("train", "test"):
        dump_svmlight_file(X, y, str(text / f"{part}.svm"), zero_based=False)
    assert command_line(monkeypatch, text, "bonsai", "--cache", cache) == 0
    assert given[0] == data_folder
    assert given[1].parent == cache / "sets"
    assert sparse.load_npz(given[1] / "train.npz").shape[0] == 300


def test_the_command_fails_if_a_peer_or_the_data_does(data_folder, tmp_path, monkeypatch, capsys):
    rows = {"dismec": {"failed": "no memory"}, "ltls": {"accuracy": 1.0}}
    monkeypatch.setattr(__main__, "run_peer", lambda name, *_: rows[name])
    assert command_line(monkeypatch, data_folder, *rows) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2, "the others are measured, too"
    empty = tmp_path / "empty"
    empty.mkdir()
    reason = command_line(monkeypatch, empty, "dismec")  # text: printed, and 1 is the exit code
    assert "nor a folder with train.svm" in reason
    assert "\n" not in reason
