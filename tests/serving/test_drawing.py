"""The vertices that the page shows as looked at are those that the search opened."""

import numpy as np
import pytest

from samples import topics
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.serving.drawing import drawings, looked_at

X, Y = topics(n_classes=40, n_features=120, n_rows=400)
# Little of several classes: the search looks around.
DOUBTFUL = 0.2 * (X[:50] + X[50:100] + X[100:150] + X[150:200])


@pytest.mark.parametrize("width", [2, 3, 7])
def test_vertices_looked_at(width):
    clf = TrellisClassifier(width, C=1.0, rerank=0.0, random_state=0).fit(X, Y)
    n_opened = clf.model_.opened(canonical_csr(DOUBTFUL))
    sizes = clf.trellis_.slice_sizes
    for row in range(50):
        one = canonical_csr(DOUBTFUL[row])
        found = looked_at(clf.model_, one)
        assert 1 + sum(map(len, found)) == n_opened[row]  # 1: the source
        assert not found[-1]
        assert all(
            0 <= vertex < size for own, size in zip(found, sizes, strict=True) for vertex in own
        )
        (drawing,) = drawings(clf, one, clf.predict(one)[0])
        path = drawing["path"]
        for index, vertex in enumerate(path[: len(sizes) - 1]):
            assert vertex in found[index]
        assert drawing["looked_at"] == found
    assert len(set(n_opened.tolist())) > 1


def test_all_of_them_if_the_search_is_not_lazy():
    clf = TrellisClassifier.paper(3, random_state=0).fit(X, Y)
    assert looked_at(clf.model_, X[0]) is None
    assert drawings(clf, X[0], clf.classes_[5])[0]["looked_at"] is None


def test_an_empty_row():
    clf = TrellisClassifier(3, C=1.0, random_state=0).fit(X, Y)
    empty = X[0] * 0
    empty.eliminate_zeros()
    assert sum(map(len, looked_at(clf.model_, empty))) >= 0
    assert np.all([size > 0 for size in drawings(clf, empty, 0)[0]["slices"]])
