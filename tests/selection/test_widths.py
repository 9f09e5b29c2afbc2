"""Width selection: the bound by brute force, the choice on made-up ladders, limits, Ctrl-C."""

import signal
import subprocess
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import clone

mpl.use("Agg")


import oracle
from xtrellis import LTLSClassifier, TrellisClassifier, fitting, select_slice_width
from xtrellis.fitting import fit_trellis
from xtrellis.graph import Trellis, minimum_distance
from xtrellis.selection import WidthTrial, default_slice_width
from xtrellis.selection.widths import _Climb, _ladder, near_best

PAPER = TrellisClassifier.paper(2, epochs=2, random_state=0)

LOCAL = TrellisClassifier(random_state=0)


def made_up(widths, values, sizes=None, criterion="bound"):
    """Trials whose criterion has these values."""
    blank = WidthTrial(2, 10, 1.0, 0.1, 1.0, 0.1, 1_000, 1.0)
    return [
        replace(blank, slice_width=width, model_bytes=size, **{criterion: value})
        for width, value, size in zip(widths, values, sizes or [1_000] * len(widths), strict=True)
    ]


def climb(trials, tolerance=0.02, max_bytes=None, criterion="bound"):
    """A climb that has been through these trials; the model of each is its width."""
    result = _Climb(criterion, tolerance, max_bytes)
    for trial in trials:
        result.add(trial, trial.slice_width)
    return result


# ---------------------------------------------------------------------- what is measured


def test_default_width():
    assert [default_slice_width(k) for k in (2, 3, 4, 5, 100, 101)] == [2, 2, 2, 3, 10, 11]
    assert default_slice_width(10**6) == 1_000
    assert default_slice_width(10**6 + 1) == 101
    assert default_slice_width(10**12) <= 1_000


@pytest.mark.parametrize(("estimator", "code"), [(PAPER, "independent"), (LOCAL, "local")])
def test_the_bound_is_that_of_equation_3(data, estimator, code):
    X, y = data
    selection = select_slice_width(X, y, estimator=estimator, widths=[2, 4, 7])
    for trial in selection.trials:
        width = trial.slice_width
        model = clone(estimator).set_params(slice_width=width).fit(X, y)
        margins = model.margins(X).astype(float)
        words = oracle.coding_matrix(30, width, code)[model.assignment_.path_of_class[y]]
        losses = oracle.LOSSES["squared_hinge"](words * margins)
        rho = minimum_distance(Trellis(30, width), code)
        assert trial.average_binary_loss == pytest.approx(losses.mean(), rel=1e-5)
        assert trial.bound == pytest.approx(losses.sum(axis=1).mean() / rho, rel=1e-5)
        assert trial.n_edges == len(oracle.graph_edges(30, width))
        assert trial.training_error == pytest.approx(1 - model.score(X, y))
        assert trial.training_error <= trial.bound
        assert trial.model_bytes == model.weights_.nbytes
        assert trial.fit_seconds > 0


def test_log_loss_of_training_rows_where_none_are_held_out(data):
    X, y = data
    selection = select_slice_width(X, y, estimator=PAPER, widths=[4])
    chance = selection.classifier.predict_proba(X)[np.arange(len(y)), y]
    (trial,) = selection.trials
    assert trial.log_loss == pytest.approx(-np.log2(chance).mean(), rel=1e-6)
    assert np.isnan(selection.classifier.held_out_loss_)


def test_log_loss_of_held_out_rows_bounds_their_error(data):
    selection = select_slice_width(*data, estimator=LOCAL, widths=[4])
    (trial,) = selection.trials
    assert trial.log_loss == selection.classifier.held_out_loss_
    assert np.isnan(clone(LOCAL).set_params(slice_width=4).fit(*data).held_out_loss_)
    # Rows that were trained on are far likelier than rows that were held out.
    assert trial.log_loss > 2 * trial.training_error
    stopping = TrellisClassifier(early_stopping=True, epochs=3, random_state=0)
    early = select_slice_width(*data, estimator=stopping, widths=[4]).classifier
    assert early.held_out_loss_ >= 1 - max(early.history_.validation_accuracy)


