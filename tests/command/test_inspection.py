"""What ``inspect`` tells of a model: its classes, what was chosen and why, how it was read."""

import json

import pytest

from samples import topics
from terminal import printed
from xtrellis import TrellisClassifier
from xtrellis.command.inspection import _trials
from xtrellis.selection.settings import Selection, Trial
from xtrellis.selection.terms import Terms

ENDINGS = ["rast", "lung", "sche", "nett", "tuch", "wind", "pold", "gern", "zimt", "quax"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    X, y = topics(n_classes=40, n_rows=2_000)
    path = tmp_path_factory.mktemp("inspect") / "model"
    TrellisClassifier(random_state=0, rerank=0.5).fit(X, y).save(path)
    return path


def inspect(*arguments):
    return printed("inspect", *arguments)


def test_all_labels(model):
    assert inspect(model, "--labels").split() == [str(label) for label in range(40)]
    assert json.loads(inspect(model, "--labels", "--json")) == list(range(40))


def test_what_was_chosen_and_why(model):
    table = inspect(model)
    assert "reranking" in table
    assert "on, with strength 0.5" in table
    assert "dropped in training" in table
    assert "BestPaths(" in table
    assert table.count("<- chosen") == 1
    assert "order        C  width  log loss  accuracy   top-5" in table
    facts = json.loads(inspect(model, "--json"))
    assert facts["labels"] == ["0", "1", "2", "3", "4"]
    assert facts["reranking"] == 0.5
    assert isinstance(facts["dropped_in_training"], float)
    (selection,) = facts["selections"]
    assert {"order", "C", "slice_width", "trials"} <= selection.keys()
    assert selection["C"] in [trial["C"] for trial in selection["trials"]]


def test_terms_that_were_tried(tmp_path):
    """Texts that share parts of words: endings tell their classes, whole words nothing."""
    texts = [f"{a}{b}{end}" for a in "bdfgklmnp" for b in "aeiou" for end in ENDINGS]
    rows = tmp_path / "rows.tsv"
    rows.write_text("".join(f"{text[2:]}\t{text}\n" for text in texts))
    printed("train", rows, tmp_path / "model", "-C", "1")
    table = inspect(tmp_path / "model")
    assert "terms tried on held-out texts" in table
    (chosen,) = [line for line in table.splitlines() if line.endswith("<- chosen")]
    assert "characters 1-4" in chosen
    facts = json.loads(inspect(tmp_path / "model", "--json"))
    assert chosen.split("%", 1)[1].removesuffix("<- chosen").strip() == str(Terms(**facts["terms"]))
    assert [trial["terms"]["words"] for trial in facts["term_trials"]] == [[1, 2], None] + [
        [1, 2]
    ] * 2
    printed("train", rows, tmp_path / "given", "-C", "1", "--characters", "2-3")
    table = inspect(tmp_path / "given")
    assert "terms tried" not in table
    assert "characters 2-3" in table


def test_trials_of_some_of_the_classes():
    trials = [Trial("plain", 1.0, width, 0.9, 0.9, 0.9) for width in (9, 18, 36)]
    for width, line in ((100, 4), (200, 5), (400, 6)):
        table = _trials(Selection("plain", 1.0, width, 81, tuple(trials)), 10_000).splitlines()
        assert [number for number, row in enumerate(table) if row.endswith("<- chosen")] == [line]
        assert table[2] == (f"(widths suit 81 classes; for all 10,000 the chosen one is {width})")
        assert "rows of 81 classes" in table[0]
