"""Model files loaded for prediction only, without scikit-learn.

Importing the base classes of our estimators from scikit-learn takes longer than everything else
that is needed to classify a line of text: it also imports ``scipy.stats`` and, if installed,
pandas. So the command reads only the trained trellis and the text features from the file, and uses
them directly.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..data.text_features import TextFeatures
    from ..prediction import TrellisModel

_SINGLE = ("TrellisClassifier", "LTLSClassifier")


def load_quickly(path: Path, jobs: int) -> QuickModel | None:
    """Model for prediction; None for ensembles, which need their estimator."""
    from ..data.tables import check_layout
    from ..model.model_file import reading

    with reading(path) as (facts, unpacker):
        name, features, layout = "", None, None
        if facts["type"] == "TrellisTextClassifier":
            text = facts["parts"]
            features = unpacker.unpack(text["features"], "features")
            layout = unpacker.unpack(text.get("layout"), "layout")
            check_layout(layout or {})
            name, facts = "classifier.", text["classifier"]
        if facts["type"] not in _SINGLE:
            return None
        parts = facts["parts"]
        model = unpacker.unpack(parts["model"], f"{name}model")
        model.check()
        if features is not None and features.n_columns != model.weights.n_features:
            raise ValueError("the text features do not suit the weights")
        return QuickModel(model, features, parts.get("first_feature"), layout, jobs)


class QuickModel:
    """A trained trellis that predicts as its estimator does."""

    def __init__(
        self,
        model: TrellisModel,
        features: TextFeatures | None,
        first_feature: int | None,
        layout: dict[str, Any] | None,
        jobs: int,
    ) -> None:
        self._model, self._jobs = model, jobs
        self.classes_ = model.classes
        self.n_features_in_ = model.weights.n_features
        if features is not None:
            self.features_ = features
        if first_feature is not None:
            self.first_feature_ = first_feature
        if layout is not None:
            self.layout_ = layout

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of each row or text."""
        return self.classes_[self._model.classify(self.rows(X), self._jobs)]

    def predict_top_k(self, X: Any, k: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """The k best classes of each row or text, best first, and their probabilities."""
        return self._model.best_labels(self.rows(X), k)

    def rows(self, X: Any) -> Any:
        """Rows as they are, or features of texts; a few texts do without SciPy."""
        from .._arrays import SparseRows, canonical_csr

        if isinstance(X, SparseRows):
            return X
        if hasattr(self, "features_") and isinstance(X, list):
            from ..data.text_features import FEW_TEXTS

            if len(X) <= FEW_TEXTS:
                return self.features_.rows(X)
            X = self.features_.transform(X)
        return canonical_csr(X)
