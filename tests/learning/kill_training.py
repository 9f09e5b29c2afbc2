"""A process that trains again and again in processes of its own, and kills them: run by a test.

    python kill_training.py FOLDER KILLS SEED

Trains once without a checkpoint, to know how long it takes and what it gives. Then it begins with a
checkpoint, and is killed after a random time, as often as asked; at last it may finish. Processes
are forked, so that all kernels are compiled once.
"""

import hashlib
import os
import random
import signal
import sys
import time

from clusters import bits
from samples import topics
from xtrellis import TrellisClassifier


def train(checkpoint=None, n_jobs=2):
    X, y = topics(n_classes=60, n_features=3000, n_rows=4000)
    model = TrellisClassifier(8, random_state=0, n_jobs=n_jobs, checkpoint=checkpoint).fit(X, y)
    return hashlib.sha256(repr(bits(model)).encode()).hexdigest()


def forked(checkpoint):
    """Number of a process that trains, and the end of a pipe that it will write to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, train(checkpoint).encode())
        os._exit(0)
    os.close(writing)
    return child, reading


def ended(child, reading):
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return status, pipe.read()


def main(folder, n_kills, seed):
    random.seed(seed)
    train(n_jobs=1)  # compiled, or loaded, for all processes
    start = time.perf_counter()
    status, expected = ended(*forked(None))
    seconds = time.perf_counter() - start
    assert status == 0
    n_killed, most_blocks = 0, 0
    while n_killed < n_kills:
        child, reading = forked(folder)
        time.sleep(random.uniform(0, 0.7 * seconds))
        os.kill(child, signal.SIGKILL)
        status, found = ended(child, reading)
        if status == 0:  # it was faster: begin again
            assert found == expected, "another model"
        n_killed += status == signal.SIGKILL
        if os.path.isdir(folder):
            most_blocks = max(most_blocks, sum(x.endswith(".block") for x in os.listdir(folder)))
    status, found = ended(*forked(folder))
    assert status == 0
    assert found == expected, "another model"
    print(f"{n_killed} kills, up to {most_blocks} blocks kept, {len(os.listdir(folder))} left")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
