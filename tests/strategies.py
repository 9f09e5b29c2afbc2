"""What Hypothesis draws: graphs of any shape, margins of any magnitude."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def graphs(draw, max_classes=400):
    """(n_classes, slice_width), small widths as often as large ones."""
    n_classes = draw(st.integers(2, max_classes))
    width = draw(
        st.one_of(st.integers(2, min(n_classes, 12)), st.integers(2, n_classes)),
    )
    return n_classes, width


@st.composite
def margins(draw, n_edges, n_rows=3, max_magnitude=600.0, dtype=np.float64):
    """Margins whose magnitudes differ from row to row, and within a row by powers of ten."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    top = draw(st.floats(-6, np.log10(max_magnitude)))
    spread = draw(st.sampled_from([0.0, 1.0, 6.0]))
    exponents = top - spread * rng.random((n_rows, n_edges))
    values = np.clip(rng.standard_normal((n_rows, n_edges)), -3, 3) / 3 * 10**exponents
    return values.astype(dtype)


@st.composite
def tied_margins(draw, n_edges, n_rows=3):
    """Margins of -1, 0 and 1: many paths with exactly the same loss."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(-1, 2, (n_rows, n_edges)).astype(np.float64)
