"""TrellisClassifier: scikit-learn's contract, every setting, every wrong input."""

import pickle
import threading
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from samples import shared_set, topics
from xtrellis import LTLSClassifier, TrellisClassifier, TrellisEnsemble
from xtrellis._arrays import canonical_csr
from xtrellis._memory import available_memory
from xtrellis.decoding import VertexSoftmax, best_paths
from xtrellis.learning import Arow, LinearSVM


@pytest.fixture(scope="module")
def data():
    return topics()


@pytest.fixture(scope="module")
def fitted(data):
    return TrellisClassifier(5, random_state=0).fit(*data)


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


def test_predictions_agree_with_each_other(data, fitted):
    X, y = data
    labels, probabilities = fitted.predict_top_k(X, k=30)
    every = fitted.predict_proba(X)
    np.testing.assert_array_equal(labels[:, 0], fitted.predict(X))
    np.testing.assert_array_equal(fitted.classes_[every.argmax(axis=1)], fitted.predict(X))
    np.testing.assert_allclose(every.sum(axis=1), 1, rtol=1e-9)
    assert (np.diff(probabilities, axis=1) <= 1e-12).all()
    own = np.take_along_axis(every, labels, axis=1)
    np.testing.assert_allclose(own[:, :5], probabilities[:, :5], rtol=1e-6)
    np.testing.assert_allclose(own, probabilities, rtol=1e-3, atol=1e-9)  # costs are rounded
    assert (fitted.predict_top_k(X, k=5)[1].sum(axis=1) <= 1).all()
    np.testing.assert_allclose(np.exp(fitted.decision_function(X)), every)
    assert fitted.score(X, y) == np.mean(fitted.predict(X) == y)


@pytest.mark.parametrize("training", ["local", "independent"])
@pytest.mark.parametrize("width", [2, 5, 30])
def test_the_fused_kernel_is_the_steps_it_fuses(data, training, width):
    X, y = data
    model = TrellisClassifier(width, training=training, random_state=0).fit(X, y)
    for scale in (1.0, 100.0):  # the larger one overflows the kernel's exponential
        rows = canonical_csr(X * scale)
        expected = best_paths(model.trellis_, model.margins(X * scale), model.loss_)
        if training == "local" and scale > 1:  # costs beyond a billion are all the same
            assert np.mean(model.model_.paths(rows) != expected) < 0.01
            continue
        np.testing.assert_array_equal(model.model_.paths(rows), expected)
        model.set_params(n_jobs=2)
        np.testing.assert_array_equal(
            model.predict(X * scale), model.classes_[model.assignment_.class_of_path[expected]]
        )


def test_one_row_at_a_time_gives_the_same(data, fitted):
    X, _ = data
    one_by_one = [fitted.predict(X[i])[0] for i in range(50)]
    np.testing.assert_array_equal(one_by_one, fitted.predict(X[:50]))
    classify = fitted.row_predictor()
    one_by_one = [classify(X[i].indices, X[i].data) for i in range(50)]
    np.testing.assert_array_equal(one_by_one, fitted.predict(X[:50]))


def test_any_matrix_of_the_same_numbers_gives_the_same(data, fitted):
    X, y = data
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    unsorted = sparse.coo_matrix(X)
    names = [f"f{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X.toarray(), columns=names)
    for other in (wide, unsorted, sparse.csr_array(X), X.toarray(), X.astype(np.float64)):
        model = clone(fitted).fit(other, y)
        np.testing.assert_array_equal(model.decision_function(X), fitted.decision_function(X))
    model = clone(fitted).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(frame), fitted.predict(X))


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


def test_partial_fit_learns_from_batches(data):
    X, y = data
    model = TrellisClassifier(
        5, training="independent", learner="arow", assignment="random", random_state=0
    )
    for _ in range(3):
        for start in range(0, 900, 100):
            part = slice(start, start + 100)
            model.partial_fit(X[part], y[part], classes=np.arange(30))
    assert model.score(X, y) > 0.9
    local = TrellisClassifier(5, learner="perceptron", random_state=0)
    for _ in range(3):
        local.partial_fit(X, y, classes=np.arange(30))
    assert local.score(X, y) > 0.85


def test_partial_fit_goes_on_from_fit(data):
    X, y = data
    for training in ("independent", "local"):
        model = TrellisClassifier(5, training=training, learner="arow", random_state=0)
        before = model.fit(X[:600], y[:600]).score(X[600:], y[600:])
        for _ in range(3):
            model.partial_fit(X[600:], y[600:])
        assert model.score(X[600:], y[600:]) > before


