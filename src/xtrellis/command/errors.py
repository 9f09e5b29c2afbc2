"""How commands end: in one line and an exit code, on Ctrl-C within a second.

Exit codes: 0 done, 1 the data or a file is wrong, 2 the command is, 130 stopped by Ctrl-C, 141 who
reads the output has left.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

# Parameters of the library that errors may name, and what the command calls them.
_OPTIONS = {
    "slice_width": "--width",
    "text_column": "--text-column",
    "label_column": "--label-column",
    "min_count": "--min-count",
    "hash_size": "--hash-size",
    "max_bytes": "--max-bytes",
    "n_jobs": "--jobs",
    "format": "--format",  # with a value only: else it is just a word
}
_NAMED = re.compile(  # not what is quoted, part of a file's name, or a file
    rf"(?<![\w./'\"-])(format(?==)|{'|'.join(sorted(set(_OPTIONS) - {'format'}))})\b(?![.]\w|:|')"
    rf"(?:='?([\w.]+)'?)?"
)

GRACE = 0.7  # seconds that Ctrl-C waits for an orderly end

_ended = threading.Event()  # the command has taken note of an interrupt, or is over
_last_words: list[str] = []  # what to print if the process must end amid a computation


def told(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command end in one line and an exit code, whatever happens."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        with _stopping():
            try:
                command(*args, **options)
                sys.stdout.flush()
            except KeyboardInterrupt:
                say("stopped")
                _end(130)
            except BrokenPipeError:  # who reads our output has had enough, as head does
                _end(141)
            except MemoryError as error:
                say(f"error: out of memory: {error}")
                raise typer.Exit(1) from None
            except ImportError as error:
                say(f"error: {error}: pip install 'xtrellis[plot]' has what pictures need")
                raise typer.Exit(1) from None
            except (ValueError, OSError) as error:
                say(f"error: {_one_line(error)}")
                raise typer.Exit(1) from None

    return run


def _end(code: int) -> None:
    """End the process at once: a thread may still wait for input, which Python would wait for."""
    sys.stderr.flush()
    os._exit(code)


def say(message: str) -> None:
    """Print a line to standard error."""
    print(message, file=sys.stderr, flush=True)


def _one_line(error: Exception) -> str:
    """First line of an error; of the system's errors, the file and the reason."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    line = str(error).strip().partition("\n")[0] or type(error).__name__
    return _with_options(line)


def _with_options(line: str) -> str:
    """A message of the library with the command's options for Python's parameters.

    >>> _with_options("say format='tsv', or lower min_count=5")
    'say --format tsv, or lower --min-count 5'
    """
    return _NAMED.sub(lambda found: f"{_OPTIONS[found[1]]} {found[2] or ''}".rstrip(), line)


@contextmanager
def _stopping() -> Iterator[None]:
    """Let Ctrl-C end the process within a second even amid a long computation.

    Python handles a signal when the computation returns to it. A thread that waits on the signal's
    wake-up pipe gives it a moment for an orderly end, and then ends the process.
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
                say("stopped")
                os._exit(130)

    _ended.clear()
    _last_words.clear()
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        _ended.set()
        signal.set_wakeup_fd(before)
        os.close(writing)


def take_note() -> None:
    """Say that the command handles an interrupt itself, in its own time."""
    _ended.set()


def leave_word(words: str) -> None:
    """What to print should the process have to end amid a computation; the latest counts."""
    _last_words[:] = [words]


def _tidy_up() -> None:
    """Leave no half-written file, and print what is known."""
    from ..model.atomic import UNFINISHED

    for path in list(UNFINISHED):
        path.unlink(missing_ok=True)
    for words in _last_words:
        print(words, flush=True)
