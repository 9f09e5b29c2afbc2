"""Explanations add up: to the margins, to the sums, and over every kind of model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from samples import topics
from test_text import reports
from xtrellis import (
    LTLSClassifier,
    TrellisClassifier,
    TrellisEnsemble,
    TrellisTextClassifier,
    load_model,
)
from xtrellis.decoding.lazy import normalised

MODELS = {
    "local": TrellisClassifier(4, C=1.0, random_state=0),
    "reranked": TrellisClassifier(4, C=1.0, rerank=2.0, random_state=0),
    "local hinge": TrellisClassifier(4, decoding="squared_hinge", random_state=0),
    "paper": TrellisClassifier.paper(4, random_state=0),
    "twins": TrellisClassifier(30, training="independent", C=1.0, random_state=0),
    "ltls": LTLSClassifier(random_state=0),
    "ensemble": TrellisEnsemble(TrellisClassifier(5, C=1.0), n_estimators=2, random_state=0),
}


@pytest.fixture(scope="module")
def data():
    return topics()


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, data):
    return MODELS[request.param].fit(*data)


def members(clf):
    return getattr(clf, "estimators_", [clf])


# ---------------------------------------------------------------------- sums


def test_contributions_and_bias_sum_to_the_margin_of_every_edge(fitted, data):
    X, y = data
    for i in (0, 7, 20):
        margins = [member.margins(X[i])[0] for member in members(fitted)]
        for label in (None, y[i + 1]):
            found = fitted.explain(X[i], label)
            for step in found.steps:
                total = step.bias + sum(each.amount for each in step.contributions)
                assert total == pytest.approx(step.margin, abs=2e-5)
                assert step.margin == margins[step.trellis][step.edge]
            total = found.bias + sum(each.amount for each in found.contributions)
            assert total == pytest.approx(found.margin, abs=1e-4)
            chosen = [step.margin for step in found.steps if not step.is_forced]
            assert found.margin == pytest.approx(sum(chosen) / len(members(fitted)))


def test_a_step_that_is_the_only_way_adds_nothing(data):
    """One-vs-rest has one choice, at the source; its margin is that of the class."""
    X, y = data
    clf = TrellisClassifier(random_state=0).fit(X, y)
    found = clf.explain(X[3])
    assert [step.is_forced for step in found.steps] == [False, True, True]
    assert found.margin == found.steps[0].margin
    assert str(found).splitlines()[-1] == "  vertex 0 of slice 1 -> sink: the only way"


def test_the_steps_are_the_path_of_the_class(fitted, data):
    X, y = data
    found = fitted.explain(X[3], y[5])
    for number, member in enumerate(members(fitted)):
        encoded = np.searchsorted(member.classes_, y[5])
        path = member.assignment_.path_of_class[encoded]
        edges = [step.edge for step in found.steps if step.trellis == number]
        assert edges == [edge for edge in member.trellis_.path_edges(path) if edge >= 0]
        vertices = [step.vertex for step in found.steps if step.trellis == number]
        visited = member.trellis_.path_vertices(path)
        assert vertices == [0, *visited[visited >= 0]]


def test_features_are_in_order_of_their_amounts_and_of_the_row(fitted, data):
    X, _ = data
    found = fitted.explain(X[3])
    amounts = [abs(each.amount) for each in found.contributions]
    assert amounts == sorted(amounts, reverse=True)
    assert {each.feature for each in found.contributions} <= set(X[3].indices)
    for each in found.contributions:
        assert each.value == X[3, each.feature]
    assert {*found.in_favour, *found.against} == {*found.contributions}


# ---------------------------------------------------------------------- labels and probabilities


def test_the_predicted_class_and_its_probability(fitted, data):
    X, y = data
    labels, shares = fitted.predict_top_k(X[:10], 1)
    for i in range(10):
        found = fitted.explain(X[i])
        assert found.label == found.predicted == labels[i, 0]
        assert found.probability == pytest.approx(shares[i, 0])
        other = fitted.explain(X[i], y[i])
        own = fitted.predict_proba(X[i])[0, np.searchsorted(fitted.classes_, y[i])]
        assert other.probability == pytest.approx(own)


def test_probabilities_at_a_vertex_are_those_of_the_softmax(data):
    X, _ = data
    clf = MODELS["local"].fit(*data)
    found = clf.explain(X[0])
    costs = normalised(clf.loss_).edge_costs(clf.trellis_, clf.margins(X[0]).astype(np.float64))[0]
    for step in found.steps:
        assert step.probability == pytest.approx(np.exp(-costs[step.edge]), rel=1e-3)
        leaving = clf.trellis_.vertex_edges(step.slice, step.vertex)
        assert np.exp(-costs[leaving]).sum() == pytest.approx(1)
        shares = [choice.probability for choice in step.choices]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] == pytest.approx(np.exp(-costs[leaving].min()), rel=1e-3)


def test_the_class_behind_a_choice_is_the_best_of_those_that_take_it(data):
    X, _ = data
    clf = MODELS["local"].fit(*data)
    trellis = clf.trellis_
    every = trellis.path_edges(np.arange(trellis.n_classes))
    for i in range(5):
        found = clf.explain(X[i])
        costs = clf.loss_.edge_costs(trellis, clf.margins(X[i]))[0]
        totals = np.where(every >= 0, costs[np.maximum(every, 0)], 0).sum(axis=1)
        for at, step in enumerate(found.steps):
            for choice in step.choices:
                same = (every[:, :at] == [each.edge for each in found.steps[:at]]).all(axis=1)
                heads = trellis.path_vertices(np.arange(trellis.n_classes))
                next_vertex = heads[:, at] if at < heads.shape[1] else np.full(len(heads), -1)
                same &= next_vertex == (-1 if choice.head is None else choice.head)
                best = np.flatnonzero(same)[totals[same].argmin()]
                assert choice.label == clf.classes_[clf.assignment_.class_of_path[best]]


def test_the_papers_code_has_no_choices_at_vertices(data):
    X, _ = data
    for name in ("paper", "ltls", "local hinge"):
        found = MODELS[name].fit(*data).explain(X[0])
        assert all(step.choices == () and step.probability is None for step in found.steps)
        assert "instead" not in str(found)


def test_re_ranking_is_part_of_the_explanation(data):
    X, _ = data
    found = MODELS["reranked"].fit(*data).explain(X[0])
    assert 0 < found.similarity <= 1
    assert "centroid" in str(found)
    plain = clone(MODELS["local"]).set_params(rerank=0).fit(*data)
    assert plain.explain(X[0]).similarity is None


# ---------------------------------------------------------------------- the strongest features


def test_top_features_are_sums_over_the_path(fitted, data):
    label = data[1][4]
    totals = 0
    for member in members(fitted):
        path = member.assignment_.path_of_class[np.searchsorted(member.classes_, label)]
        edges = member.trellis_.path_edges(path)
        weights, _ = member.weights_.dense_columns(edges[edges >= 0])
        totals = totals + weights.sum(axis=1, dtype=np.float64) / len(members(fitted))
    found = fitted.top_features(label, top=7)
    assert [weight for _, weight in found] == pytest.approx(np.sort(totals)[::-1][:7], rel=1e-5)
    assert [totals[feature] for feature, _ in found] == pytest.approx([w for _, w in found])


# ---------------------------------------------------------------------- rows, names and errors


def test_rows_of_every_kind(data):
    X, y = data
    clf = MODELS["local"].fit(X, y)
    dense = X[2].toarray()
    same = [clf.explain(row) for row in (X[2], X[2].tocoo(), dense, dense[0], dense[0].tolist())]
    assert all(each == same[0] for each in same)
    with pytest.raises(ValueError, match=r"one row, got 3"):
        clf.explain(X[:3])
    with pytest.raises(ValueError, match="features"):
        clf.explain(dense[0][:-1])
    with pytest.raises(ValueError, match=r"classes_, got '3'; 3 is one of them$"):
        clf.explain(dense[0], label="3")
    with pytest.raises(ValueError, match=r"label must be one of classes_, got 'no'$"):
        clf.explain(X[2], "no")
    with pytest.raises(ValueError, match="top must be"):
        clf.explain(X[2], top=0)


def test_names_of_a_data_frame():
    X, y = topics(n_classes=6, n_features=20, n_rows=120)
    frame = pd.DataFrame(X.toarray(), columns=[f"word {j}" for j in range(20)])
    clf = TrellisClassifier(C=1.0, random_state=0).fit(frame, y)
    found = clf.explain(frame.iloc[3])
    assert found == clf.explain(frame.iloc[[3]])
    assert found.contributions[0].feature.startswith("word ")
    assert clf.top_features(y[3])[0][0].startswith("word ")


def test_texts_are_explained_by_their_words(tmp_path):
    texts, labels = reports(200)
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0)).fit(texts, labels)
    found = clf.explain(texts[0])
    terms = set(clf.features_.terms[0])
    assert {each.feature for each in found.contributions} <= terms
    assert {name for name, _ in clf.top_features(labels[0])} <= terms
    assert found.in_favour[0].feature in str(found)
    clf.save(tmp_path / "model")
    assert load_model(tmp_path / "model").explain(texts[0]) == found
    assert json.loads(json.dumps(found.to_dict()))["label"] == found.label
    with pytest.raises(ValueError, match="one text"):
        clf.explain(texts[:2])


def test_hashed_terms_are_numbers_and_unknown_words_say_nothing():
    texts, labels = reports(200)
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0), hash_size=512)
    clf.fit(texts, labels)
    assert all(type(each.feature) is int for each in clf.explain(texts[0]).contributions)
    assert clf.explain("").contributions == ()
    assert "no feature" in str(clf.explain(""))


def test_learners_that_are_not_linear_are_refused(data):
    class Tree(DecisionTreeClassifier):
        def decision_function(self, X):
            return self.predict_proba(X)[:, 1] - 0.5

    X, y = data
    clf = TrellisClassifier(4, learner=Tree(max_depth=2), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="only linear learners"):
        clf.explain(X[0])
    with pytest.raises(ValueError, match="only linear learners"):
        clf.top_features(y[0])


def test_names_of_a_pipelines_features():
    texts, labels = reports(600)
    pipe = make_pipeline(TfidfVectorizer(), TrellisClassifier(C=1.0, random_state=0))
    pipe.fit(texts, labels)
    row, names = pipe[:-1].transform(texts[:1]), pipe[:-1].get_feature_names_out()
    found = pipe[-1].explain(row, feature_names=names)
    assert {each.feature for each in found.in_favour} <= set(texts[0].lower().split())
    top = pipe[-1].top_features(labels[0], 3, feature_names=list(names))
    assert [name for name, _ in top] == [
        names[number] for number, _ in pipe[-1].top_features(labels[0], 3)
    ]
    with pytest.raises(ValueError, match=rf"feature_names must have {len(names)} names, one for"):
        pipe[-1].explain(row, feature_names=names[1:])
