"""Dask clusters of real worker processes, and models to compare."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from xtrellis.learning import LinearSVM


@contextmanager
def local_cluster(n_workers=2):
    """Client of a cluster on this machine; skips the test where Dask is not installed."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


_WORKER = """
import importlib.metadata, sys
address, packages = sys.argv[1], dict(each.split("=") for each in sys.argv[2:])
known = importlib.metadata.version

class Missing:
    def find_spec(self, name, path=None, target=None):
        if packages.get(name.partition(".")[0]) == "":
            raise ModuleNotFoundError(f"No module named {name!r}")

def version(name):
    if packages.get(name) == "":
        raise importlib.metadata.PackageNotFoundError(name)
    return packages.get(name) or known(name)

sys.meta_path.insert(0, Missing())
importlib.metadata.version = version
from distributed.cli.dask_worker import main
main([address, "--no-nanny", "--nthreads", "1", "--no-dashboard"])
"""


@contextmanager
def another_worker(client, **packages):
    """A process that joins the cluster with packages of other versions; "" means without them."""
    before = client.nthreads()
    command = [sys.executable, "-W", "ignore", "-c", _WORKER, client.scheduler.address]
    process = subprocess.Popen(
        [*command, *(f"{name}={version}" for name, version in packages.items())],
        stderr=subprocess.DEVNULL,
    )
    try:
        client.wait_for_workers(len(before) + 1, timeout=60)
        (address,) = client.nthreads().keys() - before.keys()
        yield address
    finally:
        process.terminate()
        process.wait()
        while len(client.nthreads()) > len(before):
            time.sleep(0.05)


def bits(classifier):
    """All that a classifier predicts from, as bytes; not how long it took."""
    model = classifier.model_
    weights = model.weights
    arrays = (weights.edges, weights.bias, weights.features, weights.columns, weights.values)
    found = [part.tobytes() for part in (model.assignment.path_of_class, *arrays)]
    return [*found, model.classes.tolist(), repr(model.loss), repr(model.calibration)]


def slow_svm(folder, seconds):
    """An SVM that takes its time, and leaves a file for each block that it begins.

    Its class is made here so that it is sent to the workers by value: they cannot import tests.
    """

    @dataclass
    class SlowSVM(LinearSVM):
        folder: str = ""
        seconds: float = 0.0

        def start(self, block):
            Path(self.folder, f"{os.getpid()}-{uuid.uuid4().hex}").touch()
            time.sleep(self.seconds)
            return super().start(block)

    return SlowSVM(folder=str(folder), seconds=seconds)


def worker_pids(client):
    return client.run(os.getpid)


@contextmanager
def killing(client, n_files, folder):
    """Kill the worker that writes the ``n_files``-th file into the folder."""
    killed, ended = [], threading.Event()

    def watch():
        while not ended.is_set():
            names = os.listdir(folder)
            if len(names) >= n_files:
                pid = int(names[-1].split("-")[0])
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()
