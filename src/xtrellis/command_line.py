"""The command ``xtrellis``: train, predict, evaluate, prune, choose a width, look inside.

Results go to standard output, everything else to standard error; progress is shown on a terminal
only. Exit codes: 0 done, 1 the data or a file is wrong, 2 the command is, 130 stopped by Ctrl-C.
What takes long to import is imported where it is used: ``--help`` is instant.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .endings import leave_word, say, take_note, told

app = typer.Typer(
    name="xtrellis",
    help="Extreme multiclass classification: one label out of hundreds to a million classes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

BATCH = 1_024  # texts that are classified at once


class Format(StrEnum):
    """Formats of input; see ``xtrellis.readers``."""

    svmlight = "svmlight"
    tsv = "tsv"
    fasttext = "fasttext"
    csv = "csv"
    lines = "lines"


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
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 takes all cores.")]
Seed = Annotated[int, typer.Option(help="Seed of all that is random.")]
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
        from . import __version__

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
    learner: Annotated[LearnerName, typer.Option(help="What is trained.")] = LearnerName.svm,
    C: Annotated[float, typer.Option("-C", help="Of the SVM: weight of the loss.")] = 1.0,
    epochs: Annotated[int | None, typer.Option(help="Passes over the rows.")] = None,
    words: Annotated[str, typer.Option(help="Words in a term, or 0 for none.")] = "1-2",
    characters: Annotated[
        str, typer.Option(help="Characters in a term, such as 3-5; 0 for none.")
    ] = "0",
    min_count: Annotated[int, typer.Option(help="Texts that a term must occur in.")] = 1,
    hash_size: Annotated[
        int | None, typer.Option(help="Hash terms to so many columns; no vocabulary is kept.")
    ] = None,
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Train a model on rows with labels, and write it to a file."""
    import numpy as np

    _check_target(model, rows, valid)
    if prune is not None and not 0 <= prune < 1:
        raise typer.BadParameter(f"--prune must be at least 0 and below 1, got {prune}")
    X, y = _read(rows, format, text_column, label_column)
    classifier = _classifier(training, width, learner, C, epochs, jobs, seed)
    estimator = classifier
    if isinstance(X, list):
        from .text import TrellisTextClassifier

        estimator = TrellisTextClassifier(
            classifier,
            words=_lengths("--words", words),
            characters=_lengths("--characters", characters),
            min_count=min_count,
            hash_size=hash_size,
        )
    n_features = None if isinstance(X, list) else X.shape[1]
    X_valid = y_valid = threshold = None
    if valid is not None:
        X_valid, y_valid = _read(valid, format, text_column, label_column, n_features)
        _check_kind(isinstance(X_valid, list), isinstance(X, list), valid)
        y_valid = _like(y_valid, np.unique(y))
    elif prune is not None:
        from .pruning import held_out_threshold

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
        f"b = {found.trellis_.slice_width}"
    )
    if prune is not None:
        say(_pruned(found.pruning_))
    if X_valid is not None:
        say(f"accuracy on {valid}: {_accuracy(estimator, X_valid, y_valid):.2%}")
    say(f"{model}: {_size(size)}")


def _classifier(
    training: Training,
    width: str | None,
    learner: LearnerName,
    C: float,
    epochs: int | None,
    jobs: int,
    seed: int,
) -> Any:
    """Estimator of these options."""
    from . import LTLSClassifier, TrellisClassifier

    common: dict[str, Any] = {"n_jobs": jobs, "random_state": seed}
    b: Any = width
    if width is not None and width != "auto":
        if not width.isdecimal():
            raise typer.BadParameter(f"--width must be a number or auto, got {width!r}")
        b = int(width)
    if training is Training.joint:
        if b == "auto":
            raise typer.BadParameter("--width auto is not for --training joint: give a number")
        b, epochs = 2 if b is None else b, 5 if epochs is None else epochs
        return LTLSClassifier(b, epochs=epochs, **common)
    common.update(epochs=epochs, verbose=int(sys.stderr.isatty()))
    if training is Training.paper:
        return TrellisClassifier.paper(b if b is not None else 10, **common)
    return TrellisClassifier(b, training=training.value, learner=learner.value, C=C, **common)


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
    loaded = _load(model, jobs)
    k = min(top_k, len(loaded.classes_))
    if str(rows) == "-" and sys.stdin.isatty():
        say("reading rows from the terminal, one a line; Ctrl-D ends")
    with _output(output) as write:
        for batch in _batches(loaded, rows, format, text_column, one_based):
            if k == 1 and not (proba or json):
                write("".join(f"{label}\n" for label in loaded.predict(batch)))
                continue
            labels, shares = loaded.predict_top_k(batch, k)
            as_line = _json_line if json else _plain_line
            write(
                "".join(
                    as_line(*row, proba or json)
                    for row in zip(labels.tolist(), shares.tolist(), strict=True)
                )
            )


