"""Converters: texts of all formats become the features that they have in memory."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from samples import reports
from xtrellis import TrellisClassifier, TrellisEnsemble, TrellisTextClassifier, load_model
from xtrellis.data import DataError, open_shards, write_shards


@pytest.fixture(scope="module")
def rows():
    return reports(n_rows=2500)


def tsv(texts, labels):
    return "".join(f"{label}\t{text}\n" for text, label in zip(texts, labels, strict=True)).encode()


def in_format(format, texts, labels, path):
    """A file of these texts; what else must be said to read it."""
    pairs = list(zip(texts, labels, strict=True))
    if format == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        table = pyarrow.table({"report": texts, "kind": list(map(str, labels))})
        parquet.write_table(table, path)
        return {"text_column": "report", "label_column": "kind"}
    lines = {
        "tsv": [f"{label}\t{text}" for text, label in pairs],
        "fasttext": [f"__label__{label} {text}" for text, label in pairs],
        "csv": ["label;text", *(f'{label};"{text}"' for text, label in pairs)],
        "jsonl": [json.dumps({"label": str(label), "text": text}) for text, label in pairs],
    }[format]
    path.write_text("\n".join(lines) + "\n")
    return {"delimiter": ";", "format": "csv"} if format == "csv" else {}


@pytest.mark.parametrize("format", ["tsv", "fasttext", "csv", "jsonl", "parquet"])
def test_texts_of_a_file_are_those_of_memory(rows, tmp_path, format):
    texts, labels = rows
    path = tmp_path / f"rows.{'ft' if format == 'fasttext' else format}"
    options = in_format(format, texts, labels, path)
    shards = write_shards(path, tmp_path / "rows", shard_bytes=20_000, **options)
    assert len(shards) > 3
    X, y = shards.in_memory()
    expected = TrellisTextClassifier().new_features()
    assert (expected.fit_transform(texts) != X).nnz == 0
    np.testing.assert_array_equal(y, labels)
    assert open_shards(shards.folder).features.equals(expected)


def test_texts_are_converted_with_terms_that_are_known(rows, tmp_path):
    texts, labels = rows
    known = TrellisTextClassifier().new_features()
    known.fit_transform(texts[:2000], 2)
    file = io.BytesIO(tsv(texts[2000:], labels[2000:]))
    shards = write_shards(file, tmp_path / "rows", features=known, shard_bytes=5_000)
    X, y = shards.in_memory()
    assert len(shards) > 2
    assert (known.transform(texts[2000:]) != X).nnz == 0
    np.testing.assert_array_equal(y, labels[2000:])
    assert open_shards(shards.folder).features.equals(known)
    message = refusal(write_shards, io.BytesIO(b"1 1:2\n"), tmp_path / "numbers", features=known)
    assert message == "<stdin>: these are features, not texts, and have no terms"
    assert not (tmp_path / "numbers").exists()


@pytest.mark.parametrize(
    "settings",
    [{"min_df": 4}, {"hash_size": 4096}, {"words": None, "characters": (2, 4), "min_df": 2}],
)
def test_rare_terms_are_dropped_and_terms_may_be_hashed(rows, tmp_path, settings):
    texts, _ = rows
    shards = write_shards(io.BytesIO(tsv(*rows)), tmp_path, shard_bytes=20_000, **settings)
    X, _ = shards.in_memory()
    expected = TrellisTextClassifier(**settings).new_features()
    assert (expected.fit_transform(texts, settings.get("min_df", 1)) != X).nnz == 0
    assert shards.features.equals(expected)


@pytest.mark.filterwarnings("ignore:weights up to")
def test_a_model_of_texts_on_disk_takes_texts(rows, tmp_path):
    texts, labels = rows
    shards = write_shards(io.BytesIO(tsv(*rows)), tmp_path / "rows", shard_bytes=20_000)
    inner = TrellisClassifier(C=1.0, random_state=0)
    from_disk = TrellisTextClassifier(inner).fit_shards(shards.folder)
    in_memory = TrellisTextClassifier(inner).fit(texts, labels)
    np.testing.assert_array_equal(from_disk.predict(texts), in_memory.predict(texts))
    small = TrellisTextClassifier(inner).fit_shards(shards, memory=2 * shards.nbytes)
    assert (small.predict(texts) == in_memory.predict(texts)).mean() > 0.97
    from_disk.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(texts[:9]), in_memory.predict(texts[:9]))
    many = TrellisTextClassifier(TrellisEnsemble(inner, 2, random_state=0)).fit_shards(shards)
    assert many.score(texts, labels) > 0.9


def test_memory_stays_bounded_while_texts_are_converted(tmp_path):
    """Twice as many texts take no more memory than the terms, in a process of its own."""
    code = """
import resource, sys
from xtrellis.data import write_shards

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

