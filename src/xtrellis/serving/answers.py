"""Answers to requests: labels and probabilities, sets, explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._arrays import canonical_csr
from .drawing import drawings
from .models import ServedModel
from .requests import MOST_IN_SETS, PredictRequest, Row

N_WORDS = 10  # listed for and against a class


def answer(served: ServedModel, request: PredictRequest) -> dict[str, Any]:
    """Everything that a request asks for, or a ValueError if the model cannot take it.

    Texts are turned into rows once, and everything else is computed from these rows.
    """
    _check_kind(served, request)
    if not request.inputs:
        return {"model": served.name, "results": []}
    if served.takes_texts:
        rows = served.features_of(request.inputs)
    else:
        rows = _matrix(served, request.inputs)
    labels, probabilities = served.top_k(rows, request.top_k)
    results = [
        _result(*each, request)
        for each in zip(labels.tolist(), probabilities.tolist(), strict=True)
    ]
    if served.takes_texts:
        for result, n_terms in zip(results, np.diff(rows.indptr).tolist(), strict=True):
            result["known_terms"] = n_terms
    if request.coverage is not None:
        for result, found in zip(results, _sets(served, rows, request.coverage), strict=True):
            result["set"] = found
    if request.explain:
        for i, result in enumerate(results):
            result["explanation"] = _explanation(served, canonical_csr(rows[i]))
    return {"model": served.name, "results": results}


# ---------------------------------------------------------------------- rows


def _check_kind(served: ServedModel, request: PredictRequest) -> None:
    """Raise an error about texts where the model takes rows, or the other way round."""
    if served.takes_texts != (request.rows is None):
        takes = "texts" if served.takes_texts else "rows"
        raise ValueError(f"the model takes {takes}: pass {takes!r}")


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
    if values.size and np.abs(values).max() > np.finfo(np.float32).max:
        raise ValueError("a value is too large: values are stored in 32 bits, at most 3.4e38")
    indices = np.array(numbers, np.int64) - first
    X = sparse.csr_matrix((values, indices, indptr), shape=(len(rows), n_features))
    return canonical_csr(X)


# ---------------------------------------------------------------------- answers


def _result(labels: list[Any], probabilities: list[float], request: PredictRequest) -> Any:
    """Labels and probabilities for one text or row, and the answer: the best label or none."""
    abstains = request.min_probability is not None and probabilities[0] < request.min_probability
    return {
        "answer": request.otherwise if abstains else labels[0],
        "abstained": abstains,
        "labels": _listed(labels, probabilities),
    }


def _listed(labels: list[Any], probabilities: list[float]) -> list[dict[str, Any]]:
    """Labels beside their probabilities."""
    return [
        {"label": label, "probability": probability}
        for label, probability in zip(labels, probabilities, strict=True)
    ]


def _sets(served: ServedModel, rows: Any, coverage: float) -> list[Any]:
    """One set of labels per row, or an error if the sets could become too large."""
    most = max(MOST_IN_SETS // len(served.estimator.classes_), 1)
    if rows.shape[0] > most:
        raise ValueError(f"at most {most} texts or rows can have sets at once")
    sets, probabilities = served.classifier.predict_set(rows, coverage, return_proba=True)
    return [
        _listed(own.tolist(), likely.tolist())
        for own, likely in zip(sets, probabilities, strict=True)
    ]


def _explanation(served: ServedModel, row: Any) -> dict[str, Any]:
    """The words that decided, the edges of the path, and the trellises to draw it on."""
    found = served.classifier.explain(row, top=N_WORDS).renamed(served.name_of)
    return {
        "label": found.label,
        "probability": found.probability,
        "margin": found.margin,
        "bias": found.bias,
        "in_favour": [_word(each) for each in found.in_favour[:N_WORDS]],
        "against": [_word(each) for each in found.against[:N_WORDS]],
        "similarity": found.similarity,
        "against_rivals": found.against_rivals,
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
        "trellises": drawings(served.classifier, row, found.label),
    }


def _word(contribution: Any) -> dict[str, Any]:
    return {"feature": contribution.feature, "amount": contribution.amount}
