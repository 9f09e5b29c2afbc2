"""From texts to a model file that can be shipped: train, prune, save, load, predict.

python examples/text_to_shipped_model.py
"""

import tempfile
from pathlib import Path

from sklearn.model_selection import train_test_split

from xtrellis import TrellisClassifier, TrellisTextClassifier, load_icd10cm, load_model


def main():
    data = load_icd10cm()
    texts, valid_texts, labels, valid_labels = train_test_split(
        data.train_texts, data.train_labels, test_size=0.1, random_state=0
    )
    clf = TrellisTextClassifier(TrellisClassifier(random_state=0, n_jobs=-1)).fit(texts, labels)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "icd10cm.xtrellis"
        before = clf.save(file)
        print(f"trained: {clf.score(data.test_texts, data.test_labels):.1%}, {before / 1e6:.1f} MB")

        # The model is pruned already where that costs nothing. Give half a point for a smaller one.
        clf.prune(valid_texts, valid_labels, max_drop=0.005)
        after = clf.save(file)
        print(f"pruned: {clf.score(data.test_texts, data.test_labels):.1%}, {after / 1e6:.1f} MB")

        # On the other machine, with nothing but this file:
        model = load_model(file)
        queries = ["chronic sinus infection", "broken left wrist", "type 2 diabetes"]
        best, probabilities = model.predict_top_k(queries, k=3)
        for query, classes, shares in zip(queries, best, probabilities, strict=True):
            found = ", ".join(f"{c} ({p:.0%})" for c, p in zip(classes, shares, strict=True))
            print(f"{query}: {found}")


if __name__ == "__main__":
    main()
