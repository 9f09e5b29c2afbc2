"""The first kernel that has to be compiled is announced, and its time is not training time."""

import os
import subprocess
import sys

COMMAND = [sys.executable, "-m", "xtrellis"]


def test_compiling_is_announced_once_on_a_machine(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n2 2:1\n" * 4)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def evaluate():
        done = subprocess.run(
            [*COMMAND, "inspect", str(tmp_path / "model")]
            if (tmp_path / "model").exists()
            else [*COMMAND, "train", str(tmp_path / "rows.svm"), str(tmp_path / "model")],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr.splitlines()

    first = evaluate()
    assert first[0] == "compiling kernels, once on this machine"
    assert first.count(first[0]) == 1
    seconds = float(first[1].partition("trained in ")[2].partition(" s,")[0])
    assert seconds < 3, "compiling takes longer than that"
    (tmp_path / "model").unlink()
    assert not any("compiling" in line for line in evaluate())