# ---------------------------------------------------------------------- the choice


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        ([8, 4, 2, 1], 16),
        ([8, 4, 5, 6], 4),
        ([8, 4, 3.99, 3.98], 4),  # falls by less than counts
        ([8, 4, 3.9, 3.8], 16),  # each step is small, together they are not
        ([8, 4, 4.3, 3.5], 16),  # over a bump
        ([1, 1, 1, 1], 2),
        ([0, 0, 1, 1], 2),
        ([np.nan, 4, 4, 5], 4),
        ([np.inf, np.inf, np.inf, np.inf], 2),
    ],
)
def test_the_choice_is_where_the_criterion_stops_falling(values, chosen):
    for criterion in ("bound", "log_loss"):
        trials = made_up([2, 4, 8, 16], values, criterion=criterion)
        assert near_best(trials, criterion, 0.02)[0].slice_width == chosen
        result = climb(trials, criterion=criterion).finish()
        assert (result.slice_width, result.classifier) == (chosen, chosen)


def test_the_climb_ends_after_two_widths_without_a_fall():
    widths = [2, 4, 8, 16]
    misses = [climb(made_up(widths[:n], [8, 4, 4.3, 3.99][:n])).misses for n in range(5)]
    assert misses == [0, 0, 0, 1, 2]
    slowly = [100, 99, 98.5, 97.5]  # 1.5 percent below the last fall, then 2.5
    assert [climb(made_up(widths[:n], slowly[:n])).misses for n in range(1, 5)] == [0, 1, 2, 0]


def test_models_that_cannot_be_chosen_are_let_go():
    trials = made_up([2, 4, 8, 16], [4, 3.97, 3.92, 1])
    assert set(climb(trials[:3]).models) == {4, 8}
    assert set(climb(trials).models) == {16}


def test_the_default_ladder_ends_early(data, monkeypatch):
    X, y = data
    bounds = iter([4.0, 2.0, 2.5, 3.0])
    measure = sys.modules["xtrellis.selection.widths"]._measure
    monkeypatch.setattr(
        "xtrellis.selection.widths._measure",
        lambda *given: replace(measure(*given), bound=next(bounds)),
    )
    monkeypatch.setattr("xtrellis.selection.widths._ladder", lambda *given: [2, 3, 4, 5, 6])
    selection = select_slice_width(X, y, estimator=PAPER)
    assert [trial.slice_width for trial in selection.trials] == [2, 3, 4, 5]
    assert selection.slice_width == 3
    assert not selection.interrupted


@pytest.mark.parametrize(
    ("n_classes", "expected"),
    [
        (2, [2]),
        (3, [2]),
        (5, [2, 3]),
        (150, [2, 4, 7, 13]),
        (1_597, [2, 4, 7, 12, 22, 40]),
        (10**6, [2, 4, 8, 16, 32, 63, 126, 251, 501, 1000]),
    ],
)
def test_default_ladder(n_classes, expected):
    assert _ladder(None, n_classes, 1_000, "local") == expected


def test_default_ladder_of_independent_training_minds_memory():
    local = _ladder(None, 31_102, 10**6, "local")
    independent = _ladder(None, 31_102, 10**6, "independent")
    assert independent == local[: len(independent)]
    assert 1 < len(independent) < len(local)
    assert Trellis(31_102, independent[-1]).n_edges * 4e6 < 4 * 2**30
    assert _ladder(None, 31_102, 10**9, "independent") == [2]


def test_same_seed_same_choice_and_bits(data):
    def select(seed, *settings):
        model = TrellisClassifier(**dict(settings))
        return select_slice_width(X, y, estimator=model, widths=[2, 5], random_state=seed)

    X, y = data
    chosen = select(3)
    for again in (select(3, ("n_jobs", 2)), select(None, ("random_state", 3))):
        assert again.slice_width == chosen.slice_width
        assert [replace(trial, fit_seconds=0) for trial in again.trials] == [
            replace(trial, fit_seconds=0) for trial in chosen.trials
        ]
    alone = TrellisClassifier(chosen.slice_width, random_state=3).fit(X, y)
    np.testing.assert_array_equal(alone.predict_proba(X), chosen.classifier.predict_proba(X))


