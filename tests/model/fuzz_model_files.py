"""Fuzz model files: altered arrays and facts under a right checksum, loaded and predicted with.

No file may do anything but load and predict, or be refused in one line. Run it under bounds checks,
with a cache of kernels of its own, as Numba's does not tell checked kernels from others:

    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/checked python tests/model/fuzz_model_files.py 100000

After the number may stand a seed, and a folder of models; ``write FOLDER`` trains these.
"""

import copy
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from model_files import put_together, take_apart
from xtrellis import (
    LTLSClassifier,
    TrellisClassifier,
    TrellisEnsemble,
    TrellisTextClassifier,
    load_model,
)
from xtrellis.choosing_reranking import rivals_of
from xtrellis.fitting import labelled_rows
from xtrellis.model import ModelFileError
from xtrellis.model.packed_arrays import Counts, Texts

N_CLASSES, N_FEATURES = 13, 40

# None so large that a loaded model of as many features would fill the memory.
INTEGERS = (-1, 0, 1, 2, 3, 5, 13, 40, 255, 256, 65_535, 65_536, 2**20, 2**40, 2**62, 2**63, 10**30)
FLOATS = (0.0, -1.0, 1e-30, 0.5, 1.0, 3.0, 1e10, 1e30, 3e38, -3e38, 1e300, 5e-324)
OTHERS = (None, True, False, "", "exponential", "softmax", "U", "nan", [], {}, [1, 2], ["a"])
WRAPPED = (
    {"float": "nan"},
    {"float": "-inf"},
    {"tuple": [1, 1]},
    {"tuple": []},
    {"dict": {}},
    {"items": []},
    {"array": "float32"},
    {"shared": "model.classes"},
    {"shared": "model.weights.bias"},
    {"type": "VertexSoftmax", "parts": {"temperature": 1e-40, "power": 2, "normalisation": 0.5}},
    {"type": "PathHinge", "parts": {"power": 300.0}},
    {"type": "Loss", "parts": {"name": "log"}},
    {"type": "BestPaths", "parts": {"temperature": 1e-300, "rest": 1e300}},
    {"type": "Trellis", "parts": {"n_classes": 13, "slice_width": 2}},
)
TYPES = ("bool", "uint8", "int8", "uint16", "int32", "int64", "uint64", "f2", "f4", "f8")


def rows(n_features, n_rows=6):
    """Rows over the first columns and the last one."""
    rng = np.random.default_rng(0)
    columns = np.unique(np.append(np.arange(min(n_features, N_FEATURES)), n_features - 1))
    dense = rng.normal(size=(n_rows, len(columns))) * (rng.random((n_rows, len(columns))) < 0.5)
    coordinates = np.repeat(np.arange(n_rows), len(columns)), np.tile(columns, n_rows)
    return sparse.csr_matrix((dense.ravel(), coordinates), (n_rows, n_features), dtype=np.float32)


def texts(n_rows=60):
    """Texts of a few words, one of them the class's own."""
    draw = random.Random(0)
    words = [f"w{k}" for k in range(N_FEATURES)]
    labels = [k % N_CLASSES for k in range(n_rows)]
    return [" ".join([f"class{k}", *draw.choices(words, k=3)]) for k in labels], labels


