"""Measures agree with their definitions, and with scikit-learn where it has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from xtrellis.evaluation import SizeGroup, curve, macro_f1
from xtrellis.evaluation.measures import (
    bins_of,
    level_accuracies,
    log_loss,
    size_groups,
    worst_confusions,
)

pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=60)


@given(pairs)
def test_macro_f1_is_scikit_learns(rows):
    y, predicted = map(np.array, zip(*rows, strict=True))
    assert macro_f1(y, predicted) == pytest.approx(f1_score(y, predicted, average="macro"))
    names = np.array(["a", "bb", "ccc", "d", "e", "f", "g"])
    assert macro_f1(names[y], names[predicted]) == pytest.approx(macro_f1(y, predicted))


def test_macro_f1_keeps_types_apart():
    """The label 7 is not the label "7", and a text for "none of these" is a class of its own."""
    y = np.array([7, 7, 8, 8])
    answers = np.array([7, "none", 8, "none"], object)
    assert macro_f1(y, answers) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert macro_f1(y, y.astype(str)) == 0
    assert macro_f1(y, y.astype(float)) == 1


def test_log_loss_divides_what_is_left_among_unlisted_classes():
    shares = np.array([[0.5, 0.3], [0.6, 0.2], [0.9, 0.1]])
    hits = np.array([[False, True], [False, False], [False, False]])
    known = np.array([True, True, False])
    expected = -np.mean([np.log(0.3), np.log(0.2 / 4)])
    assert log_loss(hits, shares, known, 6) == pytest.approx(expected)
    assert np.isnan(log_loss(hits, shares, np.zeros(3, bool), 6))


def test_log_loss_does_not_depend_on_how_many_classes_are_listed():
    rng = np.random.default_rng(0)
    shares = -np.sort(-rng.dirichlet(np.full(60, 0.2), 100), axis=1)
    hits = np.arange(60) == rng.integers(0, 60, 100)[:, np.newaxis]
    known = np.ones(100, bool)
    assert log_loss(hits, shares, known, 90) == log_loss(hits[:, :20], shares[:, :20], known, 90)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=50))
def test_the_curve_is_the_accuracy_of_the_most_confident_rows(rows):
    right, confidence = (np.array(each) for each in zip(*rows, strict=True))
    points = curve(right, confidence)
    assert points[0].share == 1
    assert points[0].accuracy == pytest.approx(right.mean())
    assert points[0].min_probability == confidence.min()
    for point in points:
        best = np.argsort(-confidence, kind="stable")[: round(point.share * len(right))]
        assert point.accuracy == pytest.approx(right[best].mean())
        assert point.min_probability == confidence[best].min()


def test_bins_hold_all_rows():
    rng = np.random.default_rng(0)
    confidence = np.append(rng.uniform(size=500), [0.0, 1.0])
    right = rng.uniform(size=502) < confidence
    bins = bins_of(right, confidence)
    assert sum(each.n_rows for each in bins) == 502
    assert np.dot([b.n_rows for b in bins], [b.accuracy for b in bins]) == pytest.approx(
        right.sum()
    )
    assert bins_of(right[:1], confidence[:1])[0].n_rows == 1


# ---------------------------------------------------------------------- sizes of classes


def test_thirds_of_the_rows():
    sizes = np.array([100, 90] + [30] * 4 + [5] * 40)
    known = np.append(np.arange(46), -1)  # the last is of no known class
    right = np.array([True, True, True, False, True, False] + [False] * 41)
    head, middle, tail = size_groups(sizes, known, right)
    assert head == SizeGroup("head", 90, 100, 2, 2, 1.0)
    assert middle == SizeGroup("middle", 30, 30, 4, 4, 0.5)
    assert tail == SizeGroup("tail", 5, 5, 40, 40, 0.0)


@pytest.mark.parametrize("sizes", [np.full(7, 10), np.array([4, 0, 4])])
def test_classes_of_one_size_are_one_group(sizes):
    groups = size_groups(sizes, np.arange(len(sizes)), np.ones(len(sizes), bool))
    assert groups[0].accuracy == 1
    assert sum(group.n_classes for group in groups) == len(sizes)


@given(st.lists(st.integers(0, 200), min_size=2, max_size=40).filter(any))
def test_every_class_is_in_one_group(sizes):
    sizes = np.array(sizes)
    groups = size_groups(sizes, np.arange(len(sizes)), np.ones(len(sizes), bool))
    assert sum(group.n_classes for group in groups) == len(sizes)
    assert sum(group.n_rows for group in groups) == len(sizes)
    if len(groups) > 1:
        assert groups[0].least > groups[-1].most
        assert sizes[sizes >= groups[0].least].sum() >= sizes.sum() / 3


# ---------------------------------------------------------------------- errors and levels


def test_confusions_are_counted_and_shown():
    y = np.array(["a"] * 5 + ["b"] * 3 + ["c"])
    predicted = np.array(["b", "b", "b", "b", "c", "b", "a", "a", "c"])
    texts = [f"text {i}" for i in range(9)]
    first, second, third = worst_confusions(texts, y, predicted)
    assert (first.label, first.predicted, first.n_rows, first.n_of_label) == ("a", "b", 4, 5)
    assert first.examples == ("text 0", "text 1", "text 2")
    assert (second.label, second.predicted, second.n_rows) == ("b", "a", 2)
    assert (third.label, third.predicted, third.examples) == ("a", "c", ("text 4",))
    assert worst_confusions(np.eye(9), y, predicted)[0].examples == (0, 1, 2)
    assert worst_confusions(texts, y, y) == ()


def test_levels_of_labels():
    classes = np.array(["a/b/c", "a/b/d", "a/e", "f/g/h"])
    y = classes[[0, 1, 2, 3]]
    predicted = classes[[1, 2, 2, 0]]
    first, second, third = level_accuracies(y, predicted, classes, None)
    assert (first.n_classes, first.accuracy) == (2, 0.75)
    assert (second.n_classes, second.accuracy) == (3, 0.5)
    assert (third.n_classes, third.accuracy) == (4, 0.25)
    assert level_accuracies(y, predicted, classes, "") == ()
    assert level_accuracies(np.array([1]), np.array([1]), np.array([1, 2]), None) == ()
    dotted = np.array(["1.1", "1.2", "2.1"])
    assert level_accuracies(dotted, dotted[[1, 1, 2]], dotted, None) == ()
    assert level_accuracies(dotted, dotted[[1, 1, 2]], dotted, ".")[0].accuracy == 1
