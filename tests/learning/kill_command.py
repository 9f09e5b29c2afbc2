"""Train by the command, which is killed again and again: run by a test.

    python kill_command.py ROWS FOLDER KILLS SEED [OPTION ...]

Trains once without a checkpoint, to know how long it takes and what it gives. Then it begins with a
checkpoint, and is killed after a random time, as often as asked; at last it may finish. Both models
must be the same, bit by bit. The options are those of ``xtrellis train``.
"""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from clusters import bits
from xtrellis import load_model


def main(rows, folder, n_kills, seed, *options):
    random.seed(seed)
    folder = Path(folder)
    command = [sys.executable, "-m", "xtrellis", "train", rows]
    whole, resumed, blocks = folder / "whole", folder / "resumed", folder / "blocks"
    start = time.perf_counter()
    subprocess.run([*command, str(whole), *options], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    again = [*command, str(resumed), *options, "--checkpoint", str(blocks)]
    n_killed, most_blocks = 0, 0
    while n_killed < int(n_kills):
        child = subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0.3, 1) * seconds)
        child.send_signal(signal.SIGKILL)
        status = child.wait()
        assert status in (0, -signal.SIGKILL), status
        if status == 0:  # it was faster: begin again
            assert bits(load_model(resumed)) == bits(load_model(whole)), "another model"
            resumed.unlink()
        n_killed += status == -signal.SIGKILL
        most_blocks = max(most_blocks, len(list(blocks.glob("*.block"))))
    subprocess.run(again, check=True, capture_output=True)
    assert bits(load_model(resumed)) == bits(load_model(whole)), "another model"
    print(f"{n_killed} kills, up to {most_blocks} blocks kept, {len(list(blocks.iterdir()))} left")


if __name__ == "__main__":
    main(*sys.argv[1:])
