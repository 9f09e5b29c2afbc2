"""Parameters of an estimator that is None by default can be searched over like any other."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from samples import reports, topics
from xtrellis import LTLSClassifier, TrellisClassifier, TrellisEnsemble, TrellisTextClassifier


def test_search_over_parameters_of_the_default_classifier():
    texts, labels = reports()
    default = TrellisTextClassifier()
    search = GridSearchCV(default, {"classifier__C": [0.5, 2.0]}, cv=2).fit(texts, labels)
    assert search.best_estimator_.classifier_.C in (0.5, 2.0)
    assert default.classifier is None
    X, y = topics(n_classes=5, n_rows=100)
    search = GridSearchCV(TrellisEnsemble(n_estimators=2), {"estimator__C": [0.5, 2.0]}, cv=2)
    assert search.fit(X, y).best_estimator_.estimators_[0].C in (0.5, 2.0)


@pytest.mark.parametrize(
    ("estimator", "name"), [(TrellisTextClassifier, "classifier"), (TrellisEnsemble, "estimator")]
)
def test_parameters_are_those_of_scikit_learn(estimator, name):
    default = estimator()
    assert default.get_params()[name] is None
    assert default.get_params()[f"{name}__C"] == TrellisClassifier().C
    assert f"{name}__C" not in default.get_params(deep=False)
    assert getattr(clone(default), name) is None
    model = clone(default).set_params(**{f"{name}__C": 3.0})
    assert getattr(model, name).C == 3.0
    assert getattr(default, name) is None
    assert clone(model).get_params()[f"{name}__C"] == 3.0
    model.set_params(**{f"{name}__C": 4.0, f"{name}__epochs": 2})
    assert (getattr(model, name).C, getattr(model, name).epochs) == (4.0, 2)
    model = estimator().set_params(**{name: None, f"{name}__C": 3.0})
    assert getattr(model, name).C == 3.0
    model = estimator().set_params(**{name: LTLSClassifier(), f"{name}__epochs": 3})
    assert getattr(model, name).epochs == 3
    for wrong in ("flavour", f"{name}__flavour"):
        with pytest.raises(ValueError, match="Invalid parameter 'flavour'"):
            estimator().set_params(**{wrong: 1})


def test_defaults_within_defaults():
    model = TrellisTextClassifier(TrellisEnsemble())
    assert "classifier__estimator__C" in model.get_params()
    model.set_params(classifier__estimator__C=3.0)
    assert model.classifier.estimator.C == 3.0
    assert np.isclose(model.get_params()["classifier__estimator__C"], 3.0)
