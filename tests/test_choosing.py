"""Choosing settings in ``fit``: which are tried, what is kept, and that it is the best of them."""

import numpy as np
import pytest
from scipy import sparse

from xtrellis import TrellisClassifier, choosing, fitting, load_model
from xtrellis.selection.settings import Trial, choose


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


def test_orders_are_tried_at_one_c_and_then_others(fitted):
    trials = fitted.selection_.trials
    assert [(each.order, each.C) for each in trials[:2]] == [("by_rarity", 1.0), ("plain", 1.0)]
    assert trials[0].log_loss != trials[1].log_loss  # the orders differ
    assert {each.order for each in trials[2:]} == {fitted.selection_.order}
    assert trials[2].C == 3.0


def test_the_model_is_trained_with_what_was_chosen(rows, fitted):
    chosen = fitted.selection_
    assert fitted.trellis_.slice_width == chosen.slice_width
    narrow = [each for each in chosen.trials if each.slice_width == chosen.slice_width]
    first = narrow[choose(narrow[:2], 150)] if len(narrow) > 1 else narrow[0]
    assert first.order == chosen.order
    same = TrellisClassifier(chosen.slice_width, C=chosen.C, random_state=0).fit(*rows)
    assert not hasattr(same, "selection_")
    if chosen.order == "by_rarity":  # which is the order where none is chosen
        assert np.mean(same.predict(rows[0]) == fitted.predict(rows[0])) > 0.95


def test_the_choice_is_in_the_model_file(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert load_model(tmp_path / "model").selection_ == fitted.selection_


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([1.0, 0.9, 0.8, 0.7], [3.0, 10.0, 30.0]),
        ([1.0, 0.9, 0.8999], [3.0, 10.0]),  # hardly better: 30 would be no better, and slow
        ([1.0, 1.1, 0.9], [3.0, 0.3]),
        ([1.0, 0.999], [3.0]),
    ],
)
def test_c_climbs_while_the_log_loss_falls(monkeypatch, losses, expected):
    left = iter(losses)

    def try_out(engine, assignment, order, C):
        trial = Trial(order, C, 8, next(left), 0.5, 0.9)
        return choosing.Candidate(engine, type("M", (), {"assignment": None}), None, trial)

    monkeypatch.setattr(choosing, "_try_out", try_out)
    contest = choosing.Contest(1_000)
    contest.enter(None, None, "plain", 1.0)
    choosing._climb(contest)
    assert [each.C for each in contest.trials[1:]] == expected


def test_wider_slices_are_kept_where_they_gain(monkeypatch, rows):
    """The default width of 60 classes is 8; the next, 16, is not above a quarter of them."""
    tried, chosen = [], []

    class EnoughError(Exception):
        pass

    def try_out(engine, assignment, order, C):
        width = engine.trellis.slice_width
        tried.append(width)
        accuracy = {8: 0.5, 15: 0.6}[width]
        trial = Trial(order, C, width, 1 - accuracy, accuracy, 0.9)
        return choosing.Candidate(engine, None, engine.learner, trial)

    def select(engine):
        chosen.append(choosing.select_settings(engine))
        raise EnoughError

    monkeypatch.setattr(choosing, "_try_out", try_out)
    monkeypatch.setattr(choosing, "_climb", lambda contest: None)
    monkeypatch.setattr(choosing, "WIDER", (15 / 8,))
    monkeypatch.setattr(fitting, "choose_settings", select)
    with pytest.raises(EnoughError):
        TrellisClassifier(random_state=0).fit(*rows)
    assert tried == [8, 8, 15]
    candidate, selection = chosen[0]
    assert candidate.trial.slice_width == selection.slice_width == 15


def test_many_rows_are_tried_on_a_part_of_the_classes(monkeypatch, rows, fitted):
    """Settings of the sample; a model of all classes, with the width in proportion."""
    monkeypatch.setattr(choosing, "_MANY_ROWS", 1_100)
    clf = TrellisClassifier(random_state=0).fit(*rows)
    chosen = clf.selection_
    assert 30 < chosen.n_classes < 45
    assert fitted.selection_.n_classes == 60
    assert chosen.trials[0].slice_width == 7  # the default for so few
    assert chosen.slice_width == clf.trellis_.slice_width >= 8
    assert len(clf.classes_) == 60
    assert clf.score(*rows) > fitted.score(*rows) - 0.02


def test_a_width_that_was_asked_for_stays(rows):
    clf = TrellisClassifier(5, random_state=0).fit(*rows)
    assert {each.slice_width for each in clf.selection_.trials} == {5}
    assert clf.trellis_.slice_width == 5


def test_rows_that_must_be_trained_on_are_not_held_out_of_a_sample(monkeypatch, rows):
    """Descriptions of classes, say: whoever tries settings on them learns nothing about texts."""
    X, y = rows
    allowed, seen = np.arange(len(y)) % 25 > 5, []

    def spy(engine):
        seen.append(engine)
        return select_settings(engine)

    select_settings = choosing.select_settings
    monkeypatch.setattr(choosing, "select_settings", spy)
    monkeypatch.setattr(choosing, "_MANY_ROWS", 1_100)
    TrellisClassifier(7, calibration=0.2, random_state=0).fit(X, y, may_hold_out=allowed)
    small = seen[0]
    assert len(small.data.y_encoded) < len(y)
    assert small.held_out.any()
    assert small.data.may_hold_out[small.held_out].all()
