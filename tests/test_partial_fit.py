"""partial_fit: learning from batches, before and after fit."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from xtrellis import TrellisClassifier


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


def test_partial_fit_says_which_learners_have_it():
    for learner in ("svm", LinearSVC()):
        with pytest.raises(AttributeError, match="use 'arow', 'perceptron' or a Learner with"):
            _ = TrellisClassifier(learner=learner).partial_fit
    with pytest.raises(AttributeError, match=r"learner must be .* got 'tree'"):
        _ = TrellisClassifier(learner="tree").partial_fit
    assert "Learn from one batch" in TrellisClassifier.partial_fit.__doc__
