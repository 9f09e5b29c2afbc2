"""How commands end: with one line and an exit code, and within a second of Ctrl-C.

Exit codes: 0: success; 1: bad data or a bad file; 2: a wrong command line; 130: stopped by Ctrl-C;
141: the output pipe was closed. If ``XTRELLIS_TRACEBACK`` is set, errors that are bugs in xtrellis
are shown in full.
"""

from __future__ import annotations

import functools
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import typer

from .._progress import waiting

GRACE = 0.7  # seconds after Ctrl-C for an orderly exit

_ended = threading.Event()  # the command has handled an interrupt, or has finished
_if_interrupted: list[str] = []  # what to print if the process must end during a computation


def note(message: str) -> None:
    """Print a line to standard error."""
    print(message, file=sys.stderr, flush=True)


def busy(what: str) -> AbstractContextManager[None]:
    """Show on a terminal what is going on, if it takes more than two seconds."""
    return waiting(int(sys.stderr.isatty()), what)


def report_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command end with one line and an exit code, whatever happens."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        from .compiling import announce_compiling

        with _interruptible(), _warnings_as_notes(), _whole_output():
            try:
                announce_compiling()
                command(*args, **options)
                if sys.stdout is not None:
                    sys.stdout.flush()
            except (typer.Exit, typer.Abort, typer.BadParameter):
                raise
            except KeyboardInterrupt:
                note("stopped")
                _exit_now(130)
            except BrokenPipeError:  # for example by head, which reads only a few lines
                _exit_now(141)
            except Exception as error:
                if not isinstance(error, ValueError | OSError | MemoryError | ImportError):
                    if os.environ.get("XTRELLIS_TRACEBACK"):
                        raise
                    note(
                        f"error: this is a bug in xtrellis ({type(error).__name__}: "
                        f"{_first_line(error)}); please report it, with the output of the same "
                        "command under XTRELLIS_TRACEBACK=1"
                    )
                else:
                    note(f"error: {describe(error)}")
                _drop_unwritable_output()
                raise typer.Exit(1) from None

    return run


@contextmanager
def _whole_output() -> Iterator[None]:
    """Write all of the results to standard output, or raise an error.

    Under ``PYTHONUNBUFFERED``, Python hands each text to the system once, and does not notice that
    a disk which is nearly full takes only a part of it.
    """
    before: Any = sys.stdout
    if not isinstance(getattr(before, "buffer", None), io.RawIOBase):
        yield
        return
    whole = io.BufferedWriter(io.FileIO(before.fileno(), "w", closefd=False))
    sys.stdout = io.TextIOWrapper(whole, before.encoding, before.errors, line_buffering=True)
    try:
        yield
    finally:
        sys.stdout = before


def _exit_now(code: int) -> None:
    """End the process at once; Python would wait for a thread that is waiting for input."""
    sys.stderr.flush()
    os._exit(code)


def _drop_unwritable_output() -> None:
    """Discard results that cannot be written; otherwise Python complains again at its exit."""
    try:
        if sys.stdout is not None:  # None if it was closed from the start
            sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print each warning once, as one line."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = f"warning: {with_options(_first_line(message))}"
        if text not in shown:
            shown.add(text)
            note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


# ---------------------------------------------------------------------- errors in the user's words

# Parameters that errors of the library may name, and the options that they correspond to.
_OPTIONS = {
    "slice_width": "--width",
    "text_column": "--text-column",
    "label_column": "--label-column",
    "min_df": "--min-df",
    "hash_size": "--hash-size",
    "max_bytes": "--max-bytes",
    "max_drop": "--max-drop",
    "n_jobs": "--jobs",
    "n_estimators": "--trellises",
    "random_state": "--seed",
    "header=False": "--no-header",
    "zero_based=True": "--zero-based",
    "zero_based=False": "--one-based",
}
# Words that are parameters only if a value follows, or only if the message begins with them.
_WORDS = ("format", "delimiter", "training", "learner", "C")
_FIRST = ("bits", "epochs", "widths", "threshold", "C")
_NAMED = re.compile(  # not if it is quoted, part of a file's name, or a file
    rf"(?<![\w./'\"-])({'|'.join(sorted(_OPTIONS, reverse=True))}|(?:{'|'.join(_WORDS)})(?==))"
    rf"(?!\w|[.]\w|:|')(?:='?([\w.]+)'?|=('[^'\w]+'|'\\t'))?"
)
_OR_NONE = re.compile(r",? or None\b(?=[,;]|$)")
_BEGINS = re.compile(rf"({'|'.join(_FIRST)})(?= must\b)")


def describe(error: BaseException) -> str:
    """One line about an error; for errors of the operating system, the file and the reason."""
    if isinstance(error, MemoryError):
        return f"out of memory: {_first_line(error)}" if str(error) else "out of memory"
    if isinstance(error, ImportError):
        if (error.name or "").startswith("matplotlib"):
            return "pictures need Matplotlib: pip install 'xtrellis[plot]'"
        return f"{_first_line(error)}: the installation is incomplete, install xtrellis again"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return with_options(_first_line(error))


def _first_line(error: BaseException | str) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def with_options(line: str) -> str:
    """A message of the library, with options in place of Python's parameters.

    >>> with_options("pass format='tsv', or lower min_df=5")
    'pass --format tsv, or lower --min-df 5'
    >>> print(with_options("pass delimiter=';'"))
    pass --delimiter ';'
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2] or found[3] or ""  # signs stay in quotes, for the shell
        return f"{_OPTIONS.get(name) or _flag(name)} {value}".rstrip()

    line = _OR_NONE.sub("", line)  # options are omitted rather than set to None
    begins = _BEGINS.match(line)
    if begins is not None:
        line = _flag(begins[1]) + line[begins.end() :]
    return _NAMED.sub(option, line)


def _flag(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"


# ---------------------------------------------------------------------- Ctrl-C


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process within a second, even during a long computation.

    Python handles a signal only when the computation returns. A thread that waits on the signal's
    wake-up pipe gives it a moment to exit in an orderly way, and then ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def watch() -> None:
        while signals := os.read(reading, 1):
            if signals[0] == signal.SIGINT and not _ended.wait(GRACE):
                _tidy_up()
                note("stopped")
                os._exit(130)

    _ended.clear()
    _if_interrupted.clear()
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        _ended.set()
        signal.set_wakeup_fd(before)
        os.close(writing)


def mark_interrupt_handled() -> None:
    """Tell the watching thread that the command handles the interrupt itself."""
    _ended.set()


def print_if_interrupted(text: str) -> None:
    """Set the text to print if the process has to end during a computation."""
    _if_interrupted[:] = [text]


def _tidy_up() -> None:
    """Remove half-written files, show the cursor that bars hide, and print the results so far."""
    from ..model.atomic import UNFINISHED

    if sys.stderr.isatty():
        print("\x1b[?25h", end="", file=sys.stderr, flush=True)
    for path in list(UNFINISHED):
        path.unlink(missing_ok=True)
    for text in _if_interrupted:
        print(text, flush=True)
