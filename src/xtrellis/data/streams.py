"""Streams: files and pipes, plain or compressed, as blocks of whole lines.

Everything is read in pieces of bounded size, whatever a file claims to contain: a line may have
64 MiB, and compressed data may not expand beyond reason. Errors are one line,
``file:line: what was wrong; what to do``.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any, cast

Source = str | os.PathLike[str] | IO[bytes]

MAX_LINE = 2**26  # bytes
_PIECE = 2**16  # bytes read at once, and decompressed at once
_FEW = 8  # bytes, of a header
_BLOCK = 2**22  # bytes of whole lines handled at once
_LOOK_AHEAD = 2**24  # bytes; bzip2 has a checksum every 900 kB
_HEAD = 2**14  # bytes, enough to detect a format
_MAX_EXPANSION = 100  # times the compressed size: real text shrinks 3 to 30-fold ...
_FREE_EXPANSION = 2**26  # ... but this many bytes are accepted from any file
_XZ_MEMORY = 2**28  # bytes: xz -9 needs 65 MiB to unpack
_SHOWN = 40  # characters of a word that a message shows


class DataError(ValueError):
    r"""Data that cannot be read; the message is one line, ``file:line: what; what to do``.

    Examples
    --------
    >>> import io
    >>> from xtrellis.data import DataError, read_text
    >>> try:
    ...     read_text(io.BytesIO(b"A00\tcholera\ntyphoid\n"), format="tsv")
    ... except DataError as error:
    ...     print(error)
    <stdin>:2: no tab after the label in 'typhoid'; insert one
    """


class MissingFileError(DataError, FileNotFoundError):
    """A file that does not exist."""


class Stream:
    """The decompressed bytes of a source, in blocks of whole lines.

    Attributes
    ----------
    name : str
        For messages.
    line : int
        Number of lines in the blocks read so far.
    """

    def __init__(self, file: Any, name: str) -> None:
        self.name = name
        self.line = 0
        self._ahead: list[bytes] = []
        self._input = _Input(file, name)
        self._chunks = self._checked(_chunks(self._input))

    def head(self) -> bytes:
        """The first lines, or the beginning of a long one, which are read again later."""
        seen = b"".join(self._ahead)
        while len(seen) < _HEAD and b"\n" not in seen.lstrip():
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._ahead.append(chunk)
            seen += chunk
        return seen[:_HEAD]

    def blocks(self, size: int | None = None) -> Iterator[bytes]:
        """Blocks of whole lines of about ``size`` bytes; every block ends with a newline."""
        size = size or _BLOCK
        pending: list[bytes] = []
        length, whole = 0, False
        for chunk in chain(self._ahead, self._chunks):
            pending.append(chunk)
            length += len(chunk)
            whole = whole or b"\n" in chunk
            if length >= size and whole:
                block = b"".join(pending)
                end = block.rindex(b"\n") + 1
                pending, length, whole = [block[end:]], len(block) - end, False
                yield block[:end]
                self.line += block.count(b"\n", 0, end)
            if length > MAX_LINE:
                raise self.error(
                    f"the line is longer than {MAX_LINE >> 20} MiB; is this a text file?",
                    self.line + 1,
                )
        last = b"".join(pending)
        if last:
            last = last if last.endswith(b"\n") else last + b"\n"
            yield last
            self.line += last.count(b"\n")

    def check_ahead(self) -> None:
        """Read some way ahead in compressed data, and raise an error if it is damaged."""
        left = _LOOK_AHEAD if self._input.packed else 0
        while left > 0 and (chunk := next(self._chunks, b"")):
            left -= len(chunk)

    def error(self, what: str, line: int | None = None) -> DataError:
        """An error that names the source, and the line if one is given."""
        where = self.name if line is None else f"{self.name}:{line}"
        return DataError(f"{where}: {what}")

    def _checked(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Chunks without a byte order mark; errors name the line that is damaged."""
        lines, first = 0, b""
        try:
            for chunk in chunks:
                first += chunk
                if len(first) >= 3:
                    break
            first = first.removeprefix(b"\xef\xbb\xbf")
            for chunk in chain([first] if first else [], chunks):
                yield chunk
                lines += chunk.count(b"\n")
        except _DamagedError as error:
            raise self.error(str(error), lines + 1) from error.__cause__


class _DamagedError(Exception):
    """Compressed data that cannot be unpacked."""


