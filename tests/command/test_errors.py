"""Errors are one line in the words of the command, whatever went wrong."""

import os
import subprocess
import sys
import warnings

import pytest
import typer

from xtrellis.command import errors
from xtrellis.command.errors import describe, print_if_interrupted, report_errors, with_options


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("slice_width must be 3, got 7", "--width must be 3, got 7"),
        ("no term occurs in min_df=5 texts", "no term occurs in --min-df 5 texts"),
        ("the format is odd; pass format='tsv'", "the format is odd; pass --format tsv"),
        ("max_bytes is 10: slice_width 2 is 20", "--max-bytes is 10: --width 2 is 20"),
        ("a/format=1.tsv: my_slice_width", "a/format=1.tsv: my_slice_width"),
        ("min_df.tsv:1: no tab", "min_df.tsv:1: no tab"),
        ("slice_width: it is not a model", "slice_width: it is not a model"),
        ("there is no column 'min_df'", "there is no column 'min_df'"),
        ("n_jobs must be an integer", "--jobs must be an integer"),
        ("pass zero_based=True or zero_based=False", "pass --zero-based or --one-based"),
        ("epochs must be an integer, got 0", "--epochs must be an integer, got 0"),
        ("after two epochs must come a third", "after two epochs must come a third"),
        ("bits must be 8 or 32, got 4", "--bits must be 8 or 32, got 4"),
        ("C must be positive, got -1", "-C must be positive, got -1"),
        ("C=3 needs learner='svm'", "-C 3 needs --learner svm"),
        ("training must converge", "training must converge"),
        ("n_jobs must be 1, or None, got 0", "--jobs must be 1, got 0"),
    ],
)
def test_errors_name_options_not_parameters(message, shown):
    assert with_options(message) == shown


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("first line\nsecond"), "first line"),
        (ValueError(), "ValueError"),
        (FileNotFoundError(2, "No such file or directory", "a.tsv"), "a.tsv: No such file or "),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "out of memory"),
        (MemoryError("4 TB"), "out of memory: 4 TB"),
        (ImportError("no matplotlib", name="matplotlib.figure"), "pip install 'xtrellis[plot]'"),
        (ImportError("No module named 'numba'", name="numba"), "the installation is incomplete"),
    ],
)
def test_an_error_is_one_line(error, line):
    assert line in describe(error)
    assert "\n" not in describe(error)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("slice_width is odd"), "error: --width is odd\n"),
        (TypeError("unsupported"), "error: this is a bug in xtrellis (TypeError: unsupported); "),
    ],
)
def test_commands_end_with_a_line_and_a_code(error, line, capsys):
    @report_errors
    def command():
        raise error

    with pytest.raises(typer.Exit) as caught:
        command()
    assert caught.value.exit_code == 1
    shown = capsys.readouterr().err
    assert shown.startswith(line)
    assert shown.count("\n") == 1


def test_bugs_are_shown_in_full_on_request(monkeypatch):
    monkeypatch.setenv("XTRELLIS_TRACEBACK", "1")

    @report_errors
    def command():
        raise TypeError("unsupported")

    with pytest.raises(TypeError, match="unsupported"):
        command()


def test_wrong_command_lines_keep_their_own_code():
    @report_errors
    def command():
        raise typer.BadParameter("--width must be a number")

    with pytest.raises(typer.BadParameter):
        command()


def test_warnings_are_one_line_each_and_said_once(capsys):
    @report_errors
    def command():
        for _ in range(3):
            warnings.warn("slice_width is large\nand more", stacklevel=1)
        warnings.warn("another", stacklevel=1)

    before = warnings.showwarning
    command()
    assert capsys.readouterr().err == "warning: --width is large\nwarning: another\n"
    assert warnings.showwarning is before


def test_results_are_kept_when_interrupted(tmp_path, capsys, monkeypatch):
    from xtrellis.model import atomic

    unfinished = tmp_path / "half"
    unfinished.write_text("half")
    monkeypatch.setattr(atomic, "UNFINISHED", {unfinished})
    print_if_interrupted("the first")
    print_if_interrupted("the latest")
    errors._tidy_up()
    assert capsys.readouterr().out == "the latest\n"
    assert not unfinished.exists()
    errors._if_interrupted.clear()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_cut_off_is_an_error(tmp_path, unbuffered):
    """The system takes the first part of a long text, as a disk does that is nearly full."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from xtrellis.command.errors import report_errors\n"
        "report_errors(lambda: sys.stdout.write('line\\n' * 5_000))()"
    )
    with open(tmp_path / "output", "w") as file:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode != 0
    assert done.stderr.startswith("error: File too large\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_output_that_cannot_be_written():
    code = (
        "import typer\nfrom xtrellis.command.errors import report_errors\n"
        "app = typer.Typer()\n"
        "@app.command()\n@report_errors\ndef command(): print('x')\n"
        "app()"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"
