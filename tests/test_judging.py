"""What rows say of a model: in parts, or as far as it matters, it is what all paths say."""

import numpy as np
import pytest

from samples import topics
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.decoding.confidence import losses_in_bits
from xtrellis.fitting import LabelledRows
from xtrellis.judging import Judged, log_loss, losses_of, ranks_of, to_judge_by

SETTINGS = {
    "default": {},
    "re-ranked": {"rerank": 2.0},
    "room": {"max_classes": 40},
    "independent": {"training": "independent"},
}


@pytest.fixture(scope="module", params=SETTINGS)
def judged(request):
    """A model that is wrong now and then, and the rows it is judged by."""
    X, y = topics()
    model = TrellisClassifier(5, C=0.05, random_state=0, **SETTINGS[request.param])
    model = model.fit(X[:400], y[:400]).model_
    rows = canonical_csr(X[400:].astype(np.float32))
    weight = np.random.default_rng(0).uniform(0.5, 2, rows.shape[0]).astype(np.float32)
    return Judged(model, LabelledRows(rows, y[400:].astype(np.int64), weight, model.classes))


def test_losses_are_those_of_the_twenty_best_classes(judged):
    best, log_p = judged.model.top_k(judged.rows.X, 20)
    hits = best == judged.rows.y_encoded[:, np.newaxis]
    losses, ranks = losses_of(judged)
    np.testing.assert_allclose(losses, losses_in_bits(log_p, hits, 30), rtol=1e-9)
    np.testing.assert_array_equal(ranks == 0, hits[:, 0])
    np.testing.assert_array_equal((ranks >= 0) & (ranks < 5), hits[:, :5].any(axis=1))
    assert 0.02 < (ranks != 0).mean() < 0.9, "some rows are wrong, some are right"
    expected = np.average(losses, weights=judged.rows.sample_weight)
    assert log_loss(judged) == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 5])
def test_ranks_are_found_without_looking_further(judged, k):
    best = judged.model.best_classes(judged.rows.X, k)
    hits = best == judged.rows.y_encoded[:, np.newaxis]
    expected = np.where(hits.any(axis=1), hits.argmax(axis=1), -1)
    found = ranks_of(judged.model, judged.rows.X, judged.rows.y_encoded, k)
    np.testing.assert_array_equal(found, expected)


def test_a_search_that_may_end_early_opens_fewer_vertices(judged):
    model = judged.model
    if not model.is_lazy or model.assignment.n_free:
        pytest.skip("there is no such search")
    whole = model.search(judged.rows.X, 5)
    paths, *_, opened = model.search(judged.rows.X, 5, until=judged.true_paths)
    assert opened.sum() < whole[3].sum()
    assert ((paths == whole[0]) | (paths == -1)).all()


def test_paths_that_were_listed_before_are_not_looked_for_again(judged):
    if not judged.model.is_lazy:
        pytest.skip("all margins are needed")
    listed = judged.model.ranked(judged.rows.X, 20)
    again = Judged(judged.model, judged.rows, listed)
    for one, other in zip(judged.five_best, again.five_best, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.shares_memory(again.five_best[0], listed[0])


def test_rows_to_judge_by_count_for_those_to_come():
    """One class has two rows: none to come is of a class with only one row."""
    y_encoded = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2])
    X = canonical_csr(np.arange(9.0, dtype=np.float32)[:, np.newaxis] + 1)
    data = LabelledRows(X, y_encoded, np.full(9, 2, np.float32), np.arange(3))
    held_out = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0], bool)
    rows = to_judge_by(data, held_out)
    np.testing.assert_array_equal(rows.X.toarray().ravel(), [3, 6])
    np.testing.assert_allclose(rows.sample_weight, [2 * 2 / 3, 2 * 7 / 3])
    np.testing.assert_array_equal(to_judge_by(data, held_out, np.array([5])).y_encoded, [2])
