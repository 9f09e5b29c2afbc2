"""The first kernel that has to be compiled is announced, and its time is not training time."""

import os
import subprocess
import sys

COMMAND = [sys.executable, "-m", "xtrellis"]
NOTE = "compiling kernels, once on this machine"


def test_compiling_is_announced_once_on_a_machine(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n2 2:1\n" * 4)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def train():
        arguments = "train", tmp_path / "rows.svm", tmp_path / "model"
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stderr.splitlines()

    first = train()
    assert first.count(NOTE) == 1
    assert first[0] == NOTE
    seconds = float(first[1].partition("trained in ")[2].partition(" s,")[0])
    assert seconds < 3, "without the time of compiling"
    assert NOTE not in train()
