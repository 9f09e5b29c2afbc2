"""``xtrellis predict``: labels that are likely enough, sets of labels, and none of these."""

import json

import numpy as np
import pytest

from terminal import printed, refused, run
from test_text import reports
from xtrellis import TrellisClassifier, TrellisEnsemble, TrellisTextClassifier, load_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    texts, labels = reports(1_500)
    classifier = TrellisClassifier(C=1.0, calibration=0.4, random_state=0)
    clf = TrellisTextClassifier(classifier).fit(texts[:1_400], labels[:1_400])
    clf.save(folder / "model")
    lines = [*texts[1_400:1_450], "nothing that it knows"]
    (folder / "rows.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def clf(folder):
    return load_model(folder / "model")


def lines_of(folder):
    return (folder / "rows.txt").read_text().splitlines()


def test_labels_that_are_not_likely_enough(folder, clf):
    options = ("--min-probability", 0.5, "--otherwise", "none of these")
    out = printed("predict", folder / "model", folder / "rows.txt", *options).splitlines()
    expected = clf.predict(lines_of(folder), min_probability=0.5, otherwise="none of these")
    assert out == expected.tolist()
    assert out[-1] == "none of these"
    assert len(set(out)) > 5
    out = printed("predict", folder / "model", folder / "rows.txt", *options[:2])
    assert out.endswith("\n\n")


def test_several_labels_and_probabilities(folder, clf):
    options = ("-k", 3, "--proba", "--min-probability", 0.05)
    out = printed("predict", folder / "model", folder / "rows.txt", *options).splitlines()
    labels, shares = clf.predict_top_k(lines_of(folder), 3)
    for line, own, p in zip(out, labels, shares, strict=True):
        assert (
            line.split("\t")[::2]
            == [label for label, share in zip(own, p, strict=True) if share >= 0.05]
            or not line
        )
    found = printed(
        "predict", folder / "model", folder / "rows.txt", *options, "--json"
    ).splitlines()
    assert [len(json.loads(line)["labels"]) for line in found] == (shares >= 0.05).sum(1).tolist()


def test_sets(folder, clf):
    sets = clf.predict_set(lines_of(folder), 0.97)
    out = printed("predict", folder / "model", folder / "rows.txt", "--coverage", 0.97)
    assert out == "".join("\t".join(own) + "\n" for own in sets)
    out = printed("predict", folder / "model", folder / "rows.txt", "--coverage", 0.97, "--json")
    assert [json.loads(line)["labels"] for line in out.splitlines()] == [s.tolist() for s in sets]
    sets, shares = clf.predict_set(lines_of(folder), 0.97, return_proba=True)
    for line, own, likely in zip(out.splitlines(), sets, shares, strict=True):
        found = json.loads(line)
        assert found["labels"] == own.tolist()
        np.testing.assert_allclose(found["probabilities"], likely, atol=1e-6)
    out = printed("predict", folder / "model", folder / "rows.txt", "--coverage", 0.97, "--proba")
    assert out.splitlines() == [
        "\t".join(f"{label}\t{p:.4f}" for label, p in zip(own, likely, strict=True))
        for own, likely in zip(sets, shares, strict=True)
    ]
    options = ("--coverage", 0.2, "--otherwise", "?")
    out = printed("predict", folder / "model", folder / "rows.txt", *options).splitlines()
    empty = [len(own) == 0 for own in clf.predict_set(lines_of(folder), 0.2)]
    assert [line == "?" for line in out] == empty
    assert any(empty)
    assert not all(empty)


def test_what_cannot_be_said_is_one_line(folder, tmp_path):
    texts, labels = reports(100)
    member = TrellisClassifier(C=1.0, random_state=0)
    few = TrellisTextClassifier(member).fit(texts, labels)
    several = TrellisTextClassifier(TrellisEnsemble(member, n_estimators=2)).fit(texts, labels)
    for model, reason in (
        (few, "at least 100 rows that were held out"),
        (several, "an ensemble has none"),
    ):
        model.save(tmp_path / "model")
        error = refused("predict", tmp_path / "model", folder / "rows.txt", "--coverage", 0.9)
        assert reason in error
        assert error.count("\n") == 1


# ---------------------------------------------------------------------- texts of unknown words


@pytest.mark.parametrize("options", [(), ("-k", 2), ("--coverage", 0.9)])
def test_a_text_without_a_known_word_is_told(folder, options):
    _, err = run("predict", folder / "model", folder / "rows.txt", *options)
    assert err == "warning: row 51 contains no term that the model knows, so its label is a guess\n"


def test_texts_without_a_known_word_are_counted(folder):
    out, err = run("predict", folder / "model", "--json", stdin="\nzzz\n" * 600)
    assert [json.loads(line)["known_terms"] for line in out.splitlines()] == [0] * 1200
    assert err == (
        "warning: 1,200 of 1,200 rows contain no term that the model knows, such as row 1, so "
        "their labels are guesses\n"
    )


def test_known_texts_and_rows_of_numbers_have_no_warning(folder, tmp_path):
    known = lines_of(folder)[0] + "\n"
    out, err = run("predict", folder / "model", "--json", stdin=known)
    assert (json.loads(out)["known_terms"] > 0, err) == (True, "")
    TrellisClassifier(random_state=0).fit(np.eye(5), range(5)).save(tmp_path / "model")
    (tmp_path / "rows.svm").write_text("0 2:1\n0\n")
    out, err = run("predict", tmp_path / "model", tmp_path / "rows.svm", "--json", "--one-based")
    assert ("known_terms" in out, err) == (False, "")
