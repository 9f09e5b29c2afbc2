"""Readers of text: every format, plain and compressed, and one clear line for what is wrong."""

import io
import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import PACKERS
from xtrellis.data import read_text, streams
from xtrellis.data.readers import detect_format, iter_texts, read_rows
from xtrellis.data.streams import DataError

ROWS = [("cholera, classical", "A00"), ('a "quoted" fever', "A01"), ("", "B02")]


def written(format):
    if format == "tsv":
        return "".join(f"{label}\t{text}\n" for text, label in ROWS).encode()
    if format == "fasttext":
        return "".join(f"__label__{label} {text}\n" for text, label in ROWS).encode()
    if format == "csv":
        quoted = [(text.replace('"', '""'), label) for text, label in ROWS]
        return ("id,label,text\n" + "".join(f'1,{y},"{text}"\n' for text, y in quoted)).encode()
    return "".join(f"{text}\n" for text, _ in ROWS).encode()


def read(data, **options):
    return read_text(io.BytesIO(data), **options)


def complaint(data, **options):
    with pytest.raises(DataError) as caught:
        read(data, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("format", ["tsv", "fasttext", "csv"])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_texts_and_labels(tmp_path, pack, format, told, ends):
    data = PACKERS[pack](b"\xef\xbb\xbf" + written(format).replace(b"\n", ends))
    (tmp_path / "rows").write_bytes(data)
    for source in (tmp_path / "rows", io.BytesIO(data)):
        texts, labels = read_text(source, format=format if told else None)
        assert texts == [text for text, _ in ROWS]
        assert labels.tolist() == [label for _, label in ROWS]
        assert labels.dtype.kind == "U"


@pytest.mark.parametrize("format", ["tsv", "fasttext", "csv", "lines"])
def test_texts_alone(format):
    data = written(format)
    texts, labels = read(data, format=format, labelled=False)
    assert texts == [text for text, _ in ROWS]
    assert labels is None
    assert list(iter_texts(io.BytesIO(data), format=format)) == texts


def test_empty_lines_are_rows_where_nothing_else_is():
    assert read(b"one\n\ntwo\r\n", labelled=False)[0] == ["one", "", "two"]
    assert read(b"a\tone\n\nb\ttwo")[0] == ["one", "two"]


def test_labels_are_dropped_only_on_demand():
    assert "pass format='tsv' to drop them" in complaint(written("tsv"), labelled=False)
    assert "pass format='fasttext'" in complaint(written("fasttext"), labelled=False)
    assert read(b"plain text\n", format="fasttext", labelled=False)[0] == ["plain text"]


def test_csv_as_spreadsheets_write_it():
    data = b'label,text,"text, long"\r\nA,"two\r\nlines",x\r\n\r\nB,"say ""hi""",y\r\n'
    assert read(data)[0] == ["two\r\nlines", 'say "hi"']
    assert read(data, text_column="text, long")[0] == ["x", "y"]
    assert read(b"label,text\nA," + b"x" * 200_000 + b"\n")[0] == ["x" * 200_000]


def test_rows_of_any_format():
    X, y = read_rows(io.BytesIO(b"1 0:1\n2 2:1\n"), n_features=3)
    assert X.shape == (2, 3)
    assert y.tolist() == [1, 2]
    texts, labels = read_rows(
        io.BytesIO(b"k,v\nA,b\n"), format="csv", text_column="v", label_column="k"
    )
    assert (texts, labels.tolist()) == (["b"], ["A"])
    X, y = read_rows(io.BytesIO(b"1:1\n2:1\n"), labelled=False)
    assert X.shape == (2, 2)
    assert y is None


@pytest.mark.parametrize(
    ("name", "line", "format"),
    [
        ("a.svm.gz", b"A\tb", "svmlight"),
        ("a.libsvm", b"", "svmlight"),
        ("a.TSV.xz", b"1 1:1", "tsv"),
        ("a.csv", b"x", "csv"),
        ("a.csv.bz2", b"x", "csv"),
        ("a.ft", b"x", "fasttext"),
        ("sector.train", b"94 1:0.00088 2:0.00042\n", "svmlight"),
        ("x", b"# note\n\n94 1:0.00088 2:0.00", "svmlight"),
        ("x", b"A00 qid:1 1:1e-3 # note\n", "svmlight"),
        ("x", b"1:0.5 7:1\n", "svmlight"),
        ("x.txt", b"9 7 2\n0 0:1 3:0.5\n", "svmlight"),
        ("x.txt", b"9 7 2\n", "lines"),
        ("x", b"at 10:30 we met\n", "lines"),
        ("x", b"A00\tat 1:1\n", "tsv"),
        ("x", b"__label__a b\n", "fasttext"),
        ("x.txt", b'"id","Text"\n', "csv"),
        ("x.txt", b"Text, and more, of it\n", "csv"),
        ("x.txt", b"this, and more\n", "lines"),
        ("x.txt", b"", "lines"),
    ],
)
def test_formats_are_told_from_name_or_first_line(name, line, format):
    assert detect_format(name, line) == format


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"", {}, "<stdin>: there are no rows; is this the right file?"),
        (b"\n\n", {"format": "tsv"}, "<stdin>: there are no rows"),
        (b"", {"format": "csv"}, "<stdin>: there are no rows"),
        (b"text,label\n", {}, "<stdin>: there are no rows"),
        (PACKERS["gz"](b""), {}, "<stdin>: there are no rows"),
        (b"a\tb\nc d\n", {}, "<stdin>:2: no tab after the label in 'c d'"),
        (b"a\tb\n\tc\n", {}, "<stdin>:2: the label is empty"),
        (b"a\tb\n \tc\n", {}, "<stdin>:2: the label is empty"),
        (b"a\tb\nc\t\xff\n", {}, "<stdin>:2: this is not UTF-8; convert the file, for ex"),
        (b"a\tb\n\nc\td\0\n", {}, "<stdin>:3: there is a NUL byte"),
        ("a\tb\n".encode("utf-16"), {"format": "tsv"}, "<stdin>:1: there is a NUL byte"),
        (b"Label\ttext\na\tb\n", {}, "<stdin>:1: this looks like a header"),
        (b"a\tb\n" + b"x" * 1001 + b"\tc\n", {}, "<stdin>:2: the label 'xxx"),
        (b"__label__a b\nc\n", {}, "<stdin>:2: the line does not start with __label__"),
        (b"__label__a __label__b c\n", {}, "<stdin>:1: the row has several labels; keep one"),
        (b"__label__a c __label__b\n", {}, "<stdin>:1: the row has several labels"),
        (b"__label__ b\n", {}, "<stdin>:1: the label is empty"),
        (b"text,labels\na,b\n", {}, "<stdin>:1: there is no column 'label'"),
        (b"text,text,label\na,b,c\n", {}, "<stdin>:1: there is more than one column 'text'"),
        (b"text,label\na,b\na,b,c\n", {}, "<stdin>:3: the row has 3 fields, the header 2"),
        (b"text,label\na,b\na,\n", {}, "<stdin>:3: the label is empty"),
        (b'text,label\na,b\n"a,b\n', {}, "<stdin>:3: not csv (unexpected end of data)"),
        (b'text,label\n"a"x,b\n', {}, "<stdin>:2: not csv"),
        (b'[{"text": "a", "label": "b"}]', {}, "<stdin>: this is a JSON array; write one object"),
        (b'[\n {\n"text": "a"}]', {}, "<stdin>: this is a JSON array"),
        (b"just text\n", {}, "<stdin>: these lines have no labels"),
        (b"1 1:1\n", {}, "<stdin>: this is a file of svmlight features, not of texts"),
    ],
)  # fmt: skip
def test_wrong_files_are_told(data, options, message):
    assert complaint(data, **options).startswith(message)


