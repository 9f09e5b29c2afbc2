"""Online training: a batch is learned completely or not at all, and costs what it touches."""

import numpy as np
import pytest
from scipy import sparse

from samples import topics
from xtrellis import TrellisClassifier
from xtrellis.graph import Trellis
from xtrellis.learning import Arow, AveragedPerceptron
from xtrellis.learning.online import OnlineBlocks
from xtrellis.learning.rows import online_rows


@pytest.fixture(scope="module")
def data():
    return topics()


@pytest.mark.parametrize("training", ["local", "independent"])
@pytest.mark.parametrize("learner", [Arow, AveragedPerceptron])
@pytest.mark.parametrize("begin", ["partial_fit", "fit"])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_interrupted_batch_leaves_no_trace(data, monkeypatch, training, learner, begin, at):
    X, y = data
    width = 5 if training == "local" else 100  # several blocks in either case
    monkeypatch.setattr("xtrellis.learning.blocks.MAX_EDGES", 8)

    def begun():
        model = TrellisClassifier(width, training=training, learner=learner(), random_state=0)
        if begin == "fit":
            return model.fit(X[:300], y[:300])
        return model.partial_fit(X[:300], y[:300], classes=np.arange(30))

    plain = begun().partial_fit(X[300:600], y[300:600])
    model = begun()
    before, n_losses = model.decision_function(X), len(model.history_.loss)
    step, calls = learner.step, []

    def interrupted(self, *given):
        loss = step(self, *given)
        calls.append(loss)
        if len(calls) == at + 1:
            raise KeyboardInterrupt
        return loss

    with monkeypatch.context() as patch:
        patch.setattr(learner, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[300:600], y[300:600])
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert len(model.history_.loss) == n_losses
    model.partial_fit(X[300:600], y[300:600])
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("training", ["local", "independent"])
def test_blocks_before_a_batch_are_not_changed_by_it(data, training):
    X, y = data
    trellis = Trellis(30, 5)
    batches = [
        online_rows(trellis, X[part], y[part], np.ones(300))
        for part in (slice(0, 300), slice(300, 600))
    ]
    first, _ = OnlineBlocks(trellis, training, Arow(), X.shape[1]).after(batches[0])
    edges = np.arange(trellis.n_edges)
    before = first.weights().dense_columns(edges)[0]
    second, loss = first.after(batches[1])
    assert loss > 0
    np.testing.assert_array_equal(first.weights().dense_columns(edges)[0], before)
    assert (second.weights().dense_columns(edges)[0] != before).any()


def test_a_batch_costs_what_it_touches():
    """Its vertices only: of 2,500 classes and 101 vertices, one row passes three."""
    rng = np.random.default_rng(0)
    X = sparse.random(2500, 200, 0.05, "csr", np.float32, rng=rng)
    model = TrellisClassifier(50, learner="arow", assignment="random", random_state=0)
    model.partial_fit(X, np.arange(2500), classes=np.arange(2500))
    states = model._online.states
    finished = model._online.finished
    for row in range(5):
        model.partial_fit(X[row], [row])
    changed = [key for key in states if model._online.states[key] is not states[key]]
    assert 3 <= len(changed) <= 15
    for key in states.keys() - set(changed):
        assert model._online.finished[key] is finished[key]
