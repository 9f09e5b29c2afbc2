"""Arrays as files hold them: in the smallest type that loses nothing, or compressed."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .._arrays import IntArray

Bytes = npt.NDArray[np.uint8]

_INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
STORED_TYPES = ("bool", *_INTEGERS, "float16", "float32", "float64")

_LARGE = 255  # counts from here on are stored on their own
_LARGEST_RATIO = 1_000  # of compression; sorted terms reach 5 to 50
_ALWAYS = 2**20  # bytes that may come out of compression at any ratio


def smallest(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in the smallest type that holds the same numbers, contiguous.

    >>> smallest(np.array([1, 300])).dtype, smallest(np.array([0.5, 0.1], np.float32)).dtype
    (dtype('uint16'), dtype('float32'))
    """
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    if array.dtype.kind in "iu":
        least, most = int(array.min(initial=0)), int(array.max(initial=0))
        for name in _INTEGERS:
            limits = np.iinfo(name)
            if (
                limits.min <= least
                and most <= limits.max
                and np.can_cast(name, array.dtype, "safe")
            ):
                return array.astype(name, copy=False)
    if array.dtype == np.float32 and np.abs(array).max(initial=0) <= np.finfo(np.float16).max:
        half = array.astype(np.float16)
        return half if bool((half == array).all()) else array
    return array


