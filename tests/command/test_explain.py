"""``xtrellis explain``: words of a text, numbered features of a row, pictures and JSON."""

import json

import pytest
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from samples import topics
from test_text import reports
from xtrellis import TrellisClassifier, TrellisTextClassifier, load_model
from xtrellis.command.app import app


def run(*arguments, stdin="", code=0):
    done = CliRunner().invoke(app, list(map(str, arguments)), input=stdin)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    texts, labels = reports(200)
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0)).fit(texts, labels)
    clf.save(folder / "texts")
    X, y = topics(n_classes=5, n_features=30, n_rows=100)
    dump_svmlight_file(X, y, str(folder / "rows.svm"), zero_based=False)
    run("train", folder / "rows.svm", folder / "rows", "-C", 1)
    return folder


def test_a_text(folder):
    clf, (texts, labels) = load_model(folder / "texts"), reports(200)
    out = run("explain", folder / "texts", texts[0])
    assert out == f"{clf.explain(texts[0])}\n"
    assert run("explain", folder / "texts", "-", stdin=f"{texts[0]}\n") == out
    other = next(label for label in labels if label != clf.predict(texts[:1])[0])
    out = run("explain", folder / "texts", texts[0], "--label", other, "--json")
    found = json.loads(out)
    assert found["label"] == other
    assert found == json.loads(json.dumps(clf.explain(texts[0], other).to_dict()))


def test_features_are_numbered_as_in_the_file(folder):
    line = (folder / "rows.svm").read_text().splitlines()[0].partition(" ")[2]
    numbers = {int(pair.partition(":")[0]) for pair in line.split()}
    found = json.loads(run("explain", folder / "rows", line, "--json"))
    assert {each["feature"] for each in found["contributions"]} <= numbers
    assert found["contributions"]


def test_a_picture(folder):
    run("explain", folder / "texts", "red apple", "--plot", folder / "why.svg")
    assert (folder / "why.svg").read_text().startswith("<?xml")


def test_errors_are_one_line(folder):
    error = run("explain", folder / "texts", "x", "--label", "nothing", code=1)
    assert error == "error: --label 'nothing' is not a class of the model\n"
    assert "error: " in run("explain", folder / "rows", "no features", code=1)
    assert run("explain", folder / "rows", "no features", code=1).count("\n") == 1
    run("explain", folder / "texts", "x", "--plot", folder / "texts", code=1)