def test_partial_fit_is_for_online_learners(data):
    assert not hasattr(TrellisClassifier(learner="svm"), "partial_fit")
    assert hasattr(TrellisClassifier(learner="arow"), "partial_fit")
    model = TrellisClassifier(learner="arow")
    with pytest.raises(ValueError, match="classes must be given at the first call"):
        model.partial_fit(*data)
    with pytest.raises(ValueError, match=r"y holds a label that is not in classes: .*29"):
        model.partial_fit(*data, classes=np.arange(29))


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


@pytest.mark.parametrize(
    "model",
    [
        TrellisClassifier(5, random_state=0),
        TrellisClassifier(5, decoding="hinge", random_state=0),
        LTLSClassifier(random_state=0),
    ],
)
def test_row_predictor_stays_with_the_model_as_it_was(data, model):
    X, y = data
    model.fit(X, y)
    rows = [(X[i].indices, X[i].data) for i in range(20)] + [(X[0].indices, 1e20 * X[0].data)]
    classify = model.row_predictor()
    before = [classify(*row) for row in rows]
    model.fit(X, y % 8)
    assert [classify(*row) for row in rows] == before


def test_row_predictor_in_threads(data, fitted):
    from concurrent.futures import ThreadPoolExecutor

    X, _ = data
    classify = fitted.row_predictor()
    rows = [(X[i].indices, X[i].data) for i in range(300)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: classify(*row), rows))
    np.testing.assert_array_equal(found, fitted.predict(X[:300]))
    with pytest.raises(ValueError, match="two lists of one length"):
        classify([1, 2, 3], [1.0])
    with pytest.raises(ValueError, match="indices must be from 0 to 399"):
        classify([400], [1.0])


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
    for _ in range(10):
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


def test_margins_are_those_of_the_weights(data, fitted):
    X, _ = data
    weights, bias = fitted.weights_.dense_columns(np.arange(fitted.trellis_.n_edges))
    np.testing.assert_allclose(fitted.margins(X), X @ weights + bias, atol=1e-5)


@pytest.mark.parametrize("training", ["local", "independent"])
@pytest.mark.parametrize("learner", ["arow", "perceptron"])
@pytest.mark.parametrize("width", [3, 6, 30])
def test_a_row_of_next_to_no_weight_changes_next_to_nothing(data, training, learner, width):
    """partial_fit goes on from the very model that fit made: twins, constants and all."""
    X, y = data
    model = TrellisClassifier(width, training=training, learner=learner, random_state=0)
    before = model.fit(X, y).margins(X)
    model.partial_fit(X[:1], y[:1], sample_weight=[1e-9])
    np.testing.assert_allclose(model.margins(X), before, atol=1e-4)


def test_partial_fit_weighs_classes(data):
    X, y = data
    plain, heavy = (
        TrellisClassifier(5, learner="arow", class_weight=weights, random_state=0).partial_fit(
            X, y, classes=np.arange(30)
        )
        for weights in (None, {3: 100.0})
    )
    columns = heavy.predict_log_proba(X)[:, 3], plain.predict_log_proba(X)[:, 3]
    assert columns[0].mean() > columns[1].mean()
    with pytest.raises(ValueError, match="needs all rows at once"):
        heavy.set_params(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="classes must be the same at every call"):
        plain.partial_fit(X, y, classes=np.arange(31))


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


# ---------------------------------------------------------------------- probabilities