def test_one_width_is_the_choice(data):
    selection = select_slice_width(*data, estimator=LOCAL, widths=(5,))
    assert selection.slice_width == 5
    assert selection.criterion == "log_loss"
    assert selection.classifier.score(*data) > 0.9


def test_the_criterion_suits_the_training(data, ladder):
    X, y = data
    assert ladder.criterion == "bound"
    chosen = select_slice_width(X, y, estimator=PAPER, widths=[2, 6], criterion="log_loss")
    assert chosen.criterion == "log_loss"


def test_given_widths_are_all_tried_in_order(data):
    widths = np.array([9, 2, 5])
    found = select_slice_width(*data, estimator=PAPER, widths=widths, tolerance=0.9)
    assert [trial.slice_width for trial in found.trials] == [2, 5, 9]
    assert found.slice_width == 2


def test_widths_above_the_number_of_classes_mean_that_number(data):
    found = select_slice_width(*data, estimator=PAPER, widths=[2, 31, 90])
    assert [trial.slice_width for trial in found.trials] == [2, 30]


# ---------------------------------------------------------------------- limits


def test_max_bytes_leaves_out_larger_models(data, ladder):
    sizes = {trial.slice_width: trial.model_bytes for trial in ladder.trials}
    assert ladder.slice_width == 6
    found = select_slice_width(*data, estimator=PAPER, widths=[2, 3, 6], max_bytes=sizes[3])
    assert found.slice_width == 3
    assert found.classifier.weights_.nbytes <= sizes[3]
    assert len(found.trials) == 3
    trials = made_up([2, 4, 8], [4, 2, 1], sizes=[100, 300, 200])  # wider need not be larger
    assert climb(trials, max_bytes=250).finish().slice_width == 8


def test_max_bytes_that_no_model_meets(data):
    X, y = data
    message = r"max_bytes is 10,000, but the smallest model found, of slice_width 2, takes \d"
    with pytest.raises(ValueError, match=message):
        select_slice_width(X, y, estimator=PAPER, widths=[2, 3], max_bytes=10_000)
    message = r"max_bytes is 50, but slice_width 2 takes at least \d+ bytes"
    with pytest.raises(ValueError, match=message):
        select_slice_width(X, y, estimator=PAPER, widths=[2, 3], max_bytes=50)


def test_a_width_that_certainly_is_too_large_is_not_trained(data):
    X, y = data
    X = X[:, :1]  # next to nothing but biases
    found = select_slice_width(X, y, estimator=PAPER, widths=[2, 30], max_bytes=600)
    assert [trial.slice_width for trial in found.trials] == [2]
    assert found.skipped == {30: "takes at least 732 bytes, above max_bytes"}
    assert "30 skipped: takes at least 732 bytes" in str(found)


