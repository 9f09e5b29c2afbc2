"""The svmlight reader agrees with scikit-learn's, and names the line that is wrong."""

import io
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file, load_svmlight_files

from samples import PACKERS
from xtrellis.data import read_svmlight, read_svmlight_files, streams
from xtrellis.data.streams import DataError


def read(text, **options):
    text = text.encode() if isinstance(text, str) else text
    return read_svmlight(io.BytesIO(text), **options)


def complaint(text, **options):
    with pytest.raises(DataError) as caught:
        read(text, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_rows_labels_comments_and_queries():
    X, y = read("# header\n3 1:0.5 4:-2e1\n\n5 qid:7 2:1 # note 9:9\r\n 4\t3:.5\t\n7")
    np.testing.assert_array_equal(
        X.toarray(), [[0.5, 0, 0, -20], [0, 1, 0, 0], [0, 0, 0.5, 0], [0] * 4]
    )
    np.testing.assert_array_equal(y, [3, 5, 4, 7])
    assert (X.dtype, X.indices.dtype, X.indptr.dtype, y.dtype) == ("f4", "i4", "i4", "i8")
    assert X.has_canonical_format


def test_a_first_line_of_sizes_is_skipped():
    """As in the Extreme Classification Repository; further down, such a line is wrong."""
    X, y = read("2 4 9\n3 0:1 3:2\n5 2:1\n")
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 0, 2], [0, 0, 1, 0]])
    np.testing.assert_array_equal(y, [3, 5])
    X, _ = read("2 4 9\r\n0:1 3:2\n\n", labelled=False)
    assert X.shape == (2, 4)
    assert complaint("2 4 9\n3 0:1\n2 4 9\n").startswith("<stdin>:3: '4' is not index:value")
    assert complaint("2 4 9\n3 0:x\n").startswith("<stdin>:2: the value in '0:x'")


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("name", ["rows.svm", "rows", "rows.gz"])  # the bytes tell, not the name
def test_compressed_files(tmp_path, packed, name):
    (tmp_path / name).write_bytes(PACKERS[packed](b"1 1:1\n2 2:1\n"))
    for source in (tmp_path / name, str(tmp_path / name)):
        X, y = read_svmlight(source)
        assert X.shape == (2, 2)
        assert y.tolist() == [1, 2]


def test_streams_after_each_other_are_one_file():
    for pack in (PACKERS[name] for name in ("gz", "bz2", "xz")):
        _, y = read(pack(b"1 1:1\n") + pack(b"2 1:1\n") + bytes(4))
        assert y.tolist() == [1, 2]


def test_labels_are_numbers_if_all_are():
    assert read("+1 1:1\n-1 1:1\n3.0 1:1\n")[1].tolist() == [1, -1, 3]
    assert read("1 1:1\nA00 1:1\n+2 1:1\n")[1].tolist() == ["1", "A00", "+2"]
    assert read("é,f 1:1\n")[1].tolist() == ["é,f"]
    assert read("2.5 1:1\n")[1].tolist() == ["2.5"]


def test_first_feature():
    assert read("1 0:1 2:1\n")[0].toarray().tolist() == [[1, 0, 1]]
    assert read("1 1:1 2:1\n")[0].toarray().tolist() == [[1, 1]]
    assert read("1 1:1 2:1\n", zero_based=True)[0].toarray().tolist() == [[0, 1, 1]]
    assert read("1 1:1\n", n_features=3, zero_based=False)[0].toarray().tolist() == [[1, 0, 0]]
    assert "<stdin>:2: feature 0 in a file" in complaint("1 1:1\n1 0:1\n", zero_based=False)


def test_unlabelled_rows_stay_in_step_with_lines():
    X, y = read("1:1 2:1\n\n7 2:3\n# no row\n3:1\n", labelled=False)
    assert y is None
    assert X.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 3, 0], [0, 0, 1]]


