"""A Dask cluster: real worker processes train the same bits, also if one of them is killed."""

import importlib
import os
import signal
import time
from dataclasses import replace

import joblib
import numpy as np
import pytest

from clusters import another_worker, bits, killing, local_cluster, slow_svm, worker_pids
from samples import topics
from xtrellis import TrellisClassifier
from xtrellis.graph import Trellis
from xtrellis.learning import LinearSVM
from xtrellis.learning.blocks import Job, Plan, plan_blocks
from xtrellis.learning.cluster import check_versions, on_cluster, tasks_of
from xtrellis.learning.rows import prepare_rows


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


def a_plan():
    X, y = topics()
    trellis, rng = Trellis(30, 5), np.random.RandomState(0)
    nothing = np.zeros(len(y), bool)
    rows = prepare_rows(trellis, X, y, np.ones(len(y), np.float32), nothing, rng)
    return rows, plan_blocks(trellis, rows, "local", LinearSVM())


@pytest.mark.parametrize(
    "settings",
    [{}, {"training": "independent", "learner": "arow"}, {"early_stopping": True}],
    ids=["local svm", "independent arow", "early stopping"],
)
def test_joblibs_dask_backend_trains_the_same_bits(client, settings):
    X, y = topics(n_classes=60, n_rows=2000)
    model = TrellisClassifier(5, random_state=0, **settings)
    expected = bits(model.fit(X, y))
    with joblib.parallel_config(backend="dask"):
        assert bits(model.fit(X, y)) == expected


def test_workers_train_and_not_this_process(client, tmp_path):
    X, y = topics()
    with joblib.parallel_config(backend="dask"):
        TrellisClassifier(5, learner=slow_svm(tmp_path, 0.02), random_state=0).fit(X, y)
    trained = {int(path.name.split("-")[0]) for path in tmp_path.iterdir()}
    assert trained == set(worker_pids(client).values())


def job_of(function, rows, plans):
    """A function that takes no settings, for all blocks."""
    return Job(function, rows, plans, lambda _: ())


def look(rows, plan):
    """Which rows a block sees, where."""
    return os.getpid(), rows.X.data.ctypes.data, rows.paths, plan.rows


def test_workers_are_sent_the_rows_of_their_blocks_alone(client):
    rows, plans = a_plan()
    assert len(plans) > 4
    seen = dict(on_cluster(client, job_of(look, rows, plans), range(len(plans))))
    assert sorted(seen) == list(range(len(plans)))
    for index, (_, _, paths, members) in seen.items():
        np.testing.assert_array_equal(paths, rows.paths[plans[index].rows])
        np.testing.assert_array_equal(members, np.arange(len(paths)))


def test_blocks_with_the_same_rows_share_them(client):
    """Those of the source, and those of another vertex: a worker has their rows once."""
    rows, plans = a_plan()
    source, other = plans[0], plans[1]
    assert len(source.rows) == len(rows.paths) > len(other.rows)
    parts = [replace(plan, edges=plan.edges[j : j + 1]) for plan in (source, other) for j in (0, 1)]
    seen = dict(on_cluster(client, job_of(look, rows, parts), range(4)))
    for pair in ((0, 1), (2, 3)):
        by_worker = {(pid, address) for pid, address, *_ in (seen[index] for index in pair)}
        assert len(by_worker) == len({pid for pid, _ in by_worker})
        for index in pair:
            np.testing.assert_array_equal(seen[index][2], rows.paths[parts[index].rows])


def test_all_rows_reach_blocks_of_independent_training(client):
    rows, _ = a_plan()
    plans = [Plan(np.array([edge])) for edge in range(5)]
    seen = dict(on_cluster(client, job_of(look, rows, plans), range(5)))
    assert len({(pid, address) for pid, address, *_ in seen.values()}) <= 2
    for _, _, paths, members in seen.values():
        np.testing.assert_array_equal(paths, rows.paths)
        assert members is None


