"""What width selection shows: the table, the progress bar and the picture."""

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

from matplotlib import pyplot as plt

from xtrellis import TrellisClassifier, select_slice_width
from xtrellis.plots import draw_widths
from xtrellis.selection import WidthSelection, WidthTrial


def test_table_has_a_line_a_width_and_an_arrow(ladder):
    lines = str(ladder).splitlines()
    assert " ".join(lines[0].split()) == "b edges bound log loss training error weights fit"
    assert [int(line.split()[0]) for line in lines[1:]] == [2, 3, 6]
    assert [line.split()[0] for line in lines if "<- by bound" in line] == ["6"]


def test_progress(data, capsys):
    select_slice_width(*data, widths=[2, 4], verbose=1, random_state=0)
    shown = capsys.readouterr().err
    assert "2/2" in shown
    assert "log loss" in shown
    TrellisClassifier("auto", random_state=0, verbose=1).fit(*data)
    assert "widths" in capsys.readouterr().err


def test_picture(ladder, tmp_path):
    plt.close("all")
    ladder.plot(tmp_path / "widths.png")
    ladder.plot(str(tmp_path / "widths.svg"))
    assert (plt.imread(tmp_path / "widths.png") < 1).any()
    assert not plt.get_fignums()
    ax = plt.subplots()[1]
    assert ladder.plot(ax) is ax
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in ax.texts] == [
        f"b = {trial.slice_width}\n{trial.bound:.3g}" for trial in ladder.trials
    ]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["training error", "its bound ℓε / (ρ L(0))", "chosen"]
    sizes = [trial.model_bytes / 1e6 for trial in ladder.trials]
    np.testing.assert_allclose(ax.lines[1].get_xdata(), sizes)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [trial.bound for trial in ladder.trials])
    plt.close("all")


def test_picture_of_one_width_without_errors():
    trial = WidthTrial(2, 10, 0.5, 0.1, 1.0, 0.0, 1_000, 1.0)
    ax = draw_widths(WidthSelection(2, [trial], "bound"))
    ax.figure.canvas.draw()
    assert ax.get_title() == "slice width chosen: b = 2"
    plt.close("all")
