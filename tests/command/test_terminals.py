"""The command on a terminal, as a real process: progress bars, Ctrl-C and signals."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from samples import reports
from xtrellis import TrellisClassifier, TrellisTextClassifier, load_icd10cm
from xtrellis.command.app import app
from xtrellis.command.predict import _goes_to_file

COMMAND = [sys.executable, "-m", "xtrellis"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with training and test texts, and a model of them."""
    folder = tmp_path_factory.mktemp("terminals")
    texts, labels = reports(400)
    rows = zip(labels[:300], texts[:300], strict=True)
    (folder / "train.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    (folder / "test.txt").write_text("".join(f"{text}\n" for text in texts[300:]))
    clf = TrellisTextClassifier(TrellisClassifier(4, random_state=0))
    clf.fit(texts[:300], labels[:300]).save(folder / "model")
    return folder


def on_terminal(arguments, interrupt_when=None):
    """Exit code, and what a terminal shows; Ctrl-C is typed when some text appears."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(inside)
    shown, typed, deadline = b"", False, time.monotonic() + 240
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 65_536)
            except OSError:  # all who wrote to it are gone
                break
            if not part:
                break
            shown += part
        if interrupt_when is not None and not typed and interrupt_when in shown:
            os.write(terminal, b"\x03")
            typed = True
    os.close(terminal)
    return process.wait(timeout=30), shown.decode(errors="replace")


def test_progress_bar_on_a_terminal(folder):
    code, shown = on_terminal(["train", folder / "train.tsv", folder / "again"])
    assert code == 0
    assert "nan" not in shown
    assert "training" in shown
    assert "100 %" in shown
    code, shown = on_terminal(["predict", folder / "model", folder / "test.txt"])
    assert code == 0
    # Numba resets the terminal's colours at exit, if colorama is installed.
    assert len(shown.removesuffix("\x1b[0m").splitlines()) == 100


def test_what_takes_long_is_shown(folder, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "xtrellis.command.errors.waiting",
        lambda verbose, what: shown.append(what) or nullcontext(),
    )
    rows, model, pruned = (str(folder / name) for name in ("train.tsv", "once", "pruned"))
    for arguments, expected in (
        (["train", rows, model], ["reading rows", "training"]),
        (["evaluate", model, rows], ["reading rows"]),
        (["prune", model, rows, pruned], ["reading rows", "pruning"]),
    ):
        assert CliRunner().invoke(app, arguments).exit_code == 0
        assert shown == expected
        shown.clear()


def test_rows_are_counted_on_the_terminal_if_predictions_go_to_a_file(tmp_path, monkeypatch):
    assert _goes_to_file(tmp_path / "predictions")
    with open(tmp_path / "redirected", "w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert _goes_to_file(None)
        assert _goes_to_file(Path("-"))
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert not _goes_to_file(None)
        assert not _goes_to_file(Path("-"))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Training texts that take a while."""
    path = tmp_path_factory.mktemp("large") / "icd10cm.tsv"
    data = load_icd10cm()
    rows = zip(data.train_labels, data.train_texts, strict=True)
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return path


def test_interrupt_keeps_the_old_model_and_leaves_nothing(large, tmp_path):
    model = tmp_path / "model"
    model.write_bytes(b"the old one")
    code, shown = on_terminal(
        ["train", large, model, "--training", "independent", "--width", "300", "-j", "2"],
        interrupt_when=b"training",
    )
    assert code == 130
    assert "stopped" in shown
    assert "Traceback" not in shown
    assert shown.rfind("\x1b[?25h") >= shown.rfind("\x1b[?25l"), "the cursor is hidden"
    assert model.read_bytes() == b"the old one"
    assert list(tmp_path.iterdir()) == [model]


def test_interrupt_of_widths_shows_what_is_done(large):
    code, shown = on_terminal(
        ["widths", large, "--widths", "2,3,300", "--training", "paper", "--epochs", "1"],
        interrupt_when=b"b = 2 done",
    )
    assert code == 130
    assert "interrupted" in shown
    assert "Traceback" not in shown


def test_interrupt_signal_in_a_pipe(folder):
    with subprocess.Popen(
        [*COMMAND, "predict", str(folder / "model")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(b"severe burn\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"burn\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == b"stopped\n"
