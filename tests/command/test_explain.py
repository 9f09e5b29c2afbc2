"""``xtrellis explain``: words of a text, numbered features of a row, pictures and JSON."""

import json

import pytest
from sklearn.datasets import dump_svmlight_file

from samples import topics
from terminal import printed, refused
from test_text import reports
from xtrellis import TrellisClassifier, TrellisTextClassifier, load_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    texts, labels = reports(200)
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0)).fit(texts, labels)
    clf.save(folder / "texts")
    X, y = topics(n_classes=5, n_features=30, n_rows=100)
    dump_svmlight_file(X, y, str(folder / "rows.svm"), zero_based=False)
    printed("train", folder / "rows.svm", folder / "rows", "-C", 1)
    return folder


def test_a_text(folder):
    clf, (texts, labels) = load_model(folder / "texts"), reports(200)
    out = printed("explain", folder / "texts", texts[0])
    assert out == f"{clf.explain(texts[0])}\n"
    assert printed("explain", folder / "texts", "-", stdin=f"{texts[0]}\n") == out
    other = next(label for label in labels if label != clf.predict(texts[:1])[0])
    out = printed("explain", folder / "texts", texts[0], "--label", other, "--json")
    found = json.loads(out)
    assert found["label"] == other
    assert found == json.loads(json.dumps(clf.explain(texts[0], other).to_dict()))


def test_features_are_numbered_as_in_the_file(folder):
    line = (folder / "rows.svm").read_text().splitlines()[0].partition(" ")[2]
    numbers = {int(pair.partition(":")[0]) for pair in line.split()}
    found = json.loads(printed("explain", folder / "rows", line, "--json"))
    assert {each["feature"] for each in found["contributions"]} <= numbers
    assert found["contributions"]


def test_a_picture(folder):
    printed("explain", folder / "texts", "red apple", "--plot", folder / "why.svg")
    assert (folder / "why.svg").read_text().startswith("<?xml")


def test_errors_are_one_line(folder):
    error = refused("explain", folder / "texts", "x", "--label", "nothing")
    assert error == "error: --label 'nothing' is not a class of the model\n"
    assert "error: " in refused("explain", folder / "rows", "no features")
    assert refused("explain", folder / "rows", "no features").count("\n") == 1
    refused("explain", folder / "texts", "x", "--plot", folder / "texts")
    refused("explain", folder / "texts", "x", "--plot", folder / "why.xls")
