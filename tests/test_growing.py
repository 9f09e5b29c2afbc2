"""Classes that come and go: free paths are never predicted, and only touched vertices change."""

import numpy as np
import pytest
from sklearn.base import clone

from clusters import bits
from samples import topics
from xtrellis import TrellisClassifier, load_model
from xtrellis._arrays import SparseRows
from xtrellis.learning import Arow
from xtrellis.learning.retraining import _blocks

K = 40


@pytest.fixture(scope="module")
def rows():
    return topics(n_classes=K, n_rows=1500)


@pytest.fixture(scope="module")
def roomy(rows):
    """A model of 40 classes on 60 paths."""
    return TrellisClassifier(7, max_classes=60, random_state=0, rerank=0).fit(*rows)


@pytest.fixture(scope="module")
def young(rows):
    """A model of 30 classes with room for 40."""
    X, y = rows
    known = y < 30
    return TrellisClassifier(7, max_classes=K, random_state=0).fit(X[known], y[known])


def copy_of(model, folder):
    """Another model with the same weights."""
    model.save(folder / "model.xtrellis")
    return load_model(folder / "model.xtrellis")


# ---------------------------------------------------------------------- free paths


def test_room_costs_no_accuracy_and_no_class(roomy, rows):
    X, y = rows
    assert list(roomy.classes_) == list(range(K))
    assert roomy.trellis_.n_classes == 60
    assert roomy.assignment_.n_free == 20
    assert roomy.score(X, y) > 0.95
    np.testing.assert_allclose(roomy.predict_proba(X[:100]).sum(axis=1), 1)
    assert roomy.predict_proba(X[:100]).shape == (100, K)


def test_free_paths_are_spread_over_the_vertices(roomy):
    used = roomy.trellis_.path_vertices(roomy.assignment_.path_of_class)[:, 0]
    every = roomy.trellis_.path_vertices(np.arange(60))[:, 0]
    shares = np.bincount(used, minlength=7) / np.bincount(every, minlength=7)
    assert (np.abs(shares - K / 60) < 0.15).all()


@pytest.mark.parametrize("k", [1, 7, K])
def test_the_best_classes_are_those_of_all_paths_without_the_free_ones(roomy, rows, k):
    """Also where nearly all paths must be looked at to find so many classes."""
    X = rows[0][:200]
    paths, costs, _, _ = roomy.model_.search(X, 60)
    classes = roomy.assignment_.class_of_path[paths]
    found, found_costs, _ = roomy.model_.k_best(X, k)
    for row in range(200):
        used = classes[row] >= 0
        np.testing.assert_array_equal(found[row], paths[row][used][:k])
        np.testing.assert_array_equal(found_costs[row], costs[row][used][:k])


@pytest.mark.parametrize("k", [6, 20, K - 1, K])
def test_free_paths_take_no_probability_from_classes_that_are_listed(rows, k):
    X, y = rows
    blurred = X[:200] + X[200:400]
    model = TrellisClassifier(7, C=0.3, max_classes=200, random_state=0, rerank=0).fit(X, y)
    every = model.predict_proba(blurred)
    labels, probabilities = model.predict_top_k(blurred, k)
    expected = np.take_along_axis(every, labels, axis=1)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-6)


