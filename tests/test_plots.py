"""Pictures are drawn whole: every vertex and edge, the path in its colour, nothing cut off."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from xtrellis.graph import Trellis
from xtrellis.plots import _PATH, draw_trellis


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(("n_classes", "width", "path"), [(9, 2, 0), (64, 4, 17), (105, 5, 104)])
def test_every_edge_and_the_path_are_drawn(n_classes, width, path):
    trellis = Trellis(n_classes, width)
    ax = draw_trellis(trellis, path)
    assert len(ax.patches) == trellis.n_edges
    assert len(ax.lines) == trellis.n_vertices
    highlighted = [i for i, p in enumerate(ax.patches) if to_hex(p.get_edgecolor()) == _PATH]
    edges = trellis.path_edges(path)
    assert highlighted == sorted(edges[edges >= 0].tolist())


def test_nothing_is_cut_off(tmp_path):
    ax = draw_trellis(Trellis(9, 2), 0)
    ax.figure.savefig(tmp_path / "trellis.png")
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for patch in ax.patches:
        box = patch.get_path().get_extents()
        assert left < box.x0
        assert box.x1 < right
        assert bottom < box.y0
        assert box.y1 < top
    assert (plt.imread(tmp_path / "trellis.png") < 1).any()


def test_draws_on_given_axes_without_a_path():
    ax = plt.subplots()[1]
    assert draw_trellis(Trellis(10, 3), ax=ax) is ax
    assert ax.get_title() == f"K = 10, b = 3: {Trellis(10, 3).n_edges} edges"


def test_refuses_what_cannot_be_seen():
    with pytest.raises(ValueError, match="edges, too many to draw"):
        draw_trellis(Trellis(10**6, 50))
    with pytest.raises(ValueError, match="path must be from 0 to 8, got 9"):
        draw_trellis(Trellis(9, 2), path=np.int64(9))
