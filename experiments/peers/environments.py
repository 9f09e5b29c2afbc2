"""One virtual environment for each peer, since what they want of NumPy differs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

STAMP = "installed.txt"  # written last: an environment without it is not finished


class InstallError(Exception):
    """A peer cannot be installed; the message is the one line to report."""


def environment_python(
    name: str, requirements: tuple[str, ...], cache: Path, alone: tuple[str, ...] = ()
) -> Path:
    """Interpreter of an environment with these requirements, made if it is not there yet.

    What is in ``alone`` is installed without the packages that it asks for itself.
    """
    with _MAKING:  # peers of one package share an environment, and may be asked for at once
        return _made(cache / "envs" / name, requirements, alone)


_MAKING = threading.Lock()


def _made(folder: Path, requirements: tuple[str, ...], alone: tuple[str, ...]) -> Path:
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = "\n".join([*requirements, *(f"{package} --no-deps" for package in alone)])
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text() == wanted and python.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)  # of other requirements, or left half-made
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *requirements])
        if alone:
            _run([*pip, "--no-deps", *alone])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    stamp.write_text(wanted)
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"cannot be installed: {last_error(done.stderr or done.stdout)}")


def last_error(text: str) -> str:
    """The line of a tool's output that says best what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]  # pip puts hints after it
    return (errors or lines or ["no reason given"])[-1][:300]
