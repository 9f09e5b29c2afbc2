"""partial_fit: learning from batches, before and after fit."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from xtrellis import TrellisClassifier
from xtrellis.learning import rows
from xtrellis.learning import training as engine


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


@pytest.mark.parametrize("training", ["local", "independent"])
@pytest.mark.parametrize("learner", ["arow", "perceptron"])
@pytest.mark.parametrize("width", [3, 6])
def test_a_stream_is_fit_of_one_epoch_in_the_same_order(
    data, monkeypatch, training, learner, width
):
    """Classes on the same paths, and each block of ``fit`` visits its rows as they come."""
    X, y = data
    settings = {"training": training, "learner": learner, "weight_bits": 32, "random_state": 0}
    settings["assignment"] = np.random.default_rng(1).permutation(30)
    in_order = SimpleNamespace(permutation=np.arange)
    shuffled = rows.shuffled_rows
    with monkeypatch.context() as patched:
        patched.setattr(rows, "shuffled_rows", lambda X, rng: shuffled(X, in_order))
        patched.setattr(engine, "visiting_order", lambda members, rng: members)
        fitted = TrellisClassifier(width, epochs=1, calibration=0, **settings).fit(X, y)
    stream = TrellisClassifier(width, **settings)
    for start, stop in pairwise([0, 1, 8, 400, 401, 700, 900]):
        stream.partial_fit(X[start:stop], y[start:stop], classes=np.arange(30))
    assert fitted.score(X, y) > 0.7
    np.testing.assert_allclose(stream.margins(X), fitted.margins(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(stream.predict(X), fitted.predict(X))


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
