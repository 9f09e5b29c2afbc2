"""One virtual environment per peer, since they need different versions of NumPy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

STAMP = "installed.txt"  # written last: without it an environment is incomplete


class InstallError(Exception):
    """A peer cannot be installed; the message is one line to report."""


def environment_python(
    name: str, requirements: tuple[str, ...], cache: Path, alone: tuple[str, ...] = ()
) -> Path:
    """Interpreter of an environment with these requirements, which is created if necessary.

    The packages in ``alone`` are installed without their own requirements.
    """
    with _MAKING:  # peers of one package share an environment, and may run at the same time
        return _made(cache / "envs" / name, requirements, alone)


_MAKING = threading.Lock()


def _made(folder: Path, requirements: tuple[str, ...], alone: tuple[str, ...]) -> Path:
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = "\n".join([*requirements, *(f"{package} --no-deps" for package in alone)])
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text() == wanted and python.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)  # for other requirements, or incomplete
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
    """The line of a tool's output that explains best what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]  # pip prints hints after it
    return (errors or lines or ["no reason given"])[-1][:300]