WRONG = {
    "1:1 2:1": "no label before '1:1'",
    "3,5 1:0.1": "several labels, '3,5'; keep one label per row",
    "1 1:nan": "the value in '1:nan' is not a finite number",
    "1 1:inf": "not a finite number",
    "1 1:1e39": "beyond single precision",
    "1 1:-3.5e38": "beyond single precision",
    "1 1:": "not a finite number",
    "1 1:1_0": "not a finite number",
    "1 1:0x1": "not a finite number",
    "1 1:1.2.3": "not a finite number",
    "1 1:2:3": "not a finite number",
    "1 1:1e": "not a finite number",
    "1 1: 2": "not a finite number",
    "1 :1": "the index in ':1' is not a whole number",
    "1 -1:1": "the index in '-1:1' is not a whole number",
    "1 1.5:1": "the index in '1.5:1' is not a whole number",
    "1 2:1 2:1": "not above the one before",
    "1 3:1 2:1": "not above the one before",
    "1 2147483648:1": "above 2147483647",
    "1 " + "9" * 400 + ":1": "above 2147483647",
    "1 1:1 x": "'x' is not index:value",
    "1 \x0c": "'\\\\x0c' is not index:value",
    "1 1:1\0": "NUL byte",
    "9" * 30 + " 1:1": "more than 18 digits",
    "x" * 2000 + " 1:1\n1 1:1": "more than 1000 characters",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:20])
def test_wrong_lines_are_named(line):
    message = complaint("1 1:1\n# note\n" + line + "\n1 1:1\n")
    assert re.match(rf"<stdin>:3: .*{WRONG[line]}.*", message), message
    assert len(message) < 200


def test_a_wrong_line_far_in_the_file_is_named(monkeypatch):
    monkeypatch.setattr(streams, "_BLOCK", 1)
    text = "1 1:1\n" * 100_000 + "1 x:1\n"
    assert complaint(text).startswith("<stdin>:100001: the index in 'x:1'")
    assert complaint(PACKERS["gz"](text.encode())).startswith("<stdin>:100001:")


def test_features_beyond_the_last():
    assert complaint("1 1:1\n1 2:1 5:1\n", n_features=4).startswith(
        "<stdin>:2: feature 5 is beyond"
    )
    assert complaint("1 0:1\n1 4:1\n", n_features=4).startswith("<stdin>:2: feature 4 is beyond")
    assert complaint("1 0:1\n", n_features=0).startswith("<stdin>:1: feature 0 is beyond")
    X, _ = read("1 1:1 2147483647:1\n")
    assert X.shape == (1, 2**31 - 1)


def test_the_base_is_not_guessed_where_both_are_possible():
    """Training rows counted from 0, and test rows that happen to have no feature 0."""
    X, _ = read("1 0:1 1:1 2:1\n")
    test = "1 1:1 2:1\n"
    assert "pass zero_based=True or zero_based=False" in complaint(test, n_features=X.shape[1])
    assert read(test, n_features=3, zero_based=True)[0].toarray().tolist() == [[0, 1, 1]]
    assert read("1 1:1 3:1\n", n_features=3)[0].toarray().tolist() == [[1, 0, 1]]
    assert read("1 0:1\n", n_features=3)[0].toarray().tolist() == [[1, 0, 0]]


FILES = st.lists(
    st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=3), min_size=1, max_size=3
)


@given(FILES, st.sampled_from(["auto", True]))
@example([[{0, 1}], [{1, 2}]], "auto")
@example([[{1, 2}], [{1, 3}]], "auto")
def test_files_that_belong_together_agree_with_scikit_learn(files, zero_based):
    texts = [
        "".join("1 " + " ".join(f"{k}:1" for k in sorted(row)) + "\n" for row in rows).encode()
        for rows in files
    ]
    ours = read_svmlight_files(map(io.BytesIO, texts), zero_based=zero_based)
    theirs = load_svmlight_files(list(map(io.BytesIO, texts)), zero_based=zero_based)
    assert len(ours) == len(theirs)
    for a, b in zip(ours[::2], theirs[::2], strict=True):
        np.testing.assert_array_equal(a.toarray(), b.toarray())


def test_files_that_do_not_belong_together():
    with pytest.raises(DataError, match="some labels are words, those of <stdin> are whole numb"):
        read_svmlight_files([io.BytesIO(b"1 1:1\n"), io.BytesIO(b"a 1:1\n")])
    with pytest.raises(TypeError, match="use read_svmlight for a single one"):
        read_svmlight_files("train.svm")
    assert read_svmlight_files([]) == []


