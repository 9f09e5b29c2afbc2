"""Damaged model files: refused in one line, whatever is wrong with them."""

import json
import os
import random
import subprocess

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy import sparse

from model_files import put_together, take_apart
from xtrellis import TrellisClassifier, load_model
from xtrellis.model import ModelFileError


def test_other_versions_and_strangers_are_refused(saved, tmp_path):
    _, path = saved
    arrays, facts = take_apart(path)
    put_together(tmp_path / "newer", arrays, {**facts, "format_version": 4})
    with pytest.raises(ModelFileError, match=r"newer: it has format version 4.*newer xtrellis"):
        load_model(tmp_path / "newer")
    put_together(tmp_path / "older", arrays, {**facts, "format_version": 1})
    with pytest.raises(ModelFileError, match=r"older: .* reads version 3 only: train the model"):
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
