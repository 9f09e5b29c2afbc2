"""Progress bars say what is known, and nothing that is not."""

import time
from types import SimpleNamespace

import pytest

from xtrellis._progress import row_progress, training_progress, waiting, width_progress


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    """Standard error as a wide terminal, as far as Rich is concerned."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")


def test_no_loss_is_shown_before_one_is_known(capsys):
    with training_progress(1):
        pass
    shown = capsys.readouterr().err
    assert "training" in shown
    assert "100 %" in shown
    assert "loss" not in shown
    assert "nan" not in shown


def test_loss_and_share_are_shown(capsys):
    with training_progress(1) as report:
        report(0.25, 0.5)
        report(0.25, float("nan"))  # a learner that has no loss
    shown = capsys.readouterr().err
    assert "loss 0.5000" in shown
    assert "nan" not in shown
    assert "100 %" in shown


def test_the_bar_stops_where_training_failed(capsys):

    def train():
        with training_progress(1) as report:
            report(0.25, 0.5)
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        train()
    shown = capsys.readouterr().err
    assert " 25 %" in shown
    assert "100 %" not in shown


def test_nothing_is_shown_unless_wanted(capsys):
    with training_progress(0) as report:
        assert report is None
    with width_progress(0, 3) as report:
        report(None)
    assert capsys.readouterr().err == ""


def test_widths_show_the_best_so_far(capsys):
    trial = SimpleNamespace(slice_width=4, log_loss=1.25)
    selection = SimpleNamespace(trials=[trial], chosen=trial, criterion="log_loss")
    with width_progress(1, 2) as report:
        report(None)
        report(selection)
    shown = capsys.readouterr().err
    assert "2/2" in shown
    assert "b = 4 done, best b = 4 (log loss 1.2500)" in shown


def test_rows_are_shown_only_if_they_take_long(capsys):
    from xtrellis._progress import row_progress

    for verbose, after, shown in ((1, 60.0, False), (0, 0.0, False), (1, -1.0, True)):
        with row_progress(verbose, 10, after) as report:
            report(4)
            report(6)
        assert ("10/10" in capsys.readouterr().err) == shown


@pytest.mark.parametrize("bar", [lambda: row_progress(1, 10, after=0), lambda: waiting(1, "w", 0)])
def test_standard_output_is_left_alone(bar, capsys):
    with bar() as report:
        if report is not None:
            report(5)
        time.sleep(0.3)
        print("a prediction")
    out, err = capsys.readouterr()
    assert out == "a prediction\n"
    assert err


def test_work_without_a_measure_is_shown_if_it_takes_long(capsys):
    with waiting(1, "pruning", after=60):
        pass
    with waiting(0, "pruning", after=0):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
    with waiting(1, "pruning", after=0.1):
        time.sleep(0.4)
    assert "pruning" in capsys.readouterr().err


def test_a_bar_without_a_measure_gives_way_to_others(capsys):
    with waiting(1, "preparing", after=0):
        time.sleep(0.3)
        assert "preparing" in capsys.readouterr().err
        with training_progress(1) as report:
            capsys.readouterr()
            report(0.5, 0.1)
            time.sleep(0.3)
            shown = capsys.readouterr().err
            assert "training" in shown
            assert "preparing" not in shown
        time.sleep(0.3)
        assert "preparing" in capsys.readouterr().err
    time.sleep(0.2)
    capsys.readouterr()
    time.sleep(0.2)
    assert capsys.readouterr().err == ""
