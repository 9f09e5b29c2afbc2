"""The rule by which terms are chosen."""

from xtrellis.selection.terms import CANDIDATES, USUAL, TermTrial, choose_terms


def chosen(accuracies, n_texts=3_000):
    trials = [TermTrial(*pair) for pair in zip(CANDIDATES, accuracies, strict=True)]
    return choose_terms(trials, n_texts)


def test_a_tenth_of_the_errors_or_two_points():
    assert chosen([0.90, 0.90, 0.905, 0.89]) == USUAL
    assert chosen([0.90, 0.90, 0.912, 0.89]) == CANDIDATES[2]
    assert chosen([0.40, 0.41, 0.415, 0.40]) == USUAL
    assert chosen([0.40, 0.42, 0.41, 0.425]) == CANDIDATES[3]


def test_more_than_chance():
    assert chosen([0.90, 0.912, 0.90, 0.89], n_texts=200) == USUAL
    assert chosen([0.90, 0.95, 0.90, 0.89], n_texts=200) == CANDIDATES[1]


def test_the_first_of_equals():
    assert chosen([0.5, 0.8, 0.8, 0.8]) == CANDIDATES[1]
    assert chosen([0.0, 0.0, 0.0, 0.0]) == USUAL
