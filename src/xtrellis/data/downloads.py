"""Downloads that survive dropped connections, and archives unpacked without trusting them.

A file is downloaded to ``name.part`` and renamed when it is complete. A partial download is resumed
if the server supports it (HTTP Range), which pooch cannot do: it opens its target anew every time.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path
from typing import IO, Any

from .. import __version__

_PIECE = 2**18  # bytes
_TIMEOUT = 30.0  # seconds without a byte
_TRIES = 5  # in a row that bring no further byte
_PAUSE = 1.0  # seconds before the second try, doubled each time


class DownloadError(OSError):
    """A file that cannot be downloaded; the message is one line that says what to do."""


def data_home(given: str | os.PathLike[str] | None = None) -> Path:
    """Folder for downloaded data: as given, or XTRELLIS_DATA_HOME, or ~/.cache/xtrellis."""
    folder = given or os.environ.get("XTRELLIS_DATA_HOME") or Path("~", ".cache", "xtrellis")
    return Path(folder).expanduser()


def download(url: str, target: Path, *, sha256: str | None = None) -> Path:
    """Download a file to ``target``, unless it exists.

    Parameters
    ----------
    url : str
        Address, http or https.
    target : Path
        File to write; its folder is created.
    sha256 : str or None
        Checksum in hexadecimal, if known. A file with another checksum is removed, and an error
        is raised.
    """
    if target.exists():
        return target
    if not url.lower().startswith(("http://", "https://")):
        raise DownloadError(f"{url}: only http and https addresses are supported; check it")
    part = target.with_name(target.name + ".part")
    with _clear_disk_errors(part):
        part.parent.mkdir(parents=True, exist_ok=True)
        _fetch_with_retries(url, part)
        found = _checksum(part) if sha256 else None
        if sha256 and found != sha256.lower():
            _forget(part)
            raise DownloadError(
                f"{url}: the checksum is {found}, not {sha256}; the file was removed, "
                "try again or download it by hand"
            )
        os.replace(part, target)
        _tag(part).unlink(missing_ok=True)
    return target


def _fetch_with_retries(url: str, part: Path) -> None:
    tries = 0
    while True:
        before = _size(part)
        try:
            _fetch(url, part)
            return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and before:  # the part is longer than the file: start again
                _forget(part)
            elif error.code not in (408, 429, 500, 502, 503, 504):
                raise DownloadError(
                    f"{url}: the server answers {error.code} {error.reason}; the file may have "
                    "moved, download it by hand and pass its folder"
                ) from error
            reason: object = f"{error.code} {error.reason}"
        except urllib.error.URLError as error:
            reason = getattr(error.reason, "strerror", None) or error.reason
        except (http.client.HTTPException, ConnectionError, TimeoutError, EOFError) as error:
            reason = str(error) or type(error).__name__
        tries = 1 if _size(part) > before else tries + 1
        if tries >= _TRIES:
            raise DownloadError(
                f"{url}: cannot be downloaded ({reason}); check the network and try again, "
                f"the download resumes from byte {_size(part)}"
            )
        time.sleep(_PAUSE * 2 ** (tries - 1))


def _fetch(url: str, part: Path) -> None:
    """Try once to download what is missing, or everything if the server cannot resume."""
    start = _size(part)
    request = urllib.request.Request(url, headers={"User-Agent": f"xtrellis/{__version__}"})
    if start:
        request.add_header("Range", f"bytes={start}-")
        if _tag(part).exists():  # only if the file is still the same
            request.add_header("If-Range", _tag(part).read_text())
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        ranged = response.status == 206
        if ranged and _first_byte(response) != start:
            _forget(part)
            raise EOFError("the server sent a different range than requested")
        start = start if ranged else 0
        left = response.headers.get("Content-Length")
        total = start + int(left) if left and left.isdigit() else None
        if not ranged:
            _remember_tag(part, response)
        with open(part, "ab" if ranged else "wb") as file, _progress(part, total) as report:
            report(start)
            while data := _received(response):
                file.write(data)
                report(len(data))
    # http.client does not raise an error when a connection ends too early.
    if total is not None and _size(part) < total:
        raise EOFError(f"the connection ended at byte {_size(part)} of {total}")


def _received(response: Any) -> bytes:
    """The next piece; connection errors, TLS's too, are told apart from disk errors."""
    try:
        return bytes(response.read(_PIECE))
    except (OSError, http.client.HTTPException) as error:
        raise EOFError(str(error) or type(error).__name__) from error


def _first_byte(response: Any) -> int:
    """First byte of a partial answer; -1 if it does not say."""
    unit, _, rest = response.headers.get("Content-Range", "").partition(" ")
    first = rest.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdigit() else -1


def _remember_tag(part: Path, response: Any) -> None:
    """Keep what identifies this version of the file, to resume only with the same one."""
    tag = response.headers.get("ETag") or ""
    if not tag or tag.startswith("W/"):  # weak tags do not promise the same bytes
        tag = response.headers.get("Last-Modified") or ""
    if tag and tag.isprintable():
        _tag(part).write_text(tag)
    else:
        _tag(part).unlink(missing_ok=True)


def _tag(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag(part).unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _clear_disk_errors(path: Path) -> Iterator[None]:
    """Turn disk errors into one clear line."""
    try:
        yield
    except DownloadError:
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DownloadError(
                f"{path}: the disk is full; free some space, or choose another folder with "
                "XTRELLIS_DATA_HOME"
            ) from error
        raise DownloadError(
            f"{path}: cannot be written ({error.strerror or error}); choose another folder with "
            "XTRELLIS_DATA_HOME"
        ) from error


@contextmanager
def _progress(path: Path, total: int | None) -> Iterator[Callable[[int], None]]:
    """Progress bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn(path.name.removesuffix(".part")),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("download", total=total)
        yield lambda n_bytes: progress.update(task, advance=n_bytes)


# ---------------------------------------------------------------------- archives


def unpack(archive: Path, folder: Path, wanted: Collection[str]) -> None:
    """Extract the wanted files from a tar archive, compressed or not, into a folder.

    Only regular files are extracted, by the last part of their name, and written under that name:
    an archive cannot write anything elsewhere.
    """
    missing = set(wanted)
    with _clear_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with tarfile.open(archive, "r|*") as members:
                for member in members:
                    name = member.name.rsplit("/", 1)[-1]
                    if name in missing and member.isfile():
                        file = members.extractfile(member)
                        assert file is not None
                        _write_whole(file, member.size, folder / name)
                        missing.remove(name)
        except (tarfile.TarError, EOFError, zlib.error, LZMAError) as error:
            raise _refused(archive, f"is not a tar archive, or is damaged ({error})") from error
        except OSError as error:
            if error.errno is not None:
                raise
            raise _refused(archive, f"is damaged ({error})") from error  # by bz2 and gzip
    if missing:
        raise _refused(archive, f"does not contain {', '.join(sorted(missing))}")


def _write_whole(source: IO[bytes], size: int, target: Path) -> None:
    part = target.with_name(target.name + ".part")
    with open(part, "wb") as file:
        shutil.copyfileobj(source, file, _PIECE)
    if part.stat().st_size != size:
        raise EOFError(f"{target.name} is truncated")
    os.replace(part, target)


def _refused(archive: Path, what: str) -> DownloadError:
    """Error of a useless archive, which is removed so that the next try downloads it again."""
    archive.unlink(missing_ok=True)
    return DownloadError(f"{archive}: {what}; it was removed, download it again")
