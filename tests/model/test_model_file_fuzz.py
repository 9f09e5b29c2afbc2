"""Altered model files under bounds checks; XTRELLIS_FUZZ_FILES says how many."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("fuzz_model_files.py")


def test_altered_files_are_refused_or_predict_within_bounds(request, tmp_path):
    n_files = os.environ.get("XTRELLIS_FUZZ_FILES", "300")
    kernels = request.config.cache.mkdir("xtrellis-checked-kernels")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # Kernels of training need no checks, which would have to be compiled, too.
    subprocess.run([sys.executable, SCRIPT, "write", tmp_path], env=environment, check=True)
    environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(kernels), "NUMBA_OPT": "0"}
    command = [sys.executable, SCRIPT, n_files, "0", tmp_path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    lines = [line.split(None, 1) for line in done.stdout.splitlines() if line.startswith(" ")]
    outcomes = {outcome: int(count) for count, outcome in lines}
    expected = {"refused", "loaded", "loaded, overflow reported"}
    assert outcomes.keys() <= expected, done.stdout[-4_000:]
    assert sum(outcomes.values()) == int(n_files)
    assert outcomes["loaded"] > int(n_files) // 10  # an altered setting, a label, a weight
