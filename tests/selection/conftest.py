"""Widths that were tried, for the tests of width selection."""

import pytest

from xtrellis import TrellisClassifier, select_slice_width


@pytest.fixture(scope="session")
def ladder(data):
    """A ladder of the paper's setting."""
    estimator = TrellisClassifier.paper(2, epochs=2, random_state=0)
    return select_slice_width(*data, estimator=estimator, widths=[2, 3, 6])
