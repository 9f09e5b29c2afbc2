"""Text in, labels out, and no vocabulary to manage."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

from samples import NOUNS, reports
from xtrellis import (
    LTLSClassifier,
    TrellisClassifier,
    TrellisEnsemble,
    TrellisTextClassifier,
    load_model,
)

SETTINGS = [
    {},
    {"words": (1, 3), "min_df": 2},
    {"words": None, "characters": (2, 4)},
    {"words": (1, 1), "characters": (3, 5), "min_df": 3},
    {"hash_size": 1 << 12},
    {"hash_size": 1 << 12, "characters": (3, 3)},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_learns_and_survives_file_and_pickle(settings, tmp_path):
    texts, labels = reports()
    classifier = TrellisClassifier(4, random_state=0)
    model = TrellisTextClassifier(classifier, **settings).fit(texts[:200], labels[:200])
    assert model.score(texts[200:], labels[200:]) > 0.95
    model.prune(texts[200:], labels[200:], max_drop=0.02)
    expected = model.predict_proba(texts)
    size = model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(texts), expected)
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert repr(loaded) == repr(model)
    assert loaded.save(tmp_path / "again") == size
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict_proba(texts), expected)


WORDS = [a + b for a in "kmnst" for b in "aeiou"]


def test_kinds_of_terms_that_are_all_rare():
    texts = [f"aab{k}" for k in range(60)]
    labels = ["ab"[k % 2] for k in range(60)]
    model = TrellisTextClassifier(words=(1, 1), characters=(2, 2), min_df=5)
    assert len(model.fit(texts, labels).predict(texts)) == 60
    assert model.features_.terms[0] == []


def test_sizes_of_numpy_and_broken_text_are_saved(tmp_path):
    texts, labels = reports(60)
    texts[0] += " \ud800"
    for settings in ({"hash_size": np.int64(256)}, {"characters": (1, 2)}):
        model = TrellisTextClassifier(**settings).fit(texts, labels)
        model.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict_proba(texts), model.predict_proba(texts))


def test_one_text_has_the_same_bits_as_in_a_batch():
    texts, labels = reports()
    model = TrellisTextClassifier(characters=(2, 3)).fit(texts, labels)
    batch = model.transform(texts)
    for row in range(20):
        np.testing.assert_array_equal(model.transform([texts[row]]).toarray(), batch[row].toarray())


def test_one_text_at_a_time():
    texts, labels = reports()
    for settings in ({}, {"hash_size": 256}, {"words": None, "characters": (2, 3)}):
        model = TrellisTextClassifier(TrellisClassifier(4, random_state=0), **settings)
        classify = model.fit(texts[:200], labels[:200]).row_predictor()
        some = [*texts[200:], "", "???", "nothing known"]
        assert [classify(text) for text in some] == model.predict(some).tolist()
    with pytest.raises(ValueError, match="takes one text, got b'text'"):
        classify(b"text")
    model = TrellisTextClassifier(TrellisEnsemble(TrellisClassifier(4), 2, random_state=0))
    classify = model.fit(texts[:200], labels[:200]).row_predictor()
    assert [classify(text) for text in some] == model.predict(some).tolist()


@pytest.mark.parametrize(
    "classifier",
    [
        TrellisClassifier(4, C=1.0, rerank=0.0, random_state=0),
        TrellisClassifier(4, C=1.0, rerank=2.0, random_state=0),
        TrellisClassifier(4, C=1.0, max_classes=40, random_state=0),
        TrellisClassifier(4, learner=SVC(), random_state=0),
        TrellisClassifier.paper(4, random_state=0),
        LTLSClassifier(random_state=0),
        TrellisEnsemble(TrellisClassifier(4, C=1.0), 2, random_state=0),
    ],
    ids=["lazy", "reranked", "free paths", "kernels", "paper", "ltls", "ensemble"],
)
def test_answers_do_not_depend_on_how_many_texts_are_asked_about(classifier):
    """A few texts take another way than many, without SciPy's matrices and their checks."""
    texts, labels = reports()
    model = TrellisTextClassifier(classifier).fit(texts[:200], labels[:200])
    some = [*texts[200:290], "", "nothing known"]
    expected, (best, probabilities) = model.predict(some), model.predict_top_k(some, 3)
    sure = model.predict(some, min_probability=0.5, otherwise="none")
    classify = model.row_predictor()
    assert [classify(text) for text in some] == expected.tolist()
    for part in (slice(0, 1), slice(80, 92)):
        few = some[part]
        assert model.predict(few).tolist() == expected[part].tolist()
        assert model.predict_top_k(few, 3)[0].tolist() == best[part].tolist()
        np.testing.assert_allclose(model.predict_top_k(few, 3)[1], probabilities[part], atol=1e-6)
        answers = model.predict(few, min_probability=0.5, otherwise="none")
        assert answers.tolist() == sure[part].tolist()


