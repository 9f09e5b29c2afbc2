"""A small model and its file, for the tests of model files."""

import pytest

from samples import topics
from xtrellis import TrellisClassifier


@pytest.fixture(scope="module")
def rows():
    return topics()


@pytest.fixture
def saved(rows, tmp_path):
    """Small model and its file."""
    model = TrellisClassifier(5, random_state=0).fit(*rows)
    path = tmp_path / "model.xtrellis"
    model.save(path)
    return model, path
