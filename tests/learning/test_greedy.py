"""LTLS's assignment: the best free path of every new class."""

import numpy as np
import pytest

from xtrellis.decoding import k_best_paths
from xtrellis.graph import Trellis
from xtrellis.learning import GreedyAssignment


def assert_inverse(assignment, n_classes):
    order = assignment.class_of_path[assignment.path_of_class]
    np.testing.assert_array_equal(order, np.arange(n_classes))


def test_greedy_hands_out_the_best_free_path():
    trellis = Trellis(50, 4)
    f = np.random.default_rng(0).standard_normal(trellis.n_edges)
    ranking = k_best_paths(trellis, f[np.newaxis], 50, "squared")[0][0]
    greedy = GreedyAssignment(trellis, n_candidates=20)
    given_out = [greedy.assign(label, f) for label in range(50)]
    np.testing.assert_array_equal(given_out[:20], ranking[:20])
    # None of the best 20 is free any more: the lowest free number.
    np.testing.assert_array_equal(given_out[20:], np.sort(ranking[20:]))
    assert greedy.assign(3, -f) == ranking[3]
    assert_inverse(greedy.finish(), 50)


def test_greedy_gives_classes_never_seen_what_is_left():
    trellis = Trellis(10, 3)
    greedy = GreedyAssignment(trellis)
    path = greedy.assign(7, np.ones(trellis.n_edges))
    assignment = greedy.finish()
    assert_inverse(assignment, 10)
    assert assignment.path_of_class[7] == path


def test_bad_greedy_input():
    with pytest.raises(ValueError, match="label must be from 0 to 3, got 4"):
        GreedyAssignment(Trellis(4, 2)).assign(4, np.zeros(9))
    with pytest.raises(TypeError, match=r"label must be an integer, got 1\.5"):
        GreedyAssignment(Trellis(4, 2)).assign(1.5, np.zeros(9))
    with pytest.raises(ValueError, match=r"one row, shape \(9,\), got shape \(1, 9\)"):
        GreedyAssignment(Trellis(4, 2)).assign(1, np.zeros((1, 9)))
    with pytest.raises(ValueError, match="n_candidates must be at least 1, got 0"):
        GreedyAssignment(Trellis(4, 2), n_candidates=0)
