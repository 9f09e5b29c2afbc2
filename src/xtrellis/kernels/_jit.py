"""The decorator that makes a function a kernel, and the folder that compiled kernels are kept in.

Numba's own ``cache=True`` fails on a read-only file system, even where all kernels have been
compiled before. Here the cache is looked for in the folders that Numba would use, in its order, and
then in a temporary one:

1. ``NUMBA_CACHE_DIR``, if set;
2. ``__pycache__`` beside this file;
3. the user's cache folder, ``~/.cache/numba`` on Linux;
4. ``xtrellis-<user>`` in the folder for temporary files, if no other user can write to it.

Compiled code is written to the first of them that can be written, and read from that one and from
those before it. So an image whose kernels were compiled when it was built starts at once, read-only
or not. If no folder can be written, kernels are compiled in every process, and a note says so.

A kernel is compiled again when any kernel module changes. (Numba compares only the file of the
function itself; a kernel that calls one of another file would go on with the old code.)
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numba
import numpy as np
from numba.core import caching, event
from numba.core.runtime import rtsys
from numba.extending import register_jitable
from numba.misc.appdirs import AppDirs

from . import _has_compiled, _starts_compiling, wait_for_other_process

# What the compiler may assume of floating-point numbers, beside plain IEEE 754:
EXACT = False
FIXED = {"contract", "nsz", "nnan"}  # sums stay in order: the same number in every kernel
MINIMA = {"nnan", "nsz"}  # no NaNs, the sign of zero is free: min() goes to SIMD
SUMS = {"contract", "nsz", "nnan", "ninf", "reassoc"}  # sums may be reordered, so go to SIMD

_HERE = Path(__file__).parent


def kernel(
    function: Callable | None = None, *, fastmath: bool | set[str] = EXACT, inline: str = "never"
) -> Callable:
    """Compile a function with Numba, without Python's lock, and cache the result.

    Arrays, numbers and named tuples of them are the only arguments. Division by zero follows
    NumPy: a check for it would keep loops from SIMD. With ``NUMBA_DISABLE_JIT=1`` the function
    is run by Python as it is, which a debugger can follow.

    Parameters
    ----------
    function : callable
    fastmath : EXACT, MINIMA or SUMS
        What the compiler may assume; a callee's own setting holds, not its caller's.
    inline : {"never", "always"}
        "always" saves the time of compiling a callee by itself: for functions of a line or two.
    """
    if function is None:
        return lambda given: kernel(given, fastmath=fastmath, inline=inline)
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # compiled code does not warn of overflows
    options = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "inline": inline,
        "no_cfunc_wrapper": True,
    }
    compiled = numba.njit(**options)(function)
    compiled._cache = _KernelCache(function)
    return compiled


def part(function: Callable | None = None, *, fastmath: bool | set[str] = EXACT) -> Callable:
    """Make a function one that kernels can call. Called by Python it is run as it is.

    It takes half as long to compile as a kernel of its own, which Python could call, too.
    """
    if function is None:
        return lambda given: part(given, fastmath=fastmath)
    return register_jitable(nogil=True, error_model="numpy", fastmath=fastmath)(function)


def for_types_of(function: Callable, *arguments: object) -> Callable:
    """A kernel's compiled code for arguments of the same types as these.

    It is called without a look at the types, which takes longer than to classify a short row: they
    must be the same in every call.
    """
    if numba.config.DISABLE_JIT:
        return function
    return function.compile(tuple(numba.typeof(each) for each in arguments))


def is_compiled(function: Callable) -> bool:
    """Whether the cache has a kernel, for whatever types."""
    return numba.config.DISABLE_JIT or function._cache.has_any()


def interpret() -> None:
    """Let Python run all kernels that are not imported yet, as with ``NUMBA_DISABLE_JIT=1``."""
    numba.config.DISABLE_JIT = True


def has_compiled(name: str) -> bool:
    """Whether the cache has a file of this kernel, ``module.function``, which is not imported."""
    written, readable = cache_folders()
    folders = readable if written is None else (written, *readable)
    return any(any(folder.glob(f"{name}-*.nbi")) for folder in folders)


# ---------------------------------------------------------------------- where compiled code is kept


@cache
def cache_folders() -> tuple[Path | None, tuple[Path, ...]]:
    """Folder that compiled kernels are written to, if there is one; others to read them from."""
    readable: list[Path] = []
    for folder in _candidates():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            readable.append(folder)
        else:
            return folder, tuple(readable)
    return None, tuple(readable)


def _candidates() -> Iterator[Path]:
    """Folders to try, in order."""
    # As Numba does: copies of the package in different places do not share a folder.
    name = caching._CacheLocator.get_suitable_cache_subpath(__file__)
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR, name)
    yield _HERE / "__pycache__"
    yield Path(AppDirs(appname="numba", appauthor=False).user_cache_dir, name)
    private = _private_folder()
    if private is not None:
        yield private / name


def _private_folder() -> Path | None:
    """Folder for temporary files of this user alone, as loading from it can run code."""
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    try:
        folder = Path(tempfile.gettempdir(), f"xtrellis-{owner}")
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    private = found.st_uid == owner and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if os.name != "nt" and not (stat.S_ISDIR(found.st_mode) and private):
        return None
    return folder


@cache
def _source_stamp() -> str:
    """Hash of all kernel modules and of the named tuples they take."""
    digest = hashlib.sha256()
    for path in [*sorted(_HERE.glob("*.py")), _HERE.parent / "graph" / "trellis.py"]:
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


class _Locator(caching._CacheLocator):
    """Tells Numba's cache the folder that was decided on, and when a file in it is out of date."""

    def __init__(self, function: Callable) -> None:
        self.line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        written, readable = cache_folders()
        return str(written or readable[0])

    def get_source_stamp(self) -> str:
        return _source_stamp()

    def get_disambiguator(self) -> str:
        return str(self.line)

    @classmethod
    def from_function(cls, py_func: Callable, py_file: str) -> _Locator:
        return cls(py_func)


