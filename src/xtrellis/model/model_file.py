"""Model files: a fitted model in one safetensors file, written and read without pickle.

The file holds named arrays and one line of JSON. Arrays are stored in the smallest type that
loses nothing, and mapped into memory on load (those in half precision are widened). No part of a
file is ever executed. A checksum over all names, types, shapes, bytes and settings is verified on
load, unless the caller says otherwise.

A file is written beside its target and renamed into place: whatever happens in between, the target
is the old model or the new one, whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from .atomic import replacing
from .packing import Arrays, Facts, ModelFileError, pack, unpack

ENTRY = "xtrellis"  # of the safetensors header
VERSION = 1  # of the format

PathLike = str | os.PathLike[str]

# ---------------------------------------------------------------------- save and load


def write_model(model: Any, path: PathLike) -> int:
    """Write a fitted model to a file; returns the file's size in bytes."""
    from safetensors.numpy import save_file

    arrays, facts = pack(model)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    facts["format_version"] = VERSION
    facts["first_feature"] = getattr(model, "first_feature_", None)  # of svmlight rows, 0 or 1
    facts["checksum"] = _checksum(arrays, facts)
    with replacing(path) as beside:
        # One entry: of several, safetensors would write another order each time.
        save_file(arrays, beside, metadata={ENTRY: json.dumps(facts, allow_nan=False)})
    return os.stat(path).st_size


def load_model(path: PathLike, *, verify: bool = True) -> Any:
    """Read a model from a file.

    Parameters
    ----------
    path : str or path
    verify : bool, default=True
        Whether to read the whole file and verify its checksum. Without, a huge model is ready at
        once; for files that are known to be whole.

    Examples
    --------
    See :meth:`~xtrellis.TrellisClassifier.save`.

    >>> from xtrellis import load_model
    >>> load_model("nothing.here")
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno 2] No such file or directory: 'nothing.here'
    """
    with _refusing(path):
        arrays, metadata = _mapped(path)
        facts = _checked_facts(metadata)
        if verify and facts.get("checksum") != _checksum(arrays, facts):
            raise ModelFileError("its checksum is wrong: the file was altered or damaged")
        model = unpack(arrays, facts, verify)
        if facts.get("first_feature") in (0, 1):
            model.first_feature_ = facts["first_feature"]
        return model


class SavableMixin:
    """What every estimator here can do: be saved to a file and loaded from it."""

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


# ---------------------------------------------------------------------- the file itself


def _mapped(path: PathLike) -> tuple[Arrays, dict[str, str]]:
    """Arrays of a safetensors file, mapped into memory, and its metadata.

    safetensors checks the header; the arrays then lie one after the other in the order of their
    offsets. They are mapped as copy-on-write: kernels take writable arrays and read-only ones for
    different types, and would be compiled again.
    """
    from safetensors import safe_open

    size = os.stat(path).st_size
    with open(path, "rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
    if size < 8 or start > size:
        raise ModelFileError("it is not a model file, or cut off")
    with safe_open(path, framework="np") as file:
        metadata = file.metadata() or {}
        headers = [(name, file.get_slice(name)) for name in file.offset_keys()]
        content = np.memmap(path, np.uint8, mode="c").view(np.ndarray)
        arrays = {}
        for name, header in headers:
            dtype, shape = _TYPES[header.get_dtype()], tuple(header.get_shape())
            stop = start + int(np.prod(shape, dtype=object)) * dtype.itemsize
            arrays[name] = content[start:stop].view(dtype).reshape(shape)
            start = stop
    return arrays, metadata


_TYPES = {
    **{f"F{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    **{f"I{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"U{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    "BOOL": np.dtype(bool),
}


def _checksum(arrays: Arrays, facts: Facts) -> str:
    """SHA-256 over all content, in an order of its own."""
    told = {name: fact for name, fact in facts.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _checked_facts(metadata: dict[str, str]) -> Facts:
    """What the header says of the model, if it is of a version known here."""
    if ENTRY not in metadata:
        raise ModelFileError("it is a safetensors file, but not a model of xtrellis")
    facts: Facts = json.loads(metadata[ENTRY])
    version = facts.get("format_version")
    if version != VERSION:
        raise ModelFileError(
            f"it has format version {version!r}, and this xtrellis reads version {VERSION}: "
            f"use a newer xtrellis"
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
            else f"it is not a sound model file ({type(error).__name__}: {error})".splitlines()[0]
        )
        raise ModelFileError(f"{os.fspath(path)}: {reason}") from None