def test_missing_columns_are_listed():
    message = complaint(b"text,labels\na,b\n")
    assert message.endswith("pass label_column, one of 'text', 'labels'")


def test_unknown_format():
    with pytest.raises(ValueError, match="format must be one of svmlight, tsv"):
        read(b"a\tb\n", format="xml")


# ---------------------------------------------------------------------- files and compression


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing: there is no such file; check the path"):
        read_text(tmp_path / "nothing")
    with pytest.raises(DataError, match="nothing: there is no such file"):
        read_text(str(tmp_path / "nothing"))
    with pytest.raises(DataError, match="this is a folder; name one of its files"):
        read_text(tmp_path)
    with pytest.raises(DataError, match="cannot be opened"):
        read_text("a\0b")
    with pytest.raises(TypeError, match="must be a path or a binary file, got int"):
        read_text(3)
    with pytest.raises(TypeError, match="must be opened in binary mode"):
        read_text(io.StringIO("a\tb\n"))


def test_messages_name_the_file(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_bytes(b"a b\n")
    for source in (path, path.open("rb")):
        with pytest.raises(DataError) as caught:
            read_text(source)
        assert str(caught.value).startswith(f"{path}:1: no tab")
        getattr(source, "close", lambda: None)()


@pytest.mark.parametrize("pack", ["gz", "bz2", "xz"])
def test_damaged_compression(pack):
    rng = np.random.default_rng(0)
    data = b"".join(b"label\t%d\n" % n for n in rng.integers(0, 10**9, 50_000))
    packed = PACKERS[pack](data)
    message = complaint(packed[: len(packed) // 2])
    assert "data are truncated" in message
    assert int(message.split(":")[1]) > 1 or pack == "bz2"
    turned = bytearray(packed)
    turned[len(packed) // 2] ^= 255
    assert "data are damaged" in complaint(bytes(turned))
    assert "data" in complaint(packed + b"rubbish")
    assert "data are truncated" in complaint(packed[:10])


def test_bombs_are_refused(monkeypatch):
    monkeypatch.setattr(streams, "_FREE_EXPANSION", 2**20)
    for pack in ("bz2", "gz", "xz"):
        bomb = PACKERS[pack](b"a\tb\n" * 2**20)
        assert "expand more than 100-fold" in complaint(bomb)
    monkeypatch.setattr(streams, "MAX_LINE", 2**20)
    monkeypatch.setattr(streams, "_BLOCK", 2**18)
    message = complaint(b"a\tb\n" * 5 + b"a\t" + b"b" * 2**23)
    assert message == "<stdin>:6: the line is longer than 1 MiB; is this a text file?"


class _Drips(io.RawIOBase):
    """A pipe that gives a few bytes at a time, and no way back."""

    def __init__(self, data, size=7):
        self.data, self.size = data, size

    def readable(self):
        return True

    def read(self, size=-1):
        size = self.size if size < 0 else min(size, self.size)
        data, self.data = self.data[:size], self.data[size:]
        return data


@pytest.mark.parametrize("pack", PACKERS)
def test_pipes(pack):
    texts, _ = read_text(_Drips(PACKERS[pack](written("tsv"))))
    assert texts == [text for text, _ in ROWS]


def test_texts_come_as_they_are_written():
    reading, writing = os.pipe()
    arrived = threading.Event()

    def write():
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(b"one line of text\nhalf")
            pipe.flush()
            arrived.wait(10)
            pipe.write(b" a line\n")

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        texts = iter_texts(pipe)
        assert next(texts) == "one line of text"  # before the pipe's end
        arrived.set()
        assert list(texts) == ["half a line"]
    thread.join()


@given(
    st.binary(max_size=200),
    st.sampled_from(["tsv", "fasttext", "csv", "lines", None]),
    st.booleans(),
)
def test_any_bytes_load_or_are_refused(data, format, labelled):
    try:
        texts, _ = read(data, format=format, labelled=labelled)
    except DataError:
        return
    assert texts


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=9)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=9), st.integers(1, 20))
def test_whatever_is_written_is_read(rows, piece):
    data = "".join(f"{label}\t{text}\n" for text, label in rows).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_PIECE", piece)
        texts, labels = read(data, format="tsv")
    assert list(zip(texts, labels.tolist(), strict=True)) == rows


def test_one_long_label_does_not_blow_up_memory():
    rows = b"".join(b"a\ttext\n" for _ in range(50_000)) + b"b" * 900 + b"\ttext\n"
    _, labels = read_text(io.BytesIO(rows), format="tsv")
    assert labels.dtype == object
    assert len(set(labels)) == 2
