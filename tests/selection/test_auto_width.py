"""``slice_width="auto"``: fit chooses the width as ``select_slice_width`` does."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from samples import topics
from xtrellis import TrellisClassifier, select_slice_width


def test_auto_is_select_slice_width(data):
    X, y = data
    model = TrellisClassifier("auto", random_state=0).fit(X, y)
    selection = select_slice_width(X, y, estimator=TrellisClassifier(random_state=0))
    assert model.trellis_.slice_width == selection.slice_width
    assert model.slice_width == "auto"
    assert model.width_selection_.slice_width == selection.slice_width
    assert model.width_selection_.classifier is None
    np.testing.assert_array_equal(model.predict_proba(X), selection.classifier.predict_proba(X))
    assert clone(model).slice_width == "auto"
    assert not hasattr(model.set_params(slice_width=3).fit(X, y), "width_selection_")


def test_auto_keeps_what_else_was_chosen():
    X, y = topics(n_classes=12, n_rows=1200)
    model = TrellisClassifier("auto", random_state=0).fit(X, y)
    assert model.selection_.slice_width == model.trellis_.slice_width


def test_auto_with_the_papers_setting(data):
    model = TrellisClassifier.paper("auto", epochs=2, random_state=0).fit(*data)
    assert model.width_selection_.criterion == "bound"
    assert model.training == "independent"


def test_auto_takes_weights_and_names(data):
    X, y = data
    frame = pd.DataFrame(X[:, :60].toarray(), columns=[f"word {i}" for i in range(60)])
    weights = np.where(y == 7, 0.0, 1.0)
    model = TrellisClassifier("auto", random_state=0).fit(frame, y, sample_weight=weights)
    assert 7 in model.classes_
    assert not (model.predict(frame) == 7).any()
    assert list(model.feature_names_in_) == list(frame.columns)
    model.predict(frame)


def test_auto_inside_a_grid_search(data):
    grid = {"slice_width": ["auto", None, 3]}
    model = TrellisClassifier.paper(2, epochs=2, random_state=0)
    search = GridSearchCV(model, grid, cv=2).fit(*data)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.filterwarnings("ignore")
def test_auto_passes_scikit_learns_checks():
    results = check_estimator(TrellisClassifier("auto", C=1.0), on_fail=None)
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"] == []


def test_auto_needs_all_rows_at_once(data):
    X, y = data
    model = TrellisClassifier("auto", learner="arow", random_state=0)
    with pytest.raises(ValueError, match="slice_width='auto' needs all rows at once"):
        model.partial_fit(X, y, classes=np.arange(30))
    width = model.fit(X, y).trellis_.slice_width
    assert model.partial_fit(X, y).trellis_.slice_width == width  # which is known now


def test_an_unknown_word_for_the_width(data):
    message = "slice_width must be an integer of at least 2, 'auto' or None, got 'wide'"
    with pytest.raises(ValueError, match=message):
        TrellisClassifier("wide").fit(*data)