def starts_of(counts: IntArray) -> IntArray:
    """Where each run of items starts, and where the last one ends; their counts must not wrap.

    >>> starts_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    if len(counts) and (counts.min() < 0 or (starts[1:] < starts[:-1]).any()):
        raise ValueError("counts do not add up")
    return starts


# ---------------------------------------------------------------------- counts


@dataclass(frozen=True)
class Counts:
    """Counts, most of them small: one byte each, compressed, and the large ones on their own.

    They are decompressed only by :meth:`values`, when it is known how many there can be: a few
    bytes may claim to hold billions.

    >>> Counts.of(np.array([0, 3, 1000])).values(at_most=3)
    array([   0,    3, 1000])
    """

    n: int
    small: Bytes
    large: npt.NDArray[np.integer[Any]]

    @classmethod
    def of(cls, counts: IntArray) -> Self:
        """These counts."""
        small = np.minimum(counts, _LARGE).astype(np.uint8)
        return cls(len(counts), _compressed(small.tobytes()), counts[counts >= _LARGE])

    def values(self, at_most: int) -> IntArray:
        """The counts, or a ValueError if there are more than there can be."""
        if not 0 <= self.n <= at_most:
            raise ValueError(f"{self.n} counts are stored where there can be {at_most} at most")
        counts = np.frombuffer(_decompressed(self.small, self.n), np.uint8).astype(np.int64)
        marks, large = counts == _LARGE, self.large
        if large.shape != (np.count_nonzero(marks),):
            raise ValueError(
                f"{large.size} large counts are stored, not as many as there are marks"
            )
        if large.size and not _LARGE <= large.min() <= large.max() <= np.iinfo(np.int64).max:
            raise ValueError("a count is out of range")
        counts[marks] = large
        return counts


# ---------------------------------------------------------------------- texts


@dataclass(frozen=True)
class Texts:
    """Texts without line breaks, compressed together.

    >>> Texts.of(["one", "two"]).values()
    ['one', 'two']
    """

    n: int
    n_bytes: int
    text: Bytes

    @classmethod
    def of(cls, texts: list[str]) -> Self:
        """These texts."""
        content = "\n".join(texts).encode("utf-8", "surrogatepass")
        if content.count(b"\n") > max(len(texts) - 1, 0):
            raise ValueError("a term with a line break in it cannot be saved")
        return cls(len(texts), len(content), _compressed(content))

    def values(self) -> list[str]:
        """The texts."""
        if not 0 <= self.n_bytes <= _ALWAYS + _LARGEST_RATIO * self.text.size:
            raise ValueError(f"{self.text.size} bytes cannot hold {self.n_bytes} bytes of text")
        content = _decompressed(self.text, self.n_bytes).decode("utf-8", "surrogatepass")
        texts = content.split("\n") if self.n else []
        if len(texts) != self.n or (content and not texts):
            raise ValueError(f"{len(texts)} texts are stored instead of {self.n}")
        return texts


def _compressed(content: bytes) -> Bytes:
    # A window no larger than the content: the usual one would take 90 MB for a few bytes.
    window = 1 << min(max(len(content) - 1, 1).bit_length(), 23)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": max(window, 4096)}]
    return np.frombuffer(lzma.compress(content, filters=filters), np.uint8)


def _decompressed(array: Bytes, n_bytes: int) -> bytes:
    """Bytes of a known number; never more are made, whatever the file claims."""
    decompressor = lzma.LZMADecompressor(memlimit=2**28)
    try:
        content = decompressor.decompress(array.tobytes(), n_bytes + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"a compressed part is damaged: {error}") from None
    if not decompressor.eof or len(content) != n_bytes:
        raise ValueError("a compressed part does not have the size it claims")
    return content


# ---------------------------------------------------------------------- labels


@dataclass(frozen=True)
class Labels:
    """Labels that are no plain numbers: texts, bytes and dates."""

    values: npt.NDArray[Any]

    def to_parts(self) -> dict[str, Any]:
        """Texts as UTF-8 and their lengths, bytes and dates as they are."""
        labels = self.values
        kind = labels.dtype.kind
        if labels.ndim == 1 and (
            kind == "U" or (kind == "O" and all(type(label) is str for label in labels))
        ):
            texts = [str(label).encode("utf-8", "surrogatepass") for label in labels]
            stored = np.frombuffer(b"".join(texts), np.uint8)
            lengths = np.array([len(text) for text in texts], np.int64)
            return {"dtype": kind, "content": stored, "lengths": lengths}
        if labels.ndim == 1 and kind == "S":
            content = np.frombuffer(labels.tobytes(), np.uint8)
            return {"dtype": labels.dtype.str, "content": content}
        if labels.ndim == 1 and kind in "mM":
            labels = labels.astype(labels.dtype.newbyteorder("<"))
            return {"dtype": labels.dtype.str, "content": labels.view(np.int64)}
        types = sorted({type(label).__name__ for label in labels.ravel()})
        raise ValueError(
            f"labels of type {', '.join(types)} cannot be saved: use texts or numbers as labels"
        )

    @classmethod
    def from_parts(
        cls,
        dtype: str,
        content: npt.NDArray[np.integer[Any]],
        lengths: IntArray | None = None,
    ) -> Self:
        """Labels of what a file holds, or a ValueError."""
        if dtype in ("U", "O"):
            if lengths is None or content.dtype != np.uint8:
                raise ValueError("labels lack their lengths")
            return cls(_texts(dtype, content.tobytes(), lengths))
        parsed = np.dtype(dtype)
        if parsed.kind == "S" and parsed.itemsize > 0 and content.dtype == np.uint8:
            return cls(np.frombuffer(bytearray(content.tobytes()), parsed))
        if parsed.kind in "mM" and content.dtype == np.int64 and content.ndim == 1:
            return cls(content.view(parsed.newbyteorder("<")))
        raise ValueError(f"labels cannot be of type {dtype!r}")


def _texts(kind: str, content: bytes, lengths: IntArray) -> npt.NDArray[Any]:
    """Texts of these lengths in bytes."""
    if lengths.ndim != 1 or (
        lengths.size and not 0 <= lengths.min() <= lengths.max() <= len(content)
    ):
        raise ValueError("the lengths of the labels are out of range")
    ends = starts_of(lengths).tolist()[1:]
    if (ends[-1] if ends else 0) != len(content):
        raise ValueError("the lengths of the labels do not add up")
    starts = [0, *ends[:-1]]
    texts = [
        content[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True)
    ]
    # All elements of such an array are as long as its longest: one long label among many short
    # ones would take a thousand times the memory of the file.
    n_bytes = 4 * len(texts) * max(map(len, texts), default=0)
    if kind == "O" or n_bytes > _ALWAYS + _LARGEST_RATIO * len(content):
        labels = np.empty(len(texts), object)
        labels[:] = texts
        return labels
    return np.array(texts, dtype=np.str_)
