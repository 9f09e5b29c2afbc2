"""Rows on disk: the rows that were converted, in bounded memory; damage is named in one line."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from clusters import bits
from samples import PACKERS, topics
from terminal import run
from xtrellis import TrellisClassifier, TrellisTextClassifier, load_model
from xtrellis.data import DataError, open_shards, read_svmlight, write_shards
from xtrellis.data.shards import ENTRY, read_shard
from xtrellis.learning import Arow
from xtrellis.model.model_file import write_file


def svmlight(X, y, first=0):
    lines = [
        f"{label} "
        + " ".join(
            f"{j + first}:{v!r}" for j, v in zip(row.indices, row.data.tolist(), strict=True)
        )
        for label, row in zip(y, X, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture(scope="module")
def rows():
    return topics(n_classes=20, n_rows=3000)


@pytest.fixture
def shards(rows, tmp_path):
    """Several shards of the rows."""
    return write_shards(io.BytesIO(svmlight(*rows)), tmp_path / "rows", shard_bytes=10_000)


def joined(shards):
    from scipy import sparse

    parts = list(shards)
    return sparse.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def test_shards_hold_the_rows_of_the_file(rows, shards):
    X, y = read_svmlight(io.BytesIO(svmlight(*rows)))
    assert len(shards) > 3
    assert shards.n_rows == 3000
    assert all(part.shape[1] == shards.n_features == X.shape[1] for part, _ in shards)
    found, labels = joined(open_shards(shards.folder))
    assert (found != X).nnz == 0
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(shards.classes, np.unique(y))
    assert labels.dtype == y.dtype


@pytest.mark.parametrize("packed", ["plain", "gz"])
def test_words_as_labels_and_features_from_one(rows, tmp_path, packed):
    X, y = rows
    names = np.array([f"topic {k}".replace(" ", "_") for k in y])
    names[y == 7] = "007"
    content = PACKERS[packed](svmlight(X, names, first=1))
    expected, labels = read_svmlight(io.BytesIO(content))
    shards = write_shards(io.BytesIO(content), tmp_path)
    assert shards.first_feature == 1
    found, y_found = joined(shards)
    assert (found != expected).nnz == 0
    np.testing.assert_array_equal(y_found, labels)


def test_online_training_and_prediction_are_those_of_rows_in_memory(rows, shards):
    X, y = rows
    one, other = (TrellisClassifier(5, learner=Arow(), random_state=0) for _ in range(2))
    start = 0
    for part, labels in shards:
        one.partial_fit(part, labels, classes=shards.classes)
        stop = start + len(labels)
        other.partial_fit(X[start:stop, : part.shape[1]], y[start:stop], classes=np.unique(y))
        start = stop
    predicted = np.concatenate([one.predict(part) for part, _ in shards])
    np.testing.assert_array_equal(predicted, other.predict(X[:, : shards.n_features]))


def test_memory_stays_below_a_quarter_of_the_data(tmp_path):
    """Converting, training and predicting, in a process of its own."""
    code = """
import resource, sys
import numpy as np
from scipy import sparse
from xtrellis import TrellisClassifier
from xtrellis.data import open_shards, write_shards
from xtrellis.learning import Arow

file, folder = sys.argv[1:]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def use(folder, file):
    shards = write_shards(file, folder, shard_bytes=2**20)
    clf = TrellisClassifier(4, learner=Arow(), random_state=0)
    for X, y in shards:
        clf.partial_fit(X, y, classes=shards.classes)
    return shards, [clf.score(X, y) for X, y in shards]

small = file + ".small"
with open(file, "rb") as all_rows, open(small, "wb") as some:
    some.write(b"".join(all_rows.readline() for _ in range(3000)))
