"""Kernels run by Python itself, with ``NUMBA_DISABLE_JIT=1``, give what the compiled ones give.

That is a debugger's way in; and it is an oracle for what only the compiler does: types of
integers, reordered sums, reads outside of arrays, which Python would refuse.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

import xtrellis
from xtrellis import LTLSClassifier, TrellisClassifier, load_model
from xtrellis._arrays import canonical_csr
from xtrellis.data import read_svmlight
from xtrellis.data.text_features import TextFeatures
from xtrellis.decoding import (
    VertexSoftmax,
    best_paths,
    k_best_paths,
    log_partition,
    path_log_probabilities,
)
from xtrellis.decoding.calibration import fit_temperature
from xtrellis.decoding.rivals import train_rivals
from xtrellis.graph import Trellis, similarity_assignment

X, Y = make_blobs(70, 5, centers=7, cluster_std=2.0, random_state=0)
X = np.abs(X) / 10

ESTIMATORS = {
    "svm": lambda: TrellisClassifier(slice_width=3, random_state=0),
    "reranked": lambda: TrellisClassifier(slice_width=3, rerank=2.0, random_state=0),
    "arow": lambda: TrellisClassifier(slice_width=3, learner="arow", random_state=0),
    "perceptron": lambda: TrellisClassifier(slice_width=3, learner="perceptron", random_state=0),
    "sklearn": lambda: TrellisClassifier(
        slice_width=3, learner=LogisticRegression(), random_state=0
    ),
    "paper": lambda: TrellisClassifier.paper(slice_width=3, random_state=0),
    "one-vs-rest": lambda: TrellisClassifier.paper(slice_width=7, random_state=0),
    "ltls": lambda: LTLSClassifier(random_state=0),
}


def estimator_results(name, folder):
    """What a model predicts after it was fitted, saved and loaded."""
    path = Path(folder, "model.xtrellis")
    ESTIMATORS[name]().fit(X, Y).save(path)
    model = load_model(path)
    labels, probabilities = model.predict_top_k(X, 3)
    yield model.predict(X)
    yield labels
    yield probabilities
    yield model.predict_proba(X)
    yield model.prune(X, Y, max_drop=0.05).predict(X)


def kernel_results(folder):
    """Results of the kernels of decoding, calibration, assignment and reading."""
    rng = np.random.default_rng(0)
    for n_classes, width in [(9, 2), (105, 5), (30, 30)]:
        trellis = Trellis(n_classes, width)
        margins = rng.standard_normal((4, trellis.n_edges)).astype(np.float32)
        for scale in (1, 30):
            for loss in ("exponential", "log", VertexSoftmax(0.5, 2, 0.75)):
                yield best_paths(trellis, scale * margins, loss)
                yield from k_best_paths(trellis, scale * margins, 5, loss)
                yield log_partition(trellis, scale * margins, loss)
                yield path_log_probabilities(trellis, scale * margins, [[0, 3, 8]], loss)
        paths = rng.integers(0, n_classes, 4)
        weights = np.ones(4)
        yield np.array(fit_temperature(trellis, margins, paths, weights, VertexSoftmax()))
    listed = rng.integers(-1, 7, (len(Y), 3))
    rivals = train_rivals(canonical_csr(X), Y, listed, np.ones(len(Y), np.float32), 7)
    yield rivals.margins(canonical_csr(X), np.tile(np.arange(7), (len(Y), 1)))
    yield similarity_assignment(Trellis(7, 2), X, Y, random_state=0).path_of_class
    texts = ["Σίσυφος, the cat's 3 Straße 🙂", "a\xa0b  the CAT", "", "\u0130 x_y"]
    for terms in (((1, 2), None, None), ((1, 1), (2, 4), None), ((1, 2), (3, 3), 64)):
        features = TextFeatures(*terms)
        yield features.fit_transform(texts).toarray()
        yield features.transform([text + " x" for text in texts]).toarray()
    rows = Path(folder, "rows.svm")
    rows.write_text("1 1:0.5 3:2e-3\n-2 2:1234567.125 # comment\n3\n")
    features, labels = read_svmlight(rows)
    yield features.toarray()
    yield labels


def all_results(folder):
    """Name and array of each result."""
    for name in ESTIMATORS:
        for place, array in enumerate(estimator_results(name, folder)):
            yield f"{name} {place}", array
    for place, array in enumerate(kernel_results(folder)):
        yield f"kernels {place}", array


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interpreted")
    env = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": str(Path(xtrellis.__file__).parent.parent),
    }
    command = [sys.executable, "-W", "error", __file__, str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "results.npz")


def test_the_same_answers(interpreted, tmp_path):
    for name, array in all_results(tmp_path):
        if array.dtype.kind in "iu":
            np.testing.assert_array_equal(interpreted[name], array, name)
        else:
            np.testing.assert_allclose(interpreted[name], array, 1e-4, 1e-5, err_msg=name)


if __name__ == "__main__":
    np.savez(Path(sys.argv[1], "results.npz"), **dict(all_results(sys.argv[1])))