def _batches(
    loaded: Any, source: Path, format: Format | None, text_column: str, one_based: bool
) -> Iterator[Any]:
    """Rows to classify, in batches."""
    from .readers import iter_texts, read_rows

    if not hasattr(loaded, "features_"):
        n_features = loaded.n_features_in_
        X, _ = read_rows(
            _source(source),
            format="svmlight" if format is None else format.value,
            labelled=False,
            n_features=n_features,
            zero_based=not one_based,
        )
        _check_kind(isinstance(X, list), False, source)
        yield from (X[start : start + BATCH] for start in range(0, X.shape[0], BATCH))
        return
    texts = iter_texts(
        _source(source),
        format=None if format is None else format.value,
        text_column=text_column,
    )
    yield from _as_they_arrive(texts)


def _as_they_arrive(texts: Iterator[str]) -> Iterator[list[str]]:
    """Batches of what has arrived: many texts of a file, single ones of a slow pipe."""
    import queue

    arrived: queue.Queue[str | BaseException | None] = queue.Queue(4 * BATCH)

    def read() -> None:
        try:
            for text in texts:
                arrived.put(text)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    end: BaseException | None = None
    over = False
    while not over:
        batch = []
        item: Any = arrived.get()
        while True:
            if item is None or isinstance(item, BaseException):
                end, over = item, True
                break
            batch.append(item)
            if len(batch) == BATCH or arrived.empty():
                break
            item = arrived.get()
        if batch:
            yield batch
    if end is not None:
        raise end


@contextmanager
def _output(path: Path | None) -> Iterator[Callable[[str], Any]]:
    """Where to write lines; a file takes its place only when it is whole."""
    if path is None or str(path) == "-":

        def write(lines: str) -> None:
            sys.stdout.write(lines)
            sys.stdout.flush()

        yield write
        return
    from .files import replacing

    with replacing(path) as beside, open(beside, "w", encoding="utf-8") as file:
        yield file.write


def _plain_line(labels: list[Any], shares: list[float], proba: bool) -> str:
    if not proba:
        return "\t".join(map(str, labels)) + "\n"
    pairs = (f"{label}\t{share:.4f}" for label, share in zip(labels, shares, strict=True))
    return "\t".join(pairs) + "\n"