use(folder + "-small", small)  # all is compiled and imported
before = peak()
shards, scores = use(folder, file)
size = sum(path.stat().st_size for path in shards.folder.glob("*.rows"))
print(size, peak() - before, len(shards), min(scores))
"""
    rng = np.random.default_rng(0)
    file = tmp_path / "rows.svm"
    with open(file, "w") as lines:
        for _ in range(60):
            columns = np.sort(np.argsort(rng.random((1000, 60)), axis=1)[:, :50], axis=1)
            labels = rng.integers(0, 8, 1000)
            for label, row in zip(labels.tolist(), columns.tolist(), strict=True):
                lines.write(f"{label} {100 + label}:2 " if label else "0 ")
                shift = 200
                lines.write(" ".join(f"{j + shift}:0.5" for j in row) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", code, str(file), str(tmp_path / "shards")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    size, growth, n_shards, accuracy = map(float, done.stdout.split())
    assert n_shards > 10
    assert accuracy > 0.9
    assert growth < size / 4, (growth, size)


def test_the_command_takes_a_folder_where_it_takes_a_file(rows, tmp_path):
    file, folder, model = (tmp_path / name for name in ("rows.svm", "shards", "model"))
    file.write_bytes(svmlight(*rows, first=1))
    _, err = run("convert", file, folder)
    assert err.startswith("3,000 rows, 20 classes, ")
    expected = run("train", file, model, "-C", "1")[1].replace(str(file), "")
    assert run("train", folder, tmp_path / "other", "-C", "1")[1].split(":")[0] in expected
    assert bits(load_model(model)) == bits(load_model(tmp_path / "other"))
    assert run("predict", model, folder)[0] == run("predict", model, file)[0]
    facts = [json.loads(run("evaluate", model, each, "--json")[0]) for each in (file, folder)]
    assert facts[0]["accuracy"] == facts[1]["accuracy"] > 0.9
    unaware = load_model(model)  # of how features were counted
    del unaware.first_feature_
    unaware.save(tmp_path / "unaware")
    assert run("predict", tmp_path / "unaware", folder)[0] == run("predict", model, file)[0]
    _, err = run("convert", file, folder, code=1)
    assert err == f"error: {folder}: it holds rows already; name another folder, or delete it\n"
    _, err = run("predict", model, tmp_path, code=1)
    assert err.startswith(f"error: {tmp_path}: there is no rows.json: no folder of rows, or one ")


# ---------------------------------------------------------------------- bad input


def refusal(call, *arguments, **options):
    with pytest.raises(DataError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_damage_is_named_in_one_line(shards):
    folder = shards.folder
    path = folder / "000001.rows"
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    assert "000001.rows: " in refusal(list, shards)
    assert "cut off" in refusal(list, shards)
    path.write_bytes(b"")
    assert "it is not a file of rows, or cut off; convert the rows again" in refusal(list, shards)
    path.write_bytes((folder / "000000.rows").read_bytes())
    if shards.counts[0] != shards.counts[1]:
        assert "its parts do not fit each other" in refusal(list, shards)
    path.unlink()
    assert "000001.rows: this shard is missing" in refusal(list, shards)
    facts = json.loads((folder / "rows.json").read_text())
    for changed, message in [
        ({**facts, "version": 9}, "it has version 9"),
        ({**facts, "n_features": 3}, "its parts do not fit each other"),
        ({"version": 1}, "it is damaged"),
        ({**facts, "first_feature": 7}, "it is damaged"),
    ]:
        (folder / "rows.json").write_text(json.dumps(changed))
        assert message in refusal(lambda: open_shards(folder)[0])
    (folder / "rows.json").unlink()
    assert "there is no rows.json" in refusal(open_shards, folder)


def _facts_without_sense():
    facts = [("counts", each) for each in ([], [-1], [10**30], "abc", 7, [1.5])]
    facts += [("n_features", each) for each in (10**30, 2**33, -3, "9", True)]
    facts += [("labels", each) for each in ([], [[1], [2, 3]], [None] * 20, [2**70] * 20, "ab")]
    return [*facts, ("whole_numbers", False), ("version", "1"), ("texts", True)]


@pytest.mark.parametrize(("name", "value"), _facts_without_sense())
def test_facts_without_sense_are_refused_in_one_line(shards, name, value):
    path = shards.folder / "rows.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    message = refusal(open_shards, shards.folder)
    assert str(shards.folder) in message
    assert "int()" not in message


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b"1e999"])
def test_a_list_of_parts_that_is_damaged(shards, content):
    (shards.folder / "rows.json").write_bytes(content)
    message = refusal(open_shards, shards.folder)
    assert message == f"{shards.folder}: it is damaged; convert the rows again"
    file = shards.folder / "000000.rows"
    assert "cannot be read (Not a directory)" in refusal(open_shards, file)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, lambda x: x.astype(np.float64)) for name in ("values", "indices", "labels")),
        *((name, lambda x: x.astype(np.int16)) for name in ("values", "indptr")),
        ("labels", lambda x: x > 3),
        ("indices", lambda x: x[::-1].copy()),
        ("indices", np.zeros_like),
    ],
)
def test_parts_that_kernels_could_not_rely_on_are_refused(shards, name, change):
    """Of another type, or with features out of order."""
    path = shards.folder / "000001.rows"
    arrays = read_shard(path, mmap=False)
    with open(path, "wb") as file:
        write_file(file, {**arrays, name: change(arrays[name])}, {"version": 1}, ENTRY)
    for read in (shards.read, shards.as_read):
        assert refusal(read, 1) == f"{path}: its parts do not fit each other"
    if name == "labels":
        assert refusal(shards.encoded_labels) == f"{path}: its parts do not fit each other"


def test_rows_without_features(tmp_path):
    shards = write_shards(io.BytesIO(b"a\nb\na\n"), tmp_path / "rows", format="svmlight")
    X, y = shards[0]
    assert X.shape == (3, 0)
    assert y.tolist() == ["a", "b", "a"]
    with pytest.raises(ValueError, match=r"rows: no row has any feature$"):
        TrellisClassifier().fit_shards(shards)
    _, err = run("train", tmp_path / "rows", tmp_path / "model", code=1)
    assert err == f"error: {tmp_path / 'rows'}: no row has any feature; is this the right file?\n"


def test_bad_rows_leave_nothing_behind(tmp_path):
    folder = tmp_path / "rows"
    assert refusal(write_shards, io.BytesIO(b"1 2:1\n1 3:x\n"), folder).startswith("<stdin>:2: ")
    assert not folder.exists()
    assert "there is no rows.json" in refusal(open_shards, folder)
    folder.mkdir()
    many = io.BytesIO(b"1 2:1\n2 3:1\n" * 1000 + b"1 3:x\n")
    assert refusal(write_shards, many, folder, shard_bytes=100).startswith("<stdin>:2001: ")
    assert not list(folder.iterdir())
    assert "there are no rows" in refusal(write_shards, io.BytesIO(b"\n"), folder)
    message = refusal(write_shards, io.BytesIO(b"1 0:1\n"), folder, zero_based=False)
    assert "feature 0 in a file of features from 1" in message
    write_shards(io.BytesIO(b"1 2:1\n2 3:1\n"), folder)
    assert "it holds rows already" in refusal(write_shards, io.BytesIO(b"1 2:1\n"), folder)
    assert "have 3 features, more than the 2" in refusal(open_shards, folder, n_features=2)
    assert open_shards(folder, n_features=9)[0][0].shape == (2, 9)


@pytest.mark.parametrize("estimator", [TrellisClassifier(), TrellisTextClassifier()])
def test_what_is_neither_shards_nor_a_folder(estimator):
    with pytest.raises(TypeError, match="shards must be a folder, or Shards, got tuple"):
        estimator.fit_shards((np.eye(2), [0, 1]))