def test_removed_classes_are_never_predicted(roomy, rows, tmp_path):
    X = rows[0]
    gone = np.array([3, 4, 5, 17, 39])
    before = roomy.predict_top_k(X, K)[0]
    model = copy_of(roomy, tmp_path).remove_classes(gone)
    assert list(model.classes_) == [c for c in range(K) if c not in gone]
    assert model.assignment_.n_free == 25
    sizes = model.model_.class_sizes.values(K - 5)
    np.testing.assert_array_equal(sizes, np.delete(np.bincount(rows[1]), gone))
    expected = [next(c for c in row if c not in gone) for row in before]
    np.testing.assert_array_equal(model.predict(X), expected)
    labels, probabilities = model.predict_top_k(X, 6)
    assert not np.isin(labels, gone).any()
    assert (probabilities.sum(axis=1) <= 1 + 1e-9).all()
    classify = model.row_predictor()
    assert [classify(row.indices, row.data) for row in X[:20]] == list(model.predict(X[:20]))
    few = SparseRows(X[:20].indptr.astype(np.int64), X[:20].indices, X[:20].data, (20, 400))
    np.testing.assert_array_equal(
        model.assignment_.class_of_path[model.model_.path_finder()(few)],
        model.assignment_.class_of_path[model.model_.paths(X[:20])],
    )
    again = copy_of(model, tmp_path)
    assert bits(again) == bits(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_removed_class_can_come_back(rows, tmp_path):
    X, y = rows
    model = TrellisClassifier(7, C=1.0, random_state=0, rerank=1.0).fit(X, y)
    accuracy = model.score(X, y)
    model.remove_classes([7, 8])
    assert model.model_.centroids.starts.shape == (K - 1,)
    model.add_classes(X, y)
    assert list(model.added_.classes) == [7, 8]
    assert model.score(X, y) > accuracy - 0.01


# ---------------------------------------------------------------------- new classes


def test_new_classes_are_learned_and_old_ones_kept(young, rows, tmp_path):
    X, y = rows
    model = copy_of(young, tmp_path)
    assert model.add_classes(X, y) is model
    assert list(model.classes_) == list(range(K))
    assert list(model.added_.classes) == list(range(30, K))
    assert model.score(X, y) > 0.95
    old = young.assignment_.path_of_class
    np.testing.assert_array_equal(model.assignment_.path_of_class[:30], old)
    assert len(set(model.assignment_.path_of_class)) == K
    sizes = model.model_.class_sizes.values(K)
    np.testing.assert_array_equal(sizes, np.bincount(y))


def test_only_touched_vertices_change(young, rows, tmp_path):
    X, y = rows
    model, some = copy_of(young, tmp_path), y < 31
    model.add_classes(X[some], y[some])
    (path,) = model.added_.paths
    vertices = model.trellis_.path_vertices([path])[0]
    own = {(place, int(v)) for place, v in enumerate(vertices) if v >= 0}
    assert set(model.added_.vertices) == {(-1, 0)} | own
    touched = np.concatenate([model.trellis_.vertex_edges(*v) for v in model.added_.vertices])
    before, after = (
        {int(b.edges[0]): b for b in _blocks(m.weights_) if b.edges[0] not in touched}
        for m in (young, model)
    )
    assert before.keys() == after.keys()
    assert len(before) > 5
    for edge, block in before.items():
        for name in ("edges", "bias", "features", "counts", "columns", "values"):
            np.testing.assert_array_equal(getattr(after[edge], name), getattr(block, name))


@pytest.mark.parametrize("pruned_at", [0.1, 0.25])
def test_new_weights_are_pruned_as_the_old_ones_were(rows, pruned_at):
    """In ``fit`` or afterwards, whichever dropped more; weights that stay are not touched."""
    X, y = rows
    known = y < 30
    settings = {"C": 1.0, "weight_bits": 32, "prune_threshold": 0.15, "random_state": 0}
    model = TrellisClassifier(7, max_classes=K, **settings).fit(X[known], y[known])
    before = _values_by_edge(model.weights_)
    model.prune(threshold=pruned_at, bits=32)
    kept = _values_by_edge(model.weights_)
    model.add_classes(X[y < 31], y[y < 31])
    touched = np.concatenate([model.trellis_.vertex_edges(*v) for v in model.added_.vertices])
    after = _values_by_edge(model.weights_)
    anew = np.abs(np.concatenate([after[edge] for edge in after if edge in touched]))
    smallest = anew[anew > 0].min()
    threshold = max(0.15, pruned_at)
    assert threshold < smallest < 1.1 * threshold
    untouched = [edge for edge in after if edge not in touched]
    assert len(untouched) > 5
    for edge in untouched:
        np.testing.assert_array_equal(after[edge], kept[edge])
    assert sum(map(len, before.values())) >= sum(map(len, kept.values()))


def test_weights_that_stay_are_not_pruned_again(young, rows, tmp_path):
    model = copy_of(young, tmp_path)
    model.prune_threshold_ = 0.5  # more than many of its weights
    before = _values_by_edge(model.weights_)
    model.add_classes(*(each[rows[1] < 31] for each in rows))
    touched = np.concatenate([model.trellis_.vertex_edges(*v) for v in model.added_.vertices])
    after = _values_by_edge(model.weights_)
    untouched = [edge for edge in after if edge not in touched]
    assert min(np.abs(after[edge]).min(initial=1) for edge in untouched) < 0.4
    for edge in untouched:
        np.testing.assert_array_equal(after[edge], before[edge])


def _values_by_edge(weights):
    """Weights of each block, by its first edge."""
    return {int(block.edges[0]): block.values for block in _blocks(weights)}


def test_a_new_class_takes_a_path_beside_its_like(rows, tmp_path):
    """Classes 0 to 4 have words in common, and so on: the fifth joins the other four."""
    X, y = rows
    known = y % 5 != 4
    model = TrellisClassifier(7, max_classes=60, random_state=0).fit(X[known], y[known])
    model.add_classes(X, y)
    first = model.trellis_.path_vertices(model.assignment_.path_of_class)[:, 0]
    together = [first[k] in first[k - 4 : k] for k in range(4, K, 5)]
    assert np.mean(together) >= 0.75


def test_without_new_classes_nothing_changes(young, rows, tmp_path):
    X, y = rows
    model, known = copy_of(young, tmp_path), y < 30
    model.add_classes(X[known], y[known])
    assert len(model.added_.classes) == model.added_.n_blocks == 0
    assert bits(model) == bits(young)


def test_adding_is_the_same_for_any_number_of_threads(young, rows, tmp_path):
    one, two = copy_of(young, tmp_path), copy_of(young, tmp_path).set_params(n_jobs=2)
    assert bits(one.add_classes(*rows)) == bits(two.add_classes(*rows))


def test_texts_as_labels_stay_sorted(rows):
    X, y = rows
    names = np.array([f"class {k:02}" for k in range(K)])
    known = y % 2 == 0
    model = TrellisClassifier(7, max_classes=K, random_state=0).fit(X[known], names[y[known]])
    model.add_classes(X, names[y])
    np.testing.assert_array_equal(model.classes_, names)
    assert model.score(X, names[y]) > 0.9


# ---------------------------------------------------------------------- online


def test_partial_fit_takes_new_classes_on_the_way(rows):
    X, y = rows
    order = np.argsort(y // 10 * 100 + np.arange(len(y)) % 100, kind="stable")
    model = TrellisClassifier(7, learner=Arow(), max_classes=K, random_state=0)
    seen: set = set()
    for batch in np.array_split(order, 12):
        model.partial_fit(X[batch], y[batch])
        seen |= set(y[batch].tolist())
        assert list(model.classes_) == sorted(seen)
    np.testing.assert_array_equal(model.model_.class_sizes.values(K), np.bincount(y))
    for batch in np.array_split(np.random.default_rng(0).permutation(len(y)), 4):
        model.partial_fit(X[batch], y[batch])
    assert model.score(X, y) > 0.9
    paths = model.assignment_.path_of_class
    model.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.assignment_.path_of_class, paths)


# ---------------------------------------------------------------------- bad input


def refusal(call, *arguments):
    with pytest.raises(ValueError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_bad_input_is_refused_in_one_line(young, rows, tmp_path):
    X, y = rows
    model = copy_of(young, tmp_path)
    before = bits(model)
    more = np.where(y < 30, y, y + np.arange(len(y)) % 2 * 100)
    message = refusal(model.add_classes, X, more)
    assert message.startswith(
        "there is room for 10 further classes, and y has 20 that are new: fit"
    )
    old = y != 3
    assert "there are none of 3" in refusal(model.add_classes, X[old], y[old])
    assert "not in classes: 99" in refusal(model.remove_classes, [1, 99])
    assert (
        refusal(model.remove_classes, range(29))
        == "at least two classes must be left, but only 1 would be"
    )
    assert "X has 399 features" in refusal(model.add_classes, X[:, :399], y)
    assert bits(model) == before
    assert refusal(clone(young).set_params(max_classes=5).fit, X, y) == (
        "y has 40 classes, but max_classes is 5: raise it"
    )
    assert "max_classes must be" in refusal(clone(young).set_params(max_classes=1).fit, X, y)
    for settings in ({"training": "independent"}, {"decoding": "path_hinge"}):
        assert "max_classes needs training='local'" in refusal(
            clone(young).set_params(**settings).fit, X, y
        )
    paper = TrellisClassifier.paper(5, random_state=0).fit(X, y)
    assert "trained locally" in refusal(paper.remove_classes, [0])


def test_new_classes_whose_rows_count_for_nothing(rows, young, tmp_path):
    """The numbers of the classes are then others in the model than in the rows that count."""
    X, y = rows
    clf = copy_of(young, tmp_path)
    clf.add_classes(X, y, sample_weight=np.where(y == 32, 0.0, 1.0))
    counted = y != 32
    assert clf.score(X[counted], y[counted]) > 0.9
