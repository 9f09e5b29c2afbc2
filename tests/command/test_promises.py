"""What the commands promise about features, labels and files, each run within this process."""

import json

import numpy as np
import pytest

from terminal import run
from xtrellis import TrellisClassifier, TrellisTextClassifier, load_model
from xtrellis.evaluation import expected_calibration_error

# ---------------------------------------------------------------------- svmlight features


@pytest.mark.parametrize("first", [0, 1])
def test_features_are_counted_as_in_training(tmp_path, first):
    """Rows without the first feature are not shifted, whatever they are counted from."""
    rows = [f"{c} {c}:1\n" for c in range(first, 6)]
    (tmp_path / "train.svm").write_text("".join(rows * 3))
    (tmp_path / "test.svm").write_text("".join(rows[2:]))
    _, err = run(
        *("train", tmp_path / "train.svm", tmp_path / "model", "--valid", tmp_path / "test.svm")
    )
    assert f"{6 - first} features" in err
    assert "accuracy on" in err
    assert "100.00%" in err
    facts = json.loads(run("inspect", tmp_path / "model", "--json")[0])
    assert facts["first_feature"] == first
    assert run("predict", tmp_path / "model", stdin=b"3 3:1\n")[0] == "3\n"
    facts = json.loads(run("evaluate", tmp_path / "model", tmp_path / "test.svm", "--json")[0])
    assert facts["accuracy"] == 1.0
    for option, shift in (("--zero-based", first), ("--one-based", first - 1)):
        row = f"{3 - shift}:1\n".encode()
        assert run("predict", tmp_path / "model", option, stdin=row)[0] == "3\n"


def test_validation_rows_have_a_say_in_where_features_start(tmp_path):
    (tmp_path / "train.svm").write_text("1 1:1\n2 2:1\n" * 3)
    (tmp_path / "valid.svm").write_text("1 0:1 1:1\n")
    train = "train", tmp_path / "train.svm", tmp_path / "model"
    run(*train, "--valid", tmp_path / "valid.svm")
    assert load_model(tmp_path / "model").first_feature_ == 0
    run(*train, "--zero-based")
    assert load_model(tmp_path / "model").first_feature_ == 0
    run(*train)
    assert load_model(tmp_path / "model").first_feature_ == 1


def test_models_that_do_not_know_where_features_start(tmp_path):
    """Trained by the library on rows counted from 1, and shifted by the reader."""
    TrellisClassifier(random_state=0).fit(np.eye(5), range(5)).save(tmp_path / "model")
    _, err = run("predict", tmp_path / "model", stdin=b"3:1\n", code=1)
    assert "pass --zero-based or --one-based" in err
    assert run("predict", tmp_path / "model", "--one-based", stdin=b"3:1\n")[0] == "2\n"
    assert run("predict", tmp_path / "model", "--zero-based", stdin=b"3:1\n")[0] == "3\n"
    assert run("predict", tmp_path / "model", stdin=b"0:1\n3:1\n")[0] == "0\n3\n"


def test_features_that_did_not_occur_in_training_are_ignored(tmp_path):
    (tmp_path / "train.svm").write_text("1 1:1\n2 2:1\n" * 3)
    (tmp_path / "test.svm").write_text("1 1:1 7:9\n2 0:5 2:1\n1 8:1 9:1\n")
    run("train", tmp_path / "train.svm", tmp_path / "model")
    out, err = run("predict", tmp_path / "model", tmp_path / "test.svm")
    assert out.splitlines()[:2] == ["1", "2"]
    note = "test.svm:1: ignored 4 features that did not occur in training, such as 7\n"
    assert err.endswith(note)
    assert err.count("\n") == 1
    out, err = run("evaluate", tmp_path / "model", tmp_path / "test.svm", "--json")
    assert json.loads(out)["rows"] == 3
    assert err.endswith(note)
    _, err = run("prune", tmp_path / "model", tmp_path / "test.svm", tmp_path / "small")
    assert note in err
    assert load_model(tmp_path / "small").first_feature_ == 1


# ---------------------------------------------------------------------- labels


def test_rows_in_the_wrong_order_are_doubted_once(tmp_path):
    rows = tmp_path / "rows.tsv"
    rows.write_text("".join(f"text {n % 90}\tlabel{n % 9}\n" for n in range(100)))
    _, err = run("train", rows, tmp_path / "model", "--prune", "0.1")
    warned = [line for line in err.splitlines() if "nearly every row" in line]
    assert len(warned) == 1
    assert warned[0].endswith("a tsv row is label<TAB>text")


@pytest.fixture(scope="module")
def tabs(tmp_path_factory):
    """A model of the library whose labels break lines."""
    path = tmp_path_factory.mktemp("tabs") / "model"
    texts, labels = ["red apple", "fast car"] * 10, ["a\tb", "c\nd"] * 10
    TrellisTextClassifier().fit(texts, labels).save(path)
    return path


def test_labels_that_break_lines_are_refused_or_quoted(tabs, tmp_path):
    (tmp_path / "rows.csv").write_text('text,label\nx,"a\nb"\ny,c\n')
    _, err = run("train", tmp_path / "rows.csv", tmp_path / "new", code=1)
    assert r"rows.csv: the label 'a\nb' contains a tab or a newline" in err
    _, err = run("predict", tabs, stdin=b"red apple\n", code=1)
    assert "pass --json" in err
    out, _ = run("predict", tabs, "--json", stdin=b"red apple\nfast car\n")
    assert [json.loads(line)["labels"] for line in out.splitlines()] == [["a\tb"], ["c\nd"]]
    out, _ = run("inspect", tabs)
    assert r"'a\tb', 'c\nd'" in out


# ---------------------------------------------------------------------- calibration


def test_expected_calibration_error_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    confidence = np.r_[rng.random(500), 0.0, 1.0, 1.0]
    right = rng.random(503) < confidence
    error = 0.0
    for low in range(15):
        own = (confidence >= low / 15) & ((confidence < (low + 1) / 15) | (low == 14))
        if own.any():
            error += own.mean() * abs(right[own].mean() - confidence[own].mean())
    assert expected_calibration_error(right, confidence) == pytest.approx(error)
    assert expected_calibration_error(np.array([True]), np.array([1.0])) == 0
    assert expected_calibration_error(np.array([False]), np.array([1.0])) == 1
