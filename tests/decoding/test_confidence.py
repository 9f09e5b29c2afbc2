"""Probabilities of the best paths: normalised, ordered, and fitted to what happened."""

import numpy as np
import pytest

from samples import topics
from xtrellis import TrellisClassifier
from xtrellis.decoding.confidence import BestPaths, fit_best_paths


@pytest.fixture(scope="module")
def fitted():
    X, y = topics(n_classes=40, n_rows=2000)
    return TrellisClassifier(random_state=0).fit(X[:1500], y[:1500]), X[1500:], y[1500:]


def test_definition():
    costs = np.array([[0.0, 1.0, 2.0, 2.0, 3.0]])
    found, left = BestPaths(temperature=2.0, rest=4.0).probabilities(costs)
    weights = np.exp(-costs[0] / 2)
    total = weights.sum() + 4 * weights[-1]
    np.testing.assert_allclose(found[0], weights / total)
    np.testing.assert_allclose(left, 4 * weights[-1] / total)
    found, left = BestPaths(rest=4.0).probabilities(costs, n_others=0)
    assert left == 0
    np.testing.assert_allclose(found.sum(), 1)


def test_no_path_is_more_likely_than_one_before_it():
    """Not even if all that five leave would go to the sixth, or there are few others."""
    costs = np.arange(8.0)[np.newaxis]
    logs = np.log([[0.1, 0.1, 0.1, 0.1, 0.1, 0.48, 0.01, 0.01]])
    for n_paths in (8, 9, 1_000):
        log_p = BestPaths(rest=10.0).log_probabilities(costs, logs, n_paths)
        assert (np.diff(log_p) <= 1e-12).all()
        total = np.exp(log_p).sum()
        assert total == pytest.approx(1) if n_paths == 8 else total < 1


def test_softmaxes_that_leave_nothing_to_others():
    """What five of them leave is then rounding, or less than nothing."""
    costs = np.arange(8.0)[np.newaxis]
    logs = np.log([[0.9, 0.1, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9]])
    for n_paths in (8, 1_000):
        p = np.exp(BestPaths(rest=2.0).log_probabilities(costs, logs, n_paths))
        assert p.sum() == pytest.approx(1) if n_paths == 8 else p.sum() < 1


@pytest.mark.parametrize("power", [0.8, 1.0, 1.3])
def test_the_parameters_behind_a_sample_are_found(power):
    rng = np.random.default_rng(0)
    costs = np.sort(rng.gamma(2.0, 1.0, (20_000, 5)), axis=1)
    true = BestPaths(temperature=1.7, rest=6.0, power=power)
    found, left = true.probabilities(costs)
    chances = np.cumsum(np.column_stack([found, left]), axis=1)
    drawn = (rng.random((len(costs), 1)) > chances).sum(axis=1)
    rank = np.where(drawn < 5, drawn, -1)
    fit = fit_best_paths(costs, rank, np.ones(len(costs), np.float32), 100)
    assert fit.temperature == pytest.approx(1.7, rel=0.05)
    assert fit.rest == pytest.approx(6.0, rel=0.1)
    assert fit.power == pytest.approx(power, rel=0.05)


def test_a_power_keeps_the_order_and_what_lies_behind_a_path():
    costs = np.sort(np.random.default_rng(0).gamma(2.0, 1.0, (50, 9)), axis=1)
    calibration = BestPaths(temperature=1.7, rest=6.0, power=0.7)
    scores = calibration.log_scores(costs, 30)
    assert (np.diff(scores, axis=1) <= 0).all()
    found, _ = calibration.probabilities(costs[:, :5], 25)
    np.testing.assert_allclose(np.exp(scores[:, :5]), found)
    logs, _ = calibration.logs(costs[:, :5], 25)
    np.testing.assert_allclose(logs, scores[:, :5])


def test_few_rows_cannot_mislead():
    costs = np.tile(np.arange(5.0), (3, 1))
    fit = fit_best_paths(costs, np.zeros(3, np.int64), np.ones(3, np.float32), 100)
    assert 0.2 < fit.temperature < 5
    assert 1 < fit.rest < 100
    assert 0.8 < fit.power < 1.25


def test_all_classes_sum_to_one_and_agree_with_the_best(fitted):
    clf, X, _ = fitted
    every = clf.predict_proba(X)
    np.testing.assert_allclose(every.sum(axis=1), 1, rtol=1e-6)
    for k in (1, 5, 12):
        labels, probabilities = clf.predict_top_k(X, k)
        own = np.take_along_axis(every, np.searchsorted(clf.classes_, labels), axis=1)
        np.testing.assert_allclose(probabilities[:, :5], own[:, :5], rtol=1e-6)
        np.testing.assert_allclose(probabilities, own, atol=3e-3)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[every.argmax(axis=1)])


def test_confidence_matches_accuracy(fitted):
    clf, X, y = fitted
    labels, probabilities = clf.predict_top_k(X, 1)
    accuracy = np.mean(labels[:, 0] == y)
    assert abs(probabilities.mean() - accuracy) < 0.05


@pytest.mark.parametrize(
    "wrong", [{"temperature": 0}, {"rest": -1}, {"rest": np.nan}, {"power": 0.1}, {"power": np.nan}]
)
def test_bad_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BestPaths(**wrong)
