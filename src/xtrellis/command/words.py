"""Phrases about models: counts, widths, and what pruning did."""

from __future__ import annotations

from typing import Any


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Number and noun.

    >>> count(1, "row"), count(2_000, "class", "classes")
    ('1 row', '2,000 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def members(found: Any) -> list[Any]:
    """The trellis classifiers that a classifier of features consists of."""
    parts: list[Any] = getattr(found, "estimators_", [found])
    return parts


def widths_in_words(parts: list[Any]) -> str:
    """Slice widths, such as ``b = 40``, or ``3 trellises, b = 40``."""
    widths = one_or_all([each.trellis_.slice_width for each in parts])
    many = f"{len(parts)} trellises, " if len(parts) > 1 else ""
    return f"{many}b = {widths if isinstance(widths, int) else ', '.join(map(str, widths))}"


def one_or_all(values: list[Any]) -> Any:
    """The value that all have in common, or else all of them."""
    return values[0] if all(value == values[0] for value in values) else values


def pruned(done: Any) -> str:
    """What pruning did."""
    return f"weights up to {done.threshold:.4g} removed: {done.n_before:,} -> {done.n_after:,}"
