"""Threads for short work: every item once, in order, errors passed on."""

import multiprocessing
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


def test_after_an_error_nothing_new_is_begun():
    begun = []

    def fail(k):
        begun.append(k)
        raise ValueError(k)

    with pytest.raises(ValueError):
        in_threads(fail, range(1000), n_jobs=2)
    assert len(begun) <= 2
    assert in_threads(str, range(3), n_jobs=2) == ["0", "1", "2"]


def test_an_index_error_is_an_error_of_the_function():
    with pytest.raises(IndexError):
        in_threads(lambda k: [0][k], [0, 1, 0, 0], n_jobs=2)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own():
    in_threads(str, range(4), n_jobs=2)
    child = multiprocessing.get_context("fork").Process(target=check_squares, daemon=False)
    child.start()
    child.join(timeout=60)
    child.kill()
    assert child.exitcode == 0


def check_squares():
    assert in_threads(lambda k: k * k, range(4), n_jobs=2) == [0, 1, 4, 9]
