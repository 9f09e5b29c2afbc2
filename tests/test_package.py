"""The package as a whole: instant to import, public names documented with examples."""

import doctest
import inspect
import subprocess
import sys

import pytest

import xtrellis

HEAVY = ("numba", "sklearn", "scipy", "matplotlib", "pandas", "joblib")
PUBLIC = [name for name in xtrellis.__all__ if name != "__version__"]


def test_import_loads_nothing_heavy():
    code = (
        "import sys, xtrellis; "
        f"print([m for m in {HEAVY!r} if m in sys.modules], 'numpy' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[] False"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_docstrings_with_examples(name):
    value = getattr(xtrellis, name)
    assert inspect.getdoc(value)
    assert doctest.DocTestParser().get_examples(inspect.getdoc(value)), f"{name} has no example"


def test_names_are_listed_and_unknown_ones_refused():
    assert set(PUBLIC) <= set(dir(xtrellis))
    with pytest.raises(AttributeError, match="attribute nonsense"):
        xtrellis.nonsense  # noqa: B018
