"""LTLS: joint training against a plain reference, and the interface it shares."""

import numpy as np
import pytest
from hypothesis import given

from samples import topics
from strategies import graphs
from xtrellis import LTLSClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.decoding.paths import best_paths, layout
from xtrellis.fitting import LabelledRows
from xtrellis.graph import Trellis
from xtrellis.kernels.joint import path_edges
from xtrellis.learning.greedy import GreedyAssignment
from xtrellis.learning.rows import visiting_order
from xtrellis.ltls import train_jointly


@given(graphs())
def test_edges_of_a_path_as_the_trellis_says(graph):
    trellis = Trellis(*graph)
    edges = np.empty(trellis.n_slices + 1, np.int64)
    for path in {0, trellis.n_classes // 3, trellis.n_classes // 2, trellis.n_classes - 1}:
        length = path_edges(path, *layout(trellis), edges)
        expected = trellis.path_edges(path)
        assert edges[:length].tolist() == expected[expected >= 0].tolist()


def test_joint_training_is_the_averaged_structured_perceptron():
    X, y = topics(n_classes=12, n_rows=150)
    trellis = Trellis(12, 2)
    data = LabelledRows(canonical_csr(X), y, np.ones(150, np.float32), np.arange(12))
    weights, assignment, history = train_jointly(trellis, data, 2, np.random.RandomState(5))

    seeds = np.random.RandomState(5)
    shuffled = np.random.RandomState(seeds.randint(2**31)).permutation(150)
    X, y = X[shuffled], y[shuffled]
    dense, rng = X.toarray().astype(float), np.random.default_rng(seeds.randint(2**31))
    greedy = GreedyAssignment(trellis)
    W = np.zeros((X.shape[1], trellis.n_edges))
    total, steps, mistakes = np.zeros_like(W), 0, 0
    for epoch in range(2):
        for i in visiting_order(np.arange(150), rng):
            total += W
            steps += 1
            margins = dense[i] @ W
            truth = greedy.assign(int(y[i]), margins.astype(np.float32))
            found = best_paths(trellis, margins[np.newaxis].astype(np.float32), "log")[0]
            if found != truth:
                mistakes += epoch == 1
                for path, sign in ((truth, 1), (found, -1)):
                    edges = trellis.path_edges(path)
                    W[:, edges[edges >= 0]] += sign * dense[i][:, np.newaxis]
    expected = (total + W) / (steps + 1)
    np.testing.assert_array_equal(assignment.path_of_class, greedy.finish().path_of_class)
    np.testing.assert_allclose(
        weights.dense_columns(np.arange(trellis.n_edges))[0], expected, atol=1e-4
    )
    assert history.training_error[1] == pytest.approx(mistakes / 150)


def test_learns_and_predicts():
    X, y = topics()
    model = LTLSClassifier(random_state=0).fit(X, y)
    assert model.trellis_.slice_width == 2
    assert model.score(X, y) > 0.8
    labels, probabilities = model.predict_top_k(X, 3)
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    assert (probabilities.sum(axis=1) <= 1 + 1e-12).all()
    again = LTLSClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_calibration_changes_probabilities_only():
    X, y = topics()
    model = LTLSClassifier(random_state=0, calibration=0.2).fit(X, y)
    assert model.temperature_ != 1
    np.testing.assert_array_equal(
        model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X)
    )


def test_progress_bar_shows_the_share_of_errors(capsys):
    LTLSClassifier(random_state=0, verbose=1).fit(*topics())
    assert "100 %  loss 0." in capsys.readouterr().err
    LTLSClassifier(random_state=0).fit(*topics())
    assert capsys.readouterr().err == ""