def test_unknown_features_are_ignored_on_request():
    text = "1 1:1 5:2\n2 6:1\n3 0:3 2:4 9:1\n"
    with pytest.warns(UserWarning, match="^<stdin>:1: ignored 3 features that did not occur .* 5$"):
        X, y = read(text, n_features=4, handle_unknown="warn")
    assert X.toarray().tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [3, 0, 4, 0]]
    assert y.tolist() == [1, 2, 3]
    quiet, _ = read(text, n_features=4, handle_unknown="ignore")
    np.testing.assert_array_equal(quiet.toarray(), X.toarray())
    with pytest.warns(UserWarning, match="<stdin>:3: ignored feature 0, which did not"):
        X, _ = read(text, n_features=9, zero_based=False, handle_unknown="warn")
    assert X.shape == (3, 9)
    assert X[2].toarray().tolist() == [[0, 4, 0, 0, 0, 0, 0, 0, 1]]


def test_bad_utf8_in_a_label():
    assert complaint(b"a 1:1\n\xff\xfe 1:1\n").startswith("<stdin>:2: the label")


def test_bad_parameters():
    with pytest.raises(ValueError, match="zero_based must be"):
        read("1 1:1\n", zero_based="maybe")
    with pytest.raises(ValueError, match="handle_unknown must be"):
        read("1 1:1\n", handle_unknown="drop")
    with pytest.raises(ValueError, match="n_features must be"):
        read("1 1:1\n", n_features=-1)


decimals = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e38, 1e38).map(repr),
    st.floats(-1e38, 1e38).map("{:.25e}".format),
    st.from_regex(r"[+-]?[0-9]{1,30}\.[0-9]{0,30}(e-?[0-9]{1,2})?", fullmatch=True),
)


@given(st.lists(decimals, min_size=1, max_size=20))
@example(["16777217", "16777217.0000000000000000000001", "1e-45", "0.7e-45", "1e-46", "1e-400"])
@example(["3.4028235e38", "340282346638528859811704183484516925440", "00000.1", "-0"])
def test_values_round_as_pythons_do(words):
    values = np.array([float(word) for word in words])
    fits = np.abs(values) < 3.4028235677973366e38
    text = "0 " + " ".join(f"{k}:{word}" for k, word in enumerate(words))
    if fits.all():
        X, _ = read(text, zero_based=True)
        np.testing.assert_array_equal(X.data, values.astype(np.float32))
    else:
        assert "beyond single precision" in complaint(text)


rows = st.lists(
    st.tuples(
        st.integers(-100, 10**12),
        st.dictionaries(st.integers(1, 10**6), st.floats(-1e30, 1e30), max_size=5),
    ),
    min_size=1,
    max_size=20,
)


@given(rows, st.booleans(), st.integers(1, 100))
def test_agrees_with_scikit_learn(rows, zero_based, block):
    text = "".join(
        f"{label} " + " ".join(f"{k}:{x!r}" for k, x in sorted(pairs.items())) + "\n"
        for label, pairs in rows
    ).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_PIECE", block)
        X, y = read(text, zero_based=zero_based)
    Z, z = load_svmlight_file(io.BytesIO(text), zero_based=zero_based, dtype=np.float64)
    assert X.shape[0] == Z.shape[0]
    assert max(X.shape[1], 1) >= Z.shape[1]
    np.testing.assert_array_equal(X.indptr, Z.indptr)
    np.testing.assert_array_equal(X.indices, Z.indices)
    np.testing.assert_array_equal(X.data, Z.data.astype(np.float32))
    np.testing.assert_array_equal(y, z)


def test_reads_what_scikit_learn_writes(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    dump_svmlight_file(
        X, np.arange(20), str(tmp_path / "rows"), comment="made up", query_id=[1] * 20
    )
    read_back, y = read_svmlight(tmp_path / "rows")
    np.testing.assert_array_equal(read_back.toarray(), X)
    np.testing.assert_array_equal(y, np.arange(20))
