"""The first kernel that has to be compiled is announced, and its time is not training time."""

import os
import subprocess
import sys

from xtrellis.command import compiling

COMMAND = [sys.executable, "-m", "xtrellis"]
NOTE = "compiling kernels, once on this machine"


def test_compiling_is_announced_once_on_a_machine(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n2 2:1\n" * 200)  # too many for Python
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
    for name in ("svm_round", "k_best"):  # the other process compiled it for the same types
        assert len(list((tmp_path / "cache").rglob(f"*.{name}-*.nbc"))) == 1
    assert NOTE not in train()


def test_the_time_of_compiling_is_taken_off(monkeypatch):
    clock, compiled, done = iter([10.0, 15.0]), iter([1.0, 4.0]), []
    monkeypatch.setattr(compiling.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(compiling, "compile_seconds", lambda: next(compiled))
    assert compiling.timed(lambda: done.append("work")) == 2.0
    assert done == ["work"]


def test_one_helper_is_enough(monkeypatch):
    started, noted = [], []
    monkeypatch.setattr(compiling, "_helpers", [])
    monkeypatch.setattr(compiling, "note", noted.append)
    monkeypatch.setattr(compiling, "compiled_elsewhere", lambda name, wait: started.append(name))
    monkeypatch.setattr(compiling.subprocess, "Popen", lambda *_, **__: object())
    monkeypatch.setattr(compiling.os, "cpu_count", lambda: 2)
    compiling._start("compiled in every process", False)
    assert started == [], "it could not pass on what it compiles"
    compiling._start("compiled once", True)
    compiling._start("compiled once", True)
    assert started == ["svm_round", "k_best"]
    assert len(noted) == 3


def test_a_helper_ends_with_the_command_that_started_it(tmp_path):
    helper = subprocess.Popen(
        [sys.executable, "-m", "xtrellis.command.compile_largest", "svm_round"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
    )
    helper.stdin.close()  # as when the command has ended
    assert helper.wait(60) == 1
    assert not list(tmp_path.rglob("*.svm_round-*.nbc")), "it went on compiling"
