"""Terms and their counts are those of scikit-learn's vectorisers, whatever the characters."""

import copy
import pickle
import re
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from samples import SHARED, reports
from xtrellis import load_icd10cm, load_wordnet
from xtrellis.data import read_text, terms
from xtrellis.data.terms import TermFinder, character_classes
from xtrellis.data.text_features import TextFeatures
from xtrellis.kernels.terms import count_terms

KINDS = [
    ((1, 2), None),
    (None, (3, 5)),
    ((2, 3), (1, 2)),
    ((1, 1), (6, 9)),
]
ODD = [
    "",
    " ",
    "a",
    "A-b c_d  e\tf\ng\x0bh\x1ci\x1dj\x1ek\x1fl\x85m\xa0n\u2028o\u3000p",
    "İstanbul ΟΔΥΣΣΕΥΣ ὈΔΥΣΣΕΎΣ. ß ẞ ﬁ ŉ ǰ",
    "Σ ΑΣ ΑΣ. ΑΣΑ A\u0301Σ\u0301",  # a sigma at the end of a word, and elsewhere
    "e\u0301tude étude cafe\u0301",
    "zero\u200bwidth joi\u200dner\ufeff soft\xadhyphen",
    "🙂🙃 👩‍👩‍👧 x🙂y 𝔘𝔫𝔦 𐐀𐐨 \U0010ffff",
    "lone \ud800 high\udbff and low\udc00x",
    "१२३ ½ ² Ⅷ ① 中文字 ひらがな 한국어 ไทย",
    "x" * 500 + " " + "y" * 3,
    "it's a re-entrant `don't` _under_score_ 3.14 $5",
]


def theirs(kind, lengths, hash_size=None, vocabulary=None):
    settings = {"analyzer": ("word", "char_wb")[kind], "ngram_range": lengths}
    settings |= {"token_pattern": r"(?u)\b\w+\b"} if kind == 0 else {}
    settings["dtype"] = np.float32
    if hash_size is None:
        return CountVectorizer(vocabulary=vocabulary, **settings)
    return HashingVectorizer(n_features=hash_size, norm=None, alternate_sign=False, **settings)


def as_matrix(counts, n_columns):
    for start, stop in pairwise(counts.indptr.tolist()):
        assert (np.diff(counts.indices[start:stop]) > 0).all(), "sorted, each column once"
    return sparse.csr_matrix(
        (counts.data, counts.indices, counts.indptr), (len(counts.indptr) - 1, n_columns)
    )


def assert_equal(ours, expected):
    assert ours.shape == expected.shape
    assert (ours != expected).nnz == 0


def check_all(texts, words, characters, hash_size=50):
    """Learn, find and hash the terms of texts, and compare."""
    counts, vocabulary, frequencies = TermFinder.learn(words, characters, texts, 1)
    parts, hashed, names = [], [], []
    for kind, lengths in enumerate((words, characters)):
        if lengths is None:
            continue
        vectorizer = theirs(kind, lengths)
        try:
            parts.append(vectorizer.fit_transform(texts))
            names.append(vectorizer.get_feature_names_out().tolist())
        except ValueError:  # no terms
            parts.append(sparse.csr_matrix((len(texts), 0), dtype=np.float32))
            names.append([])
        if not any("\ud800" <= c <= "\udfff" for text in texts for c in text):
            hashed.append(theirs(kind, lengths, hash_size).transform(texts))
    assert vocabulary == names
    expected = sparse.csr_matrix(sparse.hstack(parts))
    n_terms = expected.shape[1]
    assert_equal(as_matrix(counts, n_terms), expected)
    np.testing.assert_array_equal(frequencies, np.diff(expected.tocsc().indptr))
    found = TermFinder(words, characters, None, vocabulary).count(texts)
    assert_equal(as_matrix(found, n_terms), expected)
    ours = as_matrix(TermFinder(words, characters, hash_size, None).count(texts), hash_size)
    if hashed:
        assert_equal(ours, sum(hashed[1:], hashed[0]))


def test_classes_are_those_of_regular_expressions():
    classes = character_classes(sys.maxunicode + 1)
    for number, pattern in ((1, r"\w"), (2, r"\s")):
        matches = re.compile(pattern).match
        found = [matches(chr(c)) is not None for c in range(sys.maxunicode + 1)]
        np.testing.assert_array_equal(classes == number, found)
    np.testing.assert_array_equal(character_classes(0x10000), classes[:0x10000])
    np.testing.assert_array_equal(character_classes(0x80), classes[:0x80])
    assert all(chr(c).isspace() == (classes[c] == 2) for c in range(0x10000))  # as split() does


@pytest.mark.parametrize(("words", "characters"), KINDS)
def test_odd_corners_of_unicode(words, characters):
    check_all(ODD, words, characters)
    for text in ODD:
        check_all([text, "b a"], words, characters)
    plain = [text for text in ODD if text.isprintable()]
    check_all(plain, words, characters, hash_size=1)
    check_all(plain, words, characters, hash_size=2**31 - 1)


