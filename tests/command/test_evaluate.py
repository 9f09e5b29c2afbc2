"""``xtrellis evaluate``: as text, as JSON, and as one page that stands alone."""

import json
import re

import pytest

from command.test_report import Sources
from terminal import printed, refused
from test_text import reports
from xtrellis import TrellisClassifier, TrellisTextClassifier, load_model
from xtrellis.evaluation import evaluate


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    texts, labels = reports(400)
    labels = [f"<{label[:1]}>/{label}" for label in labels]
    classifier = TrellisClassifier(C=1.0, random_state=0)
    TrellisTextClassifier(classifier).fit(texts[:300], labels[:300]).save(folder / "model")
    labels[300:320] = labels[299:319]  # wrong ones
    lines = [f"{a}\t{b}\n" for a, b in zip(labels[300:], texts[300:], strict=True)]
    (folder / "rows.tsv").write_text("".join(lines))
    return folder


def test_text_and_json_are_those_of_the_function(folder):
    rows = [line.split("\t") for line in (folder / "rows.tsv").read_text().splitlines()]
    labels, texts = zip(*rows, strict=True)
    found = evaluate(load_model(folder / "model"), texts, labels, k=2)
    facts = json.loads(
        printed("evaluate", folder / "model", folder / "rows.tsv", "-k", 2, "--json")
    )
    expected = json.loads(json.dumps(found.to_dict()))
    for name in set(expected) - {"microseconds_per_row"}:
        assert facts[name] == expected[name], name
    out = printed("evaluate", folder / "model", folder / "rows.tsv")
    assert "by class size" in out
    assert "worst confusions" in out
    assert "by level of the label" in out
    assert "share answered" not in out
    out = printed("evaluate", folder / "model", folder / "rows.tsv", "--curve", "--separator", "")
    assert out.count("%") == 20
    assert "by level" not in out


def test_the_report_stands_alone_and_shows_labels_as_they_are(folder):
    printed("evaluate", folder / "model", folder / "rows.tsv", "--html", folder / "report.html")
    page = (folder / "report.html").read_text()
    names = re.findall(r"<b>[^<]*</b><span>([^<]*)</span>", page)
    assert {"calibration error expected by chance", "rows of unknown classes"} < set(names)
    assert "Larger dots: more rows" in page
    assert Sources(page).sources == []
    assert not re.search(r"url\(|@import|<script", page)
    assert page.count("<svg") == 4
    assert 'name="viewport"' in page
    assert "&lt;" in page
    assert "<table" not in page, "too wide for a phone"
    for words in ("Worst confusions", "macro-F1", "Accuracy by class size", "level"):
        assert words in page


def test_a_picture_of_the_curve(folder):
    printed("evaluate", folder / "model", folder / "rows.tsv", "--plot", folder / "curve.svg")
    assert (folder / "curve.svg").read_text().startswith("<?xml")


def test_targets_are_checked_first(folder):
    error = refused("evaluate", folder / "model", folder / "rows.tsv", "--html", "no/x.html")
    assert "no such folder" in error
    error = refused(
        *("evaluate", folder / "model", folder / "rows.tsv"), *("--html", folder / "rows.tsv")
    )
    assert "same file" in error
