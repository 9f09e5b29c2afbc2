"""Threads for short work: every item once, in order, errors passed on."""

import threading

import pytest

from xtrellis.threads import in_threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 4, -1])
@pytest.mark.parametrize("n_items", [0, 1, 3, 20])
def test_results_come_in_the_order_of_the_items(n_items, n_jobs):
    assert in_threads(lambda k: k * k, range(n_items), n_jobs) == [k * k for k in range(n_items)]


def test_two_threads_work_at_once():
    meeting = threading.Barrier(2, timeout=30)  # which neither passes alone
    in_threads(lambda _: meeting.wait(), range(2), n_jobs=2)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_are_passed_on(n_jobs):
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda k: 1 / k, [1, 0, 2], n_jobs)
