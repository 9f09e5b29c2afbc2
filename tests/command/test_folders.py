"""Folders of converted rows, wherever the commands take a file."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from samples import reports
from xtrellis.command.app import app
from xtrellis.data import open_shards, write_shards


@pytest.fixture(scope="module")
def rows():
    return reports(n_rows=2500)


def tsv(texts, labels):
    return "".join(f"{label}\t{text}\n" for text, label in zip(texts, labels, strict=True)).encode()


def run(*arguments, code=0):
    """Standard output and error of the command."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


def test_the_command_takes_a_folder_of_texts_where_it_takes_a_file(rows, tmp_path):
    file, folder, model = (tmp_path / name for name in ("rows.tsv", "rows", "model"))
    file.write_bytes(tsv(*rows))
    _, err = run("convert", file, folder, "--shard-size", "0.02")
    assert "2,500 rows, " in err
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
        (("--prune", "0.01", *low), "--prune needs --valid if rows are not read into memory"),
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
    assert err.endswith(f"convert it with --like {model}, or name the file of texts instead\n")
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


@pytest.fixture(scope="module")
def split(rows, tmp_path_factory):
    """Training and validation rows, each as a file and as a folder with the terms of training."""
    texts, labels = rows
    folder = tmp_path_factory.mktemp("split")
    (folder / "train.tsv").write_bytes(tsv(texts[:2000], labels[:2000]))
    (folder / "valid.tsv").write_bytes(tsv(texts[2000:], labels[2000:]))
    run("convert", folder / "train.tsv", folder / "train")
    like = ("--like", folder / "train")
    run("convert", folder / "valid.tsv", folder / "valid", *like, "--shard-size", "0.01")
    assert len(open_shards(folder / "valid")) > 1
    return folder


@pytest.mark.parametrize("train", ["train.tsv", "train"])
def test_validation_rows_may_be_a_folder_of_texts(split, tmp_path, train):
    """The accuracy and the pruned model are those of validation rows in a file."""
    found = []
    for valid in ("valid.tsv", "valid"):
        options = "-C", "1", "--valid", split / valid, "--prune", "0.02"
        _, err = run("train", split / train, tmp_path / valid, *options)
        assert "accuracy on" in err
        predicted = run("predict", tmp_path / valid, split / "valid.tsv", "-f", "tsv")[0]
        found.append((err.partition("accuracy on")[2].split()[1], predicted))
    assert found[0] == found[1]


def test_a_folder_of_texts_is_pruned_with_a_part_of_its_rows(split, tmp_path):
    outputs = []
    for train in ("train.tsv", "train"):
        run("train", split / train, tmp_path / train, "-C", "1", "--prune", "0.02")
        outputs.append(run("predict", tmp_path / train, split / "valid.tsv", "-f", "tsv")[0])
    assert outputs[0] == outputs[1]


def test_texts_are_converted_like_a_model(split, tmp_path):
    model, folder = tmp_path / "model", tmp_path / "like"
    run("train", split / "train.tsv", model, "-C", "1", "--min-df", "2")
    run("convert", split / "valid.tsv", folder, "--like", model)
    facts = [
        json.loads(run("evaluate", model, each, "--json")[0])
        for each in (split / "valid.tsv", folder)
    ]
    assert facts[0]["accuracy"] == facts[1]["accuracy"]
    assert run("predict", model, folder)[0].count("\n") == 500
    run("prune", model, folder, tmp_path / "small")


def test_validation_rows_of_another_kind_or_with_other_terms_are_refused(split, tmp_path):
    """Before training begins."""
    other, numbers, model = (tmp_path / name for name in ("other", "numbers", "model"))
    run("convert", split / "valid.tsv", other)  # with terms of its own
    write_shards([(np.eye(4), [0, 1, 2, 3])], numbers)
    for train, valid, message in [
        ("train", other, "its terms are not those of the training rows; convert it with --like"),
        ("train.tsv", other, "its terms are not those of the training rows; name the file of"),
        ("train", numbers, "these are svmlight features, but training rows are texts"),
        ("train.tsv", numbers, "these are svmlight features, but training rows are texts"),
        (numbers, split / "valid", "these are texts, but training rows are svmlight features"),
    ]:
        _, err = run("train", split / train, model, "--valid", valid, code=1)
        assert err.splitlines()[-1].startswith(f"error: {valid}: {message}")
        assert not model.exists()
    described = ("--class-texts", split / "valid")
    _, err = run("train", split / "train.tsv", model, *described, code=1)
    assert err.endswith("--class-texts must name a file of texts, not a folder\n")
    for arguments, message in [
        (("--like", numbers), f"--like {numbers}: there are no terms, as its rows are not texts"),
        (("--like", split / "train", "--min-df", "2"), "--like says which terms there are; omit"),
    ]:
        _, err = run("convert", split / "valid.tsv", tmp_path / "new", *arguments, code=1)
        assert err.startswith(f"error: {message}")
        assert not (tmp_path / "new").exists()


def test_terms_are_found_when_texts_are_converted(tmp_path):
    """And not when they are trained on, where options about them would be ignored."""
    file, folder = tmp_path / "rows.tsv", tmp_path / "rows"
    file.write_bytes(b"a\tred wine\nb\tgreen tea\n" * 5)
    assert CliRunner().invoke(app, ["convert", str(file), str(folder)]).exit_code == 0
    done = CliRunner().invoke(app, ["train", str(folder), str(tmp_path / "new"), "--words", "1"])
    reason = "its texts became features when it was converted; omit --words"
    assert (done.exit_code, done.stderr) == (1, f"error: {folder}: {reason}\n")
    assert not (tmp_path / "new").exists()
