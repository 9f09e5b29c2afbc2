"""Model files: the same predictions to the bit, damage refused, the old file never lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import xtrellis.model.model_file as module
from samples import topics
from xtrellis import LTLSClassifier, TrellisClassifier, load_model
from xtrellis.decoding import VertexSoftmax
from xtrellis.learning import Arow
from xtrellis.model import ModelFileError
from xtrellis.model.model_file import write_model

MODELS = {
    "local": TrellisClassifier(random_state=0),
    "wide": TrellisClassifier(30, training="independent", random_state=0),
    "paper": TrellisClassifier.paper(4, random_state=0),
    "calibrated": TrellisClassifier.paper(4, calibration=0.2, random_state=0),
    "hinge": TrellisClassifier(6, decoding="squared_hinge", random_state=0),
    "cubed": TrellisClassifier(6, decoding="cubed_hinge", random_state=0),
    "softmax": TrellisClassifier(6, decoding=VertexSoftmax(0.5), learner=Arow(2.0)),
    "sklearn": TrellisClassifier(6, learner=LogisticRegression(), random_state=0),
    "ltls": LTLSClassifier(random_state=0),
}


@pytest.fixture(scope="module")
def rows():
    return topics()


@pytest.fixture
def saved(rows, tmp_path):
    """Small model and its file."""
    model = TrellisClassifier(5, random_state=0).fit(*rows)
    path = tmp_path / "model.xtrellis"
    model.save(path)
    return model, path


def told(path):
    """Facts in a file's header."""
    with safe_open(path, "np") as file:
        return json.loads(file.metadata()[module.ENTRY])


def write(path, arrays, facts):
    """File of these arrays and facts."""
    save_file(arrays, path, {module.ENTRY: json.dumps(facts)})


def assert_same(a, b, X):
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    for one, other in zip(a.predict_top_k(X, 3), b.predict_top_k(X, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    assert a.predict(X).dtype == b.predict(X).dtype


# ---------------------------------------------------------------------- the same model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("pruned", [False, True])
def test_loaded_model_predicts_the_same_bits(name, pruned, rows, tmp_path):
    X, y = rows
    model = MODELS[name].fit(X, y)
    if pruned:
        model.prune(threshold=0.05)
    size = model.save(tmp_path / "model")
    assert size == (tmp_path / "model").stat().st_size
    loaded = load_model(tmp_path / "model")
    assert_same(model, loaded, X)
    assert_same(model, load_model(tmp_path / "model", verify=False), X)
    assert model.history_ == loaded.history_
    assert model.temperature_ == loaded.temperature_
    if name != "sklearn":  # whose learner comes back as a description
        loaded.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(30) * 7 - 100,
        np.arange(30, dtype=np.uint8),
        np.arange(30) / 2,
        np.array([f"E{k}.{k % 7}" for k in range(30)]),
        np.array([f"größe {k} 😀\n\t" for k in range(30)]),
        np.array([f"code {k}" for k in range(30)], dtype=object),
        np.array([f"code {k}".encode() for k in range(30)]),
        np.datetime64("2024-01-01") + np.arange(30),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_of_any_type(labels, rows, tmp_path):
    X, y = rows
    model = TrellisClassifier(5, random_state=0)
    if labels.dtype.kind in "MfS":  # no targets that scikit-learn takes
        model.fit(X, y)
        model.model_ = replace(model.model_, classes=labels)
    else:
        model.fit(X, labels[y])
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.classes_, model.classes_)


def test_settings_and_feature_names_come_back(rows, tmp_path):
    X, y = rows
    frame = pd.DataFrame(X[:, :50].toarray(), columns=[f"word {k}" for k in range(50)])
    model = TrellisClassifier(
        5, learner=Arow(0.5), class_weight={3: 2.0}, calibration=0.2, epochs=2, random_state=7
    ).fit(frame, y)
    model.prune(frame, y, max_drop=0.1)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert repr(loaded.get_params()) == repr(model.get_params())
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    assert loaded.pruning_ == model.pruning_
    assert_same(model, loaded, frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"word 3": "other"}))


