"""The model being served, and how a new file replaces it.

Each request reads ``current`` once and uses that model to the end. A new model is loaded and warmed
up while the old one still answers; a single assignment then swaps them. So no request waits for a
reload, is dropped by it, or sees parts of two models.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._arrays import canonical_csr
from ..model.model_file import load_model


@dataclass(frozen=True)
class ServedModel:
    """A loaded model, and what requests need to know about it.

    Attributes
    ----------
    name : str
        File name.
    estimator
        The classifier.
    loaded_at : datetime
    """

    name: str
    estimator: Any
    loaded_at: datetime

    @property
    def takes_texts(self) -> bool:
        """Whether the model classifies texts rather than rows of numbers."""
        return hasattr(self.estimator, "features_")

    @property
    def classifier(self) -> Any:
        """The classifier of rows: the inner one if the model classifies texts."""
        return getattr(self.estimator, "classifier_", self.estimator)

    @property
    def first_feature(self) -> int:
        """Number of the first feature in the training rows: 0 or 1."""
        return int(getattr(self.estimator, "first_feature_", 0))

    def features_of(self, texts: list[str]) -> Any:
        """Features of texts: rows for the inner classifier."""
        return canonical_csr(self.estimator.features_.transform(texts))

    def top_k(self, rows: Any, k: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """The k best classes of rows, best first, and their probabilities.

        The rows have been checked already; the checks of ``predict_top_k`` would double the time.
        """
        model = getattr(self.classifier, "model_", None)
        if model is None:  # several trellises
            return self.classifier.predict_top_k(rows, k)
        return model.best_labels(rows, k)

    def name_of(self, feature: Any) -> Any:
        """What clients call a feature: a term, a name, or its number in the training rows."""
        if self.takes_texts:
            return self.estimator.features_.term(feature)
        return feature if isinstance(feature, str) else int(feature) + self.first_feature

    def facts(self) -> dict[str, Any]:
        """What ``/health`` reports about the model."""
        facts: dict[str, Any] = {
            "model": self.name,
            "classes": len(self.estimator.classes_),
            "takes": "texts" if self.takes_texts else "rows",
            "features": int(self.classifier.n_features_in_),
            "loaded_at": self.loaded_at.isoformat(timespec="milliseconds"),
        }
        return facts if self.takes_texts else {**facts, "first_feature": self.first_feature}


class ModelHolder:
    """Holds the current model, and reloads it on request.

    Parameters
    ----------
    path : str or path
        Model file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from xtrellis import TrellisClassifier
    >>> path = os.path.join(tempfile.mkdtemp(), "model.xtrellis")
    >>> n_bytes = TrellisClassifier(random_state=0).fit(np.eye(4), [0, 1, 2, 3]).save(path)
    >>> holder = ModelHolder(path)
    >>> before = holder.current
    >>> holder.reload() is holder.current, before is holder.current
    (True, False)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self._one_at_a_time = threading.Lock()
        self.current = self._load()

    def reload(self) -> ServedModel:
        """Load the file again and serve it; if that fails, the old model stays."""
        with self._one_at_a_time:
            self.current = self._load()
            return self.current

    def _load(self) -> ServedModel:
        estimator = load_model(self.path)
        served = ServedModel(self.path.name, estimator, datetime.now(UTC))
        served.classifier.n_jobs = 1  # requests already run in parallel
        _warm_up(served)
        return served


def _warm_up(served: ServedModel) -> None:
    """Compile kernels and fill caches before the first request."""
    if served.takes_texts:
        rows = served.features_of(["warm up"])
    else:
        shape = 1, served.classifier.n_features_in_  # which may be billions
        rows = canonical_csr(sparse.csr_matrix(shape, dtype=np.float32))
    served.top_k(rows, 2)
