"""Model files: the same predictions to the bit, damage refused, the old file never lost."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from model_files import take_apart
from xtrellis import LTLSClassifier, TrellisClassifier, load_model
from xtrellis.decoding import VertexSoftmax
from xtrellis.learning import Arow
from xtrellis.model import ModelFileError
from xtrellis.model.model_file import write_model

MODELS = {
    "local": TrellisClassifier(random_state=0),
    "wide": TrellisClassifier(30, training="independent", random_state=0),
    "paper": TrellisClassifier.paper(4, random_state=0),
    "calibrated": TrellisClassifier.paper(4, calibration=0.2, random_state=0),
    "hinge": TrellisClassifier(6, decoding="squared_hinge", random_state=0),
    "cubed": TrellisClassifier(6, decoding="cubed_hinge", random_state=0),
    "softmax": TrellisClassifier(6, decoding=VertexSoftmax(0.5), learner=Arow(2.0)),
    "sklearn": TrellisClassifier(6, learner=LogisticRegression(), random_state=0),
    "ltls": LTLSClassifier(random_state=0),
}


def assert_same(a, b, X):
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    for one, other in zip(a.predict_top_k(X, 3), b.predict_top_k(X, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    assert a.predict(X).dtype == b.predict(X).dtype


# ---------------------------------------------------------------------- the same model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("pruned", [False, True])
def test_loaded_model_predicts_the_same_bits(name, pruned, rows, tmp_path):
    X, y = rows
    model = MODELS[name].fit(X, y)
    if pruned:
        model.prune(threshold=0.05)
    size = model.save(tmp_path / "model")
    assert size == (tmp_path / "model").stat().st_size
    loaded = load_model(tmp_path / "model")
    assert_same(model, loaded, X)
    assert_same(model, load_model(tmp_path / "model", verify=False), X)
    assert loaded.history_ == replace(model.history_, seconds=[])
    assert model.temperature_ == loaded.temperature_
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(30) * 7 - 100,
        np.arange(30, dtype=np.uint8),
        np.arange(30) / 2,
        np.array([f"E{k}.{k % 7}" for k in range(30)]),
        np.array([f"größe {k} 😀\n\t" for k in range(30)]),
        np.array([f"code {k}" for k in range(30)], dtype=object),
        np.array([f"code {k}".encode() for k in range(30)]),
        np.datetime64("2024-01-01") + np.arange(30),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_of_any_type(labels, rows, tmp_path):
    X, y = rows
    model = TrellisClassifier(5, random_state=0)
    if labels.dtype.kind in "MfS":  # no targets that scikit-learn takes
        model.fit(X, y)
        model.model_ = replace(model.model_, classes=labels)
    else:
        model.fit(X, labels[y])
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.classes_, model.classes_)


def test_settings_and_feature_names_come_back(rows, tmp_path):
    X, y = rows
    frame = pd.DataFrame(X[:, :50].toarray(), columns=[f"word {k}" for k in range(50)])
    model = TrellisClassifier(
        5, learner=Arow(0.5), class_weight={3: 2.0}, calibration=0.2, epochs=2, random_state=7
    ).fit(frame, y)
    model.prune(frame, y, max_drop=0.1)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert repr(loaded.get_params()) == repr(model.get_params())
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    assert loaded.pruning_ == model.pruning_
    assert_same(model, loaded, frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"word 3": "other"}))


def test_given_assignment_and_own_objects(rows, tmp_path):
    X, y = rows
    order = np.random.RandomState(0).permutation(30)
    model = TrellisClassifier(5, assignment=order, learner=LogisticRegression()).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.assignment, order)
    assert loaded.learner == "LogisticRegression()"  # to read; fitting again asks for a learner
    with pytest.raises(ValueError, match="learner must be"):
        loaded.fit(X, y)


def test_loaded_model_learns_on(rows, tmp_path):
    X, y = rows
    model = TrellisClassifier.paper(5, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    before = loaded.score(X, y)
    assert loaded.partial_fit(X, y).score(X, y) > before - 0.02


def test_arrays_are_read_or_mapped_on_request(rows, tmp_path):
    path = tmp_path / "model"
    TrellisClassifier(5, weight_bits=32, random_state=0).fit(*rows).save(path)
    for mmap in (False, True):
        base = load_model(path, mmap=mmap).weights_.values
        assert base.flags.writeable
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert (base.base is not None) == mmap


def test_mapped_model_predicts_the_same_bits(saved, rows):
    model, path = saved
    assert_same(model, load_model(path, mmap=True), rows[0])


def test_file_is_readable_by_safetensors(saved):
    model, path = saved
    arrays = load_file(path)
    np.testing.assert_array_equal(arrays["model.weights.bias"], model.weights_.bias)
    assert arrays.keys() == take_apart(path)[0].keys()
    with safe_open(path, "np") as file:
        facts = json.loads(file.metadata()["xtrellis"])
    model_parts = facts["model"]["parts"]["model"]["parts"]
    assert model_parts["trellis"]["parts"] == {"n_classes": 30, "slice_width": 5}


def test_header_is_strict_json(rows, tmp_path):
    model = TrellisClassifier(5, random_state=0).fit(*rows).prune(threshold=0.1)
    model.save(tmp_path / "model")
    with safe_open(tmp_path / "model", "np") as file:
        content = file.metadata()["xtrellis"]
    json.loads(content, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    loaded = load_model(tmp_path / "model")
    assert np.isnan(loaded.held_out_loss_)
    assert np.isnan(loaded.pruning_.accuracy_before)


@pytest.mark.parametrize("name", ["paper", "ltls", "local", "hinge", "calibrated"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_saved_and_as_fast(name, copied, rows, tmp_path):
    model = MODELS[name].fit(*rows)
    other = copied(model)
    model.save(tmp_path / "model")
    other.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "model").read_bytes()
    finders = [each.model_.path_finder() for each in (model, other)]
    step_by_step = [
        finder == each.model_._paths_step_by_step
        for finder, each in zip(finders, (model, other), strict=True)
    ]
    assert step_by_step == [name in ("ltls", "hinge")] * 2


def test_equal_models_have_equal_files(rows, tmp_path):
    contents = set()
    for _ in range(2):
        # A setting without a plain form, which is described in the same way each time.
        model = TrellisClassifier(5, random_state=np.random.RandomState(0)).fit(*rows)
        model.save(tmp_path / "model")
        contents.add((tmp_path / "model").read_bytes())
    assert len(contents) == 1
    assert load_model(tmp_path / "model").random_state == "RandomState(MT19937)"


def test_model_takes_two_bytes_per_weight_unless_told_otherwise(rows, tmp_path):
    X, y = rows
    for bits, dtype in ((8, np.int8), (32, np.float32)):
        model = TrellisClassifier.paper(5, random_state=0).fit(X, y)
        model.prune(threshold=0.2, bits=bits).save(tmp_path / "model")
        arrays = load_file(tmp_path / "model")
        assert arrays["model.weights.values"].dtype == dtype
        assert arrays["model.weights.columns"].dtype == np.uint8  # as blocks have fewer than 256


# ---------------------------------------------------------------------- what cannot be saved


def test_models_that_cannot_be_saved(rows, tmp_path):
    X, y = rows
    path = tmp_path / "model"
    curved = TrellisClassifier(5, learner=SVC()).fit(X, y)
    with pytest.raises(ModelFileError, match="has a SVC, which is not linear"):
        curved.save(path)
    own = TrellisClassifier(5, decoding=lambda z: (1 - z) ** 2).fit(X, y)
    with pytest.raises(ModelFileError, match="cannot be saved, as it is code"):
        own.save(path)
    odd = TrellisClassifier(5).fit(X, y)
    labels = np.array([None, *range(29)], dtype=object)
    odd.model_ = replace(odd.model_, classes=labels)
    with pytest.raises(ModelFileError, match="classes: labels of type NoneType, int cannot be"):
        odd.save(path)
    broken = TrellisClassifier(5).fit(X, y)
    broken.weights_.bias[3] = np.nan
    with pytest.raises(ModelFileError, match="weights must be finite, but bias holds NaN"):
        broken.save(path)
    with pytest.raises(ModelFileError, match="model is of type LogisticRegression"):
        write_model(LogisticRegression().fit(X, y), path)
    with pytest.raises(ValueError, match="not fitted"):
        TrellisClassifier().save(path)
    assert list(tmp_path.iterdir()) == []


def test_missing_files(saved, tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        saved[0].save(tmp_path / "no folder" / "model")


# ---------------------------------------------------------------------- damage


def test_file_grows_with_the_features_that_occur(rows, tmp_path):
    """The same rows among 400 columns and among a million."""
    X, y = rows
    sizes = []
    for n_features in (400, 10**6):
        wide = sparse.csr_matrix((X.data, X.indices, X.indptr), (900, n_features))
        model = TrellisClassifier.paper(4, random_state=0).fit(wide, y)
        sizes.append(model.save(tmp_path / "model"))
    assert sizes[1] < sizes[0] + 100
