r"""Terms of texts: words, n-grams of words, and n-grams of characters within words.

They are those of scikit-learn's ``CountVectorizer`` and ``HashingVectorizer`` with the analyzers
"word" (of the pattern ``\b\w+\b``) and "char_wb", found by compiled code (``kernels.terms``).
Python lowers the texts, whose rules are many, and names the words' characters; the rest is bytes.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, IntArray

Lengths = tuple[int, int]
Ids = npt.NDArray[np.int32]

_IDS = 2**20  # that are found at once
_FEW_TERMS = 2**12  # room to begin with, when terms are learned

# ---------------------------------------------------------------------- characters


@cache
def character_classes(n_characters: int) -> npt.NDArray[np.uint8]:
    r"""Classes of the first characters of Unicode: 1 for ``\w``, 2 for ``\s``, 0 for others."""
    every = "".join(map(chr, range(n_characters)))
    classes = np.zeros(n_characters, np.uint8)
    for number, pattern in ((1, r"\w+"), (2, r"\s+")):
        for run in re.finditer(pattern, every):
            classes[run.start() : run.end()] = number
    return classes


def _classes_for(encoded: bytes, text: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Classes of all characters that may occur; those of all of Unicode take 0.2 s to find."""
    if encoded.isascii():
        return character_classes(0x80)
    return character_classes(0x10000 if text.max() < 0xF0 else sys.maxunicode + 1)


def _encoded(texts: list[str]) -> tuple[bytes, IntArray, int]:
    """Texts in lower case as UTF-8, one after the other; where each ends; the longest's length."""
    parts = [text.lower().encode("utf-8", "surrogatepass") for text in texts]
    lengths = list(map(len, parts))
    return b"".join(parts), np.fromiter(accumulate(lengths), np.int64, len(texts)), max(lengths)


# ---------------------------------------------------------------------- terms


@dataclass(frozen=True, eq=False)
class TermCounts:
    """Number of times each column occurs in each text: the parts of a CSR matrix."""

    indptr: IntArray
    indices: Ids
    data: Float32Array


