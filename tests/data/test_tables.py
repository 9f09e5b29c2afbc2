"""Tables as people have them: csv of all sorts, JSON lines, Parquet; and what is refused."""

import gzip
import io
import subprocess
import sys

import pytest

from xtrellis.data import DataError, iter_texts, read_text

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

ROWS = (["one; two", "three"], ["a", "b"])


def read(content, **options):
    texts, labels = read_text(io.BytesIO(content), **options)
    return texts, None if labels is None else labels.tolist()


@pytest.fixture
def table(tmp_path):
    def write(**columns):
        path = tmp_path / "rows.parquet"
        parquet.write_table(pyarrow.table(columns), path)
        return path

    return write


# ---------------------------------------------------------------------- csv


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ":", " ", "§"])
def test_any_delimiter(delimiter):
    content = f'text{delimiter}label\n"one; two"{delimiter}a\nthree{delimiter}b\n'.encode()
    assert read(content, format="csv", delimiter=delimiter) == ROWS
    assert read(content, delimiter=delimiter) == ROWS, "the header shows that it is csv"


def test_no_header():
    csv = {"format": "csv", "delimiter": ";", "header": False}
    assert read(b'a;"one; two"\nb;three\n', **csv) == ROWS
    content = b'a;"one; two";x\nb;three;y\n'
    with pytest.raises(DataError, match=":1: there are 3 columns without names; pass text_column"):
        read(content, **csv)
    assert read(content, text_column=3, label_column="1", **csv) == (["x", "y"], ["a", "b"])
    assert read(content, labelled=False, **csv) == (ROWS[0], None)
    assert read(content, text_column=3, labelled=False, **csv) == (["x", "y"], None)
    assert read(b"three\nfour\n", labelled=False, **csv) == (["three", "four"], None)


def test_columns_by_number_under_a_header():
    content = b"id,report,kind\n1,one; two,a\n2,three,b\n"
    assert read(content, format="csv", text_column=2, label_column="3") == ROWS
    assert read(b"1,2\na,b\n", format="csv", text_column="2", label_column="1") == (["b"], ["a"])
    assert read(b"2,1\na,b\n", format="csv", text_column="2", label_column="1") == (["a"], ["b"])


# ---------------------------------------------------------------------- JSON lines


def test_json_lines():
    content = (
        b'{"text": "one; two", "label": "a"}\n\n{"label": "b", "text": "three", "more": [1]}\n'
    )
    assert read(content) == ROWS
    assert read(gzip.compress(content)) == ROWS
    assert read(b'{"n": 7, "t": "x"}\n', text_column="t", label_column="n") == (["x"], ["7"])
    assert read(b'{"text": "\\u00e9\\ud83d\\ude42", "label": "a"}\n') == (["é🙂"], ["a"])
    assert list(iter_texts(io.BytesIO(content))) == ROWS[0]


# ---------------------------------------------------------------------- Parquet


def test_parquet(table):
    path = table(text=ROWS[0], label=ROWS[1], more=[1, 2])
    texts, labels = read_text(path)
    assert (texts, labels.tolist()) == ROWS
    assert list(iter_texts(path)) == ROWS[0]
    path = table(t=ROWS[0], n=[1, 2])
    texts, labels = read_text(path, text_column="t", label_column=2)
    assert (texts, labels.tolist()) == (ROWS[0], ["1", "2"])
    other = path.with_suffix(".data")
    path.rename(other)
    assert read_text(other, text_column="t", label_column="n")[0] == ROWS[0], "by its first bytes"


def test_parquet_without_pyarrow(table):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from xtrellis.data import read_text\n"
        "try: read_text(sys.argv[1])\nexcept ValueError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(table(text=["a"], label=["b"]))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "needs pyarrow; install it with pip install 'xtrellis[parquet]'" in done.stdout


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"text;label\na;b\n", {"format": "csv"}, "of 'text;label', or delimiter=';'$"),
        (b"text\tlabel\na\tb\n", {"format": "csv"}, r", or delimiter='\\t'$"),
        (b"nothing\na\n", {"format": "csv"}, "one of 'nothing', or the delimiter$"),
        (b"a,b\nc\n", {"format": "csv", "header": False}, ":2: the row has 1 fields, the first 2"),
        (b"a\n", {"format": "csv", "header": False}, ":1: there is no column 2; pass text_column"),
        (
            b"a,b\n",
            {"format": "csv", "header": False, "text_column": "x"},
            "there is no column 'x'; pass text_column, a number from 1 to 2",
        ),
        (b"text,y\na,b\n", {"label_column": 3}, "there is no column 3; there are 2"),
        (b"\n\n", {"format": "csv", "header": False}, "there are no rows"),
        (b'{"text": 1}\n', {"labelled": False}, ":1: 'text' is not a text, but '1'"),
        (b'{"text": "a"}\n', {}, ":1: there is no key 'label'; pass label_column, one of 'text'"),
        (b'{"text": "a", "label": []}\n', {}, r":1: 'label' is not a text or a number, but '\[\]'"),
        (b'{"text": "a", "label": true}\n', {}, ":1: 'label' is not a text or a number"),
        (b'{"text": "a", "label": NaN}\n', {}, ":1: 'label' is not a text or a number, but 'nan'"),
        (b'{"text": "a", "label": 1e400}\n', {}, ":1: 'label' is not a text or a number"),
        (b"a,1,one\nb,2,two\n", {"format": "csv"}, "'one', or header=False if the first line is"),
        (b'{"text": "a", "label": ""}\n', {}, ":1: the label is empty"),
        (b'{"text": "a", "label": "b"}\n{"text"\n', {}, ":2: not JSON"),
        (b"[1]\n", {"format": "jsonl"}, ":1: not a JSON object"),
        (b"[" * 100_000 + b"\n", {"format": "jsonl"}, ":1: not JSON"),
        (b"PAR1 and so on", {}, "cannot be read from a pipe"),
    ],
)
def test_bad_tables(content, options, message):
    with pytest.raises(DataError, match=message) as raised:
        read(content, **options)
    assert "\n" not in str(raised.value)


def test_bad_parquet(table):
    with pytest.raises(DataError, match="there is no column 'text'; pass text_column, one of 't'"):
        read_text(table(t=["a"], label=["b"]))
    with pytest.raises(DataError, match=r"text_column, one of 't', 'y'$"):  # always has a header
        read_text(table(t=["a"], y=["b"]))
    with pytest.raises(DataError, match=":2: 'text' is not a text, but 'None'"):
        read_text(table(text=["a", None], label=["b", "c"]))
    path = table(text=["a"], label=["b"])
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match="not a sound Parquet file"):
        read_text(path)


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", '"'])
def test_impossible_delimiters(delimiter):
    with pytest.raises(ValueError, match="delimiter must be one character"):
        read(b"a,b\n", delimiter=delimiter)
