"""Packing: a fitted model as named arrays and plain facts, and back; what a model file holds.

Arrays are in the smallest type that loses nothing. Facts are what JSON can tell: numbers, names and
settings. Nothing is ever executed: what may be made again is on lists here.
"""

from __future__ import annotations

import dataclasses
import itertools
import lzma
from typing import Any

import numpy as np
import numpy.typing as npt

from ..decoding import losses
from ..decoding.losses import DecodingLoss, Loss, Tempered, get_loss
from ..decoding.vertex_losses import LocalLoss
from ..graph.assignment import given_assignment
from ..graph.trellis import Trellis
from ..learning import learners
from ..learning.pruning import Pruning
from ..learning.training import History
from .weights import EdgeWeights, edge_type

Arrays = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]

_SINGLE = ("TrellisClassifier", "LTLSClassifier")
_ESTIMATORS = (*_SINGLE, "TrellisEnsemble", "TrellisTextClassifier")
_LEARNERS = ("LinearSVM", "Arow", "AveragedPerceptron")
_LOSSES = ("PathHinge", "VertexSoftmax")


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


def pack(model: Any) -> tuple[Arrays, Facts]:
    """A fitted model as arrays and plain facts."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    name = type(model).__name__
    if name not in _ESTIMATORS:
        raise ModelFileError(f"models of type {name} cannot be saved")
    if name == "TrellisTextClassifier":
        return _pack_text_classifier(model)
    if name == "TrellisEnsemble":
        return _pack_ensemble(model)
    trellis: Trellis = model.trellis_
    facts: Facts = {
        "estimator": name,
        "settings": _pack_settings(model),
        "n_classes": trellis.n_classes,
        "slice_width": trellis.slice_width,
        "n_features": model.n_features_in_,
        "code": model.code_,
        "loss": _pack_loss(model.loss_),
        "probability_loss": _pack_loss(model.probability_loss_),
        "temperature": float(model.temperature_),
        "history": _without_nan(dataclasses.asdict(model.history_)),
    }
    arrays = {
        **_pack_weights(model.weights_),
        "assignment": _smallest_integers(model.assignment_.path_of_class),
    }
    _pack_labels("classes", model.classes_, arrays, facts)
    if not np.isnan(getattr(model, "held_out_loss_", np.nan)):
        facts["held_out_loss"] = float(model.held_out_loss_)
    if hasattr(model, "pruning_"):
        facts["pruning"] = _without_nan(dataclasses.asdict(model.pruning_))
    if hasattr(model, "feature_names_in_"):
        _pack_labels("feature_names", model.feature_names_in_, arrays, facts)
    return arrays, facts


def unpack(arrays: Arrays, facts: Facts, verify: bool = True) -> Any:
    """Fitted model of arrays and facts; what is not sound raises some exception or other."""
    name = facts["estimator"]
    if name not in _ESTIMATORS:
        raise ModelFileError(f"it holds a model of an unknown type, {name!r}")
    if name == "TrellisTextClassifier":
        return _unpack_text_classifier(arrays, facts, verify)
    if name == "TrellisEnsemble":
        return _unpack_ensemble(arrays, facts, verify)
    model = _estimator(name)(**_unpack_settings(facts["settings"]))
    trellis = Trellis(_integer(facts["n_classes"]), _integer(facts["slice_width"]))
    model.trellis_ = trellis
    model.n_features_in_ = _integer(facts["n_features"])
    if facts["code"] not in ("independent", "local"):
        raise ModelFileError(f"its code is unknown: {facts['code']!r}")
    model.code_ = facts["code"]
    model.weights_ = _unpack_weights(arrays, trellis.n_edges, model.n_features_in_, verify)
    model.assignment_ = given_assignment(trellis, arrays["assignment"])
    model.classes_ = _unpack_labels("classes", arrays, facts, trellis.n_classes)
    if "feature_names" in facts:
        names = _unpack_labels("feature_names", arrays, facts, model.n_features_in_)
        model.feature_names_in_ = names
    model.loss_ = _unpack_loss(facts["loss"], trellis)
    model.probability_loss_ = _unpack_loss(facts["probability_loss"], trellis)
    model.temperature_ = float(facts["temperature"])
    model.history_ = History(**_with_nan(facts["history"]))
    if name == "TrellisClassifier":
        model.held_out_loss_ = float(facts.get("held_out_loss", np.nan))
    if "pruning" in facts:
        model.pruning_ = _unpack_pruning(facts["pruning"])
    return model


def _unpack_pruning(facts: Facts) -> Pruning:
    told = _with_nan(facts)
    return Pruning(**{**told, "steps": tuple(map(tuple, told["steps"]))})


# ---------------------------------------------------------------------- weights


def _pack_weights(weights: EdgeWeights) -> Arrays:
    """The learned matrix; of ``starts`` and ``place`` only what they are made of."""
    if weights.others:
        edge, _, estimator = weights.others[0]
        raise ModelFileError(
            f"edge {edge} has a {type(estimator).__name__}, which is not linear and cannot be "
            f"saved without pickle: save the model with joblib, or use a linear learner"
        )
    counts, large_counts = _pack_counts(np.diff(weights.starts))
    return {
        "weights.bias": weights.bias,
        "weights.dense": _smallest_floats(weights.dense),
        "weights.dense_features": _smallest_integers(np.flatnonzero(weights.place >= 0)),
        "weights.counts": counts,
        "weights.large_counts": large_counts,
        "weights.edges": weights.edges,
        "weights.values": _smallest_floats(weights.values),
        "weights.twins": _smallest_integers(np.array(weights.twins)),
    }


def _unpack_weights(arrays: Arrays, n_edges: int, n_features: int, verify: bool) -> EdgeWeights:
    bias = _floats(arrays["weights.bias"])
    dense = _floats(arrays["weights.dense"])
    values = _floats(arrays["weights.values"])
    edges = arrays["weights.edges"]
    counts = _unpack_counts(arrays["weights.counts"], arrays["weights.large_counts"], n_features)
    starts = np.concatenate([[0], np.cumsum(counts)])
    dense_features = _integers(arrays["weights.dense_features"])
    place = np.full(n_features, -1, np.int32)
    place[dense_features] = np.arange(len(dense_features))
    twins = _integers(arrays["weights.twins"])
    _require(bias.shape == (n_edges,), "weights.bias")
    _require(dense.shape == (len(dense_features), n_edges), "weights.dense")
    _require(bool((np.diff(dense_features, prepend=-1) > 0).all()), "weights.dense_features")
    _require(edges.shape == values.shape == (starts[-1],), "weights.edges")
    _require(edges.dtype == edge_type(n_edges), "weights.edges")
    _require(twins.ndim == 2 and len(twins) == 2, "weights.twins")
    _require(twins.min(initial=0) >= 0 and twins.max(initial=0) < n_edges, "weights.twins")
    if verify:  # reads all of them
        _require(edges.min(initial=0) >= 0 and edges.max(initial=0) < n_edges, "weights.edges")
    pair = np.ascontiguousarray(twins[0]), np.ascontiguousarray(twins[1])
    return EdgeWeights(bias, place, dense, starts, edges, values, twins=pair)


# ---------------------------------------------------------------------- labels


def _pack_labels(name: str, labels: npt.NDArray[Any], arrays: Arrays, facts: Facts) -> None:
    """Labels of any type that is not an object of its own: numbers as they are, texts as bytes."""
    kind = labels.dtype.kind
    if kind in "biuf" and labels.dtype != np.longdouble:
        arrays[name], facts[name] = labels.astype(labels.dtype.newbyteorder("=")), kind
    elif kind in "mM":
        arrays[name], facts[name] = labels.astype(np.int64), labels.dtype.str
    elif kind == "U" or (kind == "O" and all(type(label) is str for label in labels)):
        texts = [str(label).encode("utf-8", "surrogatepass") for label in labels]
        arrays[f"{name}.lengths"] = _smallest_integers(np.array([len(text) for text in texts]))
        arrays[name], facts[name] = np.frombuffer(b"".join(texts), np.uint8), kind
    elif kind == "S":
        arrays[name] = np.frombuffer(labels.tobytes(), np.uint8)
        facts[name] = labels.dtype.str
    else:
        types = sorted({type(label).__name__ for label in labels})
        raise ModelFileError(
            f"{name} of type {', '.join(types)} cannot be saved: use texts or numbers as labels"
        )


def _unpack_labels(name: str, arrays: Arrays, facts: Facts, n_labels: int) -> npt.NDArray[Any]:
    stored, kind = arrays[name], facts[name]
    if kind in ("U", "O"):
        ends = np.cumsum(_integers(arrays[f"{name}.lengths"])).tolist()
        text = stored.tobytes()
        _require(len(ends) == n_labels and (ends[-1] if ends else 0) == len(text), name)
        parts = [text[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        labels = np.array(
            [part.decode("utf-8", "surrogatepass") for part in parts],
            dtype=object if kind == "O" else None,
        )
    elif kind in ("b", "i", "u", "f"):
        labels = stored
        _require(labels.dtype.kind == kind, name)
    else:
        dtype = np.dtype(str(kind))
        _require(dtype.kind in "mMS" and dtype.itemsize > 0, name)
        labels = (
            np.frombuffer(stored.tobytes(), dtype) if dtype.kind == "S" else stored.astype(dtype)
        )
    _require(labels.shape == (n_labels,), name)
    return labels


# ---------------------------------------------------------------------- ensembles


def _pack_ensemble(model: Any) -> tuple[Arrays, Facts]:
    """The members, arrays of the i-th as ``member.i.``; their labels once, for all."""
    arrays: Arrays = {}
    facts: Facts = {
        "estimator": type(model).__name__,
        "settings": _pack_settings(model),
        "n_features": model.n_features_in_,
        "members": [],
    }
    for i, member in enumerate(model.estimators_):
        own, told = pack(member)
        for name in ("classes", "classes.lengths"):
            own.pop(name, None)
        del told["classes"]
        arrays.update({f"member.{i}.{name}": array for name, array in own.items()})
        facts["members"].append(told)
    _pack_labels("classes", model.classes_, arrays, facts)
    if hasattr(model, "pruning_"):
        facts["pruning"] = _without_nan(dataclasses.asdict(model.pruning_))
    if hasattr(model, "feature_names_in_"):
        _pack_labels("feature_names", model.feature_names_in_, arrays, facts)
    return arrays, facts


def _unpack_ensemble(arrays: Arrays, facts: Facts, verify: bool) -> Any:
    model = _estimator(facts["estimator"])(**_unpack_settings(facts["settings"]))
    model.n_features_in_ = _integer(facts["n_features"])
    labels = {name: array for name, array in arrays.items() if name.startswith("classes")}
    members = []
    for i, told in enumerate(facts["members"]):
        _require(told["estimator"] in _SINGLE, "members")
        start = f"member.{i}."
        own = {name.removeprefix(start): arrays[name] for name in arrays if name.startswith(start)}
        member = unpack({**own, **labels}, {**told, "classes": facts["classes"]}, verify)
        _require(member.n_features_in_ == model.n_features_in_, "members")
        members.append(member)
    _require(len(members) > 0, "members")
    for member in members:
        member.classes_ = members[0].classes_
    model.estimators_, model.classes_ = members, members[0].classes_
    if "pruning" in facts:
        model.pruning_ = _unpack_pruning(facts["pruning"])
    if "feature_names" in facts:
        names = _unpack_labels("feature_names", arrays, facts, model.n_features_in_)
        model.feature_names_in_ = names
    return model


# ---------------------------------------------------------------------- texts


def _pack_text_classifier(model: Any) -> tuple[Arrays, Facts]:
    """The classifier inside, and the features: terms as compressed text."""
    arrays, inside = pack(model.classifier_)
    features = model.features_
    facts: Facts = {
        "estimator": type(model).__name__,
        "settings": _pack_settings(model),
        "classifier": inside,
        "words": features.words,
        "characters": features.characters,
        "hash_size": features.hash_size,
        "n_texts": features.n_texts,
    }
    if features.terms is not None:
        text = "\n".join(term for terms in features.terms for term in terms)
        content = text.encode("utf-8", "surrogatepass")
        arrays["text.terms"] = _squeezed(content)
        facts["n_bytes_of_terms"] = len(content)
        facts["n_terms"] = [len(terms) for terms in features.terms]
    if features.frequencies is not None:
        counts, large_counts = _pack_counts(features.frequencies)
        arrays["text.frequencies"], arrays["text.large_frequencies"] = counts, large_counts
    return arrays, facts


def _unpack_text_classifier(arrays: Arrays, facts: Facts, verify: bool) -> Any:
    from ..text import TextFeatures

    model = _estimator(facts["estimator"])(**_unpack_settings(facts["settings"]))
    model.classifier_ = unpack(arrays, facts["classifier"], verify)
    n_features = model.classifier_.n_features_in_
    features = TextFeatures(
        _lengths(facts["words"]), _lengths(facts["characters"]), facts["hash_size"]
    )
    features.n_texts = int(facts["n_texts"])
    if features.hash_size is None:
        content = _unsqueezed(arrays["text.terms"], _integer(facts["n_bytes_of_terms"]))
        terms = iter(content.decode("utf-8", "surrogatepass").split("\n"))
        features.terms = [list(itertools.islice(terms, count)) for count in facts["n_terms"]]
        n_terms = sum(map(len, features.terms))
        _require(n_terms == n_features and next(terms, None) is None, "text.terms")
    _require(features.hash_size in (None, n_features), "hash_size")
    if "text.frequencies" in arrays:
        features.frequencies = _unpack_counts(
            arrays["text.frequencies"], arrays["text.large_frequencies"], n_features
        )
    model.features_ = features
    return model


def _lengths(value: Any) -> tuple[int, int] | None:
    return None if value is None else (_integer(value[0]), _integer(value[1]))


# ---------------------------------------------------------------------- losses and settings


def _pack_loss(loss: DecodingLoss) -> Facts:
    """A decoding loss by its name and numbers."""
    if isinstance(loss, Tempered):
        return {"tempered": _pack_loss(loss.loss), "temperature": float(loss.temperature)}
    named = loss.loss if isinstance(loss, LocalLoss) else loss
    if isinstance(named, Loss):
        try:
            known = get_loss(named.name) is named
        except ValueError:
            known = False
        if known:
            code = "local" if isinstance(loss, LocalLoss) else "independent"
            return {"name": named.name, "code": code}
    if type(loss).__name__ in _LOSSES:
        return {"type": type(loss).__name__, **dataclasses.asdict(loss)}  # type: ignore[call-overload]
    raise ModelFileError(
        f"decoding by {loss!r} cannot be saved, as it is code: use one of the library's own losses"
    )


def _unpack_loss(facts: Facts, trellis: Trellis) -> Any:
    if "tempered" in facts:
        temperature = float(facts["temperature"])
        _require(0 < temperature < np.inf, "temperature")
        return Tempered(_unpack_loss(facts["tempered"], trellis), temperature)
    if "name" in facts:
        return get_loss(str(facts["name"]), code=facts["code"])
    kind, numbers = facts["type"], {k: v for k, v in facts.items() if k != "type"}
    _require(kind in _LOSSES, "loss")
    if isinstance(numbers.get("temperature"), list):
        numbers["temperature"] = tuple(numbers["temperature"])
    loss = getattr(losses, kind)(**numbers)
    loss.edge_costs(trellis, np.zeros((1, trellis.n_edges)))  # raises if they do not fit
    return loss


def _pack_settings(model: Any) -> Facts:
    """Parameters of an estimator. Objects of the caller's own become their description."""
    settings = {name: _pack_value(value) for name, value in model.get_params(deep=False).items()}
    assignment = getattr(model, "assignment", None)
    if assignment is not None and not isinstance(assignment, str):
        settings["assignment"] = {"list": np.asarray(assignment).tolist()}
    return settings


