"""Model files: a fitted model in one safetensors file, written and read without pickle.

The file holds named arrays and one line of JSON; ``packing`` decides what is in them. No part of a
file is ever executed. A checksum over all names, types, shapes, bytes and facts is verified on
load, unless the caller asks not to; bounds are checked in any case.

The safetensors format (eight bytes of length, a JSON header, the arrays) is read and written here,
not by its library: that opens a file several times, between which another process may replace
it, cannot read into memory without mapping, and hides why writing failed.

A file is written beside its target and renamed into place: whatever happens in between, the target
is the old model or the new one, whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap as memory_maps
import os
import re
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .atomic import replacing
from .packing import Arrays, Facts, ModelFileError, Packer, Unpacker, can_pack, is_of_type

ENTRY = "xtrellis"  # of the safetensors header
VERSION = 3  # of the format

PathLike = str | os.PathLike[str]

_MAX_HEADER = 100_000_000  # bytes, as in the safetensors library
_MAX_REASON = 300  # characters of an error, which may quote the file

# ---------------------------------------------------------------------- save and load


def write_model(model: Any, path: PathLike) -> int:
    """Write a fitted model to a file; returns the file's size in bytes."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    packer = Packer()
    facts: Facts = {"format_version": VERSION, "model": packer.pack(model, "")}
    facts["checksum"] = checksum(packer.arrays, facts)
    with replacing(path) as beside, open(beside, "wb") as file:
        return write_file(file, packer.arrays, facts)


def load_model(path: PathLike, *, verify: bool = True, mmap: bool = False) -> Any:
    """Read a model from a file.

    Parameters
    ----------
    path : str or path
    verify : bool, default=True
        Whether to verify the checksum. Without, damage that leaves all numbers within their bounds
        goes unnoticed.
    mmap : bool, default=False
        Whether to map the arrays into memory instead of reading them, so that processes on one
        machine share them. Only for files that are never changed in place: when a mapped file is
        truncated or overwritten (``cp new.xtrellis model.xtrellis``), predictions turn wrong or
        the process dies. Replacing it by ``save`` or ``mv`` is safe.

    Raises
    ------
    ModelFileError
        If the file is damaged, altered, of another version or not a model.

    Examples
    --------
    See :meth:`~xtrellis.TrellisClassifier.save`.

    >>> from xtrellis import load_model
    >>> load_model("nothing.here")
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno 2] No such file or directory: 'nothing.here'
    """
    with reading(path, verify, mmap) as (facts, unpacker):
        model = unpacker.unpack(facts, "")
        unpacker.check_all_used()
        if not isinstance(model, SavableMixin) or not model.__sklearn_is_fitted__():
            raise ModelFileError("it holds no fitted model")
        return model


@contextlib.contextmanager
def reading(
    path: PathLike, verify: bool = True, mmap: bool = False
) -> Iterator[tuple[Facts, Unpacker]]:
    """Facts about the model in a file, and what makes parts of it again.

    Errors in between are those of a file that is not sound.
    """
    with _refusing(path), open(path, "rb") as file:
        arrays, metadata = read_file(file, mmap)
        facts = _checked_facts(metadata)
        if verify and facts["checksum"] != checksum(arrays, facts):
            raise ModelFileError("its checksum is wrong: the file was altered or damaged")
        yield facts["model"], Unpacker(arrays)


class SavableMixin:
    """What every estimator here can do: be saved to a file and loaded from it.

    An estimator lists the fitted attributes that its file holds, and their types, in ``_saved``;
    those it may lack in ``_saved_if_set``.
    """

    _saved: ClassVar[dict[str, Any]] = {}
    _saved_if_set: ClassVar[dict[str, Any]] = {}
    _unsaved_settings: ClassVar[frozenset[str]] = frozenset()  # parameters saved as None

    def save(self, path: PathLike) -> int:
        """Write the fitted model to one file; returns its size in bytes.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.datasets import load_digits
        >>> from xtrellis import TrellisClassifier, load_model
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = TrellisClassifier(random_state=0).fit(X / 16, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "digits.xtrellis"
        ...     size = clf.save(path)
        ...     loaded = load_model(path)
        >>> bool((loaded.predict(X / 16) == clf.predict(X / 16)).all())
        True
        """
        return write_model(self, path)

    def to_parts(self) -> dict[str, Any]:
        """Settings and, if fitted, the fitted attributes, for a model file."""
        parts: dict[str, Any] = {"settings": self._settings()}
        if self.__sklearn_is_fitted__():
            self._check_parts()
            names = [*self._saved, *(name for name in self._saved_if_set if hasattr(self, name))]
            parts.update({name.removesuffix("_"): getattr(self, name) for name in names})
        return parts

    @classmethod
    def from_parts(cls, settings: dict[str, Any], **fitted: Any) -> Self:
        """Estimator of its parts, or an error if they do not fit each other."""
        model = cls(**settings)
        if fitted:
            types = {**cls._saved, **cls._saved_if_set}
            attributes = {f"{name}_": value for name, value in fitted.items()}
            if not cls._saved.keys() <= attributes.keys() <= types.keys():
                raise ValueError(f"a {cls.__name__} is not made of {', '.join(sorted(fitted))}")
            for name, value in attributes.items():
                if not is_of_type(value, types[name]):
                    raise ValueError(f"{name} is of a wrong type")
                setattr(model, name, value)
            model._check_parts()
        return model

    def _settings(self) -> dict[str, Any]:
        """Parameters; what a file cannot hold, such as objects of the caller's, as descriptions."""
        from sklearn.base import clone

        settings = {}
        for name, value in self.get_params(deep=False).items():  # type: ignore[attr-defined]
            if name in self._unsaved_settings:
                value = None
            elif isinstance(value, SavableMixin):
                value = clone(value)  # as it may be fitted
            elif hasattr(value, "__array__"):
                value = np.asarray(value)
            if not can_pack(value):
                value = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))  # not the same twice
            settings[name] = value
        return settings

    def _check_parts(self) -> None:
        """Raise a ValueError if fitted attributes do not fit each other."""

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in self._saved)