@given(
    st.lists(st.text(st.characters(), max_size=30), min_size=1, max_size=4),
    st.sampled_from(KINDS),
)
def test_any_text(texts, kinds):
    check_all(texts, *kinds)


@given(st.lists(st.text("aAbB1_ -\t\n\xe9\u2028🙂", max_size=40), min_size=1, max_size=6))
def test_any_text_of_few_characters(texts):
    check_all(texts, (1, 3), (2, 4))


@pytest.mark.parametrize("load", [load_icd10cm, load_wordnet])
def test_bundled_texts(load):
    split = load()
    check_all(split.test_texts[::3], (1, 2), None, 2**15)
    check_all(split.train_texts[::40], None, (3, 5), 2**15)


@pytest.mark.parametrize(
    "name", ["clinc150", "finnish_lemmas", "icd10cm", "mesh_terms", "wordnet_hypernym"]
)
def test_shared_texts(name):
    file = SHARED / name / "test.txt.gz"
    if not file.is_file():
        pytest.skip(f"{name} is not here")
    texts = read_text(file)[0]
    check_all(texts[:: max(1, len(texts) // 2_000)], (1, 2), (2, 4), 2**18)


def test_few_at_a_time(monkeypatch):
    """Texts that do not fit at once, and tables that grow, make no difference."""
    texts, _ = reports(100)
    texts[50] *= 20
    monkeypatch.setattr(terms, "_IDS", 100)
    monkeypatch.setattr(terms, "_FEW_TERMS", 4)
    check_all(texts, (1, 2), (2, 3))


def test_equal_hashes_are_told_apart():
    """Two words of the same hash, so that only their bytes differ."""
    from sklearn.utils import murmurhash3_32

    seen: dict[int, str] = {}
    pair = None
    for number in range(400_000):
        word = f"w{number}"
        h = murmurhash3_32(word, 0)
        if h in seen:
            pair = seen[h], word
            break
        seen[h] = word
    assert pair is not None
    finder = TermFinder((1, 1), None, None, [[pair[0]]])
    assert finder.count([pair[0], pair[1]]).indptr.tolist() == [0, 1, 1]
    check_all([" ".join(pair), pair[1]], (1, 1), None)


def test_the_same_word_is_two_terms_of_two_kinds():
    _, vocabulary, _ = TermFinder.learn((1, 2), (3, 3), ["a b", " a b c"], 1)
    assert " a " in vocabulary[1]
    finder = TermFinder((1, 1), (1, 1), None, [["a"], ["a", "b"]])
    counts = finder.count(["a b"])
    assert counts.indices.tolist() == [0, 1, 2]


def test_copies_and_pickles_make_tables_of_their_own():
    texts, _ = reports(50)
    features = TextFeatures((1, 2), (3, 4), None)
    X = features.fit_transform(texts, 2)
    for other in (copy.deepcopy(features), pickle.loads(pickle.dumps(features))):
        np.testing.assert_array_equal(other.transform(texts).toarray(), X.toarray())
    indices, values = features.row(texts[3])
    np.testing.assert_array_equal(indices, X[3].indices)
    np.testing.assert_array_equal(values, X[3].data)


def test_a_term_with_a_line_break_is_refused():
    with pytest.raises(ValueError, match="a term contains a line break"):
        TermFinder((1, 1), None, None, [["a\nb"]])


@pytest.mark.parametrize("size", [1, 47, 48, 500])
@pytest.mark.parametrize("n_columns", [3, 2**7, 2**21 - 1, 2**31 - 1])
def test_columns_are_sorted_and_counted_in_texts_of_any_length(size, n_columns):
    rng = np.random.default_rng(size)
    ids = np.concatenate([np.array([0, n_columns - 1]), rng.integers(n_columns, size=size)])
    expected = [np.unique(part, return_counts=True) for part in (ids[:2], ids[2:])]
    stops = np.array([2, len(ids)])
    indptr, indices = np.zeros(2, np.int64), np.empty(len(ids), np.int32)
    data = np.empty(len(ids), np.float32)
    n = count_terms(stops, ids.astype(np.int32), np.empty(0, np.int32), 0, indptr, indices, data)
    assert indices[:n].tolist() == [*expected[0][0], *expected[1][0]]
    assert data[:n].tolist() == [*expected[0][1], *expected[1][1]]
    assert indptr.tolist() == [2, n]


@pytest.mark.parametrize("hash_size", [1, 3, 2**10, 1_000, 2**20, 2**31 - 1])
def test_hashes_of_any_number_of_columns(hash_size):
    texts = ["some words and more words", "é ö ü", "x" * 70 + " " + " ".join(map(str, range(99)))]
    theirs = HashingVectorizer(
        n_features=hash_size, norm=None, alternate_sign=False, token_pattern=r"(?u)\b\w+\b"
    )
    found = TermFinder((1, 1), None, hash_size, None).count(texts)
    ours = sparse.csr_matrix((found.data, found.indices, found.indptr), (len(texts), hash_size))
    assert (ours != theirs.transform(texts)).nnz == 0
