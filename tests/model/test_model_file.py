"""Model files: the same predictions to the bit, damage refused, the old file never lost."""

import copy
import json
import os
import pickle
import random
import shutil
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
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from model_files import put_together, take_apart
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


def test_arrays_are_read_or_mapped_on_request(rows, tmp_path):
    path = tmp_path / "model"
    TrellisClassifier(5, weight_bits=32, random_state=0).fit(*rows).save(path)
    for mmap in (False, True):
        base = load_model(path, mmap=mmap).weights_.values
        assert base.flags.writeable
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert (base.base is not None) == mmap


def test_mapped_model_predicts_the_same_bits(saved, rows):
    model, path = saved
    assert_same(model, load_model(path, mmap=True), rows[0])


def test_file_is_readable_by_safetensors(saved):
    model, path = saved
    arrays = load_file(path)
    np.testing.assert_array_equal(arrays["model.weights.bias"], model.weights_.bias)
    assert arrays.keys() == take_apart(path)[0].keys()
    with safe_open(path, "np") as file:
        facts = json.loads(file.metadata()["xtrellis"])
    model_parts = facts["model"]["parts"]["model"]["parts"]
    assert model_parts["trellis"]["parts"] == {"n_classes": 30, "slice_width": 5}


def test_header_is_strict_json(rows, tmp_path):
    model = TrellisClassifier(5, random_state=0).fit(*rows).prune(threshold=0.1)
    model.save(tmp_path / "model")
    with safe_open(tmp_path / "model", "np") as file:
        content = file.metadata()["xtrellis"]
    json.loads(content, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    loaded = load_model(tmp_path / "model")
    assert np.isnan(loaded.held_out_loss_)
    assert np.isnan(loaded.pruning_.accuracy_before)


@pytest.mark.parametrize("name", ["paper", "ltls", "local", "hinge", "calibrated"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_saved_and_as_fast(name, copied, rows, tmp_path):
    model = MODELS[name].fit(*rows)
    other = copied(model)
    model.save(tmp_path / "model")
    other.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "model").read_bytes()
    finders = [each.model_.path_finder() for each in (model, other)]
    step_by_step = [
        finder == each.model_._paths_step_by_step
        for finder, each in zip(finders, (model, other), strict=True)
    ]
    assert step_by_step == [name in ("ltls", "hinge")] * 2


def test_settings_without_a_plain_form_are_described_the_same_each_time(rows, tmp_path):
    contents = set()
    for _ in range(2):
        model = TrellisClassifier(5, random_state=np.random.RandomState(0)).fit(*rows)
        model.history_.seconds = [0.0] * len(model.history_.seconds)
        model.save(tmp_path / "model")
        contents.add((tmp_path / "model").read_bytes())
    assert len(contents) == 1
    assert load_model(tmp_path / "model").random_state == "RandomState(MT19937)"


def test_model_takes_two_bytes_per_weight_unless_told_otherwise(rows, tmp_path):
    X, y = rows
    for bits, dtype in ((8, np.int8), (32, np.float32)):
        model = TrellisClassifier.paper(5, random_state=0).fit(X, y)
        model.prune(threshold=0.2, bits=bits).save(tmp_path / "model")
        arrays = load_file(tmp_path / "model")
        assert arrays["model.weights.values"].dtype == dtype
        assert arrays["model.weights.columns"].dtype == np.uint8  # as blocks have fewer than 256


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
    with pytest.raises(ModelFileError, match="classes: labels of type NoneType, int cannot be"):
        odd.save(path)
    broken = TrellisClassifier(5).fit(X, y)
    broken.weights_.bias[3] = np.nan
    with pytest.raises(ModelFileError, match="weights must be finite, but bias holds NaN"):
        broken.save(path)
    with pytest.raises(ModelFileError, match="model is of type LogisticRegression"):
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


def test_other_versions_and_strangers_are_refused(saved, tmp_path):
    _, path = saved
    arrays, facts = take_apart(path)
    put_together(tmp_path / "newer", arrays, {**facts, "format_version": 3})
    with pytest.raises(ModelFileError, match=r"newer: it has format version 3.*newer xtrellis"):
        load_model(tmp_path / "newer")
    put_together(tmp_path / "older", arrays, {**facts, "format_version": 1})
    with pytest.raises(ModelFileError, match=r"older: .* reads version 2 only: train the model"):
        load_model(tmp_path / "older")
    save_file(arrays, tmp_path / "stranger")
    with pytest.raises(ModelFileError, match="not a model of xtrellis"):
        load_model(tmp_path / "stranger")
    facts["model"]["parts"]["model"]["parts"]["calibration"]["parts"]["temperature"] = 2.0
    put_together(tmp_path / "changed", arrays, facts, sign=False)
    with pytest.raises(ModelFileError, match="checksum is wrong"):
        load_model(tmp_path / "changed")
    os.mkfifo(tmp_path / "pipe")
    writer = subprocess.Popen(["cp", path, tmp_path / "pipe"])
    with pytest.raises(ModelFileError, match="not a file on a disk"):
        load_model(tmp_path / "pipe")
    writer.kill()
    writer.wait()


HUGE = 2**62
WRONG_ARRAYS = {
    "edges": ("weights.edges", lambda a: np.array([0, 1], np.uint8)),
    "edges of no pairs": ("weights.edges", lambda a: a[:-1]),
    "vertices": ("weights.vertex_starts", lambda a: np.array([0, a[-1]], np.uint8)),
    "empty vertices": ("weights.vertex_starts", lambda a: a * (np.arange(len(a)) == len(a) - 1)),
    "widths": ("weights.widths", lambda a: np.roll(a, 1)),
    "bias": ("weights.bias", lambda a: a[:-1]),
    "bias of NaN": ("weights.bias", lambda a: a * np.float32("nan")),
    "infinite scales": ("weights.scales", lambda a: np.full_like(a, np.inf)),
    "infinite values": ("weights.values", lambda a: np.full(a.shape, np.inf, np.float32)),
    "values": ("weights.values", lambda a: np.full_like(a, -128)),
    "twins": ("weights.twins", lambda a: np.array([[9_999], [0]], np.uint16)),
    "twins twice": ("weights.twins", lambda a: np.array([[1, 1], [0, 0]], np.uint16)),
    "large sizes": ("weights.sizes", lambda a: np.full(len(a), HUGE)),
    "sizes": ("weights.sizes", lambda a: a[::-1]),
    "large counts": ("weights.counts", lambda a: np.full(len(a), HUGE)),
    "counts": ("weights.counts", lambda a: a[:-5]),
    "gaps": ("weights.gaps", lambda a: a * 0),
    "columns": ("weights.columns", lambda a: np.full_like(a, 200)),
    "wide gaps": ("weights.wide_gaps", lambda a: np.full(len(a), HUGE)),
    "wide gaps too many": ("weights.wide_gaps", lambda a: np.append(a, a)),
    "assignment": ("assignment.path_of_class", lambda a: a * 0),
    "classes": ("classes", lambda a: a[:-1]),
    "type": ("weights.values", lambda a: a.astype(np.int32)),
}
MODEL = ["parts", "model", "parts"]
WRONG_FACTS = {
    "estimator": (["type"], "os.system"),
    "part": (["type"], "Trellis"),
    "model": (["parts", "model"], {"type": "Trellis", "parts": {"n_classes": 30}}),
    "loss": ([*MODEL, "loss"], {"type": "Tempered", "parts": {}}),
    "loss of a wrong type": ([*MODEL, "loss"], {"type": "Trellis", "parts": {"n_classes": 2}}),
    "loss without bounds": ([*MODEL, "loss"], {"type": "Loss", "parts": {"name": "log"}}),
    "calibration": ([*MODEL, "calibration"], {"type": "Loss", "parts": {"name": "log"}}),
    "temperature": ([*MODEL, "calibration", "parts", "temperature"], {"float": "nan"}),
    "rest": ([*MODEL, "calibration", "parts", "rest"], -1.0),
    "steps of a softmax": ([*MODEL, "loss", "parts", "temperature"], {"tuple": [1.0, 2.0]}),
    "temperature of a softmax": ([*MODEL, "loss", "parts", "temperature"], {"float": "inf"}),
    "n_features": (["parts", "n_features_in"], 2**39),
    "n_features of the weights": ([*MODEL, "weights", "parts", "n_features"], 2**39),
    "n_edges of the weights": ([*MODEL, "weights", "parts", "n_edges"], 2**39),
    "n_classes": ([*MODEL, "trellis", "parts", "n_classes"], 10**9),
    "slice_width": ([*MODEL, "trellis", "parts", "slice_width"], -1),
    "code": ([*MODEL, "code"], "decimal"),
    "other code": ([*MODEL, "code"], "independent"),
    "classes": ([*MODEL, "classes"], {"array": "V8"}),
    "shared": ([*MODEL, "classes"], {"shared": "model.weights.bias"}),
    "history": (["parts", "history", "parts", "loss"], ["a"]),
    "n_jobs": (["parts", "settings", "dict", "n_jobs"], "many"),
    "settings": (["parts", "settings", "dict", "colour"], 1),
    "more": (["parts", "colour"], 1),
    "more of the weights": ([*MODEL, "weights", "parts", "colour"], 1),
    "kind": (["parts", "history"], {"pickle": ""}),
}


@pytest.fixture(scope="module")
def wide(rows, tmp_path_factory):
    """File of a model with gaps that do not fit one byte."""
    X, y = rows
    X = sparse.csr_matrix((X.data, X.indices * 300, X.indptr), (900, 300 * 400))
    model = TrellisClassifier.paper(29, random_state=0).fit(X, y)
    path = tmp_path_factory.mktemp("wide") / "model"
    model.save(path)
    return path


@pytest.mark.parametrize("name", WRONG_ARRAYS)
@pytest.mark.parametrize("verify", [True, False])
def test_unsound_arrays_with_a_right_checksum_are_refused(name, verify, saved, wide, tmp_path):
    which, change = WRONG_ARRAYS[name]
    arrays, facts = take_apart(wide if "wide" in which else saved[1])
    which = f"model.{which}"
    changed = np.ascontiguousarray(change(arrays[which]))
    assert changed.dtype != arrays[which].dtype or not np.array_equal(changed, arrays[which])
    of_its_type(facts, which, changed)
    put_together(tmp_path / "unsound", {**arrays, which: changed}, facts)
    with pytest.raises(ModelFileError, match="unsound: ") as error:
        load_model(tmp_path / "unsound", verify=verify)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", WRONG_FACTS)
def test_unsound_facts_with_a_right_checksum_are_refused(name, rows, tmp_path):
    path = tmp_path / "model"
    TrellisClassifier(5, random_state=0).fit(*rows).save(path)
    arrays, facts = take_apart(path)
    place, value = WRONG_FACTS[name]
    at = facts["model"]
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    put_together(tmp_path / "unsound", arrays, facts)
    for verify in (True, False):
        with pytest.raises(ModelFileError, match="unsound: "):
            load_model(tmp_path / "unsound", verify=verify)


@pytest.mark.parametrize("name", ["sizes", "counts"])
def test_counts_that_wrap_to_nothing_are_refused(name, saved, tmp_path):
    """Four counts of 2**62 add up to 0 in 64 bits, and let kernels read anywhere."""
    arrays, facts = take_apart(saved[1])
    which = f"model.weights.{name}"
    wrapped = arrays[which].astype(np.int64)
    wrapped[:4] += HUGE
    assert wrapped.sum() == arrays[which].sum()
    of_its_type(facts, which, wrapped)
    put_together(tmp_path / "wrapped", {**arrays, which: wrapped}, facts)
    for verify in (True, False):
        with pytest.raises(ModelFileError, match=f"wrapped: .*{name}"):
            load_model(tmp_path / "wrapped", verify=verify)


def of_its_type(facts, name, array):
    """Make facts name the type of an array, so that it is not refused for that alone."""
    holder = facts["model"]["parts"]
    *path, last = name.split(".")
    for part in path:
        holder = holder[part]["parts"]
    if holder[last]["array"] != "int64":
        holder[last] = {"array": array.dtype.name}


def test_arrays_that_belong_nowhere_are_refused(saved, tmp_path):
    arrays, facts = take_apart(saved[1])
    put_together(tmp_path / "more", {**arrays, "extra": np.zeros(3)}, facts)
    with pytest.raises(ModelFileError, match="belongs nowhere: 'extra'"):
        load_model(tmp_path / "more")


def test_headers_out_of_order_are_refused(saved, tmp_path):
    content = saved[1].read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    name = "model.weights.values"
    start, end = header[name]["data_offsets"]
    wrong = [
        {"data_offsets": [0, end]},
        {"data_offsets": [start, end + 4]},
        {"data_offsets": [-4, end - start - 4]},
        {"shape": [2**62, 4]},
        {"shape": [-1]},
        {"shape": [1.0]},
        {"shape": [1] * 100},
        {"dtype": "F8"},
    ]
    for change in wrong:
        altered = json.dumps({**header, name: {**header[name], **change}}).encode()
        whole = len(altered).to_bytes(8, "little") + altered + content[8 + length :]
        (tmp_path / "altered").write_bytes(whole)
        for mmap in (False, True):
            with pytest.raises(ModelFileError):
                load_model(tmp_path / "altered", verify=False, mmap=mmap)


def test_file_grows_with_the_features_that_occur(rows, tmp_path):
    """The same rows among 400 columns and among a million."""
    X, y = rows
    sizes = []
    for n_features in (400, 10**6):
        wide = sparse.csr_matrix((X.data, X.indices, X.indptr), (900, n_features))
        model = TrellisClassifier.paper(4, random_state=0).fit(wide, y)
        sizes.append(model.save(tmp_path / "model"))
    assert sizes[1] < sizes[0] + 100


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


# ---------------------------------------------------------------------- files in use

IN_USE = """
import os, shutil, sys
from samples import topics
from xtrellis import load_model
live, how, other = sys.argv[1:]
X, _ = topics()
model = load_model(live)
before = model.predict_proba(X)
if how == "truncate":
    os.truncate(live, 100)
elif how == "copy":
    shutil.copyfile(other, live)
else:
    with open(live, "r+b") as file:
        file.write(b"\\xff" * os.path.getsize(live))
assert (model.predict_proba(X) == before).all()
"""


@pytest.mark.parametrize("how", ["truncate", "copy", "fill"])
def test_model_survives_what_is_done_to_its_file(how, rows, tmp_path):
    for name, width in (("live", 30), ("other", 3)):
        TrellisClassifier(width, random_state=0).fit(*rows).save(tmp_path / name)
    run_python(IN_USE, tmp_path / "live", how, tmp_path / "other")


def run_python(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


TWO_SAVES = """
import sys
from xtrellis import load_model
first, second = load_model(sys.argv[1]), load_model(sys.argv[2])
while True:
    first.save(sys.argv[3])
    second.save(sys.argv[3])
"""


def test_loading_while_others_save_never_fails(rows, tmp_path):
    X, y = rows
    expected = set()
    for name, width in (("first", 3), ("second", 30)):
        model = TrellisClassifier(width, random_state=0).fit(X, y)
        model.save(tmp_path / name)
        expected.add(tuple(model.predict(X).tolist()))
    target = tmp_path / "model"
    shutil.copy(tmp_path / "first", target)
    command = [sys.executable, "-c", TWO_SAVES, tmp_path / "first", tmp_path / "second", target]
    seen, n_loads = set(), 0
    with subprocess.Popen(command) as saver:
        try:
            end = time.monotonic() + 60
            while (len(seen) < 2 or n_loads < 300) and time.monotonic() < end:
                seen.add(tuple(load_model(target, mmap=n_loads % 2 == 1).predict(X).tolist()))
                n_loads += 1
        finally:
            saver.kill()
    assert seen == expected


# ---------------------------------------------------------------------- interrupted saves


FULL_DISK = """
import resource, sys
from pathlib import Path
from xtrellis import load_model
source, target, limit = sys.argv[1:]
model = load_model(source)
before = Path(target).read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    model.save(target)
except OSError as error:
    message = str(error)
assert message.endswith(f"nothing was changed: free some space or save elsewhere: {target!r}")
assert "\\n" not in message
assert Path(target).read_bytes() == before
assert list(Path(target).parent.iterdir()) == [Path(target)]
"""


@pytest.mark.parametrize("limit", [0, 1_000, 5_000])
def test_full_disk_is_one_line_and_changes_nothing(limit, saved, tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "model"
    target.write_bytes(b"old")
    run_python(FULL_DISK, saved[1], target, limit)


def test_failed_save_leaves_the_old_file(saved, monkeypatch):
    model, path = saved
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match=r"No space left .* save elsewhere: '.*model.xtrellis'"):
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