def test_works_in_cross_validation_and_search():
    texts, labels = reports()
    model = TrellisTextClassifier(TrellisClassifier(4, random_state=0))
    assert cross_val_score(model, texts, labels, cv=3).mean() > 0.9
    assert cross_val_score(model, pd.Series(texts), pd.Series(labels), cv=3).mean() > 0.9
    search = GridSearchCV(
        model, {"words": [(1, 1), (1, 2)], "classifier__C": [0.5, 2.0]}, cv=2
    ).fit(np.array(texts), labels)
    assert search.best_score_ > 0.9
    assert clone(search.best_estimator_).get_params()["classifier__C"] in (0.5, 2.0)


def test_layouts_are_kept_and_checked(tmp_path):
    texts, labels = reports()
    model = TrellisTextClassifier(TrellisClassifier(4, random_state=0)).fit(texts, labels)
    model.layout_ = {"text_column": "report", "delimiter": ";", "header": True}
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").layout_ == model.layout_
    for wrong in ({"x": "y"}, {"delimiter": ";;"}, {"header": "yes"}, {"text_column": True}):
        model.layout_ = wrong
        with pytest.raises(ValueError, match=r"layout_ has a part|delimiter must be one"):
            model.save(tmp_path / "model")


def test_data_frames_of_one_column():
    texts, labels = reports()
    frame = pd.DataFrame({"report": texts}, index=range(7, 307))
    model = TrellisTextClassifier(TrellisClassifier(4, random_state=0)).fit(frame, labels)
    assert model.predict(frame).tolist() == model.predict(texts).tolist()
    assert model.score(frame, pd.Series(labels)) > 0.9


def test_texts_and_labels_that_are_swapped():
    texts = [f"report {row} of a {noun}" for row, noun in enumerate(NOUNS * 5)]
    with pytest.warns(UserWarning, match="50 classes in 50 rows: nearly every row is a class of"):
        TrellisTextClassifier().fit(NOUNS * 5, texts)
    TrellisTextClassifier().fit(texts, NOUNS * 5)


def test_other_classifiers_and_sample_weights(tmp_path):
    texts, labels = reports()
    model = TrellisTextClassifier(LTLSClassifier(random_state=0)).fit(texts, labels)
    assert model.score(texts, labels) > 0.9
    model.save(tmp_path / "model")
    assert isinstance(load_model(tmp_path / "model").classifier_, LTLSClassifier)
    weights = (labels != "burn").astype(float)
    model = TrellisTextClassifier().fit(texts, labels, weights)
    assert "burn" in model.classes_
    assert "burn" not in model.predict(texts)


@pytest.mark.parametrize(
    "classifier",
    [
        TrellisClassifier(4, random_state=0),
        TrellisClassifier("auto", random_state=0),
        LTLSClassifier(calibration=0.1, random_state=0),
        TrellisEnsemble(TrellisClassifier(4), 2, random_state=0),
    ],
    ids=["trellis", "auto", "ltls", "ensemble"],
)
def test_classes_with_nothing_but_a_description(classifier):
    texts, labels = reports()
    known = labels != "burn"
    some = [text for text, keep in zip(texts, known, strict=True) if keep]
    model = TrellisTextClassifier(classifier)
    model.fit(some, labels[known], class_texts={"burn": "burn", "cut": ["a cut", "old cut"]})
    assert "burn" in model.classes_
    assert model.score(texts, labels) > 0.9
    again = clone(model).fit(
        some, labels[known].tolist(), np.ones(len(some)), class_texts={"burn": "burn"}
    )
    assert "burn" in again.classes_


