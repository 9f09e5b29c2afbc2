"""Files that are whole or not there: written beside their target, and renamed into place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED: set[Path] = set()  # for whoever must end the process at once


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside the target, which takes its place only when it is whole and on disk.

    Whatever happens in between, the target is the old file or the new one. It keeps its
    permissions; of a link, what it points to is replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "answer.txt"
    ...     with replacing(target) as beside:
    ...         size = beside.write_text("42")
    ...     target.read_text()
    '42'
    """
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe, a device: nothing to replace
        yield Path(path)
        return
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=f".part{target.suffix}", dir=target.parent
        )
    except OSError as error:  # that names a file which nobody asked for
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    os.close(handle)
    beside = Path(name)
    UNFINISHED.add(beside)
    try:
        yield beside
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        beside.chmod(mode)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        UNFINISHED.discard(beside)


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
