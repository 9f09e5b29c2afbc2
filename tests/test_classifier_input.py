"""Input that classifiers refuse, in one line, and unusual input that they take."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import LinearSVC

from samples import topics
from xtrellis import LTLSClassifier, TrellisClassifier, TrellisTextClassifier
from xtrellis.engine import in_units_of_rows
from xtrellis.learning import Arow, LinearSVM


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


def test_several_labels_per_row_are_refused():
    for model, X in ((TrellisClassifier(), np.eye(3)), (TrellisTextClassifier(), ["a", "b", "c"])):
        with pytest.raises(ValueError, match="y must have one label per row, but some"):
            model.fit(X, [["x", "y"], ["z"], ["x"]])


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
    for scale, weight in ((1e15, 1.0), (1.0, 1e9)):  # large, but not too large
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X * np.float32(scale), y, np.full(900, weight))
        assert model.score(X * np.float32(scale), y) > 0.7


def test_small_numbers_are_as_good_as_others_until_they_vanish(data):
    X, y = data
    X, model = X / X.max(), TrellisClassifier(5, random_state=0)
    for scale in (1e-16, 2e-18):
        tiny = X * np.float32(scale)
        assert model.fit(tiny, y).score(tiny, y) > 0.9
    with pytest.raises(ValueError, match=r"no value larger than 1e-19, too small.*MaxAbsScaler"):
        model.fit(X * np.float32(1e-19), y)


@pytest.mark.parametrize("learner", ["arow", "perceptron", Arow(), LinearSVM(), LinearSVC()])
def test_c_applies_to_the_svm_alone(data, learner):
    model = TrellisClassifier(5, learner=learner, C=3.0)
    with pytest.raises(ValueError, match=r"C applies only to learner='svm', got C=3\.0"):
        model.fit(*data)
    model.set_params(C="auto").fit(*data)
    assert "r" not in model.get_params(deep=False)


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


def test_rows_too_large_to_classify_are_refused():
    """Margins that overflow would silently leave vertices out of the search."""
    X, y = topics()
    clf = TrellisClassifier(random_state=0).fit(X, y)
    large = sparse.csr_matrix(([3.4e38, -3.4e38], ([0, 0], [0, 1])), (1, X.shape[1]), np.float32)
    many = sparse.vstack([sparse.csr_matrix(X[:3]), large]).tocsr()
    with pytest.raises(ValueError, match="too large"):
        clf.predict(many)
    with pytest.raises(ValueError, match="too large"):
        clf.predict_top_k(many, 3)
    with pytest.raises(ValueError, match="too large"):
        clf.row_predictor()(large.indices, large.data)
    np.testing.assert_array_equal(clf.predict(many[:3]), clf.predict(X[:3]))


@pytest.mark.parametrize("scale", [2.0**-10, 2.0**12])
def test_defaults_do_not_depend_on_the_unit_of_the_features(scale):
    """But for the order of equal rows, which are merged."""
    X, y = topics()
    expected = TrellisClassifier(random_state=0).fit(X, y)
    scaled = TrellisClassifier(random_state=0).fit(X * np.float32(scale), y)
    lengths = [np.linalg.norm(each.model_.weights.values) for each in (scaled, expected)]
    np.testing.assert_allclose(lengths[0] * scale, lengths[1], rtol=0.1)


def test_the_unit_is_the_length_of_a_typical_row():
    squares, weights = np.array([0.0, 100.0, 200.0, 1e6]), np.array([9.0, 1, 1, 0], np.float32)
    learner = LinearSVM(3.0)
    for estimator, expected in (
        (TrellisClassifier(), 16.0),  # the root of 150, rounded
        (TrellisClassifier(C=3.0), 1.0),
        (TrellisClassifier(learner=learner), 1.0),
    ):
        assert in_units_of_rows(estimator, learner, squares, weights).unit == expected
    tiny = in_units_of_rows(TrellisClassifier(), learner, squares * 1e-60, weights)
    assert np.isfinite(np.float32(30 / tiny.unit**2))
    none = in_units_of_rows(TrellisClassifier(), learner, np.zeros(4), weights)
    assert none == learner


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_given_c_takes_rows_of_any_length():
    """Of huge ones the optimum is found to the last digit, where no direction is left to follow."""
    y = np.arange(60) % 4
    X = np.abs(np.random.default_rng(0).normal(size=(60, 6))) * 0.2 + 2 * np.eye(6)[y]
    assert TrellisClassifier(C=1.0, random_state=0).fit(X * 1e12, y).score(X * 1e12, y) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (float("nan"), r"y\[1\] is missing \(nan\): every row needs a label"),
        (None, r"y\[1\] is missing \((None|nan)\)"),
        (7, "y mixes labels of types int and str: convert all of them to one type"),
    ],
)
def test_labels_that_are_missing_or_of_another_type(wrong, message):
    labels = np.array(["a", wrong, "b"], dtype=object)
    for y in (labels, pd.Series(labels, dtype=object)):
        with pytest.raises(ValueError, match=message):
            TrellisClassifier().fit(np.eye(3), y)


@pytest.mark.parametrize(
    "y", [["a", float("nan"), "b"], ("a", None, "b"), pd.Series(["a", None, "b"], dtype="string")]
)
def test_missing_labels_are_not_taken_as_texts(y):
    with pytest.raises(ValueError, match=r"y\[1\] is missing \(.*\): every row needs a label"):
        TrellisTextClassifier().fit(["a red apple", "a car", "a pear"], y)
