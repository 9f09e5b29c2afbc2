"""Answers to requests: labels and probabilities, sets, explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .drawing import drawings
from .models import ServedModel
from .requests import MOST_IN_SETS, PredictRequest, Row

N_WORDS = 10  # that an answer lists for and against a class


def answer(served: ServedModel, request: PredictRequest) -> dict[str, Any]:
    """Everything that a request asks, or a ValueError about what the model cannot take."""
    X = _model_input(served, request)
    if not request.inputs:
        return {"model": served.name, "results": []}
    clf = served.estimator
    labels, probabilities = served.top_k(X, request.top_k)
    results = [
        _result(own, shares, request)
        for own, shares in zip(labels.tolist(), probabilities.tolist(), strict=True)
    ]
    if request.coverage is not None:
        most = MOST_IN_SETS // len(clf.classes_)
        if len(request.inputs) > max(most, 1):
            raise ValueError(f"at most {max(most, 1)} texts or rows can have sets at once")
        for result, own in zip(results, clf.predict_set(X, request.coverage), strict=True):
            result["set"] = own.tolist()
    if request.explain:
        for i, result in enumerate(results):
            result["explanation"] = _explanation(served, X[i])
    return {"model": served.name, "results": results}


def _model_input(served: ServedModel, request: PredictRequest) -> Any:
    """Texts as they are; rows as a sparse matrix."""
    if served.takes_texts != (request.rows is None):
        takes = "texts" if served.takes_texts else "rows"
        raise ValueError(f"the model takes {takes}: pass {takes!r}")
    return request.inputs if served.takes_texts else _matrix(served, request.rows or [])


def _matrix(served: ServedModel, rows: list[Row]) -> Any:
    """Sparse rows as a matrix, with features numbered as in training."""
    first, n_features = served.first_feature, int(served.classifier.n_features_in_)
    numbers = [index for row in rows for index in row.indices]
    if numbers and not first <= min(numbers) <= max(numbers) < first + n_features:
        wrong = next(index for index in numbers if not first <= index < first + n_features)
        raise ValueError(
            f"index {wrong} is out of range: the model has features {first} to "
            f"{first + n_features - 1}"
        )
    indptr = np.cumsum([0, *(len(row.indices) for row in rows)])
    values = np.array([value for row in rows for value in row.values], np.float64)
    indices = np.array(numbers, np.int64) - first
    X = sparse.csr_matrix((values, indices, indptr), shape=(len(rows), n_features))
    X.sort_indices()
    return X


def _result(labels: list[Any], probabilities: list[float], request: PredictRequest) -> Any:
    """Labels and probabilities of one text or row, and the answer: the best, or none of them."""
    abstains = request.min_probability is not None and probabilities[0] < request.min_probability
    return {
        "answer": request.otherwise if abstains else labels[0],
        "abstained": abstains,
        "labels": [
            {"label": label, "probability": share}
            for label, share in zip(labels, probabilities, strict=True)
        ],
    }


def _explanation(served: ServedModel, row: Any) -> dict[str, Any]:
    """The words that decided, the edges of the path, and the trellises to draw it in."""
    found = served.estimator.explain(row, top=N_WORDS)
    if not served.takes_texts and not hasattr(served.estimator, "feature_names_in_"):
        found = found.renamed(lambda feature: int(feature) + served.first_feature)
    features = served.estimator.transform([row]) if served.takes_texts else row
    return {
        "label": found.label,
        "probability": found.probability,
        "margin": found.margin,
        "bias": found.bias,
        "in_favour": [_word(each) for each in found.in_favour[:N_WORDS]],
        "against": [_word(each) for each in found.against[:N_WORDS]],
        "similarity": found.similarity,
        "steps": [
            {
                "trellis": step.trellis,
                "slice": step.slice,
                "vertex": step.vertex,
                "head": step.head,
                "margin": step.margin,
                "probability": step.probability,
                "words": [_word(each) for each in step.contributions[:3]],
            }
            for step in found.steps
        ],
        "trellises": drawings(served.classifier, features, found.label),
    }


def _word(contribution: Any) -> dict[str, Any]:
    feature = contribution.feature
    feature = feature.item() if isinstance(feature, np.generic) else feature
    return {"feature": feature, "amount": contribution.amount}