file, folder = sys.argv[1:]
small = file + ".small"
with open(file, "rb") as rows, open(small, "wb") as some:
    some.write(b"".join(rows.readline() for _ in range(2000)))
write_shards(small, folder + "-small", shard_bytes=2**20)
before = peak()
shards = write_shards(file, folder, shard_bytes=2**20)
print(shards.nbytes, peak() - before, len(shards))
"""
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(300)])
    with open(tmp_path / "rows.tsv", "w") as lines:
        for label in rng.integers(0, 5, 40_000).tolist():
            lines.write(f"class{label}\t{' '.join(words[rng.integers(0, 300, 30)])}\n")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "rows.tsv"), str(tmp_path / "rows")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    size, growth, n_shards = map(float, done.stdout.split())
    assert n_shards > 10
    assert growth < size


# ---------------------------------------------------------------------- the command


# ---------------------------------------------------------------------- bad input


def refusal(call, *arguments, **options):
    with pytest.raises(ValueError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_bad_texts_are_refused(tmp_path):
    folder = tmp_path / "rows"
    bad = io.BytesIO(b"a\tone\nno tab here\n")
    assert refusal(write_shards, bad, folder).startswith("<stdin>:2: no tab after the label")
    assert "there is no rows.json" in refusal(open_shards, folder)
    few = tmp_path / "few.tsv"
    few.write_text("a\tone\nb\ttwo\n")
    assert "no term occurs in min_df=3 texts" in refusal(write_shards, few, folder, min_df=3)
    assert "words must be two lengths" in refusal(write_shards, few, folder, words=(3, 1))
    lines = io.BytesIO(b"a text without a label\n")
    assert "these lines have no labels; write label<TAB>text" in refusal(
        write_shards, lines, folder
    )
    wrong = io.BytesIO(b"a 1:1 x\n")
    assert "<stdin>:1: 'x' is not index:value" in refusal(write_shards, wrong, folder)


def test_batches_must_agree(tmp_path):
    X = np.eye(3)
    message = refusal(write_shards, [(X, [1, 2, 3]), (X[:, :2], [1, 2, 3])], tmp_path / "a")
    assert message.startswith("batch 1 has 2 features, those before it 3")
    assert "inconsistent numbers" in refusal(write_shards, [(X, [1])], tmp_path / "b")
    assert "must be whole numbers or texts" in refusal(
        write_shards, [(X, [0.5, 1, 2])], tmp_path / "c"
    )
    assert "there are no rows" in refusal(write_shards, [], tmp_path / "d")


def test_damaged_features_are_named(rows, tmp_path):
    shards = write_shards(io.BytesIO(tsv(*rows)), tmp_path)
    path = tmp_path / "features.xtrellis"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match=f"{path}: "):
        open_shards(shards.folder)
    path.unlink()
    with pytest.raises(DataError, match="missing; convert the rows again"):
        open_shards(shards.folder)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.5, 1.5], "must be whole numbers or texts"),
        (np.array(["a", np.nan], object), "must be whole numbers or texts"),
        (np.array(["a", None], object), "must be whole numbers or texts"),
        (np.array(["a", 3], object), "must be whole numbers or texts"),
        ([[1], [2]], "must be whole numbers or texts"),
        (np.array([2**63, 5], np.uint64), "are too large: 9223372036854775807 is the most"),
    ],
)
def test_labels_of_batches_that_are_none(tmp_path, labels, message):
    with pytest.raises(DataError, match=f"labels of batch 0 {message}"):
        write_shards([(np.eye(2), labels)], tmp_path / "rows")
    assert not (tmp_path / "rows").exists()


def test_objects_are_labels_by_their_type(tmp_path):
    """As data frames have them."""
    numbers = write_shards([(np.eye(2), np.array([7, np.int64(8)], object))], tmp_path / "numbers")
    assert numbers.classes.tolist() == [7, 8]
    words = write_shards([(np.eye(2), np.array(["7", np.str_("8")], object))], tmp_path / "words")
    assert words.classes.tolist() == ["7", "8"]


def test_long_numbers_are_no_labels(tmp_path):
    """As when rows are read into memory."""
    file = io.BytesIO(b"5 1:1\n" + b"9" * 20 + b" 1:1\n")
    with pytest.raises(DataError, match=r"<stdin>:2: the label has more than 18 digits"):
        write_shards(file, tmp_path)
    file = io.BytesIO(b"5 1:1\n" + b"9" * 20 + b" 1:1\nx 1:1\n")
    assert write_shards(file, tmp_path).classes.tolist() == ["5", "9" * 20, "x"]


@pytest.mark.parametrize("shard_bytes", [0, -1, 1.5, "1", None])
def test_sizes_of_shards_are_checked(tmp_path, shard_bytes):
    with pytest.raises(ValueError, match="shard_bytes must be an integer of at least 1, got "):
        write_shards([(np.eye(2), [0, 1])], tmp_path, shard_bytes=shard_bytes)
