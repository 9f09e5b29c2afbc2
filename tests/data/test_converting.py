"""Converters: texts of all formats become the features that they have in memory."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from samples import reports
from xtrellis import TrellisClassifier, TrellisEnsemble, TrellisTextClassifier, load_model
from xtrellis.command.app import app
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


def run(*arguments, code=0):
    """Standard output and error of the command."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


def test_the_command_takes_a_folder_of_texts_where_it_takes_a_file(rows, tmp_path):
    file, folder, model = (tmp_path / name for name in ("rows.tsv", "rows", "model"))
    file.write_bytes(tsv(*rows))
    _, err = run("convert", file, folder, "--shard-size", "0.02")
    assert err.startswith("2,500 rows, ")
    assert len(open_shards(folder)) > 3
    run("train", folder, model, "-C", "1", "--valid", file)
    labelled = ("--format", "tsv")
    run("train", file, tmp_path / "other", "-C", "1")
    expected = run("predict", tmp_path / "other", file, *labelled)[0]
    assert run("predict", model, file, *labelled)[0] == expected
    assert run("predict", model, folder)[0] == expected
    facts = [json.loads(run("evaluate", model, each, "--json")[0]) for each in (file, folder)]
    assert facts[0]["accuracy"] == facts[1]["accuracy"] > 0.9
    assert run("prune", model, folder, tmp_path / "one")[1].endswith("kB\n")
    run("prune", model, file, tmp_path / "two", *labelled)
    pruned = [run("predict", tmp_path / name, file, *labelled)[0] for name in ("one", "two")]
    assert pruned[0] == pruned[1]
    _, err = run("train", file, tmp_path / "none", "--valid", folder, code=1)
    assert err == f"error: {folder}: with texts to train on, --valid must name a file of texts\n"
    _, err = run("train", folder, tmp_path / "small", "-C", "1", "--memory", "0.001")
    assert "2,500 rows" in err
    small = run("predict", tmp_path / "small", file, *labelled)[0].splitlines()
    same = [one == other for one, other in zip(small, expected.splitlines(), strict=True)]
    assert np.mean(same) > 0.97


def test_the_command_names_what_does_not_go_with_a_folder(rows, tmp_path):
    file, folder, model = (tmp_path / name for name in ("rows.tsv", "rows", "model"))
    file.write_bytes(tsv(*rows))
    run("convert", file, folder, "--shard-size", "0.02")
    low = ("--memory", "0.001")
    for options, message in [
        (("--learner", "arow", *low), "--learner needs the rows in memory, which --memory 0.001"),
        (("--training", "independent", *low), "--training needs the rows in memory"),
        (("--trellises", "3", *low), "--trellises needs the rows in memory"),
        (("--width", "auto", *low), "--width auto needs the rows in memory"),
        (("--prune", "0.01"), "--prune needs --valid if rows come from such a folder"),
        (("--valid", folder), "with a folder of texts, --valid must name a file of texts"),
        (("--class-texts", file), "--class-texts needs a file of texts to train on, not a folder"),
    ]:
        _, err = run("train", folder, model, *options, code=1)
        assert message in err
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert not model.exists()
    run("train", file, model, "-C", "1", "--words", "1")
    _, err = run("predict", model, folder, code=1)
    assert err.startswith(f"error: {folder}: its terms are not those that the model was trained on")
    numbers = tmp_path / "numbers"
    write_shards([(np.eye(4), [0, 1, 2, 3])], numbers)
    _, err = run("predict", model, numbers, code=1)
    assert "these are svmlight features, but the model takes texts" in err


def test_features_of_another_base_are_refused(tmp_path):
    file, folder = tmp_path / "rows.svm", tmp_path / "rows"
    file.write_text("".join(f"{k % 3} {k % 3 + 1}:1 {k % 7 + 5}:0.5\n" for k in range(8000)))
    run("convert", file, folder, "--shard-size", "0.01")
    low = ("--memory", "0.001")
    _, err = run("train", folder, tmp_path / "model", "--zero-based", *low, code=1)
    assert "its features were counted from 1 when it was converted" in err
    (tmp_path / "valid.svm").write_text("1 0:1 3:1\n2 2:1\n")
    valid = ("--valid", tmp_path / "valid.svm")
    _, err = run("train", folder, tmp_path / "model", *valid, *low, code=1)
    assert "there is a feature 0, but those of" in err


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


def test_terms_are_found_when_texts_are_converted(tmp_path):
    """And not when they are trained on, where options about them would be ignored."""
    file, folder = tmp_path / "rows.tsv", tmp_path / "rows"
    file.write_bytes(b"a\tred wine\nb\tgreen tea\n" * 5)
    assert CliRunner().invoke(app, ["convert", str(file), str(folder)]).exit_code == 0
    done = CliRunner().invoke(app, ["train", str(folder), str(tmp_path / "new"), "--words", "1"])
    reason = "its texts became features when it was converted; omit --words"
    assert (done.exit_code, done.stderr) == (1, f"error: {folder}: {reason}\n")
    assert not (tmp_path / "new").exists()