def test_a_width_that_there_is_no_memory_for_is_skipped(data, monkeypatch):
    X, y = data

    def short_of_memory(estimator, *given, **options):
        if estimator.slice_width == 6:
            raise MemoryError("there is no memory left")
        return fit_trellis(estimator, *given, **options)

    monkeypatch.setattr("xtrellis.fitting.fit_trellis", short_of_memory)
    found = select_slice_width(X, y, estimator=PAPER, widths=[2, 6])
    assert found.slice_width == 2
    assert found.skipped == {6: "there is no memory left"}
    with pytest.raises(MemoryError, match="no memory left"):
        select_slice_width(X, y, estimator=PAPER, widths=[6])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"widths": []}, "widths must name at least one width"),
        ({"widths": [1, 4]}, "each of widths must be an integer of at least 2, got 1"),
        ({"widths": [4, 2.5]}, "each of widths must be an integer of at least 2, got 2.5"),
        ({"widths": ["wide"]}, "each of widths must be an integer of at least 2, got 'wide'"),
        ({"widths": [4, 2, 4]}, "widths must differ, got 4 more than once"),
        ({"widths": 4}, "widths must be a list of integers, got 4"),
        ({"widths": "auto"}, "widths must be a list of integers, got 'auto'"),
        ({"max_bytes": 0}, "max_bytes must be a positive number of bytes, got 0"),
        ({"max_bytes": "1 GB"}, "max_bytes must be a positive number of bytes, got '1 GB'"),
        ({"tolerance": -0.1}, "tolerance must be at least 0 and below 1, got -0.1"),
        ({"criterion": "test"}, "criterion must be 'auto', 'bound' or 'log_loss', got 'test'"),
        ({"estimator": LTLSClassifier()}, "estimator must be a TrellisClassifier, got LTLS"),
        ({"estimator": TrellisClassifier(C=-1.0)}, "C must be positive"),
    ],
)
def test_bad_input(data, given, message):
    with pytest.raises(ValueError, match=message) as caught:
        select_slice_width(*data, **given)
    assert "\n" not in str(caught.value)


def test_bad_rows():
    with pytest.raises(ValueError, match="at least two classes"):
        select_slice_width(np.eye(3), [1, 1, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        select_slice_width(np.eye(3), [1, 2])


# ---------------------------------------------------------------------- Ctrl-C


def interrupt_at(width, monkeypatch):
    """Send a real SIGINT to this process while a width is trained."""

    def interrupted(model, *given):
        if model.trellis.slice_width == width:
            signal.raise_signal(signal.SIGINT)
        return training_error(model, *given)

    training_error = fitting._training_error
    monkeypatch.setattr("xtrellis.fitting._training_error", interrupted)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_keeps_what_is_done(data, monkeypatch, n_jobs):
    interrupt_at(6, monkeypatch)
    model = clone(LOCAL).set_params(n_jobs=n_jobs)
    with pytest.warns(UserWarning, match="interrupted: slice_width is chosen among 2, 4"):
        selection = select_slice_width(*data, estimator=model, widths=[2, 4, 6, 8])
    assert selection.interrupted
    assert [trial.slice_width for trial in selection.trials] == [2, 4]
    assert selection.slice_width in (2, 4)
    assert selection.classifier.score(*data) > 0.8
    assert "interrupted" in selection.table()


def test_an_interrupt_before_the_first_width_is_done(data, monkeypatch):
    interrupt_at(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        select_slice_width(*data, estimator=LOCAL, widths=[2, 4])
    model = clone(LOCAL).set_params(slice_width="auto")
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert not hasattr(model, "classes_")


def test_an_interrupt_with_nothing_small_enough(data, monkeypatch):
    interrupt_at(4, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        select_slice_width(*data, estimator=LOCAL, widths=[2, 4], max_bytes=10_000)


CHILD = """
import signal, threading, warnings
import numpy as np
from sklearn.svm import LinearSVC
from xtrellis import TrellisClassifier, select_slice_width

class Slow(LinearSVC):
    def fit(self, X, y):
        global edges
        edges += 1
        if edges > {after}:
            print("waiting", flush=True)
            threading.Event().wait()
        return super().fit(X, y)

edges = 0
warnings.simplefilter("ignore")
X, y = np.tile(np.eye(9), (3, 1)), list(range(9)) * 3
model = TrellisClassifier(learner=Slow(), training="independent", calibration=0.0, n_jobs={n_jobs})
selection = select_slice_width(X, y, estimator=model, widths=[2, 3])
print([trial.slice_width for trial in selection.trials], selection.interrupted)
"""


def test_ctrl_c_from_outside():
    code = CHILD.format(after=Trellis(9, 2).n_edges, n_jobs=1)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "waiting\n"
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=120)[0] == "[2] True\n"
    assert child.returncode == 0
