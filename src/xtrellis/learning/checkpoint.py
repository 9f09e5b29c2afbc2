"""A folder of finished blocks, so that a training that was killed resumes where it stopped.

Training a block is a pure function. So a block's file is named by a hash of all that goes into it,
rows and settings and seed, and holds what training that block again would give. Blocks of the
trials that choose C are kept, too. Files are written beside their place and renamed into it; they
hold arrays and plain facts (``model.packing``), and nothing in them is executed.

The folder belongs to one training. ``checkpoint.json`` says which, and another one is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import IntArray
from ..model.atomic import is_disk_full, replacing
from ..model.finished_block import FinishedBlock
from ..model.model_file import checksum, read_file, write_file
from ..model.packing import ModelFileError, Packer, Unpacker
from .blocks import BlockResult, Job

NAME, SUFFIX = "checkpoint.json", ".block"
_ENTRY = "xtrellis block"  # of a file's header
_NOTHING = repr(None)  # a setting that is None

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)
_done: ContextVar[list[Path] | None] = ContextVar("done", default=None)

# ---------------------------------------------------------------------- the folder of a training


@contextmanager
def keeping_blocks(
    folder: str | os.PathLike[str], settings: dict[str, Any], arrays: Sequence[npt.NDArray[Any]]
) -> Iterator[None]:
    """Keep finished blocks in a folder, and reuse those that are there.

    The settings and arrays are what tells one training from another. When training succeeds, the
    folder is emptied of blocks: at once, or when :func:`emptying_later` ends.
    """
    path = Path(folder)
    _claim(path, {name: _in_words(value) for name, value in settings.items()}, _digest(arrays))
    token = _folder.set(path)
    try:
        yield
    finally:
        _folder.reset(token)
    later = _done.get()
    if later is None:
        _empty(path)
    else:
        later.append(path)


@contextmanager
def emptying_later() -> Iterator[None]:
    """Keep the blocks of all trainings inside until this ends without an error."""
    if _done.get() is not None:  # inside another
        yield
        return
    token = _done.set([])
    try:
        yield
        for path in _done.get() or ():
            _empty(path)
    finally:
        _done.reset(token)


def in_subfolder(estimator: Any, name: str) -> Any:
    """The estimator with its checkpoint, or that of the one inside it, in a folder of its own.

    For trainings that belong together, but are not the same one.
    """
    for key, folder in estimator.get_params(deep=True).items():
        if key.rpartition("__")[2] == "checkpoint" and folder is not None:
            estimator.set_params(**{key: os.path.join(folder, name)})
    return estimator


def _claim(folder: Path, settings: dict[str, str], rows: str) -> None:
    """Claim the folder for this training, or raise a ValueError if it belongs to another one."""
    from .. import __version__

    wanted = {"version": __version__, "settings": settings, "rows": rows}
    place = folder / NAME
    try:
        with _naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                with replacing(place) as beside:
                    beside.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
                return
    except FileExistsError:
        raise ValueError(f"{folder} is a file: a checkpoint is a folder") from None
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        difference = _difference(found, wanted)
    except (ValueError, KeyError, TypeError, AttributeError):
        difference = f"{NAME} in it is damaged"
    if difference:
        raise ValueError(
            f"{folder} is the checkpoint of another training ({difference}): continue that one, "
            f"name another folder, or delete it"
        )


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Errors of a full disk that name the checkpoint, and say that nothing is lost."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        advice = (
            f"{os.strerror(error.errno or 0)}, so the checkpoint could not be written: free some "
            f"space and train again in the same way; blocks that it holds already are reused"
        )
        raise OSError(error.errno, advice, os.fspath(folder)) from None


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """How two trainings differ; an empty text if they are the same."""
    if found["version"] != wanted["version"]:
        return f"of xtrellis {found['version']}, not {wanted['version']}"
    for name in sorted({*found["settings"], *wanted["settings"]}):
        there, here = (facts["settings"].get(name, _NOTHING) for facts in (found, wanted))
        if there != here:
            there, here = ("not set" if each == _NOTHING else each for each in (there, here))
            return f"{name}={there} there, {here} here"
    return "" if found["rows"] == wanted["rows"] else "of other rows or labels"


def _empty(folder: Path) -> None:
    """Remove what was kept, with what a kill may have left half-written."""
    for pattern in (f"*{SUFFIX}", f".*.part{SUFFIX}", ".*.part.json", NAME):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


# ---------------------------------------------------------------------- blocks of a call


@dataclass(frozen=True, eq=False)
class Stage:
    """Files of the blocks that one call of the training engine trains."""

    folder: Path
    digest: str
    edges: Sequence[IntArray]  # of each block
    n_features: int

    def read(self, index: int) -> Any | None:
        """A block that was finished before; None if it was not."""
        path = self._path(index)
        try:
            with open(path, "rb") as file:
                return self._checked(index, *read_file(file))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            warnings.warn(f"{path} is damaged: its block is trained again", stacklevel=2)
            return None

    def _checked(self, index: int, arrays: dict[str, Any], metadata: dict[str, Any]) -> Any:
        """The block of a file, or an error if it is not sound."""
        facts = json.loads(metadata[_ENTRY])
        if facts["checksum"] != checksum(arrays, facts):
            raise ModelFileError("its checksum is wrong")
        result = _result(Unpacker(arrays).unpack(facts["block"], ""))
        for block in _blocks(result):
            _check(block, self.edges[index], self.n_features)
        return result

    def write(self, index: int, result: Any) -> None:
        """Keep a finished block."""
        packer = Packer()
        facts: dict[str, Any] = {"block": packer.pack(_parts(result), "")}
        facts["checksum"] = checksum(packer.arrays, facts)
        with (
            _naming(self.folder),
            replacing(self._path(index)) as beside,
            open(beside, "wb") as file,
        ):
            write_file(file, packer.arrays, facts, _ENTRY)

    def _path(self, index: int) -> Path:
        return self.folder / f"{self.digest}-{index}{SUFFIX}"


def stage_of(job: Job) -> Stage | None:
    """Where the blocks of a call are kept; None if they are not."""
    rows, plans = job.rows, job.plans
    if _folder.get() is None:
        return None
    facts = [job.function.__name__, *(each for i in range(len(plans)) for each in job.settings(i))]
    X = rows.X
    arrays = [
        *(X.data, X.indices, X.indptr, rows.features, rows.path_edges, rows.sample_weight),
        *(rows.held_out, np.array([rows.n_features, rows.n_edges])),
    ]
    return stage_for([plan.edges for plan in plans], rows.n_features, facts, arrays)


def stage_for(
    edges: Sequence[IntArray],
    n_features: int,
    facts: Sequence[Any],
    arrays: Sequence[npt.NDArray[Any]],
) -> Stage | None:
    """The same for blocks of these edges; facts and arrays are what else goes into them."""
    folder = _folder.get()
    if folder is None:
        return None
    digest = _digest([*arrays, *edges], [_in_words(each) for each in facts])
    return Stage(folder, digest[:20], edges, n_features)


def _parts(result: Any) -> dict[str, Any]:
    """Fields of a result, and of the blocks in it."""
    return {
        field.name: _parts(value) if isinstance(value, FinishedBlock) else value
        for field in fields(result)
        for value in (getattr(result, field.name),)
    }


def _result(parts: dict[str, Any]) -> FinishedBlock | BlockResult:
    """The result that has these parts."""
    if "finished" not in parts:
        return FinishedBlock(**parts)
    inner = {
        name: None if parts[name] is None else FinishedBlock(**parts[name])
        for name in ("finished", "before")
    }
    return BlockResult(**{**parts, **inner})


def _blocks(result: FinishedBlock | BlockResult) -> list[FinishedBlock]:
    if isinstance(result, FinishedBlock):
        return [result]
    return [result.finished] if result.before is None else [result.finished, result.before]


def _check(block: FinishedBlock, edges: IntArray, n_features: int) -> None:
    """Raise a ValueError if kernels could not rely on a block."""
    n_edges, n_entries = len(edges), int(block.counts.sum())
    if not (
        np.array_equal(block.edges, edges)
        and block.bias.shape == (n_edges,)
        and block.features.shape == block.counts.shape
        and block.columns.shape == block.values.shape == (n_entries,)
        and block.counts.min(initial=0) >= 0
        and block.columns.max(initial=0) < n_edges
        and 0 <= block.features.min(initial=0) <= block.features.max(initial=0) < n_features
    ):
        raise ModelFileError("its parts do not fit each other")


# ---------------------------------------------------------------------- hashes


def _digest(arrays: Sequence[npt.NDArray[Any]], facts: Sequence[str] = ()) -> str:
    """SHA-256 of arrays and facts."""
    digest = hashlib.sha256(json.dumps(list(facts)).encode())
    for array in arrays:
        if array.dtype.kind in "UO":
            digest.update(json.dumps([str(each) for each in array.tolist()]).encode())
            continue
        array = np.ascontiguousarray(array)
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _in_words(value: Any) -> str:
    """A setting as a text that is the same whenever the setting is."""
    if hasattr(value, "get_params"):
        parameters = sorted(value.get_params(deep=False).items())
        inside = ", ".join(f"{name}={_in_words(each)}" for name, each in parameters)
        return f"{type(value).__qualname__}({inside})"
    if isinstance(value, np.ndarray):
        return f"array {_digest([value])[:12]}"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return repr(value.item() if isinstance(value, np.generic) else value)
