"""A decoding loss of your own: any function of the margin.

Loss-based decoding predicts the class whose codeword has the least total loss, the sum of L(M f)
over the edges. For any L this is a shortest path, so a new loss is a new function and nothing else.
The weights are the same for all losses here; only the decoding differs.

    python examples/own_loss.py
"""

import numpy as np

from xtrellis import TrellisClassifier, TrellisTextClassifier, load_icd10cm


def cubed_hinge(z):
    """max(0, 1 - z)³: large errors count for more than with the squared hinge."""
    return np.maximum(0, 1 - z) ** 3


def main():
    data = load_icd10cm()
    for decoding in ("squared", "exponential", cubed_hinge):
        clf = TrellisTextClassifier(
            TrellisClassifier.paper(10, decoding=decoding, random_state=0, n_jobs=-1)
        ).fit(data.train_texts, data.train_labels)
        name = decoding if isinstance(decoding, str) else decoding.__name__
        accuracy = clf.score(data.test_texts, data.test_labels)
        print(f"decoding with the {name} loss: test accuracy {accuracy:.2%}")


if __name__ == "__main__":
    main()
