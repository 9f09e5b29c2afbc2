"""TrellisEnsemble: the mean of its members, its best classes exactly, all else as one trellis."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import check_estimator

import xtrellis.ensemble as module
from learning.test_pruning import assert_bad_pruning_is_refused
from model.test_model_file import assert_same
from model_files import put_together, take_apart
from samples import reports, topics
from xtrellis import (
    LTLSClassifier,
    TrellisClassifier,
    TrellisEnsemble,
    TrellisTextClassifier,
    load_model,
)
from xtrellis._arrays import canonical_csr
from xtrellis.ensemble import Votes, best_of_mean, votes_of
from xtrellis.model import ModelFileError

MEMBERS = {
    "local": TrellisClassifier(5),
    "paper": TrellisClassifier.paper(4),
    "calibrated": TrellisClassifier.paper(4, calibration=0.2),
    "hinge": TrellisClassifier(6, decoding="squared_hinge"),
    "ltls": LTLSClassifier(),
}


@pytest.fixture(scope="module")
def data():
    return topics()


@pytest.fixture(scope="module")
def fitted(data):
    X, y = data
    return TrellisEnsemble(TrellisClassifier(5), random_state=0).fit(X[:700], y[:700])


# ---------------------------------------------------------------------- the best of the mean


def table_of(votes, n_classes):
    """Mean probabilities of all classes, one by one."""
    table = np.zeros((len(votes[0].classes), n_classes))
    for i in range(len(table)):
        for vote in votes:
            own = np.full(n_classes, vote.others[i])
            own[vote.classes[i]] = vote.probabilities[i]
            table[i] += own
    return table / len(votes)


@st.composite
def several_votes(draw):
    n_classes = draw(st.integers(5, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_levels = draw(st.sampled_from([3, 1000]))  # few levels: many ties
    votes = []
    for _ in range(draw(st.integers(1, 4))):
        classes = np.argsort(rng.random((4, n_classes)), axis=1)[:, :5]
        probabilities = np.sort(rng.integers(1, n_levels, (4, 5)) / n_levels / 5, axis=1)[:, ::-1]
        others = np.minimum((1 - probabilities.sum(axis=1)) / n_classes, probabilities[:, -1])
        votes.append(Votes(classes, probabilities, others))
    return votes, n_classes, draw(st.integers(1, n_classes))


@given(several_votes())
def test_best_classes_are_those_of_all(drawn):
    votes, n_classes, k = drawn
    every = table_of(votes, n_classes)
    for size in {1, k}:
        found, means = best_of_mean(votes, n_classes, size)
        expected = np.argsort(-np.round(every, 12), axis=1, kind="stable")[:, :size]
        np.testing.assert_allclose(means, np.take_along_axis(every, expected, axis=1))
        np.testing.assert_allclose(np.take_along_axis(every, found, axis=1), means)
        assert all(len(set(row)) == size for row in found.tolist())


def test_small_parts_give_the_same(monkeypatch, fitted, data):
    expected = fitted.predict_top_k(data[0], 3)
    monkeypatch.setattr(module, "_ROWS", 7)
    for one, other in zip(expected, fitted.predict_top_k(data[0], 3), strict=True):
        np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------------- as scikit-learn has it


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks():
    results = check_estimator(
        TrellisEnsemble(TrellisClassifier(calibration=0.0), n_estimators=2), on_fail=None
    )
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert sum(r["status"] == "passed" for r in results) > 50


def test_members_are_trellises_that_differ_where_one_would_be_one_vs_rest(data):
    X, y = data
    alone = TrellisClassifier(C=1.0, random_state=0).fit(X, y)
    assert alone.trellis_.slice_width == len(alone.classes_) == 30
    for settings, width in (({}, 6), ({"slice_width": 4}, 4), ({"max_classes": 50}, 8)):
        member = TrellisClassifier(C=1.0, **settings)
        model = TrellisEnsemble(member, n_estimators=2, random_state=0).fit(X, y)
        assert [each.trellis_.slice_width for each in model.estimators_] == [width, width]
        paths = [each.model_.assignment.path_of_class for each in model.estimators_]
        assert not np.array_equal(*paths)


@pytest.mark.parametrize("name", MEMBERS)
def test_it_is_the_mean_of_its_members(name, data):
    X, y = data
    model = TrellisEnsemble(MEMBERS[name], random_state=0).fit(X[:700], y[:700])
    assert len(model.estimators_) == 3
    assert len({member.random_state for member in model.estimators_}) == 3
    assert model.n_features_in_ == X.shape[1]
    every = model.predict_proba(X)
    votes = [votes_of(member.model_, canonical_csr(X)) for member in model.estimators_]
    np.testing.assert_allclose(every, table_of(votes, 30), atol=1e-12)
    for member, vote in zip(model.estimators_, votes, strict=True):
        labels, probabilities = member.predict_top_k(X, 5)
        np.testing.assert_array_equal(labels, model.classes_[vote.classes])
        np.testing.assert_allclose(probabilities, vote.probabilities)
    np.testing.assert_allclose(every.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[every.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.decision_function(X)), every, rtol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), every, rtol=1e-9)
    for k in (1, 5, 30):
        labels, probabilities = model.predict_top_k(X, k)
        best = np.argsort(-every, axis=1, kind="stable")[:, :k]
        np.testing.assert_allclose(probabilities, np.take_along_axis(every, best, axis=1))
        np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    assert model.score(X, y) == np.mean(model.predict(X) == y)


def test_three_are_better_than_one(data, fitted):
    X, y = data
    alone = [member.score(X[700:], y[700:]) for member in fitted.estimators_]
    assert fitted.score(X[700:], y[700:]) > np.mean(alone)


def test_of_two_classes_the_log_odds(data):
    X, y = data
    model = TrellisEnsemble(random_state=0).fit(X, y % 2)
    odds = model.decision_function(X)
    assert odds.shape == (len(y),)
    np.testing.assert_array_equal(model.predict(X), odds > 0)


def test_threads_change_no_bit(data):
    X, y = data
    models = [
        TrellisEnsemble(TrellisClassifier(5), n_jobs=n_jobs, random_state=0).fit(X, y)
        for n_jobs in (1, 2)
    ]
    assert [member.n_jobs for member in models[1].estimators_] == [2, 2, 2]
    assert_same(*models, X)
    own = TrellisEnsemble(TrellisClassifier(5, n_jobs=2), random_state=0).fit(X, y)
    assert own.estimators_[0].n_jobs == 2
    assert_same(models[0], own, X)


def test_one_row_at_a_time_gives_the_same(data, fitted):
    X, _ = data
    one_by_one = np.concatenate([fitted.predict_proba(X[i]) for i in range(20)])
    np.testing.assert_array_equal(one_by_one, fitted.predict_proba(X[:20]))
    dense = X[:20].toarray()
    np.testing.assert_array_equal(fitted.predict_proba(dense), one_by_one)


def test_pipelines_searches_clones_and_pickles(data, fitted):
    X, y = data
    model = TrellisEnsemble(TrellisClassifier(5), n_estimators=2, random_state=0)
    search = GridSearchCV(
        make_pipeline(MaxAbsScaler(), model),
        {"trellisensemble__estimator__C": [0.1, 1.0], "trellisensemble__n_estimators": [1, 2]},
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.4
    assert clone(fitted).get_params()["estimator__slice_width"] == 5
    assert not hasattr(clone(fitted), "estimators_")
    assert_same(fitted, pickle.loads(pickle.dumps(fitted)), X)


def test_sample_weights_data_frames_and_fitting_again(data):
    X, y = data
    frame = pd.DataFrame(X[:, :50].toarray(), columns=[f"word {k}" for k in range(50)])
    model = TrellisEnsemble(TrellisClassifier(5), random_state=0)
    model.fit(frame, y, sample_weight=(y != 3).astype(float))
    assert 3 in model.classes_
    assert not (model.predict(frame) == 3).any()
    assert model.feature_names_in_[7] == "word 7"
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"word 3": "other"}))
    model.prune(threshold=0.1)
    assert not hasattr(model.fit(X, y), "pruning_")
    assert not hasattr(model, "feature_names_in_")


def test_a_fit_that_fails_leaves_the_old_model(data, fitted):
    X, y = data
    model = copy.copy(fitted).set_params(estimator=TrellisClassifier(1))
    with pytest.raises(ValueError, match="slice_width must be"):
        model.fit(X[:, :5], y)
    assert_same(model, fitted, X)


def test_bad_input(data, fitted):
    X, y = data
    with pytest.raises(TypeError, match="estimator must be a TrellisClassifier or an LTLS"):
        TrellisEnsemble(LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match="estimator must be"):
        TrellisEnsemble(TrellisEnsemble()).fit(X, y)
    with pytest.raises(ValueError, match="n_estimators must be an integer of at least 1, got 0"):
        TrellisEnsemble(n_estimators=0).fit(X, y)
    with pytest.raises(ValueError, match="C must be"):
        TrellisEnsemble(TrellisClassifier(C=-1.0)).fit(X, y)
    with pytest.raises(NotFittedError):
        TrellisEnsemble().predict(X)
    assert fitted.predict_top_k(X, 31)[0].shape == (900, 30)
    with pytest.raises(ValueError, match="k must be an integer of at least 1, got 0"):
        fitted.predict_top_k(X, 0)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(X[:, :7])


# ---------------------------------------------------------------------- pruning


def test_one_threshold_for_all(fitted):
    model = copy.copy(fitted).prune(threshold=0.1)
    assert model.pruning_.threshold == 0.1
    assert model.pruning_.n_after == sum(m.weights_.n_nonzero for m in model.estimators_)
    assert model.pruning_.n_before == sum(m.weights_.n_nonzero for m in fitted.estimators_)
    for member in model.estimators_:
        stored = member.weights_.values
        assert abs(stored[stored != 0]).min() > 0.098  # what is kept is rounded to 8 bits
    assert not hasattr(fitted, "pruning_")


@pytest.mark.parametrize("max_drop", [0.0, 0.02])
def test_what_may_be_lost_is_of_the_ensembles_accuracy(fitted, data, max_drop):
    X, y = data[0][700:], data[1][700:]
    model = copy.copy(fitted).prune(X, y, max_drop=max_drop, bits=32)
    done = model.pruning_
    assert done.accuracy_before == pytest.approx(fitted.score(X, y))
    assert done.accuracy_after == pytest.approx(model.score(X, y))
    assert done.accuracy_after >= done.accuracy_before - max_drop - 1e-12
    assert done.n_after < done.n_before
    assert len(done.steps) == 10
    weights = np.arange(len(y)) % 2
    told = copy.copy(fitted).prune(X, y, threshold=0.0, sample_weight=weights).pruning_
    assert told.accuracy_before == pytest.approx(fitted.score(X[1::2], y[1::2]))


def test_pruning_that_cannot_be(fitted, data):
    X, y = data
    assert_bad_pruning_is_refused(copy.copy(fitted), X, y)
    before = fitted.predict_proba(X[:10])
    with pytest.raises(ValueError, match="bits must be 8 or 32, got 16"):
        fitted.prune(threshold=0.1, bits=16)
    np.testing.assert_array_equal(fitted.predict_proba(X[:10]), before)


def test_a_share_of_the_training_rows_gives_the_threshold(data):
    X, y = data
    model = TrellisEnsemble(TrellisClassifier(5), n_estimators=2, random_state=0).fit(X, y)
    n_before = sum(member.weights_.n_nonzero for member in model.estimators_)
    model.prune(X, y, max_drop=0.02, validation_fraction=0.1)
    # That of a model trained without the tenth of the rows that are set aside.
    shuffled = np.random.RandomState(0).permutation(len(y))
    outside, inside = np.sort(shuffled[: len(y) // 10]), np.sort(shuffled[len(y) // 10 :])
    alone = clone(model).fit(X[inside], y[inside])
    before = alone.score(X[outside], y[outside])
    alone.prune(X[outside], y[outside], max_drop=0.02)
    assert model.pruning_.threshold == alone.pruning_.threshold
    assert alone.score(X[outside], y[outside]) >= before - 0.02
    # And not an idle one: it removes most of the weights of the model trained on all rows.
    assert sum(member.weights_.n_nonzero for member in model.estimators_) < n_before / 2


# ---------------------------------------------------------------------- the model file


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("pruned", [False, True])
def test_loaded_model_predicts_the_same_bits(name, pruned, data, tmp_path):
    X, y = data
    labels = np.array([f"class {label}" for label in range(30)])[y]
    model = TrellisEnsemble(MEMBERS[name], 2, random_state=0).fit(X, labels)
    if pruned:
        model.prune(X, labels, max_drop=0.01)
    assert model.save(tmp_path / "model") == (tmp_path / "model").stat().st_size
    loaded = load_model(tmp_path / "model")
    assert_same(model, loaded, X)
    assert_same(model, load_model(tmp_path / "model", verify=False), X)
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert getattr(loaded, "pruning_", None) == getattr(model, "pruning_", None)
    assert loaded.estimators_[0].random_state == model.estimators_[0].random_state
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    stored = load_file(tmp_path / "model")
    names = sorted(name for name in stored if "classes" in name)
    assert names == ["classes.content", "classes.lengths"]
    assert all(member.classes_ is loaded.classes_ for member in loaded.estimators_)


def test_feature_names_come_back(data, tmp_path):
    X, y = data
    frame = pd.DataFrame(X[:, :50].toarray(), columns=[f"word {k}" for k in range(50)])
    model = TrellisEnsemble(TrellisClassifier(5), random_state=0).fit(frame, y)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    assert_same(model, loaded, frame)


def test_unsound_files_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    arrays, facts = take_apart(tmp_path / "model")
    parts = facts["model"]["parts"]
    members = parts["estimators"]
    other = {**members[1], "parts": {**members[1]["parts"], "n_features_in": 7}}
    unfitted = {**members[1], "parts": {"settings": members[1]["parts"]["settings"]}}
    stranger = {"type": "os.system", "parts": {"settings": {"dict": {}}}}
    wrong_facts = {
        "estimators": [[], [other], [members[0], other], [*members, members[0]], [facts["model"]]],
        "n_features_in": [7, -1, "7"],
        "classes": [{"array": "V8"}, None, {"shared": "estimators.0.model.weights.bias"}],
        "settings": [{"dict": {"estimator": stranger}}],
    }
    wrong_facts["estimators"] += [None, [members[0], unfitted, members[2]]]
    damaged = [
        (arrays, {**parts, name: value}) for name, values in wrong_facts.items() for value in values
    ]
    bias = "estimators.1.model.weights.bias"
    damaged += [
        ({**arrays, "classes": arrays["classes"][:-1]}, parts),
        ({**arrays, bias: arrays[bias][:-1]}, parts),
        ({name: array for name, array in arrays.items() if "estimators.2" not in name}, parts),
    ]
    for content, claims in damaged:
        model = {**facts["model"], "parts": claims}
        put_together(tmp_path / "unsound", content, {**facts, "model": model})
        with pytest.raises(ModelFileError, match="unsound: "):
            load_model(tmp_path / "unsound")
    whole = (tmp_path / "model").read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:cut])
        with pytest.raises(ModelFileError, match="cut: "):
            load_model(tmp_path / "cut")


def test_labels_are_those_of_the_largest_mean_probability():
    """Also of rows that the trellises disagree about; and one row at a time."""
    X, y = make_blobs(600, 8, centers=30, cluster_std=3.0, random_state=0)
    ensemble = TrellisEnsemble(TrellisClassifier(4, C=1.0), random_state=0).fit(X, y)
    singles = np.stack([each.predict(X) for each in ensemble.estimators_])
    differ = (singles != singles[0]).any(axis=0)
    assert 10 < differ.sum() < 590
    expected = ensemble.predict_top_k(X, 1)[0][:, 0]
    np.testing.assert_array_equal(ensemble.predict(X), expected)
    classify = ensemble.row_predictor()
    found = [classify(np.arange(8), row) for row in X[:100]]
    np.testing.assert_array_equal(found, expected[:100])
    with pytest.raises(ValueError, match="from 0 to 7"):
        classify([8], [1.0])


# ---------------------------------------------------------------------- texts


@pytest.mark.parametrize("hash_size", [None, 1 << 12])
def test_texts(hash_size, tmp_path):
    texts, labels = reports()
    ensemble = TrellisEnsemble(TrellisClassifier(4), n_estimators=2, random_state=0)
    model = TrellisTextClassifier(ensemble, hash_size=hash_size).fit(texts[:200], labels[:200])
    assert model.score(texts[200:], labels[200:]) > 0.95
    model.prune(texts[200:], labels[200:], max_drop=0.02)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert repr(loaded) == repr(model)
    assert_same(model, loaded, texts)
    model.prune(texts, labels, validation_fraction=0.1)
    assert model.classifier_.pruning_.threshold > 0
    assert not hasattr(TrellisTextClassifier(ensemble), "partial_fit")
