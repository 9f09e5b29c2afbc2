"""The command ``xtrellis``: train, predict, evaluate, prune, choose a width, look inside.

Results go to standard output, everything else to standard error; progress is shown on a terminal
only. Exit codes: 0 done, 1 the data or a file is wrong, 2 the command is, 130 stopped by Ctrl-C.
What takes long to import is imported where it is used: ``--help`` is instant.
"""

from __future__ import annotations

import sys
import time
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .errors import leave_word, say, take_note, told
from .rows import (
    Format,
    batches,
    check_kind,
    check_target,
    json_line,
    like,
    load,
    output_lines,
    plain_line,
    print_facts,
    read,
    read_for,
)

app = typer.Typer(
    name="xtrellis",
    help="Extreme multiclass classification: one label out of hundreds to a million classes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Training(StrEnum):
    """Ways to train."""

    local = "local"
    independent = "independent"
    paper = "paper"
    joint = "joint"


class LearnerName(StrEnum):
    """Learners by name."""

    svm = "svm"
    arow = "arow"
    perceptron = "perceptron"


# What several commands take.
FormatOption = Annotated[
    Format | None, typer.Option("--format", "-f", help="Format of the input; told from it if not.")
]
TextColumn = Annotated[str, typer.Option(help="Column of a csv file that holds the texts.")]
LabelColumn = Annotated[str, typer.Option(help="Column of a csv file that holds the labels.")]
LearnerOption = Annotated[
    LearnerName | None, typer.Option(help="What is trained; svm if not said.")
]
COption = Annotated[
    float | None, typer.Option("-C", help="Of the SVM: weight of the loss; 1 if not said.")
]
Words = Annotated[str, typer.Option(help="Words in a term, or 0 for none.")]
Characters = Annotated[str, typer.Option(help="Characters in a term, such as 3-5; 0 for none.")]
MinCount = Annotated[int, typer.Option(help="Texts that a term must occur in.")]
HashSize = Annotated[
    int | None, typer.Option(help="Hash terms to so many columns; no vocabulary is kept.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 takes all cores.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all that is random.")]
Model = Annotated[Path, typer.Argument(help="Model file.", show_default=False)]
Labelled = Annotated[
    Path, typer.Argument(help="Rows with labels; - is standard input.", show_default=False)
]
OneBased = Annotated[
    bool,
    typer.Option(
        "--one-based",
        help="Feature 1 of the svmlight file is the model's first, as read_svmlight may take it.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON, one line a row or result.")]


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"xtrellis {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Extreme multiclass classification: one label out of hundreds to a million classes."""


# ---------------------------------------------------------------------- train


@app.command()
@told
def train(
    rows: Labelled,
    model: Annotated[Path, typer.Argument(help="File to write.", show_default=False)],
    format: FormatOption = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    valid: Annotated[
        Path | None, typer.Option(help="Rows to measure the accuracy and to prune on.")
    ] = None,
    prune: Annotated[
        float | None,
        typer.Option(help="Prune; accuracy that may be lost, such as 0.01 for one point."),
    ] = None,
    width: Annotated[
        str | None, typer.Option(help="Slice width b, or auto; by default about sqrt(K).")
    ] = None,
    training: Annotated[
        Training, typer.Option(help="How: ours, W-LTLS as in the paper, or LTLS (joint).")
    ] = Training.local,
    learner: LearnerOption = None,
    C: COption = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the rows.")] = None,
    trellises: Annotated[
        int, typer.Option(min=1, help="Trellises whose probabilities are averaged.")
    ] = 1,
    words: Words = "1-2",
    characters: Characters = "0",
    min_count: MinCount = 1,
    hash_size: HashSize = None,
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Train a model on rows with labels, and write it to a file."""
    import numpy as np

    check_target(model, rows, valid)
    if prune is not None and not 0 <= prune < 1:
        raise typer.BadParameter(f"--prune must be at least 0 and below 1, got {prune}")
    X, y = read(rows, format, text_column, label_column)
    classifier = _classifier(training, width, learner, C, epochs, jobs, seed)
    if trellises > 1:
        from ..ensemble import TrellisEnsemble

        classifier = TrellisEnsemble(classifier, trellises, n_jobs=jobs, random_state=seed)
    estimator = classifier
    if isinstance(X, list):
        estimator = _of_texts(classifier, words, characters, min_count, hash_size)
    n_features = None if isinstance(X, list) else X.shape[1]
    X_valid = y_valid = threshold = None
    if valid is not None:
        X_valid, y_valid = read(valid, format, text_column, label_column, n_features)
        check_kind(isinstance(X_valid, list), isinstance(X, list), valid)
        y_valid = like(y_valid, np.unique(y))
    elif prune is not None:
        from ..learning.pruning import held_out_threshold

        threshold = held_out_threshold(estimator, X, y, prune, seed)
    start = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - start
    if prune is not None:
        if threshold is None:
            estimator.prune(X_valid, y_valid, max_drop=prune)
        else:
            estimator.prune(threshold=threshold)
    size = estimator.save(model)
    found = getattr(estimator, "classifier_", estimator)
    say(
        f"{_count(len(y), 'row')}, {_count(len(estimator.classes_), 'class', 'classes')}, "
        f"{_count(found.n_features_in_, 'feature')}: trained in {seconds:.1f} s, "
        f"{_widths(_members(found))}"
    )
    if prune is not None:
        say(_pruned(found.pruning_))
    if X_valid is not None:
        say(f"accuracy on {valid}: {_accuracy(estimator, X_valid, y_valid):.2%}")
    say(f"{model}: {_size(size)}")


def _classifier(
    training: Training,
    width: str | None,
    learner: LearnerName | None,
    C: float | None,
    epochs: int | None,
    jobs: int,
    seed: int,
) -> Any:
    """Estimator of these options."""
    from .. import LTLSClassifier, TrellisClassifier

    _check_learner(training, learner, C)
    common: dict[str, Any] = {"epochs": epochs, "n_jobs": jobs, "random_state": seed}
    common["verbose"] = int(sys.stderr.isatty())
    b: Any = width
    if width is not None and width != "auto":
        if not width.isdecimal():
            raise typer.BadParameter(f"--width must be a number or auto, got {width!r}")
        b = int(width)
    if training is Training.joint:
        if b == "auto":
            raise typer.BadParameter("--width auto is not for --training joint: give a number")
        common["epochs"] = 5 if epochs is None else epochs
        return LTLSClassifier(2 if b is None else b, **common)
    if training is Training.paper:
        return TrellisClassifier.paper(b if b is not None else 10, **common)
    common.update(learner="svm" if learner is None else learner.value, C=1.0 if C is None else C)
    return TrellisClassifier(b, training=training.value, **common)


def _check_learner(training: Training, learner: LearnerName | None, C: float | None) -> None:
    """Complain of options that would be passed over."""
    fixed = {Training.paper: LearnerName.arow, Training.joint: LearnerName.perceptron}
    trained = fixed.get(training, learner or LearnerName.svm)
    if learner is not None and learner is not trained:
        raise typer.BadParameter(
            f"--training {training} is with {trained}, not --learner {learner}"
        )
    if C is not None and trained is not LearnerName.svm:
        raise typer.BadParameter(f"-C is of the SVM, and {trained} is trained")


def _of_texts(
    classifier: Any, words: str, characters: str, min_count: int, hash_size: int | None
) -> Any:
    """Estimator of texts with these terms."""
    from ..text import TrellisTextClassifier

    return TrellisTextClassifier(
        classifier,
        words=_lengths("--words", words),
        characters=_lengths("--characters", characters),
        min_count=min_count,
        hash_size=hash_size,
    )


# ---------------------------------------------------------------------- predict


@app.command()
@told
def predict(
    model: Model,
    rows: Annotated[Path, typer.Argument(help="Rows; - is standard input.")] = Path("-"),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output if not.")
    ] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Labels for a row.")] = 1,
    proba: Annotated[bool, typer.Option("--proba", "-p", help="Probabilities, too.")] = False,
    json: Json = False,
    format: FormatOption = None,
    text_column: TextColumn = "text",
    one_based: OneBased = False,
    jobs: Jobs = -1,
) -> None:
    """Classify rows: a line each, labels and probabilities separated by tabs, best first."""
    loaded = load(model, jobs)
    k = min(top_k, len(loaded.classes_))
    if str(rows) == "-" and sys.stdin.isatty():
        say("reading rows from the terminal, one a line; Ctrl-D ends")
    with output_lines(output) as write:
        for batch in batches(loaded, rows, format, text_column, one_based):
            if k == 1 and not (proba or json):
                write("".join(f"{label}\n" for label in loaded.predict(batch)))
                continue
            labels, shares = loaded.predict_top_k(batch, k)
            as_line = json_line if json else plain_line
            write(
                "".join(
                    as_line(*row, proba or json)
                    for row in zip(labels.tolist(), shares.tolist(), strict=True)
                )
            )


# ---------------------------------------------------------------------- evaluate, prune


@app.command()
@told
def evaluate(
    model: Model,
    rows: Labelled,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="For top-k accuracy.")] = 5,
    json: Json = False,
    format: FormatOption = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    one_based: OneBased = False,
    jobs: Jobs = -1,
) -> None:
    """Measure a model on rows with labels: accuracy, top-k accuracy, calibration, time."""
    import numpy as np

    loaded = load(model, jobs)
    X, y = read_for(loaded, rows, format, text_column, label_column, one_based)
    k = min(top_k, len(loaded.classes_))
    loaded.predict(X[:1])  # loads the kernels
    start = time.perf_counter()
    loaded.predict(X)
    seconds = time.perf_counter() - start
    labels, shares = loaded.predict_top_k(X, k)
    right = labels == y[:, np.newaxis]
    facts = {
        "rows": len(y),
        "accuracy": float(right[:, 0].mean()),
        f"top_{k}_accuracy": float(right.any(axis=1).mean()),
        "mean_probability": float(shares[:, 0].mean()),
        "rows_of_unknown_classes": int((~np.isin(y, loaded.classes_)).sum()),
        "microseconds_a_row": seconds / len(y) * 1e6,
    }
    print_facts(facts, json)


@app.command()
@told
def prune(
    model: Model,
    rows: Annotated[
        Path,
        typer.Argument(help="Rows with labels that it was not trained on.", show_default=False),
    ],
    pruned: Annotated[Path, typer.Argument(help="File to write.", show_default=False)],
    max_drop: Annotated[float, typer.Option(help="Accuracy that may be lost.")] = 0.01,
    threshold: Annotated[
        float | None, typer.Option(help="Remove weights up to this size; only measure on the rows.")
    ] = None,
    half: Annotated[bool, typer.Option(help="Round weights to half precision.")] = True,
    format: FormatOption = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    one_based: OneBased = False,
    jobs: Jobs = -1,
) -> None:
    """Remove small weights of a model, and write the smaller model to a file."""
    check_target(pruned, rows)
    loaded = load(model, jobs)
    X, y = read_for(loaded, rows, format, text_column, label_column, one_based)
    loaded.prune(X, y, max_drop=max_drop, threshold=threshold, half=half)
    done = getattr(loaded, "classifier_", loaded).pruning_
    before = model.stat().st_size
    size = loaded.save(pruned)
    say(f"{_pruned(done)}, accuracy {done.accuracy_before:.2%} -> {done.accuracy_after:.2%}")
    say(f"{pruned}: {_size(size)}, before {_size(before)}")


# ---------------------------------------------------------------------- widths, inspect, demo


@app.command()
@told
def widths(
    rows: Labelled,
    widths: Annotated[
        str | None, typer.Option(help="Widths to try, such as 2,5,10; a ladder if not.")
    ] = None,
    max_bytes: Annotated[float | None, typer.Option(help="Bytes that weights may take.")] = None,
    training: Annotated[Training, typer.Option(help="How.")] = Training.local,
    learner: LearnerOption = None,
    C: COption = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the rows.")] = None,
    words: Words = "1-2",
    characters: Characters = "0",
    min_count: MinCount = 1,
    hash_size: HashSize = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write.")] = None,
    format: FormatOption = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Train a ladder of slice widths and say which one the training data speak for."""
    from ..selection.widths import select_slice_width

    if training is Training.joint:
        raise typer.BadParameter("--training joint has no bound to choose a width by")
    if plot is not None:
        check_target(plot)
    X, y = read(rows, format, text_column, label_column)
    if isinstance(X, list):
        features = _of_texts(None, words, characters, min_count, hash_size).new_features()
        X = features.fit_transform(X, min_count)
    estimator = _classifier(training, None, learner, C, epochs, jobs, seed)
    ladder = None if widths is None else _numbers("--widths", widths)
    warnings.filterwarnings("ignore", "interrupted: ")  # the table says so
    selection = select_slice_width(
        X,
        y,
        estimator=estimator,
        widths=ladder,
        max_bytes=max_bytes,
        verbose=int(sys.stderr.isatty()),
        callback=lambda so_far: leave_word(so_far.table()),
    )
    if selection.interrupted:
        take_note()
    print(selection.table(), flush=True)
    if plot is not None:
        from ..model.atomic import replacing

        with replacing(plot) as beside:
            selection.plot(beside)
        say(f"picture: {plot}")
    if selection.interrupted:
        raise typer.Exit(130)


@app.command()
@told
def inspect(model: Model, json: Json = False) -> None:
    """Look inside a model file: what it was trained on, its graph, weights and settings."""
    from ..model.model_file import load_model

    loaded = load_model(model)
    found = getattr(loaded, "classifier_", loaded)
    members = _members(found)
    graphs, weights = [each.trellis_ for each in members], [each.weights_ for each in members]
    n_edges, n_weights = sum(g.n_edges for g in graphs), sum(w.n_nonzero for w in weights)
    facts: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "estimator": type(loaded).__name__,
        "classes": len(loaded.classes_),
        "labels": ", ".join(map(str, loaded.classes_[:5]))
        + (", ..." if len(loaded.classes_) > 5 else ""),
        "features": found.n_features_in_,
        "trellises": len(members),
        "slice_width": _one_or_all([g.slice_width for g in graphs]),
        "slices": _one_or_all([g.n_slices for g in graphs]),
        "edges": n_edges,
        "weights": n_weights,
        "share_of_weights": n_weights / max(1, n_edges * found.n_features_in_),
        "features_with_weights": _one_or_all([w.n_seen for w in weights]),
        "decoding": _one_or_all([repr(each.loss_) for each in members]),
        "temperature": _one_or_all([each.temperature_ for each in members]),
        "settings": " ".join(repr(loaded).split()),
    }
    if hasattr(found, "pruning_"):
        facts["pruned_at"] = found.pruning_.threshold
    print_facts(facts, json)


@app.command()
@told
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the report and its pictures.")
    ] = Path("demo_output"),
    jobs: Jobs = -1,
) -> None:
    """Run every part on bundled data, diagnosis wordings to ICD-10-CM codes."""
    from .demo import run

    run(output, jobs)