# ---------------------------------------------------------------------- the file itself

_TYPES = {
    **{f"F{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    **{f"I{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"U{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    "BOOL": np.dtype(bool),
}
_CODES = {dtype: code for code, dtype in _TYPES.items()}


def write_file(file: BinaryIO, arrays: Arrays, facts: Facts, entry: str = ENTRY) -> int:
    """Write a safetensors file, the same bytes each time; returns their number."""
    header: Facts = {"__metadata__": {entry: json.dumps(facts, allow_nan=False)}}
    # The widest types first: then all arrays are aligned.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    end = 0
    for name in order:
        array = arrays[name]
        start, end = end, end + array.nbytes
        code = _CODES[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": [start, end]}
    content = json.dumps(header, separators=(",", ":")).encode()
    content += b" " * (-len(content) % 8)
    if len(content) > _MAX_HEADER:
        raise ModelFileError("the settings of the model are too large to be saved")
    file.write(len(content).to_bytes(8, "little"))
    file.write(content)
    for name in order:
        array = arrays[name]
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        file.write(little.reshape(-1).view(np.uint8).data)
    return 8 + len(content) + end


def read_file(file: BinaryIO, mmap: bool = False) -> tuple[Arrays, dict[str, Any]]:
    """Arrays of a safetensors file and its metadata, all by one descriptor."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError("it is not a file on a disk: copy it to one")
    size = status.st_size
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(size - 8, _MAX_HEADER):
        raise ModelFileError("it is not a model file, or cut off")
    header = json.loads(file.read(length), object_pairs_hook=_without_repeats)
    metadata = header.pop("__metadata__", {})
    entries = sorted(header.items(), key=lambda entry: entry[1]["data_offsets"])
    start = 8 + length
    mapped = None
    if mmap:
        # Copy-on-write, as kernels are compiled for writable arrays.
        whole = memory_maps.mmap(file.fileno(), 0, access=memory_maps.ACCESS_COPY)
        mapped = np.frombuffer(whole, np.uint8)
    arrays, end = {}, start
    for name, entry in entries:
        dtype, shape = _TYPES[entry["dtype"]], tuple(map(_checked_size, entry["shape"]))
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        if entry["data_offsets"] != [begin - start, end - start] or end > size:
            raise ModelFileError(f"its array {name!r} is out of place, or cut off")
        arrays[name] = _read_array(file, mapped, begin, end, dtype).reshape(shape)
    if end != size:
        raise ModelFileError("it does not end where its arrays do")
    return arrays, metadata


def _read_array(
    file: BinaryIO, mapped: npt.NDArray[np.uint8] | None, begin: int, end: int, dtype: Any
) -> npt.NDArray[Any]:
    """Array in these bytes of the file, which is read up to there."""
    if mapped is not None:
        array = mapped[begin:end].view(dtype)
        array = array if array.flags.aligned else array.copy()
    else:
        array = np.empty((end - begin) // dtype.itemsize, dtype)
        if file.readinto(array.view(np.uint8).data) != array.nbytes:  # type: ignore[attr-defined]
            raise ModelFileError("it was cut off while it was read")
    if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise ModelFileError("a truth value in it is neither 0 nor 1")
    return array


def _checked_size(size: Any) -> int:
    if type(size) is not int or not 0 <= size < 2**48:
        raise ModelFileError(f"an array has a side of {size!r}")
    return size


def _without_repeats(pairs: list[tuple[str, Any]]) -> Facts:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError("a name stands twice in its header")
    return found


def checksum(arrays: Arrays, facts: Facts) -> str:
    """SHA-256 over all content, in an order of its own."""
    content = {name: fact for name, fact in facts.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _checked_facts(metadata: dict[str, Any]) -> Facts:
    """Facts about the model, if they are of a version known here."""
    if ENTRY not in metadata:
        raise ModelFileError("it is a safetensors file, but not a model of xtrellis")
    facts: Facts = json.loads(metadata[ENTRY], object_pairs_hook=_without_repeats)
    version = facts.get("format_version")
    if version != VERSION:
        older = type(version) is int and version < VERSION
        advice = "train the model again, or use the xtrellis that saved it"
        raise ModelFileError(
            f"it has format version {version!r}, and this xtrellis reads version {VERSION} only: "
            f"{advice if older else 'use a newer xtrellis'}"
        )
    return facts


@contextlib.contextmanager
def _refusing(path: PathLike) -> Iterator[None]:
    """Turn whatever a damaged file leads to into one line that names the file."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, PermissionError, MemoryError):
        raise
    except Exception as error:
        reason = (
            str(error)
            if isinstance(error, ModelFileError)
            else f"it is not a sound model file ({type(error).__name__}: {error})"
        )
        line = " ".join(reason.split())
        line = line if len(line) <= _MAX_REASON else f"{line[:_MAX_REASON]} ..."
        raise ModelFileError(f"{os.fspath(path)}: {line}") from None
