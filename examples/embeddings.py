"""Dense features, such as the embeddings of a neural encoder.

Here 128 components of the TF-IDF rows' singular value decomposition stand in for an encoder, and
every fifth training row is used. Two things matter for dense features:

- Scale them. The SVM's C weighs the loss against the length of the weights, so that it depends on
  the length of the rows. Centre the features and divide each row by its length.
- Expect less than from sparse rows: a linear model has only 128 weights per edge to tell the
  classes apart with. A wider trellis helps.

    python examples/embeddings.py
"""

from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from xtrellis import TrellisClassifier, load_icd10cm


def main():
    data = load_icd10cm()
    encoder = make_pipeline(
        TfidfVectorizer(sublinear_tf=True), TruncatedSVD(128, random_state=0)
    ).fit(data.train_texts)
    X_train, y_train = encoder.transform(data.train_texts[::5]), data.train_labels[::5]
    X_test = encoder.transform(data.test_texts)
    print(f"{X_train.shape[0]:,} rows of {X_train.shape[1]} numbers")

    classifier = TrellisClassifier(C=10, random_state=0, n_jobs=-1)
    for name, model in {
        "as they are": classifier,
        "scaled": make_pipeline(StandardScaler(), Normalizer(), classifier),
    }.items():
        model.fit(X_train, y_train)
        print(f"{name}: test accuracy {model.score(X_test, data.test_labels):.1%}")


if __name__ == "__main__":
    main()
