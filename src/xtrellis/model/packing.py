"""Packing: a model as named arrays and plain facts, and back; nothing is ever executed.

Facts are what JSON can hold. Every other value is made of parts, which are packed in turn: numbers,
texts, lists, arrays, or objects of the classes in ``HOMES``. A class says itself what its parts
are:

* ``to_parts(self)`` returns its parts by name, and
* ``from_parts(cls, ...)`` takes them back as arguments, and checks that they fit each other.

The parts of a dataclass without these methods are its fields. The types of all parts are checked
here, against the annotations of ``from_parts`` or of the fields. So a new array or number in the
file is one more part in ``to_parts`` and one more argument of ``from_parts``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, get_args, get_origin

import numpy as np
import numpy.typing as npt

from .packed_arrays import STORED_TYPES, Labels, smallest

Arrays = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]

# The classes that a file may name, and where they are. No other is ever made.
HOMES = {
    "TrellisClassifier": "xtrellis.classifier",
    "LTLSClassifier": "xtrellis.ltls",
    "TrellisEnsemble": "xtrellis.ensemble",
    "TrellisTextClassifier": "xtrellis.text",
    "TextFeatures": "xtrellis.data.text_features",
    "Trellis": "xtrellis.graph.trellis",
    "PathAssignment": "xtrellis.graph.assignment",
    "EdgeWeights": "xtrellis.model.weights",
    "TrellisModel": "xtrellis.prediction",
    "Counts": "xtrellis.model.packed_arrays",
    "Labels": "xtrellis.model.packed_arrays",
    "Texts": "xtrellis.model.packed_arrays",
    "Loss": "xtrellis.decoding.losses",
    "LocalLoss": "xtrellis.decoding.vertex_losses",
    "PathHinge": "xtrellis.decoding.vertex_losses",
    "VertexSoftmax": "xtrellis.decoding.vertex_losses",
    "Tempered": "xtrellis.decoding.losses",
    "BestPaths": "xtrellis.decoding.confidence",
    "Centroids": "xtrellis.decoding.reranking",
    "Rivals": "xtrellis.decoding.rivals",
    "Conformal": "xtrellis.decoding.conformal",
    "LinearSVM": "xtrellis.learning.learners",
    "Arow": "xtrellis.learning.learners",
    "AveragedPerceptron": "xtrellis.learning.learners",
    "History": "xtrellis.learning.training",
    "Pruning": "xtrellis.learning.pruning",
    "Selection": "xtrellis.selection.settings",
    "Trial": "xtrellis.selection.settings",
    "Terms": "xtrellis.selection.terms",
    "TermTrial": "xtrellis.selection.terms",
}


class ModelFileError(ValueError):
    """A model that cannot be saved, or a file that is not a whole model of a known version.

    Examples
    --------
    >>> from xtrellis.model import ModelFileError
    >>> from xtrellis import load_model
    >>> try:
    ...     load_model(__file__)
    ... except ModelFileError as error:
    ...     print(str(error).rpartition(":")[2])
     it is not a model file, or cut off
    """


class Packer:
    """Packs values into facts, and collects their arrays under dotted names.

    >>> packer = Packer()
    >>> packer.pack({"C": 1.0, "steps": (1, np.array([2, 3]))}, "settings")
    {'dict': {'C': 1.0, 'steps': {'tuple': [1, {'array': 'int64'}]}}}
    >>> packer.arrays
    {'settings.steps.1': array([2, 3], dtype=uint8)}
    """

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._seen: dict[int, tuple[str, Any]] = {}  # keeps what it saw alive, and so its id

    def pack(self, value: Any, name: str) -> Any:
        """Facts of a value, or a ModelFileError if it cannot be saved."""
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            value = value.item()
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return self._pack_items(value, name)
        if type(value) is tuple:
            return {"tuple": self._pack_items(value, name)}
        if type(value) is dict:
            if all(type(key) is str for key in value):
                return {"dict": self._pack_named(value, name)}
            return {"items": self._pack_items(list(value.items()), name)}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, name)
        return self._pack_object(value, name)

    def _pack_items(self, values: Any, name: str) -> list[Any]:
        return [self.pack(value, f"{name}.{i}") for i, value in enumerate(values)]

    def _pack_named(self, values: dict[str, Any], name: str) -> Facts:
        return {key: self.pack(value, _joined(name, key)) for key, value in values.items()}

    def _pack_array(self, array: npt.NDArray[Any], name: str) -> Facts:
        if id(array) in self._seen:
            return {"shared": self._seen[id(array)][0]}
        self._seen[id(array)] = name, array
        if array.dtype.newbyteorder("=").name not in STORED_TYPES:
            return self._pack_object(Labels(array), name)
        self.arrays[name] = smallest(array)
        return {"array": array.dtype.newbyteorder("=").name}

    def _pack_object(self, value: Any, name: str) -> Facts:
        kind = type(value)
        if kind.__name__ not in HOMES or find_class(kind.__name__) is not kind:
            raise ModelFileError(
                f"{name or 'model'} is of type {kind.__name__}, which cannot be saved, as it is "
                f"code: use one of the library's own, or save the model with joblib"
            )
        try:
            parts = value.to_parts() if hasattr(value, "to_parts") else _fields(value)
        except ValueError as error:
            raise ModelFileError(f"{name or 'model'}: {error}") from None
        return {"type": kind.__name__, "parts": self._pack_named(parts, name)}


class Unpacker:
    """Makes values again of their facts and arrays.

    What is not sound raises an exception of some kind; nothing outside ``HOMES`` is made.

    >>> unpacker = Unpacker({"x.1": np.array([2, 3], np.uint8)})
    >>> unpacker.unpack({"tuple": [1, {"array": "int64"}]}, "x")
    (1, array([2, 3]))
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._made: Arrays = {}
        self._used: set[str] = set()

    def unpack(self, fact: Any, name: str) -> Any:
        """Value of some facts."""
        if fact is None or type(fact) in (bool, int, str):
            return fact
        if type(fact) is float:
            _require(math.isfinite(fact), name)
            return fact
        if type(fact) is list:
            return [self.unpack(item, f"{name}.{i}") for i, item in enumerate(fact)]
        _require(type(fact) is dict and tuple(fact) in self._KINDS, name)
        return self._KINDS[tuple(fact)](self, name, *fact.values())

    def check_all_used(self) -> None:
        """Raise an error if an array belongs to no part."""
        for name in self._arrays.keys() - self._used:
            raise ModelFileError(f"it holds an array that belongs nowhere: {name!r}")

    def _unpack_float(self, name: str, text: Any) -> float:
        _require(text in ("nan", "inf", "-inf"), name)
        return float(text)

    def _unpack_tuple(self, name: str, items: Any) -> tuple[Any, ...]:
        _require(type(items) is list, name)
        return tuple(self.unpack(items, name))

    def _unpack_dict(self, name: str, items: Any) -> Facts:
        _require(type(items) is dict, name)
        return {key: self.unpack(item, _joined(name, key)) for key, item in items.items()}

    def _unpack_items(self, name: str, items: Any) -> dict[Any, Any]:
        _require(type(items) is list, name)
        return dict(self.unpack(items, name))

    def _unpack_array(self, name: str, dtype: Any) -> npt.NDArray[Any]:
        _require(type(dtype) is str and dtype in STORED_TYPES and name in self._arrays, name)
        self._used.add(name)
        stored = self._arrays[name]
        _require(np.can_cast(stored.dtype, dtype, "safe"), name)
        self._made[name] = stored.astype(dtype, copy=False)
        return self._made[name]

    def _unpack_shared(self, name: str, source: Any) -> npt.NDArray[Any]:
        _require(type(source) is str and source in self._made, name)
        return self._made[source]

    def _unpack_object(self, name: str, kind: Any, facts: Any) -> Any:
        _require(type(kind) is str and kind in HOMES, f"{name}: its type, {kind!r},")
        made = call_checked(find_class(kind), self._unpack_dict(name, facts), name)
        if isinstance(made, Labels):
            self._made[name] = made.values
            return made.values
        return made

    _KINDS: typing.ClassVar[dict[tuple[str, ...], Callable[..., Any]]] = {
        ("float",): _unpack_float,
        ("tuple",): _unpack_tuple,
        ("dict",): _unpack_dict,
        ("items",): _unpack_items,
        ("array",): _unpack_array,
        ("shared",): _unpack_shared,
        ("type", "parts"): _unpack_object,
    }


