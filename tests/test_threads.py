"""Threads for short work: every item once, in order, errors passed on."""

import multiprocessing
import subprocess
import sys
import threading
import time

import joblib
import pytest
from threadpoolctl import threadpool_info

from samples import topics
from xtrellis import TrellisClassifier
from xtrellis._threads import in_threads, single_threaded_blas, thread_count
from xtrellis.graph import similarity


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


def test_a_short_call_does_not_wait_for_busy_helpers():
    """Of another thread, which has all helpers: the caller does the work alone."""
    begun, end = threading.Barrier(3, timeout=30), threading.Event()

    def busy(_):
        begun.wait()
        return end.wait(timeout=30)

    other = threading.Thread(target=in_threads, args=(busy, range(2), 2))
    other.start()
    begun.wait()
    assert in_threads(str, range(4), n_jobs=2) == ["0", "1", "2", "3"]
    assert other.is_alive()
    end.set()
    other.join()


def test_nested_calls_end():
    inner = in_threads(lambda k: in_threads(str, range(k), n_jobs=2), range(1, 5), n_jobs=2)
    assert [len(found) for found in inner] == [1, 2, 3, 4]


def test_when_an_error_is_raised_nothing_runs_any_more():
    running, meeting = [], threading.Barrier(3, timeout=30)

    def work(k):
        running.append(k)
        meeting.wait()
        if threading.current_thread() is threading.main_thread():
            raise ValueError(k)
        time.sleep(0.2)
        running.remove(k)

    with pytest.raises(ValueError):
        in_threads(work, range(3), n_jobs=3)
    assert len(running) == 1


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_has_its_threads_back_when_the_last_caller_leaves():
    before = blas_threads()
    first, second = single_threaded_blas(), single_threaded_blas()
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)  # not in the order of a stack, as threads do
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_fits_at_the_same_time_leave_blas_as_it_was(monkeypatch):
    X, y = topics()
    second_began, first_done = threading.Event(), threading.Event()

    def class_vectors(*given):  # the first to come is the first to go
        name = threading.current_thread().name
        if name == "first" and second.ident is None:  # it comes several times
            second.start()
            assert second_began.wait(60)
        elif name == "second":
            second_began.set()
            assert first_done.wait(60)
        return similarity.class_vectors(*given)

    def fit():
        TrellisClassifier(random_state=0).fit(X, y)
        if threading.current_thread().name == "first":
            first_done.set()

    monkeypatch.setattr("xtrellis.graph.assignment.class_vectors", class_vectors)
    first, second = (threading.Thread(target=fit, name=name) for name in ("first", "second"))
    before = blas_threads()
    if before == {1}:
        pytest.skip("BLAS has one thread here")
    first.start()
    first.join()
    second.join()
    assert blas_threads() == before


POOL = """
import multiprocessing, numpy as np
from xtrellis import TrellisClassifier

def fit_and_predict(seed):
    X, y = np.tile(np.eye(8), (9, 1)), list(range(8)) * 9
    model = TrellisClassifier(n_jobs=2, random_state=seed).fit(X, y)
    return float(np.mean(model.predict(X) == y) + 0 * model.predict_proba(X).sum())

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(fit_and_predict, range(3)))
"""


def test_threads_inside_a_process_pool_are_quiet():
    """joblib warns there that it cannot start processes, which nobody asked for."""
    done = subprocess.run([sys.executable, "-c", POOL], capture_output=True, text=True, check=True)
    assert done.stdout == "[1.0, 1.0, 1.0]\n"
    assert done.stderr == ""


def test_thread_counts_are_those_of_joblib():
    with joblib.parallel_config(n_jobs=3):
        assert thread_count(None) == 3
    with joblib.parallel_config(backend="sequential"):
        assert thread_count(4) == 1
    assert thread_count(-1) == joblib.cpu_count()
