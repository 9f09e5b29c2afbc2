"""What the commands write: models, predictions and facts. Inputs are never overwritten."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import note

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PICTURES = ("png", "svg", "pdf", "jpg", "jpeg", "webp", "tif", "tiff", "eps", "ps", "pgf", "svgz")
_LONGEST = 20  # characters of a name that a model saved elsewhere keeps
_BREAKS_LINES = re.compile(r"[\t\n\r]")


# ---------------------------------------------------------------------- where to write


def check_output(path: Path, *inputs: Path | None) -> None:
    """Raise an error if a file cannot be written, or is one of the inputs."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise OSError(error.errno, "this name is too long", str(path)) from None
    _check_apart(_status(path), f"{path}: this", inputs)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", str(folder))
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "this folder cannot be written to", str(folder))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file", str(path))


def check_picture(path: Path | None, *inputs: Path | None) -> None:
    """The same for a picture, if one is wanted; also if its extension is not that of a picture."""
    if path is None:
        return
    check_output(path, *inputs)
    if path.suffix.lower().lstrip(".") not in ("", *_PICTURES):
        raise ValueError(f"{path}: cannot draw a {path.suffix} file; use .png, .svg or .pdf")


def check_stdout(*inputs: Path | None) -> None:
    """Raise an error if standard output is one of the inputs."""
    if sys.stdout is None:
        raise ValueError("standard output is closed; name a file to write, or leave it open")
    try:
        output = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):  # closed, or not a file at all
        return
    _check_apart(output, "standard output", inputs)


def _check_apart(output: os.stat_result | None, what: str, inputs: Iterable[Path | None]) -> None:
    """Raise an error if a regular file is one of the inputs, even under another name."""
    if output is None or not stat.S_ISREG(output.st_mode):
        return
    for path in _files(inputs):
        if (found := _status(path, "-")) and os.path.samestat(output, found):
            name = "standard input" if str(path) == "-" else path
            raise ValueError(f"{what} is the same file as {name}; name another file to write")


def _files(inputs: Iterable[Path | None]) -> Iterator[Path]:
    """The files that inputs consist of: those of a folder of rows are its parts."""
    for path in inputs:
        if path is not None and path.is_dir():
            from ..data.shards import own_files

            yield from own_files(path)
        elif path is not None:
            yield path


def _status(path: Path, stdin: str | None = None) -> os.stat_result | None:
    """Status of the file that a path or link leads to; None if there is none."""
    try:
        return os.fstat(sys.stdin.fileno()) if str(path) == stdin else os.stat(path)
    except (OSError, ValueError):
        return None


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file that replaces the target once it is complete; errors name the target."""
    from ..model.atomic import replacing

    try:
        with replacing(path) as beside:
            yield beside
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's extension, and print its name."""
    with writing(path) as beside:
        figure.savefig(beside, dpi=130, format=path.suffix.lstrip(".") or "png")
    note(f"picture: {path}")


# ---------------------------------------------------------------------- models


def save_model(estimator: Any, path: Path) -> int:
    """Write a model, and return its size in bytes; if the disk is full, save it elsewhere.

    Training may have taken hours, and there may still be room next to the target, or in the
    temporary, home or working folder. The error says where the model is.
    """
    try:
        return int(estimator.save(path))
    except OSError as error:
        reason = _reason(error)
        for folder in _other_folders(path):
            rescued = _save_in(estimator, folder, path)
            if rescued is not None:
                raise ValueError(f"{path}: {reason}; the model is in {rescued}") from None
        raise ValueError(
            f"{path}: {reason}, and there is no room in the temporary or home folder either; "
            "free some space and train again"
        ) from None


def _other_folders(path: Path) -> Iterator[Path]:
    yield path.absolute().parent
    with suppress(OSError):
        yield Path(tempfile.gettempdir())
    with suppress(RuntimeError):
        yield Path.home()
    with suppress(OSError):
        yield Path.cwd()


def _save_in(estimator: Any, folder: Path, like: Path) -> Path | None:
    """Write a model to a new file in a folder; None if that fails."""
    new = None
    try:
        suffix = like.suffix if 0 < len(like.suffix) <= _LONGEST else ".xtrellis"
        handle, name = tempfile.mkstemp(suffix, f"{like.stem[:_LONGEST]}-", folder)
        os.close(handle)
        new = Path(name)
        estimator.save(new)
        return new
    except BaseException as error:
        if new is not None:
            new.unlink(missing_ok=True)
        if isinstance(error, OSError):
            return None
        raise


def _reason(error: OSError) -> str:
    """Why a file could not be written."""
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]


def size_in_words(n_bytes: int) -> str:
    """Size of a file.

    >>> size_in_words(1_234), size_in_words(5_678_000)
    ('1.2 kB', '5.68 MB')
    """
    return f"{n_bytes / 1e6:.2f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.1f} kB"


# ---------------------------------------------------------------------- lines


@contextmanager
def output_lines(path: Path | None) -> Iterator[Callable[[str], Any]]:
    """Function that writes lines to standard output, or to a file that appears once complete."""
    if path is None or str(path) == "-":

        def write(lines: str) -> None:
            sys.stdout.write(lines)
            sys.stdout.flush()

        yield write
        return
    with writing(path) as beside, open(beside, "w", encoding="utf-8") as file:
        yield file.write


def label_that_breaks_lines(labels: Iterable[Any]) -> str | None:
    """The first label that contains a tab or a newline, which separate fields and lines."""
    return next((label for label in map(str, labels) if _BREAKS_LINES.search(label)), None)


def check_plain_labels(model: Path, classes: Any) -> None:
    """Raise an error if labels of a model contain what separates fields and lines."""
    from ..data.streams import shown

    label = label_that_breaks_lines(classes.tolist()) if classes.dtype.kind in "OUS" else None
    if label is not None:
        raise ValueError(
            f"{model}: the label {shown(label)} contains a tab or a newline, which would break the "
            "lines of the output; pass --json"
        )


def plain_line(labels: list[Any], probabilities: list[float], proba: bool) -> str:
    """Labels of a row, with their probabilities if asked for, separated by tabs."""
    if not proba:
        return "\t".join(map(str, labels)) + "\n"
    pairs = (f"{label}\t{p:.4f}" for label, p in zip(labels, probabilities, strict=True))
    return "\t".join(pairs) + "\n"


def json_line(labels: list[Any], probabilities: list[float], n_terms: int | None) -> str:
    """Labels of a row, their probabilities if there are any, and its known terms, as JSON."""
    import json

    content: dict[str, Any] = {"labels": labels}
    if probabilities or not labels:
        content["probabilities"] = [round(p, 6) for p in probabilities]
    if n_terms is not None:
        content["known_terms"] = n_terms
    return json.dumps(content, ensure_ascii=False, default=str) + "\n"


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print facts as one line of JSON, or as a table."""
    if as_json:
        import json

        print(json.dumps(facts, default=str))
        return
    width = max(map(len, facts))
    for name, fact in facts.items():
        text = f"{fact:,}" if isinstance(fact, int) else fact
        if isinstance(fact, float):
            text = f"{fact:.4f}"
        print(f"{name.replace('_', ' '):{width}}  {text}")
