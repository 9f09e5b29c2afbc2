"""The rules by which ``fit`` chooses among settings it has tried."""

import pytest

from xtrellis.selection.settings import (
    Trial,
    choose,
    is_better_order,
    is_dominated,
    is_worth_it,
)


def trial(log_loss, accuracy, slice_width=40):
    return Trial("plain", 1.0, slice_width, log_loss, accuracy, 0.95)


def test_the_most_accurate_of_the_likely_ones_is_chosen():
    trials = [trial(1.0, 0.80), trial(1.005, 0.81), trial(1.2, 0.85)]
    assert choose(trials, 1_000) == 1


def test_one_that_is_less_likely_must_be_clearly_more_accurate():
    trials = [trial(1.0, 0.80), trial(1.03, 0.81)]
    assert choose(trials, 5_000) == 1
    assert choose(trials, 500) == 0  # that may be chance


def test_a_gain_that_may_be_chance_is_not_worth_a_larger_c():
    trials = [trial(1.0, 0.800), trial(1.0, 0.801)]
    assert choose(trials, 1_000) == 0
    assert choose(trials, 100_000) == 1


def test_of_equal_ones_the_first_is_chosen():
    assert choose([trial(1.0, 0.8), trial(0.999, 0.8), trial(1.0, 0.8)], 1_000) == 0


def test_one_that_is_dominated_would_never_be_chosen():
    assert is_dominated(trial(1.0, 0.8), by=trial(0.9, 0.8))
    assert not is_dominated(trial(1.0, 0.81), by=trial(0.9, 0.8))
    assert not is_dominated(trial(0.8, 0.7), by=trial(0.9, 0.8))
    assert not is_dominated(trial(1.0, 0.8), by=trial(0.9, 0.801), margin=0.002)


@pytest.mark.parametrize(
    ("gain", "log_loss", "n_rows", "expected"),
    [
        (0.006, 1.0, 5_000, True),
        (0.006, 1.0, 500, False),  # so few rows differ by as much through chance
        (0.002, 1.0, 10**6, False),  # real, but not worth the training
        (0.006, 1.1, 5_000, False),  # more often right, but less sure of the truth
    ],
)
def test_a_wider_trellis_must_earn_its_width(gain, log_loss, n_rows, expected):
    wide = trial(log_loss, 0.8 + gain, slice_width=80)
    assert is_worth_it(wide, trial(1.0, 0.8), n_rows) is expected


def test_the_usual_order_is_left_for_one_that_is_clearly_better():
    usual = Trial("by_rarity", 1.0, 40, 1.0, 0.800, 0.9)

    def is_better(log_loss, accuracy, n_rows=2_000):
        return is_better_order(Trial("plain", 1.0, 40, log_loss, accuracy, 0.9), usual, n_rows)

    assert is_better(1.0, 0.808)
    assert not is_better(1.0, 0.808, n_rows=500), "may be chance"
    assert not is_better(1.02, 0.808), "less sure"
    assert is_better(0.94, 0.8)
    assert not is_better(0.94, 0.799), "surer, but less accurate"
    assert not is_better(0.97, 0.805)