def test_log_probabilities_are_finite_where_probabilities_are_zero(data):
    X, y = data
    model = TrellisClassifier(5, training="independent", decoding="log", random_state=0).fit(X, y)
    for scale in (1.0, 1e4):
        log_p = model.predict_log_proba(X * scale)
        assert np.isfinite(log_p).all()
        np.testing.assert_array_equal(np.exp(log_p), model.predict_proba(X * scale))
        np.testing.assert_array_equal(log_p, model.decision_function(X * scale))
    assert (model.predict_proba(X * 1e4) == 0).any()


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "decision_function"])
def test_a_table_of_probabilities_takes_its_own_memory_once(data, fitted, method):
    rows = sparse.vstack([data[0]] * 200)
    getattr(fitted, method)(data[0])
    tracemalloc.start()
    table = getattr(fitted, method)(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    given = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    assert peak < table.nbytes * 1.1 + 3 * given


@pytest.mark.parametrize("model", [TrellisClassifier(5, random_state=0), TrellisEnsemble()])
def test_a_table_that_cannot_fit_is_refused_before_any_work(data, monkeypatch, model):
    X, y = data
    model.fit(X, y)
    monkeypatch.setattr("xtrellis._memory.available_memory", lambda: 200_000)
    monkeypatch.setattr("xtrellis.model.weights.EdgeWeights.margins", None)
    message = r"900 rows x 30 classes takes 0\.0 GB, but only 0\.0 GB .* use predict_top_k"
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(MemoryError, match=message):
            getattr(model, method)(X)


def test_available_memory_is_known_here():
    available = available_memory()
    assert available is None or 2**20 < available < 2**50


# ---------------------------------------------------------------------- wrong input


def test_a_width_above_the_number_of_classes_means_that_number(data):
    X, y = data
    model = TrellisClassifier(31, random_state=0).fit(X, y)
    assert model.trellis_.slice_width == 30
    expected = TrellisClassifier(30, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    assert LTLSClassifier(50).fit(X, y).trellis_.slice_width == 30
    online = TrellisClassifier(99, learner="arow").partial_fit(X, y, classes=np.arange(30))
    assert online.trellis_.slice_width == 30


def test_more_best_classes_than_there_are_means_all_of_them(data, fitted):
    X, _ = data
    labels, probabilities = fitted.predict_top_k(X, k=31)
    assert labels.shape == probabilities.shape == (900, 30)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize("training", ["local", "independent"])
def test_a_class_whose_rows_do_not_count_keeps_its_column(data, training):
    X, y = data
    weights = np.where(y == 7, 0.0, 1.0)
    for model in (
        TrellisClassifier(5, training=training, random_state=1),
        LTLSClassifier(random_state=0),
    ):
        model.fit(X, y, sample_weight=weights)
        assert model.classes_.tolist() == list(range(30))
        assert model.predict_proba(X).shape == (900, 30)
        assert np.mean(model.predict(X) == 7) < 0.05
    model = TrellisClassifier(5, class_weight={7: 0}, random_state=0).fit(X, y)
    assert 7 in model.classes_


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, "heavy"])
def test_bad_class_weights_are_named(data, weight):
    X, y = data
    message = f"class_weight must be at least 0 and finite, got {weight!r} for class 3"
    for learner in ("svm", "arow"):
        model = TrellisClassifier(5, learner=learner, class_weight={3: weight})
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, classes=np.arange(30))


def test_class_weights_of_unknown_classes(data):
    X, y = data
    with pytest.raises(ValueError, match="class_weight names a class that is not in y: 99"):
        TrellisClassifier(class_weight={3: 2.0, 99: 1.0}).fit(X, y)
    every = dict.fromkeys(range(31), 1.0)  # a part of the rows may lack a class
    TrellisClassifier(class_weight=every).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        TrellisClassifier(5, random_state=0),
        TrellisClassifier.paper(5, random_state=0),
        TrellisClassifier(5, learner="perceptron", early_stopping=True, random_state=0),
        LTLSClassifier(random_state=0, calibration=0.2),
    ],
    ids=["svm", "arow", "perceptron", "ltls"],
)
@pytest.mark.filterwarnings("error")
def test_numbers_too_large_to_train_on_are_refused(data, model):
    X, y = data
    for scale in (1e20, 1e30):
        with pytest.raises(ValueError, match=r"X has a value of size 1e\+.*MaxAbsScaler"):
            model.fit(X / X.max() * np.float32(scale), y)
    with pytest.raises(ValueError, match=r"sample_weight and class_weight add up to 9e\+40"):
        model.fit(X, y, sample_weight=np.full(900, 1e38))
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match="MaxAbsScaler"):
            model.partial_fit(X * np.float32(1e20), y, classes=np.arange(30))
    for scale, weight in ((1e15, 1.0), (1.0, 1e30)):  # large, but not too large
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X * np.float32(scale), y, np.full(900, weight))
        assert model.score(X * np.float32(scale), y) > 0.7


@pytest.mark.parametrize("learner", ["arow", "perceptron", Arow(), LinearSVM(), LinearSVC()])
def test_c_applies_to_the_svm_alone(data, learner):
    model = TrellisClassifier(5, learner=learner, C=3.0)
    with pytest.raises(ValueError, match=r"C applies only to learner='svm', got C=3\.0"):
        model.fit(*data)
    model.set_params(C="auto").fit(*data)
    assert "r" not in model.get_params(deep=False)


def test_partial_fit_says_which_learners_have_it():
    for learner in ("svm", LinearSVC()):
        with pytest.raises(AttributeError, match="use 'arow', 'perceptron' or a Learner with"):
            _ = TrellisClassifier(learner=learner).partial_fit
    with pytest.raises(AttributeError, match=r"learner must be .* got 'tree'"):
        _ = TrellisClassifier(learner="tree").partial_fit
    assert "Learn from one batch" in TrellisClassifier.partial_fit.__doc__


def corrupted(value):
    X = topics()[0].toarray()
    X[3, 4] = value
    return X


