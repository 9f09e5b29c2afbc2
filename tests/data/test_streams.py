"""Streams give whole lines of what a source holds, and name the source in every error."""

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import PACKERS
from xtrellis.data import streams
from xtrellis.data.streams import DataError, MissingFileError, Stream, opened, shown


class Slow(io.RawIOBase):
    """A pipe that gives three bytes at a time."""

    name = "slow pipe"

    def __init__(self, data):
        self.data = data

    def readable(self):
        return True

    def read(self, size=-1):
        size = 3 if size < 0 else min(size, 3)
        part, self.data = self.data[:size], self.data[size:]
        return part


@given(
    st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=20),
    st.sampled_from(sorted(PACKERS)),
    st.integers(1, 50),
    st.booleans(),
)
def test_blocks_are_whole_lines_of_all_the_data(lines, packer, size, ends_with_newline):
    data = b"\n".join(lines) + (b"\n" if lines and ends_with_newline else b"")
    stream = Stream(Slow(PACKERS[packer](data)), "pipe")
    blocks = list(stream.blocks(size))
    whole = b"".join(blocks)
    data = data.removeprefix(b"\xef\xbb\xbf")
    assert whole in (data, data + b"\n")
    assert all(block.endswith(b"\n") for block in blocks)
    assert stream.line == whole.count(b"\n")


def test_lines_are_counted_when_the_next_block_is_asked_for():
    stream = Stream(io.BytesIO(b"a\nb\nc\n"), "rows")
    blocks = stream.blocks(1)
    assert next(blocks) == b"a\nb\nc\n"
    assert stream.line == 0, "while a block is read, these are the lines before it"
    assert list(blocks) == []
    assert stream.line == 3


def test_head_stays_in_the_stream():
    stream = Stream(Slow(b"first line\nsecond line\n"), "pipe")
    assert stream.head().startswith(b"first line\n")
    assert stream.head() == stream.head()
    assert b"".join(stream.blocks()) == b"first line\nsecond line\n"
    assert Stream(io.BytesIO(b""), "nothing").head() == b""
    assert len(Stream(io.BytesIO(b"x" * 10**6), "long").head()) == 2**14


def test_only_what_was_opened_is_closed(tmp_path):
    (tmp_path / "rows").write_bytes(b"a\n")
    with open(tmp_path / "rows", "rb") as file:
        with opened(file) as stream:
            assert stream.name == str(tmp_path / "rows")
            assert list(stream.blocks()) == [b"a\n"]
        assert not file.closed
    with opened(tmp_path / "rows") as stream:
        file = stream._input._read.__self__
    assert file.closed


def test_sources_that_cannot_be_opened(tmp_path):
    with pytest.raises(MissingFileError, match="nothing: there is no such file; check the path"):
        opened(tmp_path / "nothing").__enter__()
    with pytest.raises(DataError, match="this is a folder; name one of its files"):
        opened(tmp_path).__enter__()
    with pytest.raises(TypeError, match="source must be a path or a binary file, got NoneType"):
        opened(None).__enter__()
    with pytest.raises(TypeError, match="must be opened in binary mode"):
        list(Stream(io.StringIO("text"), "text").blocks())


def test_a_source_that_fails_while_it_is_read():
    class Broken(io.RawIOBase):
        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(DataError, match=r"disk:1: cannot be read \(Input/output error\)"):
        list(Stream(Broken(), "disk").blocks())


def test_errors_name_the_source_and_the_line():
    stream = Stream(io.BytesIO(b""), "rows.tsv")
    assert str(stream.error("wrong")) == "rows.tsv: wrong"
    assert str(stream.error("wrong", 7)) == "rows.tsv:7: wrong"
    with opened(io.BytesIO(b"")) as nameless:
        assert nameless.name == "<stdin>"
    reading, writing = os.pipe()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe, opened(pipe) as stream:
        assert stream.name == "<stdin>", "a pipe has a number for a name"


def test_damage_is_reported_before_nonsense():
    packed = bytearray(PACKERS["gz"](b"1 1:1\n" * 100))
    packed[-5] ^= 1  # the checksum, which comes last

    def read():
        with opened(io.BytesIO(bytes(packed))) as stream:
            next(stream.blocks(1))
            raise stream.error("nonsense")

    with pytest.raises(DataError, match="the gzip data are damaged"):
        read()


def test_words_are_shown_short_and_printable():
    assert shown("plain") == "'plain'"
    assert shown(b"\xff\n") == r"'\\xff\n'"
    assert len(shown("x" * 1000)) <= streams._SHOWN + 2
