"""Partitions of Dask collections: of one kind, and each with the labels of its rows."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt

COLUMNS = ("y", "sample_weight", "may_hold_out")  # partitioned like the rows


def partitions_of(X: Any, *columns: Any) -> list[list[Any]]:
    """Delayed partitions of rows, and of labels and weights, which must be partitioned alike."""
    for name, each in zip(("X", *COLUMNS), (X, *columns), strict=False):
        if each is not None and not hasattr(each, "to_delayed"):
            raise TypeError(
                f"{name} must be a dask.array or a dask.dataframe, got {type(each).__name__}: "
                f"for data in memory use TrellisClassifier"
            )
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        if X.numblocks[1] > 1:
            raise ValueError(
                f"X must have all features in one block, got {X.numblocks[1]} blocks of columns: "
                f"pass X.rechunk({{1: -1}})"
            )
    rows = list(np.ravel(X.to_delayed()))
    found = [rows]
    for name, column in zip(COLUMNS, columns, strict=False):
        if column is None:
            found.append([])
            continue
        if isinstance(column, da.Array) and isinstance(X, da.Array):
            known = not np.isnan([*column.chunks[0], *X.chunks[0]]).any()
            if known and column.shape[0] == X.shape[0]:
                column = column.rechunk((X.chunks[0], *column.chunks[1:]))
        parts = list(np.ravel(column.to_delayed()))
        if len(parts) != len(rows):
            raise ValueError(
                f"{name} must have the partitions of X, got {len(parts)} instead of {len(rows)}"
            )
        found.append(parts)
    return found


def check_lengths(number: int, X: Any, columns: dict[str, Any]) -> None:
    """Raise an error if the labels or weights of a partition are not those of its rows."""
    for name, part in columns.items():
        if len(part) != X.shape[0]:
            raise ValueError(
                f"partition {number} has {X.shape[0]} rows, but {name} has {len(part)} there"
            )


class Kinds:
    """The types of the first partition with rows, which all others must share."""

    def __init__(self) -> None:
        self.first: dict[str, tuple[int, tuple[str, ...]]] = {}

    def check(self, name: str, number: int, part: Any) -> None:
        """Raise an error if a partition is of another kind than the first."""
        before, first = self.first.setdefault(name, (number, _kind(part)))
        other = _kind(part)
        if first != other:
            wanted, found = _difference(first, other)
            raise ValueError(
                f"{name} has {found} in partition {number}, but {wanted} in partition {before}: "
                f"give all partitions the same type"
            )


def joined(name: str, parts: list[Any], kept: list[int]) -> Any:
    """All partitions stacked into one, if they are of one kind."""
    from scipy import sparse

    kinds = Kinds()
    for number in kept:
        kinds.check(name, number, parts[number])
    chosen = [parts[number] for number in kept]
    if sparse.issparse(chosen[0]):
        return sparse.vstack(chosen, format="csr")
    if hasattr(chosen[0], "iloc"):
        import pandas

        return pandas.concat(chosen)
    return np.concatenate(chosen)


def _kind(part: Any) -> tuple[str, ...]:
    """What partitions must share: their types and, of a data frame, the columns."""
    if hasattr(part, "dtypes") and hasattr(part, "columns"):
        return tuple(f"{name}: {dtype}" for name, dtype in part.dtypes.items())
    width = f"{part.shape[1]} features" if part.ndim == 2 else ""
    return (_general(part.dtype), width)


def _general(dtype: npt.DTypeLike | Any) -> str:
    """Name of a dtype; texts of any length are of one."""
    return "texts" if getattr(dtype, "kind", "") == "U" else str(dtype)


def _difference(first: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, str]:
    """The first parts that are not the same."""
    if len(first) != len(other):
        return f"{len(first)} columns", f"{len(other)} columns"
    return next((a, b) for a, b in zip(first, other, strict=True) if a != b)
