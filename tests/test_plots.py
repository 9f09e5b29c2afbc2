"""Plots show what they should: every edge and vertex in its place, every number of a selection."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from sklearn.datasets import load_digits

from xtrellis import TrellisClassifier, select_slice_width
from xtrellis.graph import Trellis
from xtrellis.plots import draw_explanation, draw_trade_off, draw_trellis, draw_widths
from xtrellis.plots.axes import PATH

GRAPHS = [(9, 2, 0), (64, 4, 17), (105, 5, 104), (127, 2, 126)]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


# ---------------------------------------------------------------------- the graph


def vertex_places(trellis):
    """Where vertices belong: one column per slice, centred, vertex 0 at the top."""
    places = [(0.0, 0.0)]
    for column, size in enumerate(trellis.slice_sizes, 1):
        places += [(float(column), (size - 1) / 2 - row) for row in range(size)]
    return [*places, (len(trellis.slice_sizes) + 1.0, 0.0)]


@pytest.mark.parametrize(("n_classes", "width", "path"), GRAPHS)
def test_every_edge_and_the_path_are_drawn(n_classes, width, path):
    trellis = Trellis(n_classes, width)
    ax = draw_trellis(trellis, path)
    places = vertex_places(trellis)
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines] == places
    edges = trellis.path_edges(path)
    on_path = set(edges[edges >= 0].tolist())
    tails, heads = trellis.endpoints()
    assert len(ax.patches) == trellis.n_edges
    for edge, patch in enumerate(ax.patches):
        corners = patch.get_path().vertices
        assert tuple(corners[0]) == places[tails[edge]]
        assert tuple(corners[-1]) == places[heads[edge]]
        assert (to_hex(patch.get_edgecolor()) == PATH) == (edge in on_path)
        skips = corners[-1][0] - corners[0][0] > 1
        assert (patch.get_linestyle() == "--") == (skips and edge not in on_path)
    visited = {0, *heads[sorted(on_path)].tolist()}
    filled = {v for v, line in enumerate(ax.lines) if to_hex(line.get_markerfacecolor()) == PATH}
    assert filled == visited


@pytest.mark.parametrize(("n_classes", "width", "path"), GRAPHS)
def test_nothing_is_cut_off(n_classes, width, path):
    trellis = Trellis(n_classes, width)
    ax = draw_trellis(trellis, path)
    ax.figure.canvas.draw()
    frame = ax.get_window_extent()
    for artist in [*ax.patches, *ax.lines, *ax.texts]:
        box = artist.get_window_extent()
        assert frame.x0 < box.x0 <= box.x1 < frame.x1, artist
        assert frame.y0 < box.y0 <= box.y1 < frame.y1, artist
    names = [text.get_text() for text in ax.texts]
    assert names == ["source", "sink", *(f"slice {i}" for i in range(trellis.n_slices))]


def test_exits_pass_above_the_slices_they_skip():
    """An arc that crossed a vertex would look like an edge to it."""
    trellis = Trellis(9, 2)
    ax = draw_trellis(trellis)
    top = max(y for _, y in vertex_places(trellis))
    (arc,) = (patch.get_path() for patch in ax.patches if patch.get_linestyle() == "--")
    t = np.linspace(0, 1, 200)[:, np.newaxis]
    bernstein = np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    x, y = (bernstein @ arc.vertices).T
    for column in range(2, trellis.n_slices + 1):
        assert np.interp(column, x, y) > top + 0.2


def test_draws_on_given_axes_without_a_path():
    ax = plt.subplots()[1]
    assert draw_trellis(Trellis(10, 3), ax=ax) is ax
    assert ax.get_title() == f"K = 10, b = 3: {Trellis(10, 3).n_edges} edges"
    assert not any(to_hex(patch.get_edgecolor()) == PATH for patch in ax.patches)
    assert not any(to_hex(line.get_markerfacecolor()) == PATH for line in ax.lines)


def test_refuses_what_cannot_be_seen():
    with pytest.raises(ValueError, match="edges, too many to draw"):
        draw_trellis(Trellis(10**6, 50))
    with pytest.raises(ValueError, match="path must be from 0 to 8, got 9"):
        draw_trellis(Trellis(9, 2), path=np.int64(9))
    with pytest.raises(ValueError, match="path must be from 0 to 8, got -1"):
        draw_trellis(Trellis(9, 2), path=-1)


# ---------------------------------------------------------------------- widths and trade-offs


@pytest.mark.parametrize(
    ("estimator", "criterion"),
    [
        (TrellisClassifier.paper(2, epochs=2, random_state=0), "bound"),
        (TrellisClassifier(random_state=0), "log_loss"),
    ],
)
def test_widths_are_drawn_with_their_figures(estimator, criterion):
    X, y = load_digits(return_X_y=True)
    selection = select_slice_width(X / 16, y, widths=[2, 3, 5], estimator=estimator)
    assert selection.criterion == criterion
    ax = draw_widths(selection)
    lines = {line.get_label(): line for line in ax.lines}
    sizes = [trial.model_bytes / 1e6 for trial in selection.trials]
    values = [getattr(trial, criterion) for trial in selection.trials]
    error = lines["training error"]
    np.testing.assert_allclose(error.get_xdata(), sizes)
    np.testing.assert_allclose(error.get_ydata(), [t.training_error for t in selection.trials])
    label = "its bound ℓε / (ρ L(0))" if criterion == "bound" else "log loss (bits)"
    np.testing.assert_allclose(lines[label].get_xdata(), sizes)
    np.testing.assert_allclose(lines[label].get_ydata(), values)
    chosen = [t.slice_width for t in selection.trials].index(selection.slice_width)
    marked = lines["chosen"]
    assert (marked.get_xdata()[0], marked.get_ydata()[0]) == (sizes[chosen], values[chosen])
    assert ax.get_title() == f"slice width chosen: b = {selection.slice_width}"
    assert [text.get_text().split("\n")[0] for text in ax.texts] == ["b = 2", "b = 3", "b = 5"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_families_are_joined_in_their_order_and_named():
    ours = [(8.0, 89.4, "b = 40"), (0.5, 88.5, "b = 10"), (2.0, 89.0, "b = 20")]
    ax = plt.subplots()[1]
    assert draw_trade_off({"ours": ours, "rest": [(30.0, 87.0, "")]}, "size (MB)", ax=ax) is ax
    family, alone = ax.lines
    assert family.get_xdata().tolist() == [8.0, 0.5, 2.0]
    assert family.get_ydata().tolist() == [89.4, 88.5, 89.0]
    assert (family.get_linestyle(), alone.get_linestyle()) == ("-", "None")
    assert family.get_color() != alone.get_color()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ours", "rest"]
    named = {text.get_text(): text.xy for text in ax.texts if text.get_text()}
    assert named == {label: (x, y) for x, y, label in ours}
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size (MB)", "test accuracy (%)")


# ---------------------------------------------------------------------- explanations


def test_bars_of_an_explanation_end_at_its_sums():
    X, y = load_digits(return_X_y=True)
    found = TrellisClassifier(C=1.0, random_state=0).fit(X / 16, y).explain(X[4] / 16, top=6)
    ax = draw_explanation(found)
    shown = found.contributions[:6]
    assert [text.get_text() for text in ax.get_yticklabels()] == [str(c.feature) for c in shown]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [c.amount for c in shown])
    totals = np.zeros(6)
    for bars in ax.containers:
        totals += [bar.get_width() for bar in bars]
    np.testing.assert_allclose(totals, [c.amount for c in shown])
    assert ax.get_title().startswith(f"{found.label}: ")
    assert len(draw_explanation(found, top=2).get_yticks()) == 2
