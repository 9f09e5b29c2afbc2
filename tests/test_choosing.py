"""Choosing settings in ``fit``: which are tried, what is kept, and that it is the best of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from xtrellis import TrellisClassifier, choosing, fitting, load_model
from xtrellis import engine as engine_module
from xtrellis.command.inspection import _trials
from xtrellis.graph import Trellis
from xtrellis.learning import LinearSVM
from xtrellis.selection import default_width
from xtrellis.selection.settings import ORDERS, Trial


@pytest.fixture(scope="module", autouse=True)
def many():
    """Sixty classes are treated as if they were many."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(default_width, "FEW_CLASSES", 50)
        yield


@pytest.fixture(scope="module")
def rows():
    """Sixty classes of 25 rows: words of their own, words of a neighbour, and noise."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 25)
    own = 5 * y[:, np.newaxis] + rng.integers(0, 7, (len(y), 4))
    words = np.hstack([own, rng.integers(0, 400, (len(y), 5))])
    X = sparse.csr_matrix((np.ones(words.size), (np.repeat(np.arange(len(y)), 9), words.ravel())))
    return X, y


@pytest.fixture(scope="module")
def fitted(rows):
    return TrellisClassifier(random_state=0).fit(*rows)


@pytest.fixture(scope="module")
def engine(rows):
    """What ``fit`` chooses settings with."""

    class EnoughError(Exception):
        pass

    def take(engine):
        taken.append(engine)
        raise EnoughError

    taken, clf = [], TrellisClassifier(random_state=0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fitting, "choose_settings", take)
        with pytest.raises(EnoughError):
            clf.fit(*rows)
    return taken[0]


def trials_with(figures):
    """In place of training: candidates with given log losses and accuracies, by their width."""

    def try_out(engine, assignment, order, C):
        width = engine.trellis.slice_width
        trial = Trial(order, C, width, *figures[width], 0.9)
        model = SimpleNamespace(assignment=assignment)
        return choosing.Candidate(engine, model, engine.learner, trial)

    return try_out


def test_orders_are_tried_at_one_c_and_then_others(fitted):
    trials = fitted.selection_.trials
    assert [(each.order, each.C) for each in trials[:2]] == [("plain", 1.0), ("by_rarity", 1.0)]
    assert trials[0].log_loss != trials[1].log_loss  # the orders differ
    assert {each.order for each in trials[2:]} == {fitted.selection_.order}
    assert trials[2].C == 3.0


@pytest.mark.parametrize(("order", "C"), [("by_rarity", 0.3), ("plain", 3.0)])
def test_the_model_is_trained_with_what_was_chosen(monkeypatch, rows, order, C):
    """Whatever held-out rows prefer: the order of the classes, C, and all of the rows."""

    def trial_of(each, c, judged):
        loss = 0.5 + 0.1 * abs(np.log(c / C)) + (each != order)
        return Trial(each, c, judged.model.trellis.slice_width, loss, 1 - loss / 2, 1.0)

    def spy(engine, rows, learner, report):
        trained.append((engine, rows, learner))
        return train(engine, rows, learner, report)

    trained, train = [], engine_module.Engine.train
    monkeypatch.setattr(choosing, "trial_of", trial_of)
    monkeypatch.setattr(engine_module.Engine, "train", spy)
    clf = TrellisClassifier(7, random_state=0).fit(*rows)
    assert (clf.selection_.order, clf.selection_.C) == (order, C)
    ((engine, training, learner),) = trained
    assert learner == LinearSVM(C=C, unit=learner.unit)  # and not as rough as in the trials
    assert not training.held_out.any()
    paths = {each: engine.assignment(each).path_of_class for each in ORDERS}
    assert not np.array_equal(paths["by_rarity"], paths["plain"])
    np.testing.assert_array_equal(clf.assignment_.path_of_class, paths[order])
    np.testing.assert_array_equal(np.sort(training.paths), np.sort(paths[order][rows[1]]))


def test_the_choice_is_in_the_model_file(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert load_model(tmp_path / "model").selection_ == fitted.selection_


ALIKE = [0.5] * 4


@pytest.mark.parametrize(
    ("losses", "accuracies", "expected"),
    [
        ([1.0, 0.9, 0.8, 0.7], ALIKE, [3.0, 10.0, 30.0]),
        ([1.0, 0.9, 0.8999], ALIKE, [3.0, 10.0]),  # hardly better: 30 would be no better, and slow
        ([1.0, 1.1, 0.9], ALIKE, [3.0, 0.3]),
        ([1.0, 0.999], ALIKE, [3.0]),
        ([1.0, 0.999, 1.005, 1.02], [0.5, 0.53, 0.55, 0.55], [3.0, 10.0, 30.0]),  # more are right
        ([1.0, 1.1, 0.9], [0.5, 0.6, 0.5], [3.0, 0.3]),  # but not as sure
    ],
)
def test_c_climbs_while_held_out_rows_gain(monkeypatch, losses, accuracies, expected):
    left = iter(zip(losses, accuracies, strict=False))

    def try_out(engine, assignment, order, C):
        trial = Trial(order, C, 8, *next(left), 0.9)
        return choosing.Candidate(engine, type("M", (), {"assignment": None}), None, trial)

    monkeypatch.setattr(choosing, "_try_out", try_out)
    contest = choosing.Contest(1_000)
    contest.enter(None, None, "plain", 1.0)
    choosing._climb(contest)
    assert [each.C for each in contest.trials[1:]] == expected


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({8: (0.5, 0.5), 10: (0.4, 0.6), 14: (0.4, 0.6)}, 10),
        ({8: (0.5, 0.5), 10: (0.5, 0.51), 14: (0.4, 0.6)}, 14),  # only the widest clearly gains
        ({8: (0.5, 0.5), 10: (0.4, 0.6), 14: (0.3, 0.7)}, 14),
        ({8: (0.5, 0.5), 10: (0.4, 0.6), 14: (0.5, 0.5)}, 10),
        ({8: (0.5, 0.5), 10: (0.4, 0.51), 14: (0.4, 0.51)}, 8),  # which may be chance
        ({8: (0.5, 0.5), 10: (0.5, 0.51), 14: (0.6, 0.6)}, 8),  # more accurate, but less sure
    ],
)
def test_wider_slices_are_kept_where_they_gain(monkeypatch, engine, figures, expected):
    """Log loss and accuracy by width. The default width of 60 classes is 8."""
    monkeypatch.setattr(choosing, "_try_out", trials_with(figures))
    monkeypatch.setattr(choosing, "_climb", lambda contest: None)
    monkeypatch.setattr(engine_module, "WIDER", (1.25, 1.75))
    candidate, selection = choosing.select_settings(engine)
    assert [each.slice_width for each in selection.trials] == [8, 8, 10, 14]
    assert candidate.trial.slice_width == selection.slice_width == expected
    assert candidate.engine.trellis.slice_width == expected


@pytest.mark.parametrize("wider", [(0.6, 0.6), (0.5, 0.5), (0.4, 0.49)])
def test_slices_get_no_wider_if_twice_the_width_is_no_better(monkeypatch, engine, wider):
    monkeypatch.setattr(choosing, "_try_out", trials_with({8: (0.5, 0.5), 10: wider}))
    monkeypatch.setattr(choosing, "_climb", lambda contest: None)
    monkeypatch.setattr(engine_module, "WIDER", (1.25, 1.75))
    candidate, selection = choosing.select_settings(engine)
    assert [each.slice_width for each in selection.trials] == [8, 8, 10]
    assert candidate.trial.slice_width == 8


def test_no_slice_is_wider_than_a_quarter_of_the_classes(monkeypatch, engine):
    assert engine.wider == []  # 16 is more than 15
    monkeypatch.setattr(engine_module, "WIDER", (1.5, 1.875, 2))
    assert engine.wider == [12, 15]


def test_a_selection_counts_classes_and_not_paths(monkeypatch, engine):
    monkeypatch.setattr(choosing, "_try_out", trials_with({8: (0.5, 0.5)}))
    roomy = replace(engine, trellis=Trellis(63, 8), assignments={})
    assert choosing.select_settings(roomy)[1].n_classes == 60


def test_many_rows_are_tried_on_a_part_of_the_classes(monkeypatch, rows, fitted):
    """Settings of the sample; a model of all classes, with the width in proportion."""
    monkeypatch.setattr(engine_module, "_MANY_ROWS", 1_100)
    clf = TrellisClassifier(random_state=0).fit(*rows)
    chosen = clf.selection_
    assert 30 < chosen.n_classes < 45
    assert fitted.selection_.n_classes == 60
    assert chosen.trials[0].slice_width == 7  # the default for so few
    assert chosen.slice_width == clf.trellis_.slice_width >= 8
    assert len(clf.classes_) == 60
    assert clf.score(*rows) > fitted.score(*rows) - 0.02


@pytest.mark.parametrize(("much", "tolerance"), [(10**9, 0.03), (10, 0.1)])
def test_very_many_products_are_trained_less_precisely(monkeypatch, rows, much, tolerance):
    monkeypatch.setattr(engine_module, "_MANY_ROWS", 1_100)
    monkeypatch.setattr(choosing, "_MUCH_WORK", much)
    learners, train = [], engine_module.Engine.train
    monkeypatch.setattr(
        engine_module.Engine, "train", lambda *given: learners.append(given[2]) or train(*given)
    )
    TrellisClassifier(random_state=0).fit(*rows)
    assert [each.tolerance for each in learners] == [tolerance]


@pytest.mark.parametrize("n_rows", [10_000, 1_100])
def test_few_classes_are_told_apart_by_one_svm_each(monkeypatch, rows, n_rows):
    """Then only C is chosen, on some of the classes if there are many rows."""
    monkeypatch.setattr(default_width, "FEW_CLASSES", 60)
    monkeypatch.setattr(engine_module, "_MANY_ROWS", n_rows)
    clf = TrellisClassifier(random_state=0).fit(*rows)
    assert clf.trellis_.slice_width == clf.selection_.slice_width == 60
    trials = clf.selection_.trials
    assert {each.order for each in trials} == {"plain"}
    assert {each.slice_width for each in trials} == {clf.selection_.n_classes}
    assert (clf.selection_.n_classes < 60) == (n_rows < 1_500)
    assert _trials(clf.selection_, 60).count("<- chosen") == 1
    assert TrellisClassifier(7, random_state=0).fit(*rows).trellis_.slice_width == 7
    for other in ({"learner": "arow"}, {"training": "independent"}, {"max_classes": 60}):
        assert TrellisClassifier(random_state=0, **other).fit(*rows).trellis_.slice_width == 8


def test_a_width_that_was_asked_for_stays(rows):
    clf = TrellisClassifier(5, random_state=0).fit(*rows)
    assert {each.slice_width for each in clf.selection_.trials} == {5}
    assert clf.trellis_.slice_width == 5


def drowned_rows(n_classes=1500):
    """Four rows of each class; words of a class, of five classes, and many that are frequent."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 4)
    own = 4 * y[:, np.newaxis] + rng.integers(0, 4, (len(y), 2))
    shared = 4 * n_classes + 6 * (y[:, np.newaxis] // 5) + rng.integers(0, 6, (len(y), 2))
    frequent = 6 * n_classes + np.minimum(rng.zipf(1.3, (len(y), 4)), 500)
    words = np.hstack([own, shared, frequent])
    values = np.tile(np.float32([2, 2, 2, 2, 1, 1, 1, 1]), len(y))
    return sparse.csr_matrix((values, (np.repeat(np.arange(len(y)), 8), words.ravel()))), y


def test_an_order_that_means_nothing_to_rows_is_not_the_usual_one(monkeypatch):
    """The words that many classes have drown the few by which classes are alike."""
    X, y = drowned_rows()
    whole = TrellisClassifier(random_state=0).fit(X, y).selection_
    assert [each.order for each in whole.trials[:2]] == ["plain", "by_rarity"]
    assert whole.order == "by_rarity"  # trials on all classes show it
    monkeypatch.setattr(engine_module, "_MANY_ROWS", 2_000)
    some = TrellisClassifier(random_state=0).fit(X, y).selection_
    assert [each.order for each in some.trials[:2]] == ["by_rarity", "plain"]
    assert some.order == "by_rarity"
    aside = np.arange(len(y)) % 4 == 3  # a number for C leaves nothing to try
    given = TrellisClassifier(C=3.0, random_state=0).fit(X[~aside], y[~aside])
    monkeypatch.setattr(engine_module, "MEANT", 0.0)
    plain = TrellisClassifier(C=3.0, random_state=0).fit(X[~aside], y[~aside])
    assert given.score(X[aside], y[aside]) > plain.score(X[aside], y[aside]) + 0.01
    blind = TrellisClassifier(random_state=0).fit(X, y).selection_
    assert blind.trials[0].order == "plain"


def test_settings_are_tried_on_fewer_rows_where_they_have_many_values():
    assert engine_module._share_tried(100_000, 1_000_000) == 0.1  # 10,000 rows
    assert engine_module._share_tried(100_000, 8_000_000) == pytest.approx(1 / 16)  # 500,000 values
    assert (
        engine_module._share_tried(100_000, 40_000_000) == 0.05
    )  # 5,000 rows, however many values
    assert engine_module._share_tried(4_000, 2_000_000) >= 1


def test_rows_that_must_be_trained_on_are_not_held_out_of_a_sample(monkeypatch, rows):
    """Descriptions of classes, say: whoever tries settings on them learns nothing about texts."""
    X, y = rows
    allowed, seen = np.arange(len(y)) % 25 > 5, []

    def spy(engine):
        seen.append(engine)
        return select_settings(engine)

    select_settings = choosing.select_settings
    monkeypatch.setattr(choosing, "select_settings", spy)
    monkeypatch.setattr(engine_module, "_MANY_ROWS", 1_100)
    TrellisClassifier(7, calibration=0.2, random_state=0).fit(X, y, may_hold_out=allowed)
    small = seen[0]
    assert len(small.data.y_encoded) < len(y)
    assert small.held_out.any()
    assert small.data.may_hold_out[small.held_out].all()