def _pack_value(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_pack_value(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_pack_value(key), _pack_value(item)] for key, item in value.items()]}
    name = type(value).__name__
    if name in _ESTIMATORS and type(value).__module__.startswith("xtrellis."):
        return {"estimator": name, "settings": _pack_settings(value)}
    if name in (*_LEARNERS, *_LOSSES) and type(value).__module__.startswith("xtrellis."):
        fields = dataclasses.asdict(value)
        return {"object": name, "fields": {key: _pack_value(v) for key, v in fields.items()}}
    return {"description": repr(value)}


def _unpack_settings(settings: Facts) -> Facts:
    return {name: _unpack_value(value) for name, value in settings.items()}


def _unpack_value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_unpack_value(item) for item in value["tuple"])
    if "list" in value:
        return [_unpack_value(item) for item in value["list"]]
    if "dict" in value:
        return {_unpack_value(key): _unpack_value(item) for key, item in value["dict"]}
    if "estimator" in value:
        _require(value["estimator"] in _ESTIMATORS, "settings")
        return _estimator(value["estimator"])(**_unpack_settings(value["settings"]))
    if "object" in value:
        _require(value["object"] in (*_LEARNERS, *_LOSSES), "settings")
        home = learners if value["object"] in _LEARNERS else losses
        fields = {name: _unpack_value(item) for name, item in value["fields"].items()}
        return getattr(home, value["object"])(**fields)
    return value.get("description")


