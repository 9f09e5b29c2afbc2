"""Model files in use, and saves that fail or are killed: the old file is never lost."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from xtrellis import TrellisClassifier, load_model

IN_USE = """
import os, shutil, sys
from samples import topics
from xtrellis import load_model
live, how, other = sys.argv[1:]
X, _ = topics()
model = load_model(live)
before = model.predict_proba(X)
if how == "truncate":
    os.truncate(live, 100)
elif how == "copy":
    shutil.copyfile(other, live)
else:
    with open(live, "r+b") as file:
        file.write(b"\\xff" * os.path.getsize(live))
assert (model.predict_proba(X) == before).all()
"""


@pytest.mark.parametrize("how", ["truncate", "copy", "fill"])
def test_model_survives_what_is_done_to_its_file(how, rows, tmp_path):
    for name, width in (("live", 30), ("other", 3)):
        TrellisClassifier(width, random_state=0).fit(*rows).save(tmp_path / name)
    run_python(IN_USE, tmp_path / "live", how, tmp_path / "other")


def run_python(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


TWO_SAVES = """
import sys
from xtrellis import load_model
first, second = load_model(sys.argv[1]), load_model(sys.argv[2])
while True:
    first.save(sys.argv[3])
    second.save(sys.argv[3])
"""


def test_loading_while_others_save_never_fails(rows, tmp_path):
    X, y = rows
    expected = set()
    for name, width in (("first", 3), ("second", 30)):
        model = TrellisClassifier(width, random_state=0).fit(X, y)
        model.save(tmp_path / name)
        expected.add(tuple(model.predict(X).tolist()))
    target = tmp_path / "model"
    shutil.copy(tmp_path / "first", target)
    command = [sys.executable, "-c", TWO_SAVES, tmp_path / "first", tmp_path / "second", target]
    seen, n_loads = set(), 0
    with subprocess.Popen(command) as saver:
        try:
            end = time.monotonic() + 60
            while (len(seen) < 2 or n_loads < 300) and time.monotonic() < end:
                seen.add(tuple(load_model(target, mmap=n_loads % 2 == 1).predict(X).tolist()))
                n_loads += 1
        finally:
            saver.kill()
    assert seen == expected


FULL_DISK = """
import resource, sys
from pathlib import Path
from xtrellis import load_model
source, target, limit = sys.argv[1:]
model = load_model(source)
before = Path(target).read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    model.save(target)
except OSError as error:
    message = str(error)
assert message.endswith(f"nothing was changed: free some space or save elsewhere: {target!r}")
assert "\\n" not in message
assert Path(target).read_bytes() == before
assert list(Path(target).parent.iterdir()) == [Path(target)]
"""


@pytest.mark.parametrize("limit", [0, 1_000, 5_000])
def test_full_disk_is_one_line_and_changes_nothing(limit, saved, tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "model"
    target.write_bytes(b"old")
    run_python(FULL_DISK, saved[1], target, limit)


def test_failed_save_leaves_the_old_file(saved, monkeypatch):
    model, path = saved
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match=r"No space left .* save elsewhere: '.*model.xtrellis'"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_permissions_and_links_are_kept(saved, tmp_path):
    model, path = saved
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640


SAVER = """
import os, sys
from xtrellis import load_model
first, second = load_model(sys.argv[1]), load_model(sys.argv[2])
first.save(sys.argv[3])
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        while True:
            second.save(sys.argv[3])
            first.save(sys.argv[3])
    print(child, flush=True)
    os.waitpid(child, 0)
"""


def test_kill_during_save_never_loses_the_model(rows, tmp_path):
    """Fifty times a process that saves one model after the other is killed at some moment."""
    X, y = rows
    for name, seed in (("first", 0), ("second", 1)):
        TrellisClassifier(30, random_state=seed).fit(X, y).save(tmp_path / name)
    either = {(tmp_path / name).read_bytes() for name in ("first", "second")}
    target, draw, seen = tmp_path / "model", random.Random(0), set()
    half_way = 0
    command = [sys.executable, "-c", SAVER, tmp_path / "first", tmp_path / "second", target]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as saver:
        for _ in range(50):
            saver.stdin.write("go\n")
            saver.stdin.flush()
            child = int(saver.stdout.readline())
            while not list(tmp_path.glob(".model.*")):  # it has begun to write
                time.sleep(0.0005)
            time.sleep(draw.uniform(0, 0.005))
            os.kill(child, signal.SIGKILL)
            seen.add(target.read_bytes())
            for left in tmp_path.glob(".model.*"):
                half_way += 1
                left.unlink()
        saver.stdin.close()
    assert seen <= either
    assert half_way > 0
    assert load_model(target).score(X, y) > 0.5
