"""Features of texts are those of scikit-learn."""

from dataclasses import replace

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import normalize

from samples import reports
from xtrellis.data.text_features import TextFeatures

WORD = r"(?u)\b\w+\b"


def test_features_are_those_of_scikit_learn():
    texts, _ = reports()
    texts[0] += " burn of burns, burn and burn"
    ours = TextFeatures((1, 2), None, None)
    theirs = TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD, sublinear_tf=True)
    expected = theirs.fit_transform(texts)
    np.testing.assert_allclose(
        ours.fit_transform(texts, 1).toarray(), expected.toarray(), rtol=1e-6
    )
    assert ours.terms == [theirs.get_feature_names_out().tolist()]
    unseen = ["severe unknown burn of the moon", "", "???"]
    np.testing.assert_allclose(
        ours.transform(unseen).toarray(), theirs.transform(unseen).toarray(), rtol=1e-6
    )


def test_rare_terms_are_left_out():
    texts, _ = reports()
    ours = TextFeatures((1, 1), (2, 3), None)
    X = ours.fit_transform(texts, 5)
    words = TfidfVectorizer(token_pattern=WORD, min_df=5).fit(texts)
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), min_df=5).fit(texts)
    assert ours.terms == [
        words.get_feature_names_out().tolist(),
        letters.get_feature_names_out().tolist(),
    ]
    np.testing.assert_array_equal(ours.transform(texts).toarray(), X.toarray())


def test_threads_share_one_object():
    """The first of them works out the rarity of terms: no other may see it half done."""
    texts, _ = reports(40)
    made = TextFeatures((1, 2), None, None)
    made.fit_transform(texts, 1)
    expected = made.transform(texts).toarray()
    seen = []

    class Watched(TextFeatures):
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)
            if name == "_rarity" and value is not None:
                seen.append(self.transform(texts).toarray())  # as another thread would now

    watched = Watched((1, 2), None, None)
    watched.__dict__.update(made.__dict__, _rarity=None)
    watched.transform(texts)
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], expected)


def test_a_share_for_words_is_a_union_of_weighted_features():
    texts, _ = reports()
    ours = TextFeatures((1, 2), (1, 3), None, word_share=0.25)
    union = FeatureUnion(
        [
            ("words", TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD, sublinear_tf=True)),
            ("letters", TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), sublinear_tf=True)),
        ],
        transformer_weights={"words": 0.25**0.5, "letters": 0.75**0.5},
    )
    expected = union.fit_transform(texts)
    np.testing.assert_allclose(
        ours.fit_transform(texts, 1).toarray(), expected.toarray(), rtol=2e-6
    )
    unseen = ["severe unknown burn of the moon", "qqfeverqq", "", "???"]
    expected = normalize(union.transform(unseen))  # where no word is known, letters are all
    np.testing.assert_allclose(ours.transform(unseen).toarray(), expected.toarray(), rtol=2e-6)
    _, values = ours.row(unseen[0])
    np.testing.assert_array_equal(values, ours.transform(unseen)[0].data)
    again = TextFeatures.from_parts(**ours.to_parts())
    assert ours.equals(again)
    assert not ours.equals(replace(again, word_share=0.5))