def models():
    """One fitted model of every kind."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % N_CLASSES
    X = rng.random((120, N_FEATURES)) * (rng.random((120, N_FEATURES)) < 0.3)
    X[np.arange(120), y] += 2
    names = np.array([f"class {k}" for k in range(N_CLASSES)])
    single = {
        "local": TrellisClassifier(random_state=0),
        "independent": TrellisClassifier(3, training="independent", random_state=0),
        "one-vs-rest": TrellisClassifier(N_CLASSES, training="independent", random_state=0),
        "paper": TrellisClassifier.paper(4, random_state=0),
        "calibrated": TrellisClassifier.paper(4, calibration=0.3, random_state=0),
        "exact": TrellisClassifier(5, weight_bits=32, prune_threshold=0.0, random_state=0),
        "hinge": TrellisClassifier(5, decoding="squared_hinge", random_state=0),
        "cubed": TrellisClassifier(5, decoding="cubed_hinge", random_state=0),
        "re-ranked": TrellisClassifier(4, rerank=2.0, random_state=0),
        "room": TrellisClassifier(4, max_classes=20, rerank=2.0, random_state=0),
        "sklearn": TrellisClassifier(4, learner=LogisticRegression(), random_state=0),
        "ltls": LTLSClassifier(random_state=0),
        "ensemble": TrellisEnsemble(TrellisClassifier(4), 2, random_state=0),
    }
    found = {name: model.fit(X, names[y]) for name, model in single.items()}
    many = rng.random((600, N_FEATURES)), np.arange(600) % N_CLASSES
    found["sets"] = TrellisClassifier(4, C=1.0, calibration=0.3, random_state=0).fit(*many)
    assert found["sets"].model_.conformal is not None
    for name in ("local", "room"):  # rivals are for more rows than these
        clf = found[f"{name}, rivals"] = copy.deepcopy(found[name])
        learned = rivals_of(clf.model_, labelled_rows(clf, X, names[y], None))
        clf.model_ = replace(clf.model_, rivals=replace(learned, strength=1.0))
    found["numbered"] = TrellisClassifier(4, random_state=0).fit(X, y)
    for name in ("local", "paper", "ltls", "ensemble"):
        found[f"{name}, pruned"] = copy.deepcopy(found[name]).prune(threshold=0.05)
    for name, settings in {
        "text": {},
        "characters": {"characters": (2, 3), "words": (1, 1)},
        "hashed": {"hash_size": 64},
    }.items():
        inner = TrellisClassifier(4, random_state=0)
        found[name] = TrellisTextClassifier(inner, **settings).fit(*texts())
    ensemble = TrellisEnsemble(TrellisClassifier(4), 2, random_state=0)
    found["text ensemble"] = TrellisTextClassifier(ensemble).fit(*texts())
    return found


# ---------------------------------------------------------------------- alterations


def altered(arrays, facts, draw):
    """Arrays and facts of a file with one to three things changed."""
    arrays, facts = dict(arrays), copy.deepcopy(facts)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        change = draw.choice((change_array, change_array, change_fact, change_fact, change_packed))
        change(arrays, facts, draw)
    return arrays, facts


def change_array(arrays, facts, draw):
    """Alter an array: some of its numbers, its size, shape or type, or swap it with another."""
    if not arrays:
        return
    name = draw.choice(sorted(arrays))
    array = np.array(arrays[name])
    how = draw.randrange(9)
    if how <= 2 and array.size:
        flat = array.reshape(-1)
        for _ in range(draw.choice((1, 1, 4))):
            flat[draw.randrange(flat.size)] = number_for(flat, draw)
    elif how == 3 and array.size:
        flat = array.reshape(-1).view(np.uint8)
        flat[draw.randrange(flat.size)] = draw.randrange(256)
    elif how == 4:
        array = array[: draw.randrange(len(array) + 1)]
    elif how == 5:
        array = np.concatenate([array, array[: draw.randrange(len(array) + 1)]])
    elif how == 6:
        with np.errstate(all="ignore"):
            array = array.astype(draw.choice(TYPES))
    elif how == 7:
        array = draw.choice((array.reshape(-1), array.reshape(1, -1), array.T, array[::-1]))
    else:
        other = draw.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
        return
    arrays[name] = np.ascontiguousarray(array)


def number_for(flat, draw):
    """Some number of the type of an array, often at its limits or just above the largest."""
    dtype = flat.dtype
    if dtype.kind == "b":
        return draw.random() < 0.5
    if dtype.kind == "f":
        value = draw.choice((*FLOATS, float("nan"), float("inf"), draw.gauss(0, 1)))
        with np.errstate(all="ignore"):
            return np.array(value).astype(dtype)
    limits = np.iinfo(dtype)
    near = [int(flat.max()) + 1] * 8 + [int(flat.max()), int(flat.min())]
    value = draw.choice((limits.min, limits.max, *near, *INTEGERS, draw.randrange(limits.max)))
    return min(max(value, limits.min), limits.max)


def change_fact(arrays, facts, draw):
    """Replace, remove, add or exchange a fact somewhere, or change a number in all its places."""
    places = list(walk(facts["model"])) or [(facts, "model")]
    holder, key = draw.choice(places)
    how = draw.randrange(8)
    if how <= 2:
        holder[key] = copy.deepcopy(draw.choice((*INTEGERS, *FLOATS, *OTHERS, *WRAPPED)))
    elif how == 3 and isinstance(holder[key], int):
        holder[key] += draw.choice((-1, 1))
    elif how == 4:
        del holder[key]
    elif how == 5 and isinstance(holder, dict):
        holder[draw.choice(("colour", "type", "parts", "n", "loss", "weights"))] = holder[key]
    elif how == 6:
        other, at = draw.choice(places)
        holder[key], other[at] = copy.deepcopy(other[at]), copy.deepcopy(holder[key])
    else:
        old = draw.choice([h[k] for h, k in places if type(h[k]) is int] or [0])
        new = draw.choice((old - 1, old + 1, *INTEGERS))
        for each, at in places:
            if type(each[at]) is int and each[at] == old:
                each[at] = new


def walk(facts):
    """Every place in nested facts, as its holder and key."""
    keys = facts.keys() if isinstance(facts, dict) else range(len(facts))
    for key in list(keys):
        yield facts, key
        if isinstance(facts[key], dict | list):
            yield from walk(facts[key])


def change_packed(arrays, facts, draw):
    """Alter counts or texts inside their compression, their number in step or not."""
    packed = [
        (holder[key]["parts"], name)
        for holder, key, name in named(facts["model"], "")
        if holder[key].get("type") in ("Counts", "Texts")
    ]
    if not packed:
        return
    parts, name = draw.choice(packed)
    try:
        if "n_bytes" in parts:
            values = Texts(**{**parts, "text": arrays[f"{name}.text"]}).values()
            values[draw.randrange(len(values))] = draw.choice(("", "a", "w1", "x" * 50, *values))
            changed = Texts.of(values)
            parts["n_bytes"], arrays[f"{name}.text"] = changed.n_bytes, changed.text
        else:
            small, large = arrays[f"{name}.small"], arrays[f"{name}.large"]
            values = Counts(parts["n"], small, large).values(10**6)
            for _ in range(draw.choice((1, 1, 2, 4))):
                at = draw.randrange(len(values))
                values[at] = max(0, draw.choice((values[at] + 1, values[at] - 1, 0, 1, 255, 2**62)))
            if draw.random() < 0.3:
                values = draw.choice((values[:-1], np.append(values, 1), np.zeros(10**6, int)))
            changed = Counts.of(values)
            arrays[f"{name}.small"], arrays[f"{name}.large"] = changed.small, changed.large
        parts["n"] = changed.n
    except Exception:
        return  # altered beyond recognition before


def named(facts, name):
    """Every object in nested facts, as its holder, key and the name of its arrays."""
    keys = facts.keys() if isinstance(facts, dict) else range(len(facts))
    for key in keys:
        if not isinstance(facts[key], dict | list):
            continue
        inner = name if key in ("parts", "dict", "tuple", "items") else f"{name}.{key}".lstrip(".")
        if isinstance(facts[key], dict) and {"type", "parts"} <= facts[key].keys():
            yield facts, key, inner
        yield from named(facts[key], inner)


# ---------------------------------------------------------------------- what a file may do


def use(path, draw):
    """Load a file and predict with it in every way; returns what came of it."""
    verify, mmap = draw.random() < 0.5, draw.random() < 0.2
    try:
        model = load_model(path, verify=verify, mmap=mmap)
    except ModelFileError as error:
        return "refused" if "\n" not in str(error) else "refused in several lines"
    X = texts(6)[0] if hasattr(model, "features_") else rows(model.n_features_in_)
    steps = [
        lambda: model.predict(X),
        lambda: model.predict_top_k(X, min(3, len(model.classes_))),
        lambda: model.predict_proba(X),
    ]
    if hasattr(model, "row_predictor"):
        row = (X[0],) if hasattr(model, "features_") else (X[0].indices, X[0].data)
        steps.append(lambda: model.row_predictor()(*row))
    inside = getattr(model, "classifier_", model)
    parts = getattr(inside, "estimators_", [inside])
    if not any(part.model_.weights.nonlinear for part in parts):
        steps.append(lambda: model.explain(X[0]))
    if parts[0].model_.conformal is not None and parts[0] is inside:
        steps.append(lambda: model.predict_set(X, 0.9))
    if draw.random() < 0.1:
        steps += [lambda: model.prune(threshold=0.05).predict(X), lambda: model.save(path)]
        steps.append(lambda: load_model(path).predict(X))
    outcome = "loaded"
    for step in steps:
        try:
            step()
        except ValueError as error:
            if not is_overflow(error):
                raise
            outcome = "loaded, overflow reported"
    return outcome


def is_overflow(error):
    """Whether an error says that huge weights led to margins or costs that are not finite."""
    message = str(error)
    return "\n" not in message and (
        "margins must be finite" in message
        or ("gave an edge cost of" in message and "must be finite" in message)
    )


def write_models(folder):
    """Train a model of each kind, and save it under its name."""
    for name, model in models().items():
        model.save(Path(folder) / name)


def fuzz(n_files, seed=0, show=lambda outcomes: None, ready=None):
    """Numbers of outcomes of so many altered files, and the traces of unexpected ones.

    ``ready`` is a folder of models, if they are trained already.
    """
    draw = random.Random(seed)
    outcomes, traces, slowest = Counter(), {}, 0.0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model"
        sources = []
        if ready is None:
            ready = Path(folder) / "models"
            ready.mkdir()
            write_models(ready)
        for model in sorted(Path(ready).iterdir()):
            shutil.copy(model, path)
            assert use(path, random.Random(0)) == "loaded", model.name
            shutil.copy(model, path)
            sources.append((model.name, *take_apart(path)))
        for number in range(n_files):
            name, arrays, facts = sources[number % len(sources)]
            put_together(path, *altered(arrays, facts, draw))
            start = time.process_time()
            try:
                outcome = use(path, draw)
            except Exception as error:
                outcome = f"{name}: {type(error).__name__}: {str(error)[:80]}"
                traces.setdefault(outcome, traceback.format_exc())
            slowest = max(slowest, time.process_time() - start)
            outcomes[outcome] += 1
            if (number + 1) % 1_000 == 0:
                show(outcomes)
    return outcomes, traces, slowest


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
    if sys.argv[1] == "write":
        sys.exit(write_models(sys.argv[2]))
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    ready = sys.argv[3] if len(sys.argv) > 3 else None
    outcomes, traces, slowest = fuzz(
        int(sys.argv[1]),
        seed,
        lambda found: print(sum(found.values()), dict(found), flush=True),
        ready,
    )
    for outcome, trace in traces.items():
        print(f"--- {outcome}\n{trace}")
    for outcome, count in outcomes.most_common():
        print(f"{count:>9} {outcome}")
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"slowest file: {slowest:.2f} s of CPU time; memory: {megabytes:.0f} MB")