def test_descriptions_are_not_held_out(monkeypatch):
    from xtrellis import fitting

    texts, labels = reports()
    seen = []

    def spy(y_encoded, share, rng, may_hold_out):
        seen.append(may_hold_out)
        return hold_out_rows(y_encoded, share, rng, may_hold_out)

    hold_out_rows = fitting.hold_out_rows
    monkeypatch.setattr(fitting, "hold_out_rows", spy)
    names = {noun: f"all about the {noun}" for noun in NOUNS}
    TrellisTextClassifier(TrellisClassifier(4)).fit(texts, labels, class_texts=names)
    assert (~seen[0]).sum() == len(NOUNS)


def test_bad_descriptions_of_classes():
    texts, labels = reports(50)
    with pytest.raises(TypeError, match="class_texts has a label 7, of another type"):
        TrellisTextClassifier().fit(texts, labels, class_texts={7: "seven"})
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        TrellisTextClassifier().fit(texts, labels, [1.0], class_texts={"a": "a"})
    with pytest.raises(ValueError, match="may_hold_out must be 3 truth values, one per row"):
        TrellisClassifier(2).fit(np.eye(3), [0, 1, 0], may_hold_out=[1, 0, 1])


def test_streams_are_learned_batch_by_batch(tmp_path):
    texts, labels = reports(600)
    model = TrellisTextClassifier(TrellisClassifier.paper(4), hash_size=1 << 10)
    for start in range(0, 500, 50):
        part = slice(start, start + 50)
        model.partial_fit(texts[part], labels[part], classes=NOUNS)
    assert model.score(texts[500:], labels[500:]) > 0.9
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(texts), model.predict_proba(texts))
    loaded.partial_fit(texts[:50], labels[:50])


def test_an_array_with_one_column_is_taken_like_a_frame_with_one():
    texts, labels = reports(50)
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0)).fit(texts, labels)
    table = pd.DataFrame({"text": texts}).to_numpy()
    np.testing.assert_array_equal(clf.predict(table), clf.predict(texts))
    with pytest.raises(ValueError, match=r"one-dimensional .* of shape \(25, 2\)"):
        clf.predict(table.reshape(-1, 2))


