"""Checkpoints: a training that was killed goes on where it was, and ends with the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from clusters import bits
from samples import topics
from xtrellis import TrellisClassifier, TrellisEnsemble, load_model
from xtrellis.data import write_shards
from xtrellis.fitting_from_disk import memory_to_fit
from xtrellis.learning import LinearSVM, training
from xtrellis.learning.checkpoint import _difference, emptying_later

TESTS = Path(__file__).resolve().parents[1]


@dataclass
class FragileSVM(LinearSVM):
    """An SVM that counts its blocks, and fails at one of them."""

    fails_at: int = -1

    def __post_init__(self):
        super().__post_init__()
        self.n_started = 0

    def start(self, block):
        self.n_started += 1
        if self.n_started == self.fails_at:
            raise RuntimeError("out of power")
        return super().start(block)

    def get_params(self, deep=True):
        return {"C": self.C, "tolerance": self.tolerance}


@pytest.fixture(scope="module")
def rows():
    return topics()


@pytest.fixture
def stopped(rows, tmp_path):
    """A classifier whose training failed at the fourth block, and its folder."""
    folder = tmp_path / "blocks"
    model = TrellisClassifier(5, learner=FragileSVM(fails_at=4), random_state=0, checkpoint=folder)
    with pytest.raises(RuntimeError, match="out of power"):
        model.fit(*rows)
    assert len(list(folder.glob("*.block"))) == 3
    return model, folder


def without(model, **parameters):
    return clone(model).set_params(checkpoint=None, **parameters)


@pytest.mark.parametrize("settings", [{}, {"training": "independent", "learner": "arow"}])
def test_a_checkpoint_changes_nothing_and_is_emptied(rows, tmp_path, settings):
    model = TrellisClassifier(5, random_state=0, **settings)
    expected = bits(model.fit(*rows))
    assert bits(model.set_params(checkpoint=tmp_path / "a" / "b").fit(*rows)) == expected
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_only_what_is_left_is_trained(rows, stopped):
    model, _ = stopped
    whole = without(model, learner=FragileSVM())
    expected, n_blocks = bits(whole.fit(*rows)), whole.learner.n_started
    model.learner = FragileSVM()
    assert bits(model.set_params(n_jobs=2, verbose=0).fit(*rows)) == expected
    assert model.learner.n_started == n_blocks - 3


def test_trials_of_c_are_kept_too(tmp_path, monkeypatch):
    """Training fails after C was chosen; then the choice costs no training."""
    monkeypatch.setattr("xtrellis.fitting.ENOUGH_JUDGED", 0)  # no folds, which are trained later
    rows = topics(n_classes=20, n_rows=2000)
    model = TrellisClassifier(5, random_state=0, checkpoint=tmp_path)
    expected = bits(without(model).fit(*rows))
    with monkeypatch.context() as patched:
        patched.setattr("xtrellis.learning.training.train_block", unpowered("train_block"))
        with pytest.raises(RuntimeError, match="out of power"):
            model.fit(*rows)
    trained = []
    for name in ("train_block", "train_block_before"):
        monkeypatch.setattr(f"xtrellis.learning.training.{name}", noted(name, trained))
    assert bits(model.fit(*rows)) == expected
    assert trained[0] == "train_block"  # those for further calibration come after it


def unpowered(name):
    """A function of this name that trains no block."""

    def fail(*_):
        raise RuntimeError("out of power")

    fail.__name__ = name  # which names the files, too
    return fail


def noted(name, names):
    """The function of this name, which appends the name when it is called."""
    original = getattr(training, name)

    @wraps(original)
    def train(*arguments):
        names.append(name)
        return original(*arguments)

    return train


def test_twenty_kills_at_random_moments(tmp_path):
    assert_kills(20, "kill_training.py", tmp_path / "blocks", 20, 0)


def test_a_killed_command_that_reads_from_disk_goes_on(tmp_path):
    X, y = topics(n_classes=300, n_features=3000, n_rows=6000)
    rows = tmp_path / "rows"
    write_shards([(X, y)], rows, shard_bytes=100_000)
    assert_kills(1, "kill_command.py", rows, tmp_path, 1, 0, "--memory", 0.004)


def assert_kills(count, script, *arguments):
    """The script, which kills and resumes so often, ends well: with the same bits, no file left."""
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(TESTS / "learning" / script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{count} kills, up to ")
    assert done.stdout.endswith(" 0 left\n")


def test_a_killed_command_goes_on(tmp_path):
    X, y = topics(n_classes=60, n_features=3000, n_rows=4000)
    file, folder, model = (tmp_path / name for name in ("rows.svm", "blocks", "model.xtrellis"))
    lines = [
        f"{label} " + " ".join(f"{j}:{v:.5f}" for j, v in zip(row.indices, row.data, strict=True))
        for label, row in zip(y, X, strict=True)
    ]
    file.write_text("\n".join(lines))
    command = [sys.executable, "-m", "xtrellis", "train", str(file), str(model), "--width", "8"]
    command += ["--zero-based", "-f", "svmlight"]
    kept = [*command, "--checkpoint", str(folder)]
    first = subprocess.Popen(kept, stderr=subprocess.PIPE)
    while first.poll() is None and len(list(folder.glob("*.block"))) < 5:
        time.sleep(0.002)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    assert list(folder.glob("*.block"))
    assert not model.exists()
    other = subprocess.run([*kept, "-C", "3"], capture_output=True, text=True, check=False)
    assert other.returncode == 1
    assert other.stderr.splitlines()[-1] == (
        f"error: {folder} is the checkpoint of another training (-C auto there, 3.0 here): "
        f"continue that one, name another folder, or delete it"
    )
    subprocess.run(kept, check=True, capture_output=True)
    assert list(folder.iterdir()) == []
    found = load_model(model)
    assert found.get_params()["checkpoint"] is None
    subprocess.run(command, check=True, capture_output=True)
    assert bits(load_model(model)) == bits(found)


# ---------------------------------------------------------------------- trainings of several parts


def test_trainings_of_several_parts_have_folders_of_their_own(rows, tmp_path):
    folder = tmp_path / "blocks"
    ensemble = TrellisEnsemble(TrellisClassifier(5, checkpoint=folder), 2, random_state=0)
    with emptying_later():
        ensemble.fit(*rows)
        assert {path.name for path in folder.iterdir()} == {"0", "1"}
        assert list((folder / "1").glob("*.block"))
    assert not list(folder.rglob("*.block"))
    plain = TrellisEnsemble(TrellisClassifier(5), 2, random_state=0).fit(*rows)
    np.testing.assert_array_equal(ensemble.predict_proba(rows[0]), plain.predict_proba(rows[0]))
    model = TrellisClassifier(5, random_state=0, checkpoint=folder)
    with emptying_later():
        model.fit(*rows).prune(*rows, validation_fraction=0.1)
        assert list((folder / "threshold").glob("*.block"))


def test_widths_share_a_folder(rows, tmp_path):
    model = TrellisClassifier("auto", random_state=0)
    expected = bits(model.fit(*rows))
    assert bits(model.set_params(checkpoint=tmp_path).fit(*rows)) == expected
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_keeps_blocks_too(rows, stopped):
    joblib, _ = pytest.importorskip("joblib"), pytest.importorskip("distributed")
    from distributed import Client

    model, folder = stopped
    model.learner = FragileSVM()
    with (
        Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"),
        joblib.parallel_config(backend="dask"),
    ):
        found = bits(model.fit(*rows))
    model.learner = FragileSVM()
    assert bits(model.set_params(checkpoint=None).fit(*rows)) == found
    assert list(folder.iterdir()) == []


# ---------------------------------------------------------------------- bad input


def refusal(model, *rows):
    with pytest.raises((ValueError, TypeError)) as caught:
        model.fit(*rows)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_only_a_setting_that_is_none_is_called_not_set():
    one, other = (
        {"version": "1", "rows": "", "settings": {"learner": f"Own(tol=None, C={C})"}}
        for C in (1, 2)
    )
    expected = "learner=Own(tol=None, C=1) there, Own(tol=None, C=2) here"
    assert _difference(one, other) == expected
    other = {**one, "settings": {**one["settings"], "epochs": "2"}}
    assert _difference(one, other) == "epochs=not set there, 2 here"


def test_another_trainings_folder_is_refused(rows, stopped):
    model, folder = stopped
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    X, y = rows
    for changed, difference in {
        "slice_width": (6, "slice_width=5 there, 6 here"),
        "random_state": (1, "random_state=0 there, 1 here"),
        "epochs": (2, "epochs=not set there, 2 here"),
        "learner": (FragileSVM(C=2.0), "learner=FragileSVM(C=1.0, tolerance=0.03) there, Fragile"),
    }.items():
        message = refusal(clone(model).set_params(**{changed: difference[0]}), X, y)
        assert f"({difference[1]}" in message
    assert "(of other rows or labels)" in refusal(model, X * 2, y)
    assert "(of other rows or labels)" in refusal(model, X, y[::-1])
    assert "(of other rows or labels)" in refusal(model, X, y, np.full(len(y), 2.0))
    place = folder / "checkpoint.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "version": "0.0"}))
    assert "(of xtrellis 0.0, not " in refusal(model, X, y)
    place.write_text("{")
    assert "(checkpoint.json in it is damaged)" in refusal(model, X, y)
    for name in kept.keys() - {"checkpoint.json"}:
        assert (folder / name).read_bytes() == kept[name]


def test_settings_that_cannot_be_resumed_are_refused(rows, tmp_path):
    def with_checkpoint(**settings):
        return TrellisClassifier(**{"random_state": 0, "checkpoint": tmp_path / "a", **settings})

    assert "checkpoint needs a number for random_state" in refusal(
        with_checkpoint(random_state=None), *rows
    )
    assert "early_stopping has none to keep" in refusal(with_checkpoint(early_stopping=True), *rows)
    assert "not learner=LogisticRegression()" in refusal(
        with_checkpoint(learner=LogisticRegression()), *rows
    )
    assert "checkpoint must name a folder" in refusal(with_checkpoint(checkpoint=3), *rows)
    assert not (tmp_path / "a").exists()
    file = tmp_path / "file"
    file.write_text("")
    assert refusal(with_checkpoint(checkpoint=file), *rows) == (
        f"{file} is a file: a checkpoint is a folder"
    )


@pytest.mark.parametrize("damage", ["cut off", "altered", "empty", "swapped"])
def test_a_damaged_block_is_trained_again(rows, stopped, damage):
    model, folder = stopped
    path, other, *_ = sorted(folder.glob("*.block"))
    content = path.read_bytes()
    changed = {
        "cut off": content[:-3],
        "altered": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        "empty": b"",
        "swapped": other.read_bytes(),  # sound, but another block
    }
    path.write_bytes(changed[damage])
    model.learner = FragileSVM()
    with pytest.warns(UserWarning, match=rf"{path.name} is damaged: its block is trained again"):
        model.fit(*rows)
    assert bits(model) == bits(without(model).fit(*rows))


@pytest.mark.parametrize("memory", [1, 0.001], ids=["in memory", "from disk"])
def test_a_full_disk_is_one_line_and_loses_nothing(full_disk, tmp_path, memory):
    """There is room for some blocks; when there is more, training goes on, to the same bits."""
    rows, whole, resumed = (tmp_path / name for name in ("rows", "whole", "resumed"))
    shards = write_shards([topics(60, 1000, 4000)], rows, shard_bytes=20_000)
    assert (memory == 1) == (memory_to_fit(shards) <= memory * 2**30)
    folder = full_disk / "blocks"

    def train(model, *more):
        command = [sys.executable, "-m", "xtrellis", "train", str(rows), str(model)]
        command += ["--width", "12", "--memory", str(memory), *more]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert train(whole).returncode == 0
    failed = train(resumed, "--checkpoint", str(folder))
    assert failed.returncode == 1
    assert failed.stderr == (
        f"error: {folder}: No space left on device, so the checkpoint could not be written: free "
        f"some space and train again in the same way; blocks that it holds already are reused\n"
    )
    assert not resumed.exists()
    names = {path.suffix for path in folder.iterdir()}
    assert names == {".block", ".json"}  # and nothing half-written
    subprocess.run(["mount", "-o", "remount,size=16m", full_disk], check=True)
    done = train(resumed, "--checkpoint", str(folder))
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
    assert bits(load_model(resumed)) == bits(load_model(whole))