def test_given_assignment_and_own_objects(rows, tmp_path):
    X, y = rows
    order = np.random.RandomState(0).permutation(30)
    model = TrellisClassifier(5, assignment=order, learner=LogisticRegression()).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.assignment, order)
    assert loaded.learner == "LogisticRegression()"  # to read; fitting again asks for a learner
    with pytest.raises(ValueError, match="learner must be"):
        loaded.fit(X, y)


def test_loaded_model_learns_on(rows, tmp_path):
    X, y = rows
    model = TrellisClassifier.paper(5, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    before = loaded.score(X, y)
    assert loaded.partial_fit(X, y).score(X, y) > before - 0.02


def test_arrays_are_mapped_not_read(saved):
    _, path = saved
    loaded = load_model(path, verify=False)
    base = loaded.weights_.values
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert "mmap" in type(base.base).__module__ + type(base.base).__name__


def test_file_is_readable_by_safetensors(saved):
    model, path = saved
    arrays = load_file(path)
    np.testing.assert_array_equal(arrays["weights.bias"], model.weights_.bias)
    assert told(path)["slice_width"] == 5


def test_header_is_strict_json(rows, tmp_path):
    model = TrellisClassifier(5, random_state=0).fit(*rows).prune(threshold=0.1)
    model.save(tmp_path / "model")
    with safe_open(tmp_path / "model", "np") as file:
        content = file.metadata()[module.ENTRY]
    json.loads(content, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    loaded = load_model(tmp_path / "model")
    assert np.isnan(loaded.held_out_loss_)
    assert np.isnan(loaded.pruning_.accuracy_before)


def test_pruned_model_takes_four_bytes_a_weight(rows, tmp_path):
    X, y = rows
    model = TrellisClassifier.paper(5, random_state=0).fit(X, y).prune(threshold=0.2)
    model.save(tmp_path / "model")
    arrays = load_file(tmp_path / "model")
    assert arrays["weights.values"].dtype == np.float16
    assert arrays["weights.edges"].dtype == np.uint16


# ---------------------------------------------------------------------- what cannot be saved


def test_models_that_cannot_be_saved(rows, tmp_path):
    X, y = rows
    path = tmp_path / "model"
    curved = TrellisClassifier(5, learner=SVC()).fit(X, y)
    with pytest.raises(ModelFileError, match="has a SVC, which is not linear"):
        curved.save(path)
    own = TrellisClassifier(5, decoding=lambda z: (1 - z) ** 2).fit(X, y)
    with pytest.raises(ModelFileError, match="cannot be saved, as it is code"):
        own.save(path)
    odd = TrellisClassifier(5).fit(X, y)
    labels = np.array([None, *range(29)], dtype=object)
    odd.model_ = replace(odd.model_, classes=labels)
    with pytest.raises(ModelFileError, match="classes of type NoneType, int cannot be saved"):
        odd.save(path)
    with pytest.raises(ModelFileError, match="models of type LogisticRegression"):
        write_model(LogisticRegression().fit(X, y), path)
    with pytest.raises(ValueError, match="not fitted"):
        TrellisClassifier().save(path)
    assert list(tmp_path.iterdir()) == []


def test_missing_files(saved, tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        saved[0].save(tmp_path / "no folder" / "model")


# ---------------------------------------------------------------------- damage


def test_newer_versions_and_strangers_are_refused(saved, tmp_path):
    _, path = saved
    arrays = load_file(path)
    facts = told(path)
    write(tmp_path / "newer", arrays, {**facts, "format_version": 2})
    with pytest.raises(ModelFileError, match=r"newer: it has format version 2.*newer xtrellis"):
        load_model(tmp_path / "newer")
    save_file(arrays, tmp_path / "stranger")
    with pytest.raises(ModelFileError, match="not a model of xtrellis"):
        load_model(tmp_path / "stranger")
    write(tmp_path / "changed", arrays, {**facts, "temperature": 2.0})
    with pytest.raises(ModelFileError, match="checksum is wrong"):
        load_model(tmp_path / "changed")


def test_sound_checksum_over_unsound_content_is_refused(saved, tmp_path):
    """What a checksum cannot tell: arrays that do not fit each other."""
    _, path = saved
    arrays = load_file(path)
    facts = told(path)
    wrong_arrays = {
        "weights.edges": np.full_like(arrays["weights.edges"], 60_000),
        "weights.bias": arrays["weights.bias"][:-1],
        "weights.twins": np.array([[9_999], [0]], np.uint16),
        "weights.dense_features": np.array([5_000] * len(arrays["weights.dense"]), np.int32),
        "assignment": arrays["assignment"] * 0,
        "classes": arrays["classes"][:-1],
        "weights.counts": arrays["weights.counts"][:-5],
    }
    wrong_facts = {
        "estimator": "os.system",
        "n_features": 2**39,
        "n_classes": 10**9,
        "slice_width": -1,
        "code": "decimal",
        "loss": {"type": "Tempered"},
        "classes": "V8",
    }
    damaged = [({**arrays, name: array}, facts) for name, array in wrong_arrays.items()]
    damaged += [(arrays, {**facts, name: value}) for name, value in wrong_facts.items()]
    assert len(damaged) == 14
    for content, claims in damaged:
        content = {name: np.ascontiguousarray(array) for name, array in content.items()}
        claims["checksum"] = module._checksum(content, claims)
        write(tmp_path / "unsound", content, claims)
        with pytest.raises(ModelFileError, match="unsound: "):
            load_model(tmp_path / "unsound")


def test_thousands_of_damaged_files(rows, tmp_path):
    X, y = rows
    model = TrellisClassifier(2, random_state=0).fit(X[:, :60], np.array(["a", "bc", "d"])[y % 3])
    path = tmp_path / "model"
    model.prune(threshold=0.01).save(path)
    whole, draw = path.read_bytes(), random.Random(0)
    expected = model.predict_proba(X[:20, :60])
    refused = 0
    for round_ in range(2_000):
        content = bytearray(whole)
        kind = round_ % 5
        if kind == 0:
            del content[draw.randrange(len(content)) :]
        elif kind == 1:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        elif kind == 2:  # the header, where structure is
            content[draw.randrange(min(3_000, len(content)))] = draw.randrange(256)
        elif kind == 3:
            at = draw.randrange(len(content))
            content[at:at] = draw.randbytes(draw.randrange(1, 50))
        else:
            at = draw.randrange(len(content))
            del content[at : at + draw.randrange(1, 50)]
        damaged = tmp_path / "damaged"
        damaged.write_bytes(content)
        try:
            loaded = load_model(damaged)
        except ModelFileError as error:
            refused += "\n" not in str(error)
        else:  # white space in the header, perhaps
            np.testing.assert_array_equal(loaded.predict_proba(X[:20, :60]), expected)
    assert refused > 1_900


# ---------------------------------------------------------------------- interrupted saves


def test_failed_save_leaves_the_old_file(saved, monkeypatch):
    model, path = saved
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_permissions_and_links_are_kept(saved, tmp_path):
    model, path = saved
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640


SAVER = """
import os, sys
from xtrellis import load_model
first, second = load_model(sys.argv[1]), load_model(sys.argv[2])
first.save(sys.argv[3])
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        while True:
            second.save(sys.argv[3])
            first.save(sys.argv[3])
    print(child, flush=True)
    os.waitpid(child, 0)
"""


def test_kill_during_save_never_loses_the_model(rows, tmp_path):
    """Fifty times a process that saves one model after the other is killed at some moment."""
    X, y = rows
    for name, seed in (("first", 0), ("second", 1)):
        TrellisClassifier(30, random_state=seed).fit(X, y).save(tmp_path / name)
    either = {(tmp_path / name).read_bytes() for name in ("first", "second")}
    target, draw, seen = tmp_path / "model", random.Random(0), set()
    half_way = 0
    command = [sys.executable, "-c", SAVER, tmp_path / "first", tmp_path / "second", target]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as saver:
        for _ in range(50):
            saver.stdin.write("go\n")
            saver.stdin.flush()
            child = int(saver.stdout.readline())
            while not list(tmp_path.glob(".model.*")):  # it has begun to write
                time.sleep(0.0005)
            time.sleep(draw.uniform(0, 0.005))
            os.kill(child, signal.SIGKILL)
            seen.add(target.read_bytes())
            for left in tmp_path.glob(".model.*"):
                half_way += 1
                left.unlink()
        saver.stdin.close()
    assert seen <= either
    assert half_way > 0
    assert load_model(target).score(X, y) > 0.5
