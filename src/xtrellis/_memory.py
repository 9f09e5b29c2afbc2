"""How much memory there is, and a plain error where a table of probabilities cannot fit it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt


def empty_table(n_rows: int, n_classes: int) -> npt.NDArray[np.float64]:
    """An array for one number per row and class, or a MemoryError before any work is done."""
    needed, available = 8 * n_rows * n_classes, available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"a table of {n_rows:,} rows x {n_classes:,} classes takes {needed / 1e9:.1f} GB, but "
            f"only {available / 1e9:.1f} GB of memory are available: use predict_top_k, or pass "
            f"fewer rows at a time"
        )
    return np.empty((n_rows, n_classes))


def available_memory() -> int | None:
    """Bytes that this process can still use, as far as the system says; None if it does not."""
    limits = [_linux_memory(), _container_limit()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else _physical_memory()


def release_memory() -> None:
    """Give memory that was freed back to the system, where the C library would keep it (glibc)."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return
    trim(0)


def _linux_memory() -> int | None:
    """Memory that is free or can be freed, and swap space."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines if len(line.split()) > 1}
    if "MemAvailable" not in sizes:
        return None
    return 1024 * (int(sizes["MemAvailable"]) + int(sizes.get("SwapFree", 0)))


def _container_limit() -> int | None:
    """Limit of a container (cgroup version 2), which includes what it uses already."""
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return None
    return int(limit) if limit.isdigit() else None


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None