def _without_nan(value: Any) -> Any:
    """The same with None for what is not a number, which JSON does not know."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _with_nan(value: Any) -> Any:
    """The same with nan for None."""
    if isinstance(value, dict):
        return {key: _with_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_nan(item) for item in value]
    return float("nan") if value is None else value


def _estimator(name: str) -> Any:
    """Class of an estimator that is on the list."""
    import xtrellis

    return getattr(xtrellis, name)


# ---------------------------------------------------------------------- arrays small and sound


def _smallest_integers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Integers, none negative, in the smallest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _smallest_floats(values: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """Floats in half precision if that loses nothing, else as they are."""
    if values.size == 0 or float(np.abs(values).max()) > np.finfo(np.float16).max:
        return values
    half = values.astype(np.float16)
    return half if bool((half == values).all()) else values


def _integers(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    _require(array.dtype.kind in "iu", "integers")
    return array.astype(np.int64)


def _floats(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    _require(array.dtype in (np.float16, np.float32), "weights")
    return array.astype(np.float32, copy=False)


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**40:
        raise ModelFileError(f"a number in it is not sound: {value!r}")
    return value


def _pack_counts(counts: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Counts, most of them small: a byte each, compressed, and those from 255 on their own."""
    small = np.minimum(counts, 255).astype(np.uint8)
    return _squeezed(small.tobytes()), _smallest_integers(counts[counts >= 255])


def _unpack_counts(
    small: npt.NDArray[Any], large: npt.NDArray[Any], n_counts: int
) -> npt.NDArray[np.int64]:
    counts = np.frombuffer(_unsqueezed(small, n_counts), np.uint8).astype(np.int64)
    counts[counts == 255] = _integers(large)
    _require(counts.min(initial=0) >= 0, "large counts")
    return counts


def _squeezed(content: bytes) -> npt.NDArray[np.uint8]:
    """Bytes, compressed."""
    return np.frombuffer(lzma.compress(content, preset=6), np.uint8)


def _unsqueezed(array: npt.NDArray[Any], n_bytes: int) -> bytes:
    """Bytes of a known number, out of compression; never more, whatever the file says."""
    decompressor = lzma.LZMADecompressor(memlimit=2**28)
    content = decompressor.decompress(array.tobytes(), n_bytes + 1)
    _require(decompressor.eof and len(content) == n_bytes, "compressed part")
    return content


def _require(sound: bool | np.bool_, what: str) -> None:
    if not sound:
        raise ModelFileError(f"its {what} does not fit the rest: the file was altered or damaged")