@pytest.mark.parametrize(
    ("settings", "X", "y", "message"),
    [
        ({}, corrupted(np.nan), None, "Input X contains NaN"),
        ({}, corrupted(np.inf), None, "Input X contains infinity"),
        ({}, None, np.arange(10), "inconsistent numbers of samples"),
        ({}, np.empty((0, 5)), np.empty(0), "0 sample"),
        ({}, None, np.zeros(900, int), r"at least two classes, got one class only: \[0\]"),
        ({"slice_width": 1}, None, None, "slice_width must be an integer of at least 2, got 1"),
        ({"learner": "tree"}, None, None, "learner must be .* got 'tree'"),
        ({"decoding": "cosine"}, None, None, "decoding must be one of .* got 'cosine'"),
        ({"n_jobs": 0}, None, None, "n_jobs must be an integer other than 0, or None, got 0"),
        ({"n_jobs": "x"}, None, None, "n_jobs must be an integer other than 0, or None, got 'x'"),
        ({"early_stopping": "yes"}, None, None, "early_stopping must be True or False, got 'yes'"),
        ({"verbose": "x"}, None, None, "verbose must be an integer of at least 0, got 'x'"),
        ({"training": "global"}, None, None, "training must be .* got 'global'"),
        ({"assignment": "alphabetical"}, None, None, "assignment must be .* got 'alphabetical'"),
        ({"assignment": [0, 1]}, None, None, "permutation must hold one path for each of the 30"),
        ({"epochs": 0}, None, None, "epochs must be an integer of at least 1, got 0"),
        ({"C": -1.0}, None, None, r"C must be positive and finite, got -1\.0"),
        ({"calibration": 1.0}, None, None, "calibration must be at least 0 and below 1"),
    ],
)
def test_bad_input_to_fit(data, settings, X, y, message):
    X, y = data[0] if X is None else X, data[1] if y is None else y
    with pytest.raises(ValueError, match=message):
        TrellisClassifier(**settings).fit(X, y)


def test_bad_sample_weights(data):
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(900,\)"):
        TrellisClassifier().fit(*data, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="sample_weight must not be negative, got -1"):
        TrellisClassifier().fit(*data, sample_weight=-np.ones(900))
    with pytest.raises(ValueError, match="sample_weight must not be negative, got -1"):
        TrellisClassifier().fit(*data, sample_weight=-1.0)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        TrellisClassifier().fit(*data, sample_weight=np.zeros(900))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_bad_input_to_predict(data, fitted, method):
    with pytest.raises(NotFittedError):
        getattr(TrellisClassifier(), method)(data[0])
    with pytest.raises(ValueError, match=r"X has 7 features, but .* is expecting 400"):
        getattr(fitted, method)(np.zeros((2, 7)))
    with pytest.raises(ValueError, match="k must be an integer of at least 1, got 0"):
        fitted.predict_top_k(data[0], k=0)


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


# ---------------------------------------------------------------------- none of these


@pytest.mark.parametrize("kind", ["one", "several"])
def test_classes_that_are_not_likely_enough(kind):
    X, y = topics()
    clf = TrellisClassifier(5, C=1.0, random_state=0)
    if kind == "several":
        clf = TrellisEnsemble(clf, n_estimators=2, random_state=0)
    clf.fit(X[:700], y[:700])
    labels, shares = clf.predict_top_k(X[700:], 1)
    found = clf.predict(X[700:], min_probability=0.6, otherwise=-1)
    assert found.dtype == y.dtype
    np.testing.assert_array_equal(found, np.where(shares[:, 0] >= 0.6, labels[:, 0], -1))
    assert 0 < (found == -1).sum() < len(found)
    named = clf.predict(X[700:], min_probability=0.6, otherwise="unknown")
    assert named.tolist() == [each if each >= 0 else "unknown" for each in found.tolist()]
    nothing = clf.predict(X[700:], min_probability=0.6)
    assert nothing.tolist() == [each if each >= 0 else None for each in found.tolist()]
    np.testing.assert_array_equal(clf.predict(X[700:], min_probability=0.0), labels[:, 0])
    with pytest.raises(ValueError, match="otherwise needs min_probability"):
        clf.predict(X, otherwise=-1)
    with pytest.raises(ValueError, match="min_probability must be"):
        clf.predict(X, min_probability=1.5)
    with pytest.raises(ValueError, match="otherwise must be one label"):
        clf.predict(X, min_probability=0.5, otherwise=[1, 2])


def test_a_longer_label_for_none_of_these_is_not_cut():
    X, y = topics()
    clf = TrellisClassifier(5, C=1.0, random_state=0).fit(X, y.astype(str))
    nothing = np.zeros((1, X.shape[1]))
    assert clf.predict(nothing, min_probability=0.9, otherwise="none of these") == "none of these"