def test_a_warning_if_texts_are_single_words_that_occur_once():
    texts = [f"{stem}{ending}" for stem in ("talo", "kissa", "koira", "auto") for ending in WORDS]
    labels = [text[:4] for text in texts]
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0))
    with pytest.warns(UserWarning, match=r"share no term with any other text.*set characters"):
        clf.fit(texts, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.set_params(characters=(3, 5)).fit(texts, labels)
        clf.set_params(characters="auto").fit([f"eine {text}" for text in texts], labels)


def test_bad_input():
    texts, labels = reports(50)
    model = TrellisTextClassifier()
    with pytest.raises(ValueError, match="wrap it in a list"):
        model.fit("one text", ["a"])
    with pytest.raises(ValueError, match=r"X\[1\] must be a text, got None"):
        model.fit(["a", None], ["a", "b"])
    with pytest.raises(ValueError, match=r"X\[0\] must be a text, got b'a'"):
        model.fit([b"a", "b"], ["a", "b"])
    with pytest.raises(ValueError, match="0 samples"):
        model.fit([], [])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(texts, labels[:-1])
    with pytest.raises(ValueError, match="one-dimensional sequence of texts"):
        model.fit(np.array([texts]), labels)
    with pytest.raises(ValueError, match=r"one column of texts, got .* with 2: pass .* X\['a'\]"):
        model.fit(pd.DataFrame({"a": texts, "b": texts}), labels)
    with pytest.raises(ValueError, match="one column of texts, got a data frame with 0"):
        model.fit(pd.DataFrame(), [])
    with pytest.raises(ValueError, match="the texts contain no terms"):
        model.fit(["...", "?"], ["a", "b"])
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(texts)
    with pytest.raises(ValueError, match="both None"):
        TrellisTextClassifier(words=None, characters=None).fit(texts, labels)
    with pytest.raises(ValueError, match="words must be two lengths"):
        TrellisTextClassifier(words=(2, 1)).fit(texts, labels)
    with pytest.raises(ValueError, match="characters must be two lengths"):
        TrellisTextClassifier(characters=3).fit(texts, labels)
    with pytest.raises(ValueError, match="min_df must be an integer of at least 1"):
        TrellisTextClassifier(min_df=0).fit(texts, labels)
    with pytest.raises(ValueError, match="no term occurs in min_df=50 texts"):
        TrellisTextClassifier(words=(4, 4), min_df=50).fit(texts, labels)
    with pytest.raises(ValueError, match="no term occurs in min_df=999 texts"):
        TrellisTextClassifier(min_df=999).fit(texts, labels)
    with pytest.raises(ValueError, match="hash_size must be"):
        TrellisTextClassifier(hash_size=0).fit(texts, labels)
    with pytest.raises(ValueError, match="partial_fit needs hash_size"):
        TrellisTextClassifier(TrellisClassifier.paper(2)).partial_fit(texts, labels)
    with pytest.raises(AttributeError):
        TrellisTextClassifier().partial_fit  # noqa: B018  an SVM is not online


class Meanwhile(list):
    """Texts; as they are read, something happens that another thread might do."""

    def __init__(self, texts, happens):
        super().__init__(texts)
        self.happens = happens

    def __iter__(self):
        self.happens()
        return super().__iter__()


@pytest.mark.parametrize("n_texts", [3, 300])  # few texts go to the kernels without a matrix
@pytest.mark.parametrize("name", ["predict", "predict_top_k", "predict_proba", "predict_set"])
def test_a_fit_meanwhile_changes_terms_and_weights_together(name, n_texts):
    """Terms of the new model with weights of the old would be read behind the ends of arrays."""
    settings = {"random_state": 0, "C": 1.0}
    model = TrellisTextClassifier(TrellisClassifier(4, **settings), words=(1, 1))
    texts, labels = reports(1200)
    model.fit(texts[:1000], labels[:1000])
    asked = [texts[k % len(texts)] for k in range(n_texts)]
    expected = getattr(model, name)(asked)
    long = [f"{text} z{k}" for k, text in enumerate(texts)]
    found = getattr(model, name)(Meanwhile(asked, lambda: model.fit(long, labels)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_fit_that_is_interrupted_leaves_terms_and_weights(monkeypatch):
    texts, labels = reports(80)
    model = TrellisTextClassifier(TrellisClassifier(4, random_state=0)).fit(texts, labels)
    before = dict(vars(model))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrellisClassifier, "_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit([f"{text} now" for text in texts], labels)
    assert vars(model) == before


# ---------------------------------------------------------------------- classes that come and go


def test_classes_of_texts_come_and_go():
    texts, labels = reports()
    labels = np.array(labels)
    first = np.isin(labels, np.unique(labels)[:-2])
    room = len(np.unique(labels))
    clf = TrellisTextClassifier(TrellisClassifier(max_classes=room, random_state=0))
    clf.fit([text for text, known in zip(texts, first, strict=True) if known], labels[first])
    inside, terms = clf.classifier_, clf.features_
    clf.add_classes(texts, labels)
    assert inside.model_ is not clf.classifier_.model_, "a copy was changed, not what others hold"
    assert clf.features_ is terms
    assert set(clf.classes_) == set(labels)
    assert clf.score(texts, labels) > 0.8
    gone = np.unique(labels)[0]
    assert gone not in clf.remove_classes([gone]).predict(texts)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        clf.add_classes(texts, labels[:-1])


def test_an_ensemble_of_texts_has_no_room_for_classes():
    assert not hasattr(TrellisTextClassifier(TrellisEnsemble()), "add_classes")
