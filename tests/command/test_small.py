"""On a new machine, a few lines are trained on and classified without compiling anything."""

import os
import subprocess
import sys

import pytest

from xtrellis.command import small

ROWS = "a\tred apple\nb\tgreen pear\na\tred cherry\nb\tyellow pear\n"
NOTE = "compiling kernels"


@pytest.fixture
def run(tmp_path):
    def run(*arguments, text="", compiled=False):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        if compiled:
            del environment["NUMBA_CACHE_DIR"]
        command = [sys.executable, "-m", "xtrellis", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, input=text)
        assert done.returncode == 0, done.stderr
        assert compiled or NOTE not in done.stderr
        assert not list((tmp_path / "cache").rglob("*.nbc"))
        return done.stdout

    (tmp_path / "rows.tsv").write_text(ROWS)
    return run


def test_a_few_lines_are_not_worth_compiling_for(run, tmp_path):
    rows, model, same = tmp_path / "rows.tsv", tmp_path / "model", tmp_path / "same"
    run("train", rows, model)
    run("train", rows, same, compiled=True)
    assert model.read_bytes() == same.read_bytes()
    answers = run("predict", model, "--proba", text="apple\npear\n")
    assert [line.split("\t")[0] for line in answers.splitlines()] == ["a", "b"]
    assert run("predict", model, "--proba", text="apple\npear\n", compiled=True) == answers
    assert "apple" in run("explain", model, "apple")
    assert "accuracy" in run("evaluate", model, rows)
    assert "classes" in run("inspect", model)


def test_input_that_goes_on_is_not_small(monkeypatch):
    read, write = os.pipe()
    with os.fdopen(read) as source:
        monkeypatch.setattr(sys, "stdin", source)
        os.write(write, b"apple\n")
        assert small._size_of_input() == float("inf")
        os.close(write)
        assert small._size_of_input() == 6
        assert source.read() == "apple\n", "nothing is consumed"


def test_other_processes_keep_their_kernels(tmp_path):
    (tmp_path / "rows.tsv").write_text(ROWS)
    assert not small.interpret_if_small(tmp_path / "rows.tsv")


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_is_no_file_is_not_small(name, tmp_path):
    assert small._size_of(tmp_path / name) == float("inf")