class TermFinder:
    """Finds terms in texts: those of a vocabulary, or hashes.

    Parameters
    ----------
    words, characters, hash_size, terms
        As in ``TextFeatures``; the terms are the vocabulary.

    Examples
    --------
    >>> finder = TermFinder((1, 2), None, None, [["cat", "the cat"]])
    >>> counts = finder.count(["The cat, the cat!", "no dog"])
    >>> counts.indptr.tolist(), counts.indices.tolist(), counts.data.tolist()
    ([0, 2, 2], [0, 1], [2.0, 2.0])
    """

    def __init__(
        self,
        words: Lengths | None,
        characters: Lengths | None,
        hash_size: int | None,
        terms: list[list[str]] | None,
    ) -> None:
        from ..kernels import terms as kernels

        self._kernels = kernels  # looking them up takes as long as finding the terms of a text
        self._lengths = _as_numbers(words), _as_numbers(characters)
        self._n_lengths = sum(last - first + 1 for first, last in self._lengths)
        self._n_hashed = hash_size or 0
        self._n_terms = 0
        if terms is None:
            self._table = _empty_table(0)
        else:
            kinds = [kind for kind, own in enumerate((words, characters)) if own is not None]
            self._n_terms = sum(map(len, terms))
            self._table = _table_of(terms, kinds)

    def count(self, texts: list[str]) -> TermCounts:
        """Columns of all texts, sorted, and how often they occur."""
        return self._counted(list(self._find(texts, learns=False)), np.empty(0, np.int32))

    @classmethod
    def learn(
        cls, words: Lengths | None, characters: Lengths | None, texts: list[str], min_df: int
    ) -> tuple[TermCounts, list[list[str]], IntArray]:
        """Counts of the terms that occur in enough texts; these terms; and in how many they do."""
        finder = cls(words, characters, None, None)
        found = list(finder._find(texts, learns=True))
        terms, columns, frequencies = finder.vocabulary(min_df)
        return finder._counted(found, columns), terms, frequencies

    def learn_more(self, texts: list[str]) -> TermCounts:
        """Counts of all terms, numbered as they come; those that are new are learned.

        For texts that come in batches: :meth:`vocabulary` then says which columns they get.
        """
        self._table.seen.fill(-1)  # texts are counted from 0 again
        found = list(self._find(texts, learns=True))
        return self._counted(found, np.empty(0, np.int32))

    def vocabulary(self, min_df: int) -> tuple[list[list[str]], Ids, IntArray]:
        """Learned terms that occur in enough texts; columns of all; and in how many texts.

        Columns are those of the terms in their order, -1 for one that is too rare.
        """
        table, n_terms = self._table, self._n_terms
        names = bytes(table.content[: table.starts[n_terms]]).decode("utf-8", "surrogatepass")
        every = names.split("\n")
        kinds, frequencies = table.kinds[:n_terms], table.frequencies[:n_terms]
        terms, columns, kept = [], np.full(max(n_terms, 1), -1, np.int32), []
        n_columns = 0
        for kind, (first, last) in enumerate(self._lengths):
            if first > last:
                continue
            own = np.flatnonzero((kinds == kind) & (frequencies >= min_df)).tolist()
            own.sort(key=every.__getitem__)
            terms.append([every[k] for k in own])
            columns[own] = np.arange(n_columns, n_columns + len(own), dtype=np.int32)
            kept += own
            n_columns += len(own)
        return terms, columns, frequencies[kept]

    def _find(self, texts: list[str], learns: bool) -> Any:
        """Numbers of terms and where those of each text end, some texts at a time."""
        encoded, stops, longest = _encoded(texts)
        text = np.frombuffer(encoded or b" ", np.uint8)
        classes, lengths = _classes_for(encoded, text), self._lengths
        n_most = self._most_terms(len(encoded), len(texts))
        buffer = np.empty(2 * longest + 4, np.uint8)
        marks = np.empty(2 * longest + 4, np.int64)
        id_stops = np.empty(len(texts), np.int64)
        first = 0
        while first < len(texts):
            n_next = self._most_terms(int(stops[first] - (stops[first - 1] if first else 0)))
            if learns:
                self._make_room(n_next)
            ids = np.empty(min(n_most, max(_IDS, n_next)), np.int32)
            after, n_ids, self._n_terms = self._kernels.find_terms(
                text,
                stops,
                first,
                *lengths,
                classes,
                self._n_hashed,
                learns,
                self._table,
                self._n_terms,
                buffer,
                marks,
                ids,
                id_stops,
            )
            yield (ids if after == len(texts) else ids[:n_ids].copy()), id_stops[first:after]
            first = after

    def _most_terms(self, n_bytes: int, n_texts: int = 1) -> int:
        """The most terms that texts of so many bytes can have, as the kernel counts them."""
        return self._n_lengths * (2 * n_bytes + 2 * n_texts)

    def _make_room(self, n_new: int) -> None:
        """Enlarge the table for so many further terms, at least twofold."""
        n, n_used = self._n_terms, int(self._table.starts[self._n_terms])
        if n + n_new > len(self._table.kinds):
            old = self._table
            table = _empty_table(max(2 * len(old.kinds), n + n_new, _FEW_TERMS))
            for name in ("starts", "kinds", "frequencies", "seen"):
                size = n + (name == "starts")
                getattr(table, name)[:size] = getattr(old, name)[:size]
            self._table = table._replace(content=old.content)
            self._kernels.fill_slots(self._table, n)
        n_bytes = 2 * n_new * sum(last for _, last in self._lengths)
        if n_used + n_bytes > len(self._table.content):
            content = np.empty(2 * (n_used + n_bytes), np.uint8)
            content[:n_used] = self._table.content[:n_used]
            self._table = self._table._replace(content=content)

    def _counted(self, found: list[tuple[Ids, IntArray]], columns: Ids) -> TermCounts:
        """Counts of numbers of terms, or of their columns; of some texts, then of others."""
        indptr = np.zeros(1 + sum(len(stops) for _, stops in found), np.int64)
        n_most = 1 + sum(int(stops[-1]) for _, stops in found)
        indices, data = np.empty(n_most, np.int32), np.empty(n_most, np.float32)
        row, n = 1, 0
        for ids, stops in found:
            part = indptr[row : row + len(stops)]
            n = self._kernels.count_terms(stops, ids, columns, n, part, indices, data)
            row += len(stops)
        return TermCounts(indptr, indices[:n], data[:n])


# ---------------------------------------------------------------------- tables


def _empty_table(n_terms: int) -> Any:
    """Room for so many terms."""
    from ..kernels.terms import Table

    n_slots = 1 << max(2 * n_terms, 1).bit_length()
    return Table(
        slots=np.full(n_slots, -1, np.int32),
        hashes=np.zeros(n_slots, np.uint32),
        content=np.empty(0, np.uint8),
        starts=np.zeros(n_terms + 1, np.int64),
        kinds=np.zeros(n_terms, np.uint8),
        frequencies=np.zeros(n_terms, np.int64),
        seen=np.full(n_terms, -1, np.int64),
    )


def _table_of(terms: list[list[str]], kinds: list[int]) -> Any:
    """Table of these terms, all of them different."""
    from ..kernels import terms as kernels

    sizes = [len(own) for own in terms]
    names = "\n".join(name for own in terms for name in own) + "\n"
    content = np.frombuffer(bytearray(names.encode("utf-8", "surrogatepass")), np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(content == 10) + 1])
    n_terms = sum(sizes)
    if n_terms and len(starts) != n_terms + 1:
        raise ValueError("a term contains a line break")
    table = _empty_table(n_terms)._replace(
        content=content,
        starts=starts,
        kinds=np.repeat(np.array(kinds, np.uint8), sizes),
        frequencies=np.empty(0, np.int64),
        seen=np.empty(0, np.int64),
    )
    kernels.fill_slots(table, n_terms)
    return table


def _as_numbers(lengths: Lengths | None) -> Lengths:
    """Lengths as kernels take them; from 1 to 0 for none."""
    return (1, 0) if lengths is None else (int(lengths[0]), int(lengths[1]))
