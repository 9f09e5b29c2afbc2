"""evaluate: the same numbers as by hand, for every kind of model, and how it reads."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss, top_k_accuracy_score

from samples import topics
from test_text import reports
from xtrellis import (
    LTLSClassifier,
    TrellisClassifier,
    TrellisEnsemble,
    TrellisTextClassifier,
    load_model,
)
from xtrellis.evaluation import evaluate
from xtrellis.evaluation.results import details_in_words

MODELS = {
    "local": TrellisClassifier(5, C=1.0, random_state=0),
    "ltls": LTLSClassifier(random_state=0),
    "ensemble": TrellisEnsemble(TrellisClassifier(5, C=1.0), n_estimators=2, random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    X, y = topics(n_classes=15)
    return MODELS[request.param].fit(X[:700], y[:700]), X[700:], y[700:]


def test_numbers_are_those_of_scikit_learn(fitted):
    clf, X, y = fitted
    found = evaluate(clf, X, y, k=3)
    proba = clf.predict_proba(X)
    assert found.rows == len(y)
    assert found.accuracy == pytest.approx(accuracy_score(y, clf.predict(X)))
    assert found.top_k_accuracy == {3: pytest.approx(top_k_accuracy_score(y, proba, k=3), abs=0.01)}
    assert found.log_loss == pytest.approx(log_loss(y, proba / proba.sum(1)[:, None]), rel=1e-3)
    assert found.mean_probability == pytest.approx(proba.max(axis=1).mean())
    assert found.curve[0].accuracy == pytest.approx(found.accuracy)
    assert found.microseconds_per_row > 0


def test_sizes_of_classes_are_those_of_training(fitted, tmp_path):
    clf, X, y = fitted
    sizes = np.bincount(topics(n_classes=15)[1][:700])
    found = evaluate(clf, X, y)
    assert found.sizes_known
    assert found.by_class_size[0].most == sizes.max()
    assert found.by_class_size[-1].least == sizes.min()
    assert sum(group.n_rows for group in found.by_class_size) == len(y)
    clf.save(tmp_path / "model")
    assert evaluate(load_model(tmp_path / "model"), X, y).by_class_size == found.by_class_size


def test_classes_that_training_lacks(fitted):
    clf, X, y = fitted
    strange = np.where(np.arange(len(y)) < 10, 99, y)
    found = evaluate(clf, X, strange)
    assert found.rows_of_unknown_classes == 10
    assert "rows of unknown classes count as wrong, and are not part of the log loss" in str(found)
    right = clf.predict(X) == strange
    assert found.accuracy == pytest.approx(right.mean())
    assert found.log_loss == pytest.approx(evaluate(clf, X[10:], y[10:]).log_loss)
    texts = strange.astype(object)  # of another type than the labels of training
    texts[:10] = "none of these"
    other = evaluate(clf, X, texts)
    assert (other.rows_of_unknown_classes, other.accuracy) == (10, found.accuracy)
    assert other.macro_f1 == pytest.approx(found.macro_f1)


def test_sizes_grow_with_what_is_learned_and_older_models_have_none():
    X, y = topics(n_classes=6, n_rows=200)
    clf = TrellisClassifier(3, learner="arow", random_state=0)
    clf.partial_fit(X[:100], y[:100], classes=np.arange(6)).partial_fit(X[100:150], y[100:150])
    np.testing.assert_array_equal(clf.model_.class_sizes.values(6), np.bincount(y[:150]))
    object.__setattr__(clf.model_, "class_sizes", None)
    found = evaluate(clf, X[150:], y[150:])
    assert not found.sizes_known
    assert found.by_class_size[0].most == np.bincount(y[150:]).max()
    clf.partial_fit(X, y)
    assert clf.model_.class_sizes is None


def test_texts_and_data_frames():
    texts, labels = reports(300)
    labels = np.array([f"{label[:1]}/{label}" for label in labels])
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0))
    clf.fit(texts[:200], labels[:200])
    wrong = np.roll(labels[200:], 1)
    found = evaluate(clf, texts[200:], wrong)
    assert found.confusions[0].examples[0] in texts
    assert [level.depth for level in found.levels] == [1, 2]
    assert found.levels[1].accuracy == found.accuracy
    text = str(found)
    for words in ("macro f1", "worst confusions", "by level", " taken for "):
        assert words in text
    assert "share answered" not in text
    assert "share answered" in "\n".join(details_in_words(found, with_curve=True))
    same = evaluate(clf, pd.Series(texts[200:]), wrong)
    assert same.confusions == found.confusions
    content = json.loads(json.dumps(found.to_dict(), default=str))
    assert content["accuracy"] == found.accuracy
    assert content["by_class_size"]


def test_many_rows_go_batch_by_batch(monkeypatch, capsys):
    from xtrellis.evaluation import evaluator

    X, y = topics(n_classes=6, n_rows=200)
    clf = TrellisClassifier(3, C=1.0, random_state=0).fit(X, y)
    whole = evaluate(clf, X, y, verbose=1)
    monkeypatch.setattr(evaluator, "_BATCH", 7)
    parts = evaluate(clf, X, y)
    assert parts.confusions == whole.confusions
    assert parts.log_loss == pytest.approx(whole.log_loss)
    assert capsys.readouterr().err == "", "it took less than two seconds"


def test_wrong_input_is_refused():
    X, y = topics(n_classes=6, n_rows=200)
    clf = TrellisClassifier(3, C=1.0, random_state=0).fit(X, y)
    few = X[:3].toarray().tolist()
    for rows, labels in ((X, y[:-1]), (X[:0], y[:0]), (X, np.eye(200)), (few, y[:2])):
        with pytest.raises(ValueError, match=r"inconsistent numbers|one label per row"):
            evaluate(clf, rows, labels)
    with pytest.raises(ValueError, match="k must be"):
        evaluate(clf, X, y, k=0)
