"""Training: the same bits for any number of workers, memory, history."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from samples import topics
from xtrellis import TrellisClassifier
from xtrellis.learning import Arow


@pytest.mark.parametrize("training", ["local", "independent"])
@pytest.mark.parametrize("learner", ["svm", "arow", "perceptron"])
def test_same_seed_same_bits_for_any_number_of_workers(training, learner):
    X, y = topics()
    models = [
        TrellisClassifier(4, training=training, learner=learner, n_jobs=jobs, random_state=3)
        for jobs in (1, 2, 4)
    ]
    first, *others = [model.fit(X, y).decision_function(X).tobytes() for model in models]
    assert all(other == first for other in others)


def test_block_size_does_not_matter(monkeypatch):
    """Wide vertices split over several blocks learn the same, but for the order of rows."""
    X, y = topics(n_classes=40)
    whole = TrellisClassifier(
        40, training="independent", assignment="random", random_state=0, calibration=0
    ).fit(X, y)
    monkeypatch.setattr("xtrellis.learning.blocks.BLOCK_BYTES", 60_000)
    monkeypatch.setattr("xtrellis.learning.blocks.TIMES_ROWS", 0)
    small = clone(whole).fit(X, y)
    assert np.mean(whole.predict(X) == small.predict(X)) > 0.99


def test_features_never_seen_have_no_weights():
    X, y = topics()
    seen = np.asarray(X.sum(axis=0))[0] > 0
    seen[:100] = False
    X = X.multiply(seen).tocsr()
    for model in (TrellisClassifier(random_state=0), TrellisClassifier.paper(5, random_state=0)):
        weights = model.fit(X, y).weights_
        assert weights.n_seen <= seen.sum()
        assert not weights.dense_columns(np.arange(weights.n_edges))[0][~seen].any()


def test_memory_does_not_grow_with_features_times_edges():
    """A million features at b = 20: the state of a block is over the features of its rows."""
    import tracemalloc

    from scipy import sparse

    rng = np.random.default_rng(0)
    n_rows, n_features = 2000, 1_000_000
    columns = rng.integers(0, n_features, n_rows * 10)
    X = sparse.csr_matrix(
        (np.ones(columns.size, np.float32), columns, np.arange(0, columns.size + 1, 10)),
        (n_rows, n_features),
    )
    y = rng.integers(0, 400, n_rows)
    TrellisClassifier(20, random_state=0).fit(X[:100], y[:100])
    tracemalloc.start()
    model = TrellisClassifier(20, random_state=0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    everything = n_features * model.trellis_.n_edges * 8
    assert peak < everything / 10, (peak / 2**20, everything / 2**20)


def test_history_tells_losses_times_and_error():
    X, y = topics()
    history = TrellisClassifier.paper(4, epochs=3, random_state=0).fit(X, y).history_
    assert len(history.loss) == len(history.seconds) == 3
    assert history.loss[0] > history.loss[1] > history.loss[2] > 0
    assert len(history.training_error) == 1
    assert 0 <= history.training_error[0] < 0.5


def test_training_does_not_touch_the_callers_data():
    X, y = topics()
    before = X.copy(), y.copy()
    TrellisClassifier(learner=Arow(), random_state=0).fit(X, y)
    np.testing.assert_array_equal(X.toarray(), before[0].toarray())
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize("early_stopping", [False, True])
def test_other_backends_of_joblib_change_nothing(early_stopping):
    """Processes are used if a caller asks for them; for early stopping, threads all the same."""
    X, y = topics()
    model = TrellisClassifier(5, early_stopping=early_stopping, random_state=0, n_jobs=2)
    expected = model.fit(X, y).predict_proba(X)
    with joblib.parallel_config(backend="loky"):
        found = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(found, expected)
