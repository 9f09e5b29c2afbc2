"""Votes of several trellises: the best classes of their mean are those of a full table."""

import numpy as np
import pytest

from xtrellis import TrellisClassifier, TrellisEnsemble
from xtrellis import votes as votes_module
from xtrellis._arrays import canonical_csr
from xtrellis.votes import Votes, best_of_mean, log_mean, votes_of


def random_votes(rng, n_classes, least, n_rows=60, n_best=5):
    """Votes with few different probabilities, so that many classes are equally likely."""
    classes = np.argsort(rng.random((n_rows, n_classes)), axis=1)[:, :n_best]
    shares = np.sort(rng.integers(least, 5, (n_rows, n_best)))[:, ::-1]  # others have a share of 1
    total = shares.sum(axis=1) + n_classes - n_best
    return Votes(classes, shares / total[:, np.newaxis], 1 / total)


def full_table(votes, n_classes):
    """Sums of the probabilities of all classes."""
    table = np.zeros((len(votes[0].classes), n_classes))
    for vote in votes:
        own = np.repeat(vote.others[:, np.newaxis], n_classes, axis=1)
        np.put_along_axis(own, vote.classes, vote.probabilities, axis=1)
        table += own
    return table


def assert_best_are_those_of_a_full_sort(votes, n_classes, sizes):
    table = full_table(votes, n_classes)
    named = np.concatenate([vote.classes for vote in votes], axis=1)
    order = np.empty(table.shape, int)
    for i in range(len(table)):  # of equal classes, the first that is named, or else the first
        by_name = np.array(list(dict.fromkeys([*named[i], *range(n_classes)])))
        order[i] = by_name[np.argsort(-table[i, by_name], kind="stable")]
    for k in sizes:
        classes, means = best_of_mean(votes, n_classes, k)
        np.testing.assert_array_equal(classes, order[:, :k])
        sums = np.take_along_axis(table, order[:, :k], axis=1)
        np.testing.assert_array_equal(means, sums / len(votes))


@pytest.mark.parametrize("n_classes", [6, 13, 40, 300])
@pytest.mark.parametrize("n_trellises", [1, 2, 3])
def test_the_best_of_the_mean_are_those_of_a_full_sort(n_classes, n_trellises):
    rng = np.random.default_rng(n_classes)
    votes = [random_votes(rng, n_classes, least=2) for _ in range(n_trellises)]
    sizes = {min(k, n_classes) for k in (1, 3, 5, 6, 10, 20, n_classes)}
    assert_best_are_those_of_a_full_sort(votes, n_classes, sizes)


@pytest.mark.parametrize("n_classes", [13, 40])
def test_named_classes_may_be_behind_others(n_classes):
    """By rounding; then more of the first classes are among the best."""
    rng = np.random.default_rng(n_classes)
    votes = [random_votes(rng, n_classes, least=0) for _ in range(2)]
    assert_best_are_those_of_a_full_sort(votes, n_classes, [6, 8, 12, n_classes])


def test_rows_are_sorted_a_few_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    votes = [random_votes(rng, 40, least=2) for _ in range(3)]
    whole = best_of_mean(votes, 40, 12)
    for size in (1, 100, 1_000):
        monkeypatch.setattr(votes_module, "_TABLE", size)
        for found, expected in zip(best_of_mean(votes, 40, 12), whole, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("k", [1, 3, 5, 6, 8])
def test_what_all_trellises_name_first_is_the_best_even_if_others_are_as_likely(k):
    """``predict`` does not look at probabilities where all agree."""
    names = [[4, 1, 2, 3, 0]], [[4, 7, 6, 5, 3]]
    votes = [Votes(np.array(each), np.full((1, 5), 0.125), np.array([0.125])) for each in names]
    assert best_of_mean(votes, 8, k)[0][0].tolist() == [4, 1, 2, 3, 0, 7, 6, 5][:k]


@pytest.mark.parametrize("n_classes", [11, 27])
def test_rounding_puts_no_class_before_those_that_are_named(n_classes):
    """A row whose classes are all equally likely, up to rounding."""

    class Uniform:
        def top_k(self, rows, k):
            return np.arange(k, 0, -1)[np.newaxis], np.full((1, k), np.log(1 / n_classes))

    model = Uniform()
    model.n_classes = n_classes
    votes = votes_of(model, None)
    assert best_of_mean([votes], n_classes, 10)[0][0].tolist() == [5, 4, 3, 2, 1, 0, 6, 7, 8, 9]


@pytest.mark.parametrize("settings", [{"decoding": "exponential"}, {}])
@pytest.mark.parametrize("n_classes", [2, 9])
def test_logarithms_are_finite_where_probabilities_vanish(n_classes, settings):
    y = np.arange(4 * n_classes) % n_classes
    member = TrellisClassifier(3, C=1.0, calibration=0.0, rerank=0.0, **settings)
    model = TrellisEnsemble(member, 2, random_state=0).fit(np.eye(n_classes)[y], y)
    X = 40 * np.eye(n_classes)
    assert (model.predict_proba(X) == 0).any()
    logs = model.predict_log_proba(X)
    assert np.isfinite(logs).all()
    assert np.isfinite(model.decision_function(X)).all()
    near = 2 * np.eye(n_classes)
    rows = canonical_csr(near.astype(np.float32))
    expected = log_mean([each.model_ for each in model.estimators_], rows)
    np.testing.assert_allclose(model.predict_log_proba(near), expected, rtol=1e-6)