# ---------------------------------------------------------------------- options and words


def _members(found: Any) -> list[Any]:
    """The trellis classifiers that a model of features is made of: those of an ensemble, or it."""
    members: list[Any] = getattr(found, "estimators_", [found])
    return members


def _widths(members: list[Any]) -> str:
    """Slice widths, such as ``b = 40``, or ``3 trellises, b = 40``."""
    widths = _one_or_all([each.trellis_.slice_width for each in members])
    many = f"{len(members)} trellises, " if len(members) > 1 else ""
    return f"{many}b = {widths if isinstance(widths, int) else ', '.join(map(str, widths))}"


def _one_or_all(values: list[Any]) -> Any:
    """The value that all have in common, or else all of them."""
    return values[0] if all(value == values[0] for value in values) else values


def _accuracy(model: Any, X: Any, y: Any) -> float:
    return float((model.predict(X) == y).mean())


def _lengths(option: str, text: str) -> tuple[int, int] | None:
    """Range such as 1-2, or one number; 0 is none."""
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise typer.BadParameter(f"{option} must be a range such as 1-2, or 0; got {text!r}")
    return None if int(first) == 0 else (int(first), int(last or first))


def _numbers(option: str, text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"{option} must be numbers such as 2,5,10; got {text!r}")
    return [int(part) for part in parts]


def _pruned(done: Any) -> str:
    return f"weights up to {done.threshold:.4g} removed: {done.n_before:,} -> {done.n_after:,}"


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.2f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.1f} kB"
