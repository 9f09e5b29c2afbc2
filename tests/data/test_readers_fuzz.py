"""Thousands of damaged files: each loads, rightly, or ends in a DataError of one line."""

import bz2
import gzip
import io
import lzma
import re
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from samples import PACKERS
from xtrellis.data.readers import read_rows
from xtrellis.data.streams import DataError

UNPACKERS = {"plain": bytes, "gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}
FORMATS = ["svmlight", "tsv", "fasttext", "csv", "lines"]
DAMAGES = 400  # of each format and compression, so 8,000 files
MEMORY = 2**25  # bytes that none of these small files may need

_WORDS = ["fever", "acute", "of", "é", "", '"', ",", "a:b", "1:1", "#", "__label__x", "\t", "nan"]
_SNIPPETS = [
    *(
        b"\0",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b",",
        b":",
        b"#",
        b'"',
        b"-",
        b".",
        b"e9",
        b"\xff",
        b"\xc3",
    ),
    *(b"nan", b"inf", b"0:", b"1e999", b"99999999999", b"4294967296:1", b"__label__", b"3,5"),
    *(b"\xef\xbb\xbf", b"\x1f\x8b", b"BZh9", b"qid:1", b"\x00" * 50, b"9" * 50, b"x" * 1500),
]


def sample(format, rng):
    """A small whole file."""
    lines = []
    for _ in range(8):
        label = f"A{rng.integers(9)}"
        text = " ".join(rng.choice(_WORDS[:4], 4))
        if format == "svmlight":
            columns = np.sort(rng.choice(50, 4, replace=False)) + 1
            pairs = [f"{k}:{x:.6g}" for k, x in zip(columns, rng.normal(size=4), strict=True)]
            lines.append(" ".join([str(rng.integers(9)), *pairs]))
        elif format == "tsv":
            lines.append(f"{label}\t{text}")
        elif format == "fasttext":
            lines.append(f"__label__{label} {text}")
        elif format == "csv":
            lines.append(f'{label},"{text}"')
        else:
            lines.append(text)
    if format == "csv":
        lines.insert(0, "label,text")
    return ("\n".join(lines) + "\n").encode()


def damaged(data, rng):
    """The file with one to three things done to it."""
    for _ in range(rng.integers(1, 4)):
        at, to = sorted(rng.integers(0, len(data) + 1, 2))
        match rng.integers(6):
            case 0:  # cut off
                data = data[:at]
            case 1:  # a bit turned
                if data:
                    turned = bytearray(data)
                    turned[at % len(data)] ^= 1 << rng.integers(8)
                    data = bytes(turned)
            case 2:  # something put in
                data = data[:at] + _SNIPPETS[rng.integers(len(_SNIPPETS))] + data[at:]
            case 3:  # a piece twice
                data = data[:to] + data[at:to] + data[to:]
            case 4:  # a piece lost
                data = data[:at] + data[to:]
            case 5:  # noise
                data = data[:at] + rng.bytes(rng.integers(1, 20)) + data[to:]
    return data


def load(data, format):
    """What is read, in a form that compares; or None if the data are refused."""
    try:
        X, y = read_rows(io.BytesIO(data), format=format, labelled=format != "lines")
    except DataError as error:
        message = str(error)
        if not re.match(r"<stdin>(:\d+)?: .", message) or "\n" in message or len(message) > 300:
            pytest.fail(f"not one clear line: {message!r}")
        return None
    if isinstance(X, list):
        assert all(isinstance(text, str) for text in X)
        assert y is None or len(X) == len(y)
        return X, None if y is None else y.tolist()
    assert X.shape[0] == len(y) == len(X.indptr) - 1
    assert np.isfinite(X.data).all()
    rows = [slice(*X.indptr[i : i + 2]) for i in range(len(y))]
    assert all((np.diff(X.indices[row]) > 0).all() for row in rows)
    return [(X.indices[row].tolist(), X.data[row].tolist()) for row in rows], y.tolist()


def svmlight_told_plainly(data):
    """The svmlight format in the fewest words, as a reference; None for what it refuses."""
    rows, labels = [], []
    if b"\0" in data:
        return None
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        words = re.findall(rb"[^ \t\r]+", line.split(b"#")[0])
        if not words:
            continue
        label, *pairs = words
        if b":" in label or (b"," in label and not label.strip(b"0123456789+-.,")):
            return None
        if pairs and re.fullmatch(rb"qid:\d+", pairs[0]):
            del pairs[0]
        row = []
        for pair in pairs:
            parts = re.fullmatch(rb"(\d+):([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)", pair)
            if not parts or int(parts[1]) >= 2**31 or abs(float(parts[2])) > 3.40282356e38:
                return None
            row.append((int(parts[1]), float(np.float32(float(parts[2])))))
        if any(after <= before for (before, _), (after, _) in pairwise(row)):
            return None
        rows.append(row)
        labels.append(label)
    numbers = [re.fullmatch(rb"([-+]?)(\d+)(?:\.0*)?", label) for label in labels]
    if all(numbers):
        if not rows or any(len(number[2]) > 18 for number in numbers):
            return None
        values = [int(number[1] + number[2]) for number in numbers]
    else:
        try:
            values = [label.decode() for label in labels]
        except UnicodeDecodeError:
            return None
        if max(map(len, values)) > 1000:
            return None
    indices = [index for row in rows for index, _ in row]
    first = 1 if indices and min(indices) > 0 else 0
    return [([k - first for k, _ in row], [x for _, x in row]) for row in rows], values


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("format", FORMATS)
def test_damaged_files(format, pack):
    rng = np.random.default_rng([FORMATS.index(format), list(PACKERS).index(pack)])
    outcomes = {"loaded": 0, "refused": 0}
    samples = [sample(format, rng) for _ in range(20)]
    load(samples[0], format)  # compiles and imports
    # Damaged before it was packed, or after, or both.
    packed = [
        PACKERS[pack](text if i % 2 else damaged(text, rng)) for i, text in enumerate(samples)
    ]
    tracemalloc.start()
    try:
        for i in range(DAMAGES):
            data = damaged(packed[i % 20], rng) if rng.integers(4) else packed[i % 20]
            told = load(data, format if rng.integers(4) else None)
            outcomes["refused" if told is None else "loaded"] += 1
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert outcomes["refused"] > DAMAGES / 20
    assert outcomes["loaded"] > 0


@pytest.mark.parametrize("pack", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("format", FORMATS)
def test_what_loads_is_what_unpacks(format, pack):
    rng = np.random.default_rng([7, FORMATS.index(format)])
    whole = PACKERS[pack](sample(format, rng))
    for _ in range(DAMAGES // 4):
        data = damaged(whole, rng)
        told = load(data, format)
        if told is not None and data.startswith(PACKERS[pack](b"")[:3]):
            assert told == load(UNPACKERS[pack](data), format)


def test_svmlight_as_told_plainly():
    rng = np.random.default_rng(3)
    outcomes = {True: 0, False: 0}
    for _ in range(1_500):
        data = damaged(sample("svmlight", rng), rng)
        if data.startswith((b"\x1f\x8b", b"BZh")):
            continue
        told = load(data, "svmlight")
        assert told == svmlight_told_plainly(data), data
        outcomes[told is None] += 1
    assert min(outcomes.values()) > 300


@pytest.mark.parametrize("format", [*FORMATS, None])
def test_files_of_other_kinds(format):
    rng = np.random.default_rng(4)
    kinds = [sample(other, rng) for other in FORMATS]
    kinds += [rng.bytes(5_000), b"PK\x03\x04" + rng.bytes(100), b"\x93NUMPY", b"{}", b"<html>\n"]
    for data in kinds:
        for pack in PACKERS.values():
            load(pack(data), format)
