"""A classifier of texts finds out whether words, characters or both tell most."""

import numpy as np
import pytest

from samples import reports
from xtrellis import (
    LTLSClassifier,
    TrellisClassifier,
    TrellisTextClassifier,
    load_icd10cm,
    load_model,
)
from xtrellis import choosing_terms as module
from xtrellis.choosing_terms import Labelled, best_terms
from xtrellis.selection.terms import CANDIDATES, CHARACTERS, HASHED, USUAL, WORDS, Terms

STEMS = [a + b + c for a in ("ta", "ki", "ko", "su") for b in "lnrs" for c in ("do", "ve", "mi")]
ENDINGS = [a + b for a in ("", "sta", "lle", "na", "ksi") for b in ("", "ni", "si", "mme")]


def forms():
    """Words of 48 stems with twenty endings each, which occur once; some are set aside."""
    pairs = [(stem + ending, stem) for stem in STEMS for ending in ENDINGS]
    order = np.random.RandomState(0).permutation(len(pairs))
    texts, labels = zip(*(pairs[k] for k in order), strict=True)
    return list(texts[200:]), list(labels[200:]), list(texts[:200]), list(labels[:200])


def data_of(texts, labels, sample_weight=None, may_hold_out=None):
    n_texts = len(texts)
    return Labelled(
        texts,
        np.unique(labels, return_inverse=True)[1],
        np.ones(n_texts, np.float32) if sample_weight is None else sample_weight,
        np.ones(n_texts, bool) if may_hold_out is None else may_hold_out,
    )


def test_words_in_all_their_forms_are_told_by_their_characters(tmp_path):
    texts, labels, unseen, wanted = forms()
    words = TrellisTextClassifier(TrellisClassifier(random_state=0), words=(1, 2))
    with pytest.warns(UserWarning, match="share no term"):
        words.fit(texts, labels)
    assert words.score(unseen, wanted) < 0.1
    clf = TrellisTextClassifier(TrellisClassifier(random_state=0)).fit(texts, labels)
    assert clf.features_.characters == CHARACTERS
    assert clf.score(unseen, wanted) > 0.9
    assert [trial.terms for trial in clf.term_trials_] == list(CANDIDATES)
    clf.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(unseen), clf.predict_proba(unseen))
    assert loaded.term_trials_ == clf.term_trials_
    given = clf.features_.words, clf.features_.characters, clf.features_.word_share
    names = "words", "characters", "word_share"
    again = TrellisTextClassifier(
        TrellisClassifier(random_state=0), **dict(zip(names, given, strict=True))
    ).fit(texts, labels)
    assert again.term_trials_ == ()
    np.testing.assert_array_equal(again.predict_proba(unseen), clf.predict_proba(unseen))


def test_diagnoses_are_told_by_both():
    split = load_icd10cm()
    texts, labels = split.train_texts[::2], split.train_labels[::2]
    terms, trials = best_terms(data_of(texts, labels))
    accuracies = [trial.accuracy for trial in trials]
    assert terms.words == WORDS
    assert terms.characters == CHARACTERS
    assert max(accuracies[2:]) > accuracies[0] + 0.01


def test_few_texts_have_the_usual_terms():
    texts, labels = reports(250)
    clf = TrellisTextClassifier(TrellisClassifier(4, random_state=0)).fit(texts, labels)
    assert clf.term_trials_ == ()
    assert (clf.features_.words, clf.features_.characters) == (WORDS, None)
    one_class = data_of(texts * 4, ["a"] * 1000)
    assert best_terms(one_class) == (USUAL, ())


def test_one_kind_of_terms_that_is_given_excludes_the_other():
    for settings, terms in (
        ({"words": (1, 1)}, Terms((1, 1), None)),
        ({"characters": (3, 5)}, Terms(None, (3, 5))),
        ({"words": None}, Terms(None, CHARACTERS)),
        ({"characters": None}, Terms(WORDS, None)),
        ({"words": (1, 1), "characters": (2, 3)}, Terms((1, 1), (2, 3))),
    ):
        features = TrellisTextClassifier(**settings).new_features()
        assert Terms(features.words, features.characters, features.word_share) == terms


def test_any_learner_and_hashes_have_them():
    texts, labels, unseen, wanted = forms()
    ltls = TrellisTextClassifier(LTLSClassifier(random_state=0)).fit(texts, labels)
    assert ltls.features_.characters == CHARACTERS
    hashed = TrellisTextClassifier(TrellisClassifier(random_state=0), hash_size=2**14)
    hashed.fit(texts, labels)
    assert [trial.terms for trial in hashed.term_trials_] == list(HASHED)
    assert hashed.score(unseen, wanted) > 0.9


def test_texts_that_do_not_count_are_not_looked_at():
    texts, labels, _, _ = forms()
    noise = [f"noise{k}" for k in range(len(texts))]
    weights = np.repeat(np.float32([1, 0]), len(texts))
    both = data_of(texts + noise, labels + labels[::-1], weights)
    some = module._sample(both, np.random.RandomState(0))
    assert len(some.texts) == len(texts)
    assert set(some.texts) == set(texts)


def test_descriptions_of_classes_are_not_held_out(monkeypatch):
    texts, labels, _, _ = forms()
    names = {stem: [f"der stem {stem}", stem] for stem in STEMS}
    seen = []

    def spy(terms, inside, outside, *settings):
        seen.append(outside.texts)
        return 0.5 if terms.characters is None else 0.9

    monkeypatch.setattr(module, "_accuracy", spy)
    TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0)).fit(
        texts, labels, class_texts=names
    )
    assert len(seen) == len(CANDIDATES)
    assert not {text for each in names.values() for text in each} & set(seen[0]) - set(texts)


def test_a_sample_of_many_texts(monkeypatch):
    """Whole classes, but not too much of one; and not too much text."""
    monkeypatch.setattr(module, "_MANY_TEXTS", 600)
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(80), np.r_[1000, [20] * 79])
    data = data_of([f"text {k}" for k in range(len(y))], y)
    some = module._sample(data, rng)
    sizes = np.bincount(some.y_encoded)
    assert len(some.texts) == 600
    assert sizes[0] in (0, 100)
    assert np.isin(sizes[1:], [0, 20]).mean() > 0.95
    monkeypatch.setattr(module, "_MANY_CHARACTERS", 1_000)
    assert 900 < sum(map(len, module._sample(data, rng).texts)) <= 1_000


def test_labels_that_are_wrong_are_named_as_ever():
    texts = [f"text {k}" for k in range(400)]
    for labels, message in (
        (np.array([1, "a"] * 200, object), "mixes labels of types"),
        ([None, "a"] * 200, "missing"),
        (["a"] * 400, "at least two classes"),
    ):
        with pytest.raises(ValueError, match=message):
            TrellisTextClassifier().fit(texts, labels)
    with pytest.raises(ValueError, match="word_share needs words and characters"):
        TrellisTextClassifier(word_share=0.5).fit(texts, ["a", "b"] * 200)
    with pytest.raises(ValueError, match="word_share needs both"):
        TrellisTextClassifier(words=(1, 1), word_share=0.5).fit(texts, ["a", "b"] * 200)
    settings = {"words": (1, 1), "characters": (1, 2)}
    with pytest.raises(ValueError, match="must be between 0 and 1, or None; got 2"):
        TrellisTextClassifier(**settings, word_share=2).fit(texts, ["a", "b"] * 200)
    with pytest.raises(ValueError, match="exclude each other"):
        TrellisTextClassifier(**settings, word_share=0.5, hash_size=64).fit(texts, ["a"] * 400)
