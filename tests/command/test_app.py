"""The command, as people run it: in a real process, and in pipes.

Where only what it says and writes matters, it runs in the test's own process, as ``command``: a
process of its own takes seconds to start.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from samples import reports, topics
from terminal import run as command
from xtrellis import TrellisTextClassifier, load_model
from xtrellis.command.train import _validation_share

COMMAND = [sys.executable, "-m", "xtrellis"]


def run(*arguments, stdin=b"", code=0):
    """Standard output and error of the command."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, timeout=300
    )
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done.stdout.decode(), done.stderr.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with training and test texts, and a model of them."""
    folder = tmp_path_factory.mktemp("command")
    texts, labels = reports(400)
    for name, part in (("train.tsv", slice(0, 300)), ("test.tsv", slice(300, 400))):
        lines = [f"{a}\t{b}\n" for a, b in zip(labels[part], texts[part], strict=True)]
        (folder / name).write_text("".join(lines))
    (folder / "test.txt").write_text("".join(f"{text}\n" for text in texts[300:]))
    out, err = run("train", folder / "train.tsv", folder / "model", "--width", "4")
    assert out == ""
    assert "300 rows, 10 classes" in err
    assert "%" not in err, "no progress bar in a pipe"
    return folder


# ---------------------------------------------------------------------- help


def test_help_version_and_wrong_commands():
    out, _ = run("--help")
    for name in (
        "train",
        "predict",
        "explain",
        "evaluate",
        "widths",
        "prune",
        "inspect",
        "convert",
        "demo",
    ):
        assert f"\n  {name}" in out
        assert "--help" in run(name, "--help")[0]
    assert run("--version")[0].startswith("xtrellis ")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from xtrellis.command.app import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'numba', 'sklearn', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    environment = {**os.environ, "_XTRELLIS_COMPLETE": f"source_{shell}"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=environment)
    assert "xtrellis" in done.stdout
    words = {"_XTRELLIS_COMPLETE": "complete_bash", "COMP_WORDS": "xtrellis ev", "COMP_CWORD": "1"}
    if shell == "bash":
        done = subprocess.run(COMMAND, capture_output=True, text=True, env={**os.environ, **words})
        assert done.stdout.split() == ["evaluate"]


# ---------------------------------------------------------------------- from text to labels


def test_predict_gives_what_the_library_gives(folder):
    texts = (folder / "test.txt").read_text().splitlines()
    model = load_model(folder / "model")
    expected = model.predict(texts)
    out, _ = run("predict", folder / "model", folder / "test.txt")
    assert out.splitlines() == expected.tolist()
    labels, shares = model.predict_top_k(texts, 3)
    out, _ = run("predict", folder / "model", folder / "test.txt", "-k", 3, "--proba")
    for line, codes, row in zip(out.splitlines(), labels, shares, strict=True):
        fields = line.split("\t")
        assert fields[::2] == codes.tolist()
        np.testing.assert_allclose(np.array(fields[1::2], float), row, atol=1e-4)
    out, _ = run("predict", folder / "model", folder / "test.tsv", "-k", 2, "--json", "-f", "tsv")
    first = json.loads(out.splitlines()[0])
    assert first["labels"] == labels[0, :2].tolist()
    assert first["probabilities"] == pytest.approx(shares[0, :2], abs=1e-6)
    assert len(out.splitlines()) == len(texts)


def test_pipes_in_and_out(folder):
    """Each line is answered when it comes, before the next is written."""
    with subprocess.Popen(
        [*COMMAND, "predict", str(folder / "model")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        for text, label in (
            (b"severe burn of the hand\n", b"burn\n"),
            (b"mild cough\n", b"cough\n"),
        ):
            process.stdin.write(text)
            process.stdin.flush()
            assert process.stdout.readline() == label
        process.stdin.close()
        assert process.wait() == 0


def test_reader_that_has_had_enough(folder):
    lines = "severe burn\n" * 200_000
    line = f"{' '.join(COMMAND)} predict {folder / 'model'} | head -n 1"
    done = subprocess.run(["sh", "-c", line], input=lines, capture_output=True, text=True)
    assert done.stdout == "burn\n"
    assert done.stderr == ""


def test_train_from_standard_input_prune_and_evaluate(folder):
    content = (folder / "train.tsv").read_bytes()
    _, err = run("train", "-", folder / "piped", "--prune", "0.01", "--width", "4", stdin=content)
    assert "piped: " in err
    assert "removed: " in err
    plain, pruned = load_model(folder / "model"), load_model(folder / "piped")
    assert pruned.classifier_.weights_.n_nonzero < plain.classifier_.weights_.n_nonzero
    out, _ = run("evaluate", folder / "piped", folder / "test.tsv", "--json")
    facts = json.loads(out)
    assert facts["rows"] == 100
    assert facts["accuracy"] > 0.9
    assert facts["top_5_accuracy"] >= facts["accuracy"]
    model = load_model(folder / "piped")
    texts, labels = zip(
        *(line.split("\t")[::-1] for line in (folder / "test.tsv").read_text().splitlines()),
        strict=True,
    )
    found, shares = model.predict_top_k(texts, 1)
    bins = [(shares[:, 0] > low / 15) & (shares[:, 0] <= (low + 1) / 15) for low in range(15)]
    right = found[:, 0] == np.array(labels)
    error = sum(abs(right[own].sum() - shares[own, 0].sum()) for own in bins) / len(labels)
    assert facts["expected_calibration_error"] == pytest.approx(error)
    assert facts["microseconds_per_row"] > 0
    out, _ = run("evaluate", folder / "model", folder / "test.tsv")
    assert "top 5 accuracy" in out


def test_prune_and_inspect(folder):
    _, err = command("prune", folder / "model", folder / "test.tsv", folder / "small")
    assert "removed" in err
    assert (folder / "small").stat().st_size < (folder / "model").stat().st_size
    out, _ = command("inspect", folder / "small", "--json")
    facts = json.loads(out)
    assert facts["estimator"] == "TrellisTextClassifier"
    assert facts["classes"] == 10
    assert facts["pruned_at"] > 0
    assert "slice width" in command("inspect", folder / "model")[0]


@pytest.mark.parametrize(
    ("max_drop", "n_rows", "expected"),
    [(0.01, 10_000, 0.1), (0.01, 500, 0.2), (0.01, 100, 0.5), (0.0, 10**6, 0.5)],
)
def test_few_rows_are_no_measure_of_a_small_drop(max_drop, n_rows, expected):
    assert _validation_share(max_drop, n_rows) == pytest.approx(expected)


def test_several_trellises(folder, tmp_path):
    common = "train", folder / "train.tsv", tmp_path / "three", "--width", "4", "--trellises"
    _, err = command(*common, "3", "--prune", "0.01")
    assert "3 trellises, b = 4" in err
    model = load_model(tmp_path / "three")
    assert len(model.classifier_.estimators_) == 3
    texts = (folder / "test.txt").read_text().splitlines()
    out, _ = command("predict", tmp_path / "three", folder / "test.txt")
    assert out.splitlines() == model.predict(texts).tolist()
    out, _ = command("predict", tmp_path / "three", folder / "test.txt", "-k", 2, "--json")
    assert json.loads(out.splitlines()[0])["labels"] == model.predict_top_k(texts, 2)[0][0].tolist()
    out, _ = command("evaluate", tmp_path / "three", folder / "test.tsv", "--json")
    assert json.loads(out)["accuracy"] > 0.9
    _, err = command("prune", tmp_path / "three", folder / "test.tsv", tmp_path / "small")
    assert "removed: " in err
    facts = json.loads(command("inspect", tmp_path / "small", "--json")[0])
    assert (facts["trellises"], facts["slice_width"], facts["classes"]) == (3, 4, 10)
    members = load_model(tmp_path / "small").classifier_.estimators_
    assert facts["weights"] == sum(member.weights_.n_nonzero for member in members)
    assert facts["edges"] == sum(member.trellis_.n_edges for member in members)
    assert len(facts["temperature"]) == 3
    assert "trellises" in command("inspect", tmp_path / "small")[0]
    assert "--trellises" in command(*common, "0", code=2)[1]


def test_svmlight_from_training_to_prediction(tmp_path):
    X, y = topics()
    dump_svmlight_file(X[:700], y[:700], str(tmp_path / "train.svm"), zero_based=False)
    dump_svmlight_file(X[700:], y[700:], str(tmp_path / "test.svm"), zero_based=False)
    _, err = command(
        *("train", tmp_path / "train.svm", tmp_path / "model"),
        *("--valid", tmp_path / "test.svm", "--training", "paper", "--width", "5"),
    )
    assert "accuracy on" in err
    out, _ = command(
        "predict", tmp_path / "model", tmp_path / "test.svm", "-o", tmp_path / "labels"
    )
    assert out == ""
    found = np.array((tmp_path / "labels").read_text().split(), int)
    assert (found == y[700:]).mean() > 0.7
    _, err = command("predict", tmp_path / "model", tmp_path / "train.svm", "-f", "tsv", code=1)
    assert "error: " in err


def test_labels_of_another_type_and_unknown_ones(folder, tmp_path):
    texts, labels = reports(200)
    numbers = np.unique(labels, return_inverse=True)[1]
    TrellisTextClassifier().fit(texts, numbers).save(tmp_path / "model")
    lines = [f"{a}\t{b}\n" for a, b in zip(numbers, texts, strict=True)]
    (tmp_path / "rows.tsv").write_text("".join(lines))
    facts = json.loads(command("evaluate", tmp_path / "model", tmp_path / "rows.tsv", "--json")[0])
    assert facts["accuracy"] > 0.95
    _, err = command("evaluate", tmp_path / "model", folder / "test.tsv", code=1)
    assert "has another type than the model's" in err
    (tmp_path / "valid.tsv").write_text((folder / "test.tsv").read_text() + "unseen\ta text\n")
    _, err = command(
        *("train", folder / "train.tsv", tmp_path / "pruned", "--width", "4"),
        *("--valid", tmp_path / "valid.tsv", "--prune", "0.01"),
    )
    assert "accuracy on" in err


def test_descriptions_of_classes(folder, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("drowning\tnear drowning\ndrowning\tdrowned in water\nburn\tburns\n")
    model = tmp_path / "model"
    _, err = command("train", folder / "train.tsv", model, "--width", "4", "--class-texts", names)
    assert "300 rows, 11 classes" in err
    assert command("predict", model, stdin=b"drowned in water\n")[0] == "drowning\n"
    svmlight = tmp_path / "rows.svm"
    svmlight.write_text("1 1:1\n2 2:1\n")
    _, err = command("train", svmlight, model, "--class-texts", names, code=1)
    assert "--class-texts needs texts to train on" in err
    names.write_text("burn\t \n")
    _, err = command("train", folder / "train.tsv", model, "--class-texts", names, code=1)
    assert f"{names}: the text of the class 'burn' is empty" in err
    _, err = command("train", folder / "train.tsv", names, "--class-texts", names, code=1)
    assert names.read_text() == "burn\t \n"


def test_the_layout_is_remembered(folder, tmp_path):
    rows = (folder / "train.tsv").read_text().splitlines()
    lines = ["{1};x;{0}".format(*row.split("\t")) for row in rows]
    table = tmp_path / "rows.csv"
    table.write_text("\n".join(["report;more;kind", *lines]) + "\n")
    model = tmp_path / "model"
    columns = "--delimiter", ";", "--text-column", "report", "--label-column", "kind"
    command("train", table, model, "--width", "4", "-C", "1", *columns)
    expected = command("predict", model, folder / "train.tsv", "--format", "tsv")[0]
    assert command("predict", model, table)[0] == expected
    assert command("predict", model, stdin=table.read_bytes())[0] == expected
    assert json.loads(command("evaluate", model, table, "--json")[0])["accuracy"] > 0.9
    assert "delimiter ';'" in command("inspect", model)[0]


def test_widths(folder):
    out, _ = command(
        *("widths", folder / "train.tsv", "--widths", "2,4,8", "--training", "paper"),
        *("--plot", folder / "widths.png"),
    )
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["b", "2", "4", "8"]
    assert sum("<- by bound" in line for line in lines) == 1
    assert (folder / "widths.png").read_bytes().startswith(b"\x89PNG")
    hashed, _ = command("widths", folder / "train.tsv", "--widths", "2,4,8", "--hash-size", "64")
    assert [line.split()[0] for line in hashed.splitlines()] == ["b", "2", "4", "8"]
    assert hashed != command("widths", folder / "train.tsv", "--widths", "2,4,8")[0]
    _, err = command("widths", folder / "train.tsv", "--words", "0", code=2)
    assert "no terms are left" in err


# ---------------------------------------------------------------------- what goes wrong


def test_errors_are_one_line_with_the_place(folder, tmp_path):
    (tmp_path / "bad.tsv").write_text("a\tfirst\nno tab here\n")
    _, err = run("train", tmp_path / "bad.tsv", tmp_path / "model", code=1)
    assert err.count("\n") == 1
    assert "bad.tsv:2: no tab" in err
    assert not (tmp_path / "model").exists()
    _, err = command("train", folder / "train.tsv", folder / "train.tsv", code=1)
    assert "this is the same file as" in err
    cut = (folder / "model").read_bytes()[:-100]
    (tmp_path / "cut").write_bytes(cut)
    cases = [
        (("predict", tmp_path / "none"), "none: No such file or directory"),
        (("predict", tmp_path / "cut"), "cut: "),
        (("predict", folder / "test.txt"), "test.txt: it is not a model file"),
        (("evaluate", folder / "model", folder / "test.txt"), "have no labels"),
        (("train", folder / "train.tsv", tmp_path / "no folder" / "model"), "no such folder"),
        (
            ("train", folder / "train.tsv", tmp_path / "model", "--width", "1"),
            "error: --width must",
        ),
        (("predict", folder / "model", folder / "train.tsv"), "pass --format tsv to drop them"),
    ]
    for arguments, message in cases:
        _, err = command(*arguments, code=1)
        assert err.startswith("error: ")
        assert message in err
        assert err.count("\n") == 1
    _, err = command("train", folder / "train.tsv", tmp_path / "model", "--width", "x", code=2)
    assert "--width must be a number or auto" in err
    for options, message in (
        (("--training", "paper", "--learner", "svm"), "paper uses --learner arow, not --learner"),
        (("--training", "joint", "--learner", "arow"), "joint uses --learner perceptron, not"),
        (("--training", "joint", "-C", "3"), "-C applies only to --learner svm, not to perceptron"),
        (("--learner", "arow", "-C", "3"), "-C applies only to --learner svm, not to arow"),
        (("--words", "2-1"), "--words must be a range such as 1-2, or 0; got '2-1'"),
        (
            ("--words", "0", "--characters", "0"),
            "--words and --characters are both 0: no terms are left",
        ),
    ):
        _, err = command("train", folder / "train.tsv", tmp_path / "model", *options, code=2)
        assert message in " ".join(err.split())


def test_library_reads_what_the_command_wrote(folder):
    model = load_model(folder / "model")
    assert model.predict(["a severe cough"]).tolist() == ["cough"]
