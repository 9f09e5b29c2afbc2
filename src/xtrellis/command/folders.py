"""Folders of converted rows, where the commands take a file: what to train on, whom to ask."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from .rows import (
    RowOptions,
    TrainingData,
    as_labels,
    check_classes,
    check_kind,
    load,
    parse,
    read_texts,
    read_training,
    terms_of,
)


def read_or_open(rows: Path, valid: Path | None, options: RowOptions, memory: float) -> Any:
    """Training rows: read, or if they are a folder that is not to be read, opened.

    That is a folder of texts, or one of features that cannot be trained on in so many bytes.
    """
    if not rows.is_dir():
        return read_training(rows, valid, options)
    from ..data.shards import open_shards
    from ..fitting_from_disk import memory_to_fit

    shards = open_shards(rows)
    if shards.features is None and memory_to_fit(shards) <= memory:
        return read_training(rows, valid, options)
    first_feature = None if shards.features is not None else shards.first_feature
    if first_feature is not None and options.zero_based not in (None, first_feature == 0):
        raise ValueError(
            f"{rows}: its features were counted from {first_feature} when it was converted; "
            "convert the rows again to count them otherwise"
        )
    check_classes(rows, shards.classes, shards.encoded_labels(), None)
    opened = TrainingData(None, None, first_feature=first_feature, shards=shards)
    if valid is None:
        return opened
    if first_feature is None:
        X_valid, y_valid, terms = read_texts(valid, options, shards.classes)
        check_terms(valid, terms, shards.features, "those of the training rows", rows)
        return replace(opened, X_valid=X_valid, y_valid=y_valid, valid_terms=terms)
    other = parse(valid, options)
    is_text = isinstance(other, tuple) or terms_of(valid) is not None
    check_kind(valid, is_text, False, "training rows are")
    if other.first_feature == 0 and first_feature == 1:
        raise ValueError(f"{valid}: there is a feature 0, but those of {rows} are counted from 1")
    X_valid = other.matrix(shards.n_features, first_feature == 0, "warn")
    return replace(opened, X_valid=X_valid, y_valid=as_labels(valid, other.y, shards.classes))


def check_from_disk(
    rows: Path, data: TrainingData, classifier: Any, prune: float | None, memory: float
) -> None:
    """Raise an error about options that need all rows in memory; ``memory`` is in gigabytes."""
    import math

    from ..fitting_from_disk import memory_to_fit

    needed = memory_to_fit(data.shards)
    if needed <= memory * 2**30:
        return
    if prune is not None and data.X_valid is None:
        raise ValueError(
            f"{rows}: --prune needs --valid if rows are not read into memory, which --memory "
            f"{memory:g} is too little for"
        )
    for option, given in (
        ("--trellises", hasattr(classifier, "estimator")),
        ("--training", getattr(classifier, "training", "joint") != "local"),
        ("--learner", getattr(classifier, "learner", "svm") != "svm"),
        ("--width auto", getattr(classifier, "slice_width", None) == "auto"),
    ):
        if given:
            enough = math.ceil(needed / 2**30 * 10) / 10
            raise ValueError(
                f"{rows}: {option} needs the rows in memory, which --memory {memory:g} is too "
                f"little for; omit it, or raise --memory to {enough:g}"
            )


def check_terms(path: Path, found: Any, wanted: Any, whose: str, like: Path | None) -> None:
    """Raise an error if a folder of texts has other terms than it should; None has none."""
    if found is None or found.equals(wanted):
        return
    convert = "" if like is None else f"convert it with --like {like}, or "
    raise ValueError(f"{path}: its terms are not {whose}; {convert}name the file of texts instead")


def load_for(model: Path, rows: Path, jobs: int, quickly: bool = False) -> Any:
    """The model that can answer these rows: all of it, or a part."""
    return part_for(load(model, jobs, quickly and not rows.is_dir()), rows, model)


def part_for(loaded: Any, rows: Path, model: Path) -> Any:
    """The model, or the part of it that can answer these rows.

    If they are a folder of texts, that is the part of a text model that takes their features; both
    must have the same terms.
    """
    if not rows.is_dir():
        return loaded
    features = terms_of(rows)
    own = getattr(loaded, "features_", None)
    if features is None or own is None:
        check_kind(rows, features is not None, own is not None, "the model takes")
        return loaded
    check_terms(rows, features, own, "those that the model was trained on", model)
    return loaded.classifier_