def can_pack(value: Any) -> bool:
    """Whether a value can be packed."""
    try:
        Packer().pack(value, "value")
    except ModelFileError:
        return False
    return True


def _fields(value: Any) -> dict[str, Any]:
    """Fields that a dataclass is made with."""
    return {
        field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init
    }


def _joined(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise ModelFileError(f"{what or 'it'} is not sound: the file was altered or damaged")


# ---------------------------------------------------------------------- classes and types


@cache
def find_class(name: str) -> Any:
    """Class of a name in ``HOMES``."""
    return getattr(importlib.import_module(HOMES[name]), name)


def call_checked(cls: Any, parts: dict[str, Any], name: str) -> Any:
    """Object of its parts, if their names and types are those that the class asks for."""
    make, parameters, hints = _signature(cls)
    named = {
        key for key, parameter in parameters.items() if parameter.kind != parameter.VAR_KEYWORD
    }
    _require(parts.keys() <= named or len(named) < len(parameters), name)
    for key, part in parts.items():
        if key in hints and not is_of_type(part, hints[key]):
            _require(False, _joined(name, key))
    return make(**parts)


@cache
def _signature(cls: Any) -> tuple[Callable[..., Any], Any, dict[str, Any]]:
    """What makes objects of a class, its parameters and their types."""
    if hasattr(cls, "from_parts"):
        function = cls.from_parts
        hints = typing.get_type_hints(function)
    else:
        function = cls
        hints = typing.get_type_hints(cls)
    return function, inspect.signature(function).parameters, hints


def is_of_type(value: Any, hint: Any) -> bool:
    """Whether a value is what a type annotation says, as far as plain values go.

    >>> is_of_type((1.0, 2), tuple[float, ...]), is_of_type([1, "a"], list[int])
    (True, False)
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(is_of_type(value, each) for each in arguments)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in arguments)
    if origin is tuple:
        if type(value) is not tuple:
            return False
        if arguments[-1] is Ellipsis:
            arguments = (arguments[0],) * len(value)
        return len(value) == len(arguments) and all(map(is_of_type, value, arguments))
    if origin is list:
        return type(value) is list and all(is_of_type(item, arguments[0]) for item in value)
    if origin is dict:
        return type(value) is dict and all(
            is_of_type(key, arguments[0]) and is_of_type(item, arguments[1])
            for key, item in value.items()
        )
    if hasattr(origin, "__value__"):  # an alias by a `type` statement, as NDArray is in NumPy 2.5
        return is_of_type(value, origin.__value__[arguments])
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _has_scalars(value, get_args(arguments[1])[0])
    if hint is float:
        return type(value) in (float, int)
    if hint in (int, bool, str):
        return type(value) is hint
    return isinstance(value, hint)


def _has_scalars(array: npt.NDArray[Any], scalar: Any) -> bool:
    """Whether the numbers of an array are of some NumPy type."""
    return scalar is Any or issubclass(array.dtype.type, get_origin(scalar) or scalar)
