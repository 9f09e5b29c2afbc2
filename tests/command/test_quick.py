"""What is loaded for prediction alone answers as the estimator does, and imports little."""

import subprocess
import sys

import numpy as np
import pytest

from samples import reports, topics
from xtrellis import (
    LTLSClassifier,
    TrellisClassifier,
    TrellisEnsemble,
    TrellisTextClassifier,
    load_model,
)
from xtrellis.command.quick import load_quickly
from xtrellis.model import ModelFileError

TEXTS, LABELS = reports()
ROWS, CLASSES = topics()

MODELS = {
    "text": lambda: TrellisTextClassifier(TrellisClassifier(4, random_state=0)),
    "hashed": lambda: TrellisTextClassifier(TrellisClassifier.paper(4), hash_size=256),
    "reranked": lambda: TrellisTextClassifier(TrellisClassifier(4, rerank=1.0)),
    "ltls": lambda: TrellisTextClassifier(LTLSClassifier(random_state=0)),
    "rows": lambda: TrellisClassifier(random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_the_estimator(name, tmp_path):
    X, y = (ROWS, CLASSES) if name == "rows" else (TEXTS, LABELS)
    MODELS[name]().fit(X, y).save(tmp_path / "model")
    slow, quick = load_model(tmp_path / "model"), load_quickly(tmp_path / "model", 2)
    np.testing.assert_array_equal(quick.classes_, slow.classes_)
    for rows in (X, X[:3]):
        np.testing.assert_array_equal(quick.predict(rows), slow.predict(rows))
        for ours, theirs in zip(
            quick.predict_top_k(rows, 3), slow.predict_top_k(rows, 3), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_what_only_an_estimator_can_answer(tmp_path):
    ensemble = TrellisEnsemble(TrellisClassifier(4), 2, random_state=0)
    TrellisTextClassifier(ensemble).fit(TEXTS, LABELS).save(tmp_path / "model")
    assert load_quickly(tmp_path / "model", 1) is None


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "model"
    MODELS["text"]().fit(TEXTS, LABELS).save(path)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="its checksum is wrong"):
        load_quickly(path, 1)
    path.write_bytes(b"no model")
    with pytest.raises(ModelFileError, match="not a model file"):
        load_quickly(path, 1)


def test_nothing_heavy_is_imported(tmp_path):
    MODELS["text"]().fit(TEXTS, LABELS).save(tmp_path / "model")
    code = (
        "import sys\n"
        "from xtrellis.command.app import app\n"
        f"app(['predict', {str(tmp_path / 'model')!r}], standalone_mode=False)\n"
        "heavy = {'sklearn', 'pandas', 'scipy.sparse', 'scipy.stats', 'joblib', 'matplotlib',\n"
        "         'scipy.linalg', 'numba.np.arraymath'}\n"  # which Numba needs only to compile
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code]
    for _ in range(2):  # the first run may have to compile
        done = subprocess.run(command, input="old burn\n", capture_output=True, text=True)
    assert done.stdout == "burn\n[]\n", done.stderr