class _Impl(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _KernelCache(caching.FunctionCache):
    """Numba's cache, but read from several folders, and one that never fails.

    A file that is missing, truncated or unreadable, or that cannot be written, costs compiling
    the kernel once more.
    """

    _impl_class = _Impl

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self.writable, readable = cache_folders()[0] is not None, cache_folders()[1]
        self.files = [self._cache_file] + [
            caching.IndexDataCacheFile(str(folder), self._impl.filename_base, _source_stamp())
            for folder in readable
        ]

    def has_any(self) -> bool:
        """Whether one of the folders has the kernel for some types."""
        for file in self.files:
            try:
                if file._load_index():
                    return True
            except Exception:
                continue
        return False

    def load_overload(self, sig, target_context):
        """Load a compiled kernel, or return None.

        Numba would first import everything that compiling may need, SciPy's linear algebra
        included, which takes longer than to predict. Compiled code needs only the runtime that
        allocates arrays (and symbols of ``hash``, if it had sets or dictionaries, which kernels do
        not use); the compiler imports the rest itself.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig, target_context):
        found = self._look_up(sig, target_context)
        if found is None and wait_for_other_process(self._py_func.__name__):
            found = self._look_up(sig, target_context)
        return found

    def _look_up(self, sig, target_context):
        key = self._index_key(sig, target_context.codegen())
        for file in self.files:
            try:
                found = file.load(key)
                if found is not None:
                    return self._impl.rebuild(target_context, found)
            except Exception:
                continue
        return None

    def _save_overload(self, sig, data):
        if not self.writable:
            return
        try:
            try:
                super()._save_overload(sig, data)
            except OSError:
                raise
            except Exception:  # the index in the folder is damaged
                self.flush()
                super()._save_overload(sig, data)
        except Exception:  # the disk is full, or the folder has been closed to us since
            self.writable = False


# ---------------------------------------------------------------------- when kernels are compiled


class _Compiling(event.Listener):
    """Announces the first kernel that is compiled, and adds up the time."""

    def __init__(self) -> None:
        self.depth, self.started, self.noted = 0, 0.0, False

    def on_start(self, event) -> None:
        if not _is_kernel(event):
            return
        if self.depth == 0:
            self.started = time.perf_counter()
            self.announce()
        self.depth += 1

    def on_end(self, event) -> None:
        if not _is_kernel(event):
            return
        self.depth -= 1
        if self.depth == 0:
            _has_compiled(time.perf_counter() - self.started)

    def announce(self) -> None:
        if cache_folders()[0] is not None:
            _starts_compiling("compiling kernels, once on this machine", True)
            return
        note = (
            "compiling kernels, as in every process: no folder can be written to keep them in; "
            "set NUMBA_CACHE_DIR to one that can"
        )
        first, self.noted = not self.noted, True
        if not _starts_compiling(note, False) and first:
            warnings.warn(note, RuntimeWarning, stacklevel=2)


def _is_kernel(event) -> bool:
    return event.data["dispatcher"].py_func.__module__.startswith(__package__ + ".")


event.register("numba:compile", _Compiling())
