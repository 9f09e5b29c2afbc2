"""TrellisClassifier: scikit-learn's contract, every setting, every wrong input."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from samples import shared_set, topics
from xtrellis import LTLSClassifier, TrellisClassifier
from xtrellis.decoding import VertexSoftmax, best_paths
from xtrellis.learning import LinearSVM


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [TrellisClassifier(), LTLSClassifier()], ids=["ours", "ltls"])
def test_scikit_learns_own_checks(estimator):
    expected = {}
    if isinstance(estimator, LTLSClassifier):
        expected = {
            f"check_sample_weight_equivalence_on_{kind}_data": "an online learner sees a row that "
            "counts twice once, not twice"
            for kind in ("dense", "sparse")
        }
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert sum(r["status"] == "passed" for r in results) > 50


@pytest.mark.parametrize("training", ["local", "independent"])
@pytest.mark.parametrize("learner", ["svm", "arow", "perceptron"])
@pytest.mark.parametrize("assignment", ["similarity", "random"])
def test_every_setting_learns(data, training, learner, assignment):
    X, y = data
    model = TrellisClassifier(
        5, training=training, learner=learner, assignment=assignment, random_state=0
    ).fit(X[:700], y[:700])
    assert model.score(X[:700], y[:700]) > 0.9
    # With random paths an edge stands for unrelated classes: harder, but not chance (0.03).
    assert model.score(X[700:], y[700:]) > (0.4 if assignment == "random" else 0.55)


def test_the_papers_setting(data):
    X, y = data
    model = TrellisClassifier.paper(5, random_state=0).fit(X, y)
    assert (model.training, model.learner, model.assignment) == ("independent", "arow", "random")
    assert model.loss_.name == "exponential"
    assert not model.weights_.bias[: model.trellis_.slice_width].any()
    margins = model.margins(X)
    expected = model.assignment_.class_of_path[best_paths(model.trellis_, margins, "exponential")]
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("kind", [str, float, "category"])
def test_labels_of_any_type(data, fitted, kind):
    X, y = data
    labels = pd.Series(y).astype(str).astype("category") if kind == "category" else y.astype(kind)
    model = clone(fitted).fit(X, labels)
    assert model.score(X, np.asarray(labels)) > 0.9
    assert model.predict(X[:3]).dtype == model.classes_.dtype


def test_two_classes_and_a_class_with_one_row(data):
    X, y = data
    model = TrellisClassifier(random_state=0).fit(X, y < 15)
    assert model.decision_function(X).shape == (len(y),)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    labels = np.where(np.arange(len(y)) == 7, 999, y)
    model = TrellisClassifier(random_state=0).fit(X, labels)
    assert 999 in model.classes_
    assert model.predict(X[7])[0] == 999


def test_widest_trellis_is_one_vs_rest(data):
    X, y = data
    model = TrellisClassifier(
        30,
        learner=LinearSVM(tolerance=1e-5),
        training="independent",
        random_state=0,
        calibration=0,
        epochs=300,
        weight_bits=32,
    ).fit(X, y)
    rest = LinearSVC(random_state=0, tol=1e-6, max_iter=10_000).fit(X, y)
    paths = model.assignment_.path_of_class
    margins = model.margins(X)[:, paths]
    np.testing.assert_allclose(margins, rest.decision_function(X), atol=0.02)
    assert np.mean(model.predict(X) == rest.predict(X)) > 0.995
    # Each class has two edges with the same column, learned and stored once.
    assert model.weights_.n_nonzero <= X.shape[1] * 30


def test_sample_weights_and_class_weights(data):
    X, y = data
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = TrellisClassifier(5, random_state=0).fit(X, y, sample_weight=counts)
    repeated = TrellisClassifier(5, random_state=0).fit(
        X[np.repeat(np.arange(len(y)), counts)], np.repeat(y, counts)
    )
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    heavy = TrellisClassifier(5, class_weight={3: 1000.0}, random_state=0).fit(X, y)
    assert (heavy.predict(X) == 3).sum() >= (y == 3).sum()
    assert TrellisClassifier(5, class_weight="balanced").fit(X, y).score(X, y) > 0.9


def test_scikit_learn_classifiers_as_learners(data):
    X, y = data
    linear = TrellisClassifier(5, learner=LogisticRegression(C=10), random_state=0, n_jobs=2)
    assert linear.fit(X, y).score(X, y) > 0.9
    assert linear.weights_.nonlinear == []
    kernel = TrellisClassifier(5, learner=SVC(C=10), random_state=0).fit(X, y)
    assert len(kernel.weights_.nonlinear) > 10
    assert kernel.score(X, y) > 0.9


def test_a_given_assignment_and_decoding(data):
    X, y = data
    paths = np.random.default_rng(0).permutation(30)
    model = TrellisClassifier(5, assignment=paths, decoding="hinge", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.assignment_.path_of_class, paths)
    assert model.score(X, y) > 0.9
    softmax = VertexSoftmax(0.5)
    assert TrellisClassifier(5, decoding=softmax, random_state=0).fit(X, y).loss_ is softmax


def test_early_stopping_keeps_the_best_epoch(data):
    X, y = data
    model = TrellisClassifier(
        5, learner="arow", epochs=20, early_stopping=True, n_iter_no_change=2, random_state=0
    ).fit(X, y)
    accuracies = model.history_.validation_accuracy
    assert len(accuracies) == len(model.history_.loss) < 20
    assert max(accuracies) == max(accuracies[:-2])
    assert model.score(X, y) > 0.85
    # The kept epoch is the best one: training just as long gives the same model.
    best = 1 + int(np.argmax(accuracies))
    again = clone(model).set_params(epochs=best).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_failed_fit_changes_nothing(data, fitted):
    X, _ = data
    model = pickle.loads(pickle.dumps(fitted))
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="y must have at least two classes"):
        model.set_params(slice_width=8).fit(X, np.zeros(900))
    np.testing.assert_array_equal(model.decision_function(X), before)
    fresh = TrellisClassifier(1)
    with pytest.raises(ValueError, match="slice_width must be"):
        fresh.fit(*data)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    online = TrellisClassifier(5, learner="arow", random_state=0)
    with pytest.raises(ValueError, match="not in classes"):
        online.partial_fit(X, np.full(900, 77), classes=np.arange(30))
    online.partial_fit(*data, classes=np.arange(30))


def test_threads_that_predict_while_another_fits_see_one_model_or_the_other():
    """A mixture of both would read behind the ends of arrays."""
    small, large = topics(), topics(n_classes=90, n_features=5000, n_rows=2000, seed=1)
    settings = {"learner": "arow", "epochs": 1, "calibration": 0.0, "random_state": 0}
    model = TrellisClassifier(5, **settings)
    expected = {}
    for X, y in (large, small):
        model.fit(X, y)
        expected[X.shape[1]] = [model.predict(part) for part in (X[:50], X[50:100])]
    done, failures = threading.Event(), []

    def predict(X):
        while not done.is_set():
            for part, right in zip((X[:50], X[50:100]), expected[X.shape[1]], strict=True):
                try:
                    labels, _ = model.predict_top_k(part, 3)
                    probabilities = model.predict_proba(part)
                    found = model.predict(part)
                except ValueError as error:  # the other model is in place
                    if "is expecting" not in str(error):
                        failures.append(error)
                    continue
                if not (np.array_equal(found, right) and labels.shape == (50, 3)):
                    failures.append((found, right))
                if not np.allclose(probabilities.sum(axis=1), 1):
                    failures.append(probabilities)

    threads = [threading.Thread(target=predict, args=(X,)) for X, _ in (small, large) * 2]
    for thread in threads:
        thread.start()
    for _ in range(5):
        for X, y in (large, small):
            model.fit(X, y)
            model.prune(threshold=0.0, bits=32)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_what_was_learned_is_read_only(fitted):
    names = ("classes_", "trellis_", "assignment_", "weights_", "loss_", "temperature_", "code_")
    for name in names:
        with pytest.raises(AttributeError):
            setattr(fitted, name, None)
        assert not hasattr(TrellisClassifier(), name)


def test_diagnose_refuses_labels_it_does_not_know(data, fitted):
    X, y = data
    with pytest.raises(ValueError, match=r"y holds a label that is not in classes: .*99"):
        fitted.diagnose(X, np.where(y == 3, 99, y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.diagnose(X, y[:10])


def test_works_inside_scikit_learn(data):
    X, y = data
    words = [" ".join(f"w{k}" for k in row.indices) for row in X]
    pipeline = make_pipeline(TfidfVectorizer(), TrellisClassifier(5, random_state=0))
    assert cross_val_score(pipeline, words, y, cv=3).mean() > 0.6
    search = GridSearchCV(TrellisClassifier(random_state=0), {"slice_width": [3, 6]}, cv=2)
    assert search.fit(X, y).best_params_["slice_width"] in (3, 6)


def test_pickle(data, fitted):
    X, _ = data
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("early_stopping", [False, True])
def test_progress_bar_shows_loss_and_time(data, capsys, early_stopping):
    settings = {"early_stopping": early_stopping, "random_state": 0}
    TrellisClassifier(5, verbose=1, **settings).fit(*data)
    shown = capsys.readouterr().err
    assert "training" in shown
    assert "100 %  loss 0." in shown
    TrellisClassifier(5, **settings).fit(*data)
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("name", "model", "least"),
    [
        ("icd10cm", TrellisClassifier(40, C=3, random_state=0), 0.894),
        ("icd10cm", TrellisClassifier.paper(10, random_state=0), 0.853),
        ("clinc150", TrellisClassifier(random_state=0), 0.90),
    ],
)
def test_accuracy_on_real_data(name, model, least):
    X, y, X_test, y_test = shared_set(name)
    assert model.fit(X, y).score(X_test, y_test) >= least
