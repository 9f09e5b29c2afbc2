"""``xtrellis train``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as opt
from .compiling import compile_ahead, timed
from .errors import busy, note
from .folders import check_from_disk, check_terms, read_or_open
from .outputs import check_output, save_model, size_in_words
from .rows import RowOptions, read_descriptions
from .small import interpret_if_small
from .words import count, members, pruned, widths_in_words


def train(
    rows: opt.Labelled,
    model: opt.NewModel,
    format: opt.FormatOption = None,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    zero_based: opt.ZeroBasedInTraining = None,
    valid: Annotated[
        Path | None, typer.Option(help="Rows to measure accuracy on, and to prune with.")
    ] = None,
    prune: Annotated[
        float | None,
        typer.Option(help="Prune, losing at most this much accuracy; 0.01 is one point."),
    ] = None,
    class_texts: Annotated[
        Path | None,
        typer.Option(help="Descriptions of classes, label<TAB>text, to train on as well."),
    ] = None,
    width: Annotated[
        str | None, typer.Option(help="Slice width b, or auto; if omitted, chosen by fit.")
    ] = None,
    training: opt.TrainingOption = opt.Training.local,
    learner: opt.LearnerOption = None,
    C: opt.COption = None,
    epochs: opt.Epochs = None,
    trellises: Annotated[
        int, typer.Option(min=1, help="Number of trellises, whose probabilities are averaged.")
    ] = 1,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder for finished parts, from which an interrupted training is resumed. "
            "It is emptied when the model is written.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=1e6,
            help="Gigabytes to train in; a folder of rows that needs more is read part by part.",
        ),
    ] = 1.0,
    words: opt.TrainedWords = "auto",
    characters: opt.TrainedCharacters = "auto",
    min_df: opt.MinDf = 1,
    hash_size: opt.HashSize = None,
    jobs: opt.Jobs = -1,
    seed: opt.Seed = 0,
) -> None:
    """Train a model on rows with labels, and write it to a file.

    Labels must not contain tabs or newlines, which separate the fields and lines of predictions.
    """
    check_output(model, rows, valid, class_texts)
    if prune is not None and not 0 <= prune < 1:
        raise typer.BadParameter(f"--prune must be at least 0 and below 1, got {prune}")
    if not interpret_if_small(rows):
        compile_ahead()
    classifier = opt.new_classifier(training, width, learner, C, epochs, jobs, seed, checkpoint)
    if trellises > 1:
        from ..ensemble import TrellisEnsemble

        classifier = TrellisEnsemble(classifier, trellises, n_jobs=jobs, random_state=seed)
    options = RowOptions(format, text_column, label_column, zero_based, delimiter, header)
    terms = words, characters, min_df, hash_size
    with busy("reading rows"):
        data = read_or_open(rows, valid, options, memory * 2**30)
    if data.shards is not None:
        check_from_disk(rows, data, classifier, prune, memory)
    descriptions = None
    if class_texts is not None:
        if data.first_feature is not None:
            raise ValueError("--class-texts needs texts to train on, not svmlight features")
        if data.shards is not None:
            raise ValueError("--class-texts needs a file of texts to train on, not a folder")
        descriptions = read_descriptions(class_texts)
    if data.first_feature is not None:
        opt.check_no_terms(f"{rows}: these are features, not texts", *terms)
    elif data.shards is not None:
        opt.check_no_terms(f"{rows}: its texts became features when it was converted", *terms)
    estimator = classifier
    if data.first_feature is None:
        estimator = opt.new_text_classifier(classifier, *terms)
    layout = options.layout()
    if valid is not None and data.valid_terms is not None and data.shards is None:
        found = _terms_to_learn(estimator, data.X, descriptions)
        check_terms(valid, data.valid_terms, found, "those of the training rows", None)
    fit = _fit_in_memory(estimator, data, descriptions)
    if data.shards is not None:
        fit = partial(estimator.fit_shards, data.shards, memory=int(memory * 2**30))
    with busy("training"), _naming(rows):
        seconds, size = _train_and_save(estimator, data, fit, prune, model, layout)
    found = getattr(estimator, "classifier_", estimator)
    note(
        f"{count(data.n_rows, 'row')}, {count(len(estimator.classes_), 'class', 'classes')}, "
        f"{count(found.n_features_in_, 'feature')}: trained in {seconds:.1f} s, "
        f"{widths_in_words(members(found))}"
    )
    if prune is not None:
        note(pruned(found.pruning_))
    if data.X_valid is not None:
        part = estimator if data.valid_terms is None else found
        accuracy = float((part.predict(data.X_valid) == data.y_valid).mean())
        note(f"accuracy on {valid}: {accuracy:.2%}")
    note(f"{model}: {size_in_words(size)}")


@contextmanager
def _naming(rows: Path) -> Iterator[None]:
    """Name the file in errors about what its rows are."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith(("X has ", "the texts ")):
            raise
        told = str(error).replace("X has ", "there is ", 1).partition(", for example with ")[0]
        raise ValueError(f"{rows}: {told}") from None


def _fit_in_memory(
    estimator: Any, data: Any, descriptions: dict[str, list[str]] | None
) -> Callable[[], Any]:
    options = {} if descriptions is None else {"class_texts": descriptions}
    return partial(estimator.fit, data.X, data.y, **options)


def _train_and_save(
    estimator: Any,
    data: Any,
    fit: Callable[[], Any],
    prune: float | None,
    model: Path,
    layout: dict[str, Any],
) -> tuple[float, int]:
    """Seconds of training, and the size of the model file.

    The checkpoint is emptied only when the model is on disk.
    """
    from ..learning.checkpoint import emptying_later

    with emptying_later():
        seconds = timed(fit)
        if prune is not None:
            _prune(estimator, data, prune)
        if data.first_feature is not None:
            estimator.first_feature_ = data.first_feature
        elif layout:
            estimator.layout_ = layout
        return seconds, save_model(estimator, model)


def _prune(estimator: Any, data: Any, max_drop: float) -> None:
    """Prune with the validation rows, or with a part of the training rows."""
    in_folder = data.shards is not None if data.X_valid is None else data.valid_terms is not None
    part = getattr(estimator, "classifier_", estimator) if in_folder else estimator
    if data.X_valid is not None:
        part.prune(data.X_valid, data.y_valid, max_drop=max_drop)
        return
    X, y = data.shards.in_memory() if in_folder else (data.X, data.y)
    share = _validation_share(max_drop, len(y))
    part.prune(X, y, max_drop=max_drop, validation_fraction=share)


def _terms_to_learn(
    estimator: Any, texts: list[str], descriptions: dict[str, list[str]] | None
) -> Any:
    """The terms that training will find, known before it begins."""
    described = [text for each in (descriptions or {}).values() for text in each]
    features = estimator.new_features()
    features.fit_transform([*texts, *described], estimator.min_df)
    return features


def _validation_share(max_drop: float, n_rows: int) -> float:
    """Share of the rows to prune with: a tenth, or more if so few could not show the drop."""
    enough = 1 / max_drop if max_drop > 0 else math.inf
    return min(max(enough / n_rows, 0.1), 0.5)