def _json_line(labels: list[Any], shares: list[float], proba: bool) -> str:
    import json

    content = {"labels": labels, "probabilities": [round(share, 6) for share in shares]}
    return json.dumps(content, ensure_ascii=False, default=str) + "\n"


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

    loaded = _load(model, jobs)
    X, y = _read_for(loaded, rows, format, text_column, label_column, one_based)
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
    _print_facts(facts, json)


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
    _check_target(pruned, rows)
    loaded = _load(model, jobs)
    X, y = _read_for(loaded, rows, format, text_column, label_column, one_based)
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
    learner: Annotated[LearnerName, typer.Option(help="What is trained.")] = LearnerName.svm,
    C: Annotated[float, typer.Option("-C", help="Of the SVM: weight of the loss.")] = 1.0,
    epochs: Annotated[int | None, typer.Option(help="Passes over the rows.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write.")] = None,
    format: FormatOption = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Train a ladder of slice widths and say which one the training data speak for."""
    from .width_selection import select_slice_width

    if training is Training.joint:
        raise typer.BadParameter("--training joint has no bound to choose a width by")
    if plot is not None:
        _check_target(plot)
    X, y = _read(rows, format, text_column, label_column)
    if isinstance(X, list):
        from .text import TextFeatures

        X = TextFeatures((1, 2), None, None).fit_transform(X, 1)
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
        from .files import replacing

        with replacing(plot) as beside:
            selection.plot(beside)
        say(f"picture: {plot}")
    if selection.interrupted:
        raise typer.Exit(130)


@app.command()
@told
def inspect(model: Model, json: Json = False) -> None:
    """Look inside a model file: what it was trained on, its graph, weights and settings."""
    from .model_file import load_model

    loaded = load_model(model)
    found = getattr(loaded, "classifier_", loaded)
    trellis, weights = found.trellis_, found.weights_
    facts: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "estimator": type(loaded).__name__,
        "classes": trellis.n_classes,
        "labels": ", ".join(map(str, loaded.classes_[:5]))
        + (", ..." if len(loaded.classes_) > 5 else ""),
        "features": found.n_features_in_,
        "slice_width": trellis.slice_width,
        "slices": trellis.n_slices,
        "edges": trellis.n_edges,
        "weights": weights.n_nonzero,
        "share_of_weights": weights.n_nonzero / max(1, trellis.n_edges * found.n_features_in_),
        "features_with_weights": weights.n_seen,
        "decoding": repr(found.loss_),
        "temperature": found.temperature_,
        "settings": " ".join(repr(loaded).split()),
    }
    if hasattr(found, "pruning_"):
        facts["pruned_at"] = found.pruning_.threshold
    _print_facts(facts, json)


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


# ---------------------------------------------------------------------- in and out


def _load(model: Path, jobs: int) -> Any:
    """Model of a file, to predict with so many threads."""
    from .model_file import load_model

    loaded = load_model(model)
    getattr(loaded, "classifier_", loaded).n_jobs = jobs
    return loaded


def _source(path: Path) -> Any:
    return sys.stdin.buffer if str(path) == "-" else path


def _read(
    path: Path,
    format: Format | None,
    text_column: str,
    label_column: str,
    n_features: int | None = None,
    one_based: bool = False,
) -> tuple[Any, Any]:
    """Rows and labels. Features keep the numbers that svmlight files give them."""
    from .readers import read_rows

    return read_rows(
        _source(path),
        format=None if format is None else format.value,
        text_column=text_column,
        label_column=label_column,
        n_features=n_features,
        zero_based=not one_based,
    )


def _read_for(
    loaded: Any,
    path: Path,
    format: Format | None,
    text_column: str,
    label_column: str,
    one_based: bool,
) -> tuple[Any, Any]:
    """Rows and labels of the kind that a model takes."""
    takes_text = hasattr(loaded, "features_")
    n_features = None if takes_text else loaded.n_features_in_
    X, y = _read(path, format, text_column, label_column, n_features, one_based)
    _check_kind(isinstance(X, list), takes_text, path)
    return X, _like(y, loaded.classes_)


def _like(y: Any, classes: Any) -> Any:
    """Labels of a file in the type of the classes, if they read the same; 7 and "7" do."""
    import numpy as np

    if y.dtype.kind == classes.dtype.kind:
        return y
    by_name = {str(label): number for number, label in enumerate(classes.tolist())}
    codes = np.array([by_name.get(str(label), -1) for label in y.tolist()])
    if (codes < 0).any():
        unknown = y[codes < 0][:1].tolist()[0]
        raise ValueError(
            f"the label {unknown!r} is of another type than the model's, such as "
            f"{classes[:1].tolist()[0]!r}"
        )
    return classes[codes]


def _check_target(path: Path, *inputs: Path | None) -> None:
    """Complain of a file that cannot be written, or must not be, before the work."""
    if any(source is not None and source.resolve() == path.resolve() for source in inputs):
        raise ValueError(f"{path}: this is where the rows are; name another file to write")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(2, "there is no such folder to write to", str(folder))
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "this folder cannot be written to", str(folder))
    if path.is_dir():
        raise IsADirectoryError(21, "this is a folder; name a file", str(path))


def _check_kind(is_text: bool, wants_text: bool, path: Path) -> None:
    if is_text != wants_text:
        kinds = "texts", "svmlight features"
        found, wanted = kinds if is_text else kinds[::-1]
        raise ValueError(
            f"{path}: these are {found}, and the model takes {wanted}; if the format was told "
            f"wrongly, give --format"
        )


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


def _print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Facts as one line of JSON, or as a table."""
    if as_json:
        import json

        print(json.dumps(facts, default=str))
        return
    width = max(map(len, facts))
    for name, fact in facts.items():
        text = f"{fact:,}" if isinstance(fact, int) else fact
        if isinstance(fact, float):
            text = f"{fact:.4f}"
        print(f"{name.replace('_', ' '):{width}}  {text}")


def _pruned(done: Any) -> str:
    return f"weights up to {done.threshold:.4g} removed: {done.n_before:,} -> {done.n_after:,}"


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.2f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.1f} kB"