def test_small_blocks_go_together_and_large_ones_first():
    rows, plans = a_plan()
    plans = [replace(plan, work=plan.work if i else 1e9) for i, plan in enumerate(plans)]
    tasks = tasks_of(job_of(look, rows, plans), range(len(plans)), n_threads=2)
    assert [task.blocks for task in tasks] == [(0,), tasks[1].blocks]  # all others are small
    assert sorted(tasks[1].blocks) == list(range(1, len(plans)))
    assert tasks[0].rows_of == ()
    assert tasks[1].rows_of == tasks[1].blocks


def test_blocks_of_a_vertex_go_together_unless_they_are_much_work():
    rows, plans = a_plan()
    wide = [replace(plans[1], edges=plans[1].edges[j : j + 1]) for j in range(3)]
    for work, expected in ((1.0, [(0,), (1, 2, 3)]), (1e9, [(1,), (2,), (3,), (0,)])):
        some = [replace(plans[0], work=100.0), *(replace(each, work=work) for each in wide)]
        tasks = tasks_of(job_of(look, rows, some), range(4), n_threads=1)
        assert [task.blocks for task in tasks] == expected
        assert {task.rows_of for task in tasks} == {(), (1,)}


def test_a_killed_worker_changes_nothing(client, tmp_path):
    X, y = topics()
    learner = slow_svm(tmp_path, 0.1)
    model = TrellisClassifier(5, learner=learner, random_state=0)
    before = set(worker_pids(client).values())
    with joblib.parallel_config(backend="dask"), killing(client, 4, tmp_path) as killed:
        found = bits(model.fit(X, y))
    assert killed
    assert killed[0] in before
    learner.seconds = 0.0
    assert bits(model.fit(X, y)) == found


def test_rows_that_no_worker_has_any_more_are_sent_again(client):
    rows, plans = a_plan()
    results = on_cluster(client, job_of(slow_count, rows, plans), range(len(plans)))
    found = [next(results)]
    for pid in worker_pids(client).values():
        os.kill(pid, signal.SIGKILL)
    found += list(results)
    assert sorted(found) == [(i, len(plan.rows)) for i, plan in enumerate(plans)]


def slow_count(rows, plan):
    time.sleep(0.05)
    return len(plan.rows)


def test_a_grid_search_on_the_cluster_does_not_wait_for_itself(client):
    from sklearn.model_selection import GridSearchCV

    X, y = topics(n_classes=6, n_rows=300)
    search = GridSearchCV(TrellisClassifier(random_state=0), {"C": [1.0, 3.0]}, cv=2)
    with joblib.parallel_config(backend="dask"):
        assert search.fit(X, y).best_score_ > 0.5


def test_errors_of_a_block_reach_the_caller(client):
    def fail(rows, plan):
        raise ValueError(f"no weights for edge {plan.edges[0]}")

    rows, plans = a_plan()
    with pytest.raises(ValueError, match=r"^no weights for edge \d+$"):
        list(on_cluster(client, job_of(fail, rows, plans), range(len(plans))))


def test_a_worker_without_the_package_is_named(client):
    """Also if it joins when training has begun, and is sent a block."""
    rows, plans = a_plan()
    check_versions(client)
    with another_worker(client, xtrellis="") as address:
        wanted = rf"^worker {address} has no xtrellis: install xtrellis \S+ there$"
        with pytest.raises(ImportError, match=wanted):
            check_versions(client)
        X, y = topics(n_rows=100)
        with joblib.parallel_config(backend="dask"), pytest.raises(ImportError, match=wanted):
            TrellisClassifier().fit(X, y)
        with pytest.raises(ImportError, match=wanted):
            list(on_cluster(client, job_of(slow_count, rows, plans), range(len(plans))))
    check_versions(client)


def test_a_worker_with_another_version_is_named(client):
    version = importlib.import_module("numba").__version__
    with another_worker(client, numba="0.1") as address:
        wanted = f"^worker {address} has numba 0.1, but this process has {version}: install the sa"
        with pytest.raises(ImportError, match=wanted):
            check_versions(client)