@contextmanager
def opened(source: Source) -> Iterator[Stream]:
    """Open a path, or wrap a binary file object; only what was opened here is closed."""
    if hasattr(source, "read"):
        with _damage_first(Stream(source, _shown_name(getattr(source, "name", None)))) as stream:
            yield stream
        return
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"source must be a path or a binary file, got {type(source).__name__}")
    name = _shown_name(os.fspath(source))
    try:
        file = open(source, "rb")  # noqa: SIM115
    except FileNotFoundError as error:
        raise MissingFileError(f"{name}: there is no such file; check the path") from error
    except IsADirectoryError as error:
        raise DataError(f"{name}: this is a folder; name one of its files") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if os.path.isdir(source):  # which Windows reports as a denied permission
            raise DataError(f"{name}: this is a folder; name one of its files") from error
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{name}: cannot be opened ({reason}); check the path") from error
    with file, _damage_first(Stream(file, name)) as stream:
        yield stream


@contextmanager
def _damage_first(stream: Stream) -> Iterator[Stream]:
    """Report damaged compression rather than the nonsense that was parsed because of it.

    Checksums follow the data that they protect, so nonsense may be parsed first.
    """
    try:
        yield stream
    except DataError:
        stream.check_ahead()
        raise


def shown(word: bytes | str) -> str:
    """A word of the data for a message: quoted, escaped and shortened."""
    text = word.decode("utf-8", "backslashreplace") if isinstance(word, bytes) else word
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _shown_name(name: Any) -> str:
    """Name of a source for messages; that of standard input may be a number or ``<stdin>``."""
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not isinstance(name, str) or not name:
        return "<stdin>"
    return name if name.isprintable() else repr(name)


# ---------------------------------------------------------------------- compression


class _Input:
    """A binary file read in pieces as soon as they arrive, whose first bytes can be peeked at."""

    def __init__(self, file: Any, name: str) -> None:
        self._read: Callable[[int], Any] = getattr(file, "read1", file.read)
        self._name = name
        self._back = b""
        self.taken = 0  # bytes read
        self.packed = False

    def read(self, size: int = -1) -> bytes:
        """What has arrived, up to ``size`` bytes; but all of the few that headers ask for."""
        size = min(size, _PIECE) if size > 0 else _PIECE
        data = self._once(size)
        while data and len(data) < min(size, _FEW) and (more := self._once(size - len(data))):
            data += more
        return data

    def peek(self, size: int) -> bytes:
        """The first bytes, which are read again later."""
        self._back = self.read(size)
        return self._back

    def _once(self, size: int) -> bytes:
        if self._back:
            data, self._back = self._back[:size], self._back[size:]
            return data
        try:
            data = self._read(size)
        except OSError as error:
            reason = error.strerror or str(error)
            raise _DamagedError(f"cannot be read ({reason}); check the file or pipe") from error
        if not isinstance(data, bytes):
            raise TypeError(f"{self._name} must be opened in binary mode, and block")
        self.taken += len(data)
        return data


def _chunks(source: _Input) -> Iterator[bytes]:
    """Decompressed pieces; compression is detected from the first bytes, not from the name."""
    first = source.peek(6)
    if first.startswith(b"\x1f\x8b"):
        kind, pieces = "gzip", _gunzipped(source)
    elif first.startswith(b"BZh"):
        kind, pieces = "bzip2", _unpacked(source, bz2.BZ2Decompressor)
    elif first == b"\xfd7zXZ\x00":
        kind, pieces = "xz", _unpacked(source, _xz_decompressor)
    else:
        while data := source.read():
            yield data
        return
    source.packed = True
    expanded = 0
    try:
        for piece in pieces:
            expanded += len(piece)
            if expanded > max(_FREE_EXPANSION, _MAX_EXPANSION * source.taken):
                raise _DamagedError(
                    f"the {kind} data expand more than {_MAX_EXPANSION}-fold; "
                    "if that is intended, decompress the file first"
                )
            if piece:
                yield piece
    except EOFError as error:
        raise _DamagedError(
            f"the {kind} data are truncated; download or copy the file again"
        ) from error
    except (OSError, zlib.error, lzma.LZMAError) as error:
        reason = str(error).split("\n")[0]
        raise _DamagedError(
            f"the {kind} data are damaged ({reason}); download or copy the file again"
        ) from error


def _gunzipped(source: _Input) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=cast("IO[bytes]", source)) as file:  # it only reads
        while data := file.read1(_PIECE):
            yield data


def _xz_decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def _unpacked(
    source: _Input, new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]
) -> Iterator[bytes]:
    """Pieces of one or more concatenated compressed streams; zeros between them are skipped."""
    decompressor = new()
    while True:
        data = b""
        if decompressor.eof:
            data = decompressor.unused_data.lstrip(b"\0")
            while not data:
                more = source.read()
                if not more:
                    return
                data = more.lstrip(b"\0")
            decompressor = new()
        elif decompressor.needs_input:
            data = source.read()
            if not data:
                raise EOFError
        yield decompressor.decompress(data, _PIECE)
