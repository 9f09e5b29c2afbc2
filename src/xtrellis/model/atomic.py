"""Files that are whole or not there: written beside their target, and renamed into place."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

_LONGEST, _LONGEST_SUFFIX = 40, 10  # characters of a name that the new file beside it keeps
UNFINISHED: set[Path] = set()  # for whoever must end the process at once


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside the target, which takes its place only when it is whole and on disk.

    Whatever happens in between, the target is the old file or the new one. It keeps its
    permissions; if it is a link, the file that it points to is replaced. When the disk is full, the
    error names the target, and nothing is left behind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "answer.txt"
    ...     with replacing(target) as beside:
    ...         size = beside.write_text("42")
    ...     target.read_text()
    '42'
    """
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe, a device: nothing to replace
        with _naming(path):
            yield Path(path)
        return
    target = Path(os.path.realpath(path))
    try:
        beside = _new_file_beside(target)
    except OSError as error:  # that names a file which nobody asked for
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    UNFINISHED.add(beside)
    try:
        with _naming(path, instead_of=str(beside)):
            yield beside
            with open(beside, "rb+") as file:
                os.fsync(file.fileno())
            if target.exists():
                beside.chmod(target.stat().st_mode & 0o777)
            beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        UNFINISHED.discard(beside)


@contextmanager
def _naming(path: str | os.PathLike[str], instead_of: str | None = None) -> Iterator[None]:
    """Errors of a full disk that name the target, and say what to do."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error) and error.filename in (None, instead_of):
            advice = f"{error.strerror}, and nothing was changed: free some space or save elsewhere"
            raise OSError(error.errno, advice, os.fspath(path)) from None
        raise


def is_disk_full(error: BaseException) -> TypeGuard[OSError]:
    """Whether an error says that there is no room for a file."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_elsewhere(
    write: Callable[[Path], object], path: str | os.PathLike[str], folders: Iterable[Path] = ()
) -> Path | None:
    """Write a file that found no room at ``path`` to another folder, under a name that is free.

    The given folders are tried first, then the current one, the home and the temporary folder.

    Returns
    -------
    Path or None
        Where the file is now; None if there was no room anywhere.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_elsewhere(lambda path: path.write_text("42"), "/full/a.txt", [Path(folder)]).name
    'a.txt'
    """
    wanted = Path(path)
    for folder in (*folders, Path.cwd(), Path.home(), Path(tempfile.gettempdir())):
        for number in range(100):
            spare = folder / (f"{wanted.stem}-{number}{wanted.suffix}" if number else wanted.name)
            if os.path.lexists(spare):
                continue
            try:
                write(spare)
            except OSError:
                break
            return spare
    return None


def _new_file_beside(target: Path) -> Path:
    """A new, empty file in the folder of the target, of a name that is no longer than allowed.

    It has the permissions of new files, and none that the target lacks. To leave the umask to the
    system, rather than to ask for it, is the only way that is safe while other threads save, too.
    """
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
    suffix = target.suffix if len(target.suffix) <= _LONGEST_SUFFIX else ""
    while True:
        middle = os.urandom(4).hex()
        new = target.parent / f".{target.name[:_LONGEST]}.{middle}.part{suffix}"
        try:
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode | 0o600))
        except FileExistsError:
            continue
        return new
