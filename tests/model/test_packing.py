"""Values packed and unpacked: the same again, and nothing but what is known."""

import json
import math
import subprocess
import sys
from typing import Any, Literal, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from typing_extensions import TypeAliasType

from xtrellis.decoding import PathHinge, VertexSoftmax, get_loss
from xtrellis.graph import PathAssignment, Trellis, given_assignment
from xtrellis.learning import Arow
from xtrellis.model.packing import HOMES, ModelFileError, Packer, Unpacker, find_class, is_of_type

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)


def again(value):
    """The value after a round trip."""
    packer = Packer()
    facts = json.loads(json.dumps(packer.pack(value, "x"), allow_nan=False))
    unpacker = Unpacker(packer.arrays)
    result = unpacker.unpack(facts, "x")
    unpacker.check_all_used()
    return result


@given(PLAIN)
def test_plain_values_come_back(value):
    assert repr(again(value)) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        Trellis(30, 5),
        get_loss("squared"),
        get_loss("hinge", code="local"),
        PathHinge(2),
        VertexSoftmax((0.5, 1.0, 2.0), 2, 0.75),
        Arow(0.5),
        np.float32(0.1),
        np.int64(-3),
        np.str_("a"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_come_back(value):
    result = again(value)
    assert result == value
    assert not isinstance(result, np.generic)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "uint64", "f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(0,), (7,), (2, 3), (0, 5)])
def test_arrays_come_back(dtype, shape):
    array = np.random.default_rng(0).integers(0, 2**15, shape).astype(dtype)
    result = again(array)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)
    np.testing.assert_array_equal(again(array.T), array.T)
    np.testing.assert_array_equal(again(array.astype(array.dtype.newbyteorder())), array)


def test_one_array_in_two_places_is_stored_once():
    array = np.array(["a", "b"])
    packer = Packer()
    facts = packer.pack([array, array, array.copy()], "x")
    assert sorted(packer.arrays) == ["x.0.content", "x.0.lengths", "x.2.content", "x.2.lengths"]
    first, second, third = Unpacker(packer.arrays).unpack(facts, "x")
    assert first is second
    assert first is not third


def test_assignments_must_be_permutations():
    assignment = given_assignment(Trellis(4, 2), [2, 0, 3, 1])
    result = again(assignment)
    np.testing.assert_array_equal(result.class_of_path, assignment.class_of_path)
    for wrong in ([0, 0, 1], [0, 3, 1], [0], [-1, 0]):
        with pytest.raises(ValueError):
            PathAssignment.from_parts(np.array(wrong))


@pytest.mark.parametrize("value", [object(), LogisticRegression(), {1, 2}, 1j, b"bytes", int])
def test_what_is_not_known_cannot_be_packed(value):
    with pytest.raises(ModelFileError, match=r"x is of type .* cannot be saved"):
        Packer().pack(value, "x")


def test_a_class_of_a_known_name_is_not_that_class():
    class Trellis:
        pass

    with pytest.raises(ModelFileError, match="x is of type Trellis"):
        Packer().pack(Trellis(), "x")


@pytest.mark.parametrize(
    "fact",
    [
        {},
        {"type": "os.system", "parts": {"command": "true"}},
        {"type": "Trellis"},
        {"type": "Trellis", "parts": {}},
        {"type": "Trellis", "parts": []},
        {"type": "Trellis", "parts": {"n_classes": 5, "slice_width": "2"}},
        {"type": "Trellis", "parts": {"n_classes": 5, "slice_width": True}},
        {"type": "Trellis", "parts": {"n_classes": 5, "slice_width": 2, "digits": None}},
        {"type": ["Trellis"], "parts": {}},
        {"type": "Loss", "parts": {"name": "eval"}},
        {"type": "Tempered", "parts": {"loss": None, "temperature": 1.0}},
        {"array": "float32"},
        {"array": ["float32"]},
        {"array": "O"},
        {"shared": "y"},
        {"float": "1"},
        {"float": ["nan"]},
        {"tuple": 1},
        {"items": [[1]]},
        {"dict": [1]},
        {"pickle": "cos"},
        math.inf,
    ],
    ids=str,
)
def test_unsound_facts_are_refused(fact):
    with pytest.raises((ValueError, TypeError)):
        Unpacker({}).unpack(fact, "x")


def test_arrays_are_never_squeezed_into_another_type():
    for dtype in ("float32", "int64", "bool"):
        with pytest.raises(ModelFileError):
            Unpacker({"x": np.array([2**63], np.uint64)}).unpack({"array": dtype}, "x")


@pytest.mark.parametrize("name", HOMES)
def test_every_home_has_its_class(name):
    assert find_class(name).__name__ == name


def test_types():
    assert is_of_type(1, float)
    assert not is_of_type(True, float)
    assert not is_of_type(True, int)
    assert is_of_type(None, int | None)
    assert is_of_type(1, Literal[0, 1])
    assert not is_of_type(True, Literal[0, 1])
    assert not is_of_type(["a"], Literal["a", "b"])
    assert is_of_type((1, 2), tuple[int, int])
    assert not is_of_type((1, 2, 3), tuple[int, int])
    assert is_of_type({"a": [1.0]}, dict[str, list[float]])
    assert not is_of_type({1: [1.0]}, dict[str, list[float]])


def test_aliases_made_by_a_type_statement():
    """NDArray is one since NumPy 2.5, from Python 3.12 on: no model file could be read there."""
    scalar = TypeVar("scalar", bound=np.generic)
    alias = TypeAliasType("alias", np.ndarray[Any, np.dtype[scalar]], type_params=(scalar,))
    assert is_of_type(np.zeros(2, np.float32), alias[np.float32])
    assert not is_of_type(np.zeros(2), alias[np.float32])


def test_the_model_room_imports_nothing_above_it():
    code = (
        "import sys, xtrellis.model.model_file, xtrellis.model.packing\n"
        "rooms = ('learning', 'decoding', 'selection', 'classifier', 'base', 'text', 'ensemble')\n"
        "names = [name.split('.')[1:] for name in sys.modules if name.startswith('xtrellis.')]\n"
        "assert not [name for name in names if name[0] in rooms]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
