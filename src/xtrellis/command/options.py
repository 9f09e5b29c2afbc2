"""Options shared by several commands, and the estimators that they describe."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


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


class Format(StrEnum):
    """Input formats; see ``xtrellis.data.readers``."""

    svmlight = "svmlight"
    tsv = "tsv"
    fasttext = "fasttext"
    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"
    lines = "lines"


Model = Annotated[Path, typer.Argument(help="Model file.", show_default=False)]
NewModel = Annotated[Path, typer.Argument(help="Model file to write.", show_default=False)]
Labelled = Annotated[
    Path, typer.Argument(help="Rows with labels; - is standard input.", show_default=False)
]
FormatOption = Annotated[
    Format | None,
    typer.Option("--format", "-f", help="Format of the rows; detected from the file if omitted."),
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        help="Column of the texts (name or number), or key in JSON; if omitted, text, or "
        "what the model was trained with."
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="Column or key of the labels; if omitted, label, or what the model was trained with."
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="Separator of csv fields: one character, or tab; a comma if omitted."),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of csv contains column names; yes if omitted.",
        show_default=False,
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="Whether the svmlight rows count features from 0 or from 1; "
        "as in training if omitted.",
        show_default=False,
    ),
]
ZeroBasedInTraining = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="Whether the svmlight rows count features from 0 or from 1; detected if omitted.",
        show_default=False,
    ),
]
TrainingOption = Annotated[
    Training,
    typer.Option(help="local (the default), independent, paper (W-LTLS), or joint (LTLS)."),
]
LearnerOption = Annotated[
    LearnerName | None, typer.Option(help="Learner of each edge; svm if omitted.")
]
COption = Annotated[
    float | None,
    typer.Option("-C", help="Inverse regularisation strength; only used by the svm learner."),
]
Epochs = Annotated[int | None, typer.Option(help="Passes over the rows.")]
Words = Annotated[str, typer.Option(help="Number of words in a term, such as 1-2; 0 for none.")]
Characters = Annotated[
    str, typer.Option(help="Number of characters in a term, such as 3-5; 0 for none.")
]
TrainedWords = Annotated[
    str,
    typer.Option(
        help="Number of words in a term, such as 1-2; 0 for none. If neither words nor characters "
        "are given, training chooses on texts that it holds out.",
        show_default=False,
    ),
]
TrainedCharacters = Annotated[
    str,
    typer.Option(
        help="Number of characters in a term, such as 3-5; 0 for none.", show_default=False
    ),
]
MinDf = Annotated[int, typer.Option(help="Number of training texts that a term must occur in.")]
HashSize = Annotated[
    int | None, typer.Option(help="Hash terms to this many columns, and keep no vocabulary.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 uses all cores.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")]
Plot = Annotated[Path | None, typer.Option(help="File to draw a picture to.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: one object, or one per row.")]


def new_classifier(
    training: Training,
    width: str | None,
    learner: LearnerName | None,
    C: float | None,
    epochs: int | None,
    jobs: int,
    seed: int,
    checkpoint: Path | None = None,
) -> Any:
    """The classifier of features that these options describe."""
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
            raise typer.BadParameter("--training joint needs a number for --width, not auto")
        if checkpoint is not None:
            raise typer.BadParameter("--checkpoint does not apply to --training joint")
        common["epochs"] = 5 if epochs is None else epochs
        return LTLSClassifier(2 if b is None else b, **common)
    if checkpoint is not None:
        common["checkpoint"] = str(checkpoint)
    if training is Training.paper:
        return TrellisClassifier.paper(b if b is not None else 10, **common)
    if learner is not None:
        common["learner"] = learner.value
    if C is not None:
        common["C"] = C
    return TrellisClassifier(b, training=training.value, **common)


def _check_learner(training: Training, learner: LearnerName | None, C: float | None) -> None:
    """Raise an error about options that would be ignored."""
    fixed = {Training.paper: LearnerName.arow, Training.joint: LearnerName.perceptron}
    trained = fixed.get(training, learner or LearnerName.svm)
    if learner is not None and learner is not trained:
        raise typer.BadParameter(
            f"--training {training} uses --learner {trained}, not --learner {learner}"
        )
    if C is not None and trained is not LearnerName.svm:
        raise typer.BadParameter(f"-C applies only to --learner svm, not to {trained}")


def new_text_classifier(
    classifier: Any, words: str, characters: str, min_df: int, hash_size: int | None
) -> Any:
    """The classifier of texts that these options describe."""
    from ..text import TrellisTextClassifier

    of_words, of_characters = term_lengths(words, characters)
    return TrellisTextClassifier(
        classifier,
        words=of_words,
        characters=of_characters,
        min_df=min_df,
        hash_size=hash_size,
    )


def check_no_terms(
    why: str, words: str, characters: str, min_df: int, hash_size: int | None
) -> None:
    """Raise an error about options of terms, if any is given, where there are none to find."""
    for option, given in (
        ("--words", words not in ("1-2", "auto")),
        ("--characters", characters not in ("0", "auto")),
        ("--min-df", min_df != 1),
        ("--hash-size", hash_size is not None),
    ):
        if given:
            raise ValueError(f"{why}; omit {option}")


def term_lengths(words: str, characters: str) -> tuple[Any, Any]:
    """Numbers of words and of characters in a term; or "auto"."""
    of_words, of_characters = _lengths("--words", words), _lengths("--characters", characters)
    if of_words is None and of_characters is None:
        raise typer.BadParameter("--words and --characters are both 0: no terms are left")
    return of_words, of_characters


def _lengths(option: str, text: str) -> tuple[int, int] | str | None:
    """A range such as 1-2, or one number; 0 means none."""
    if text == "auto":
        return text
    first, _, last = text.partition("-")
    last = last or first
    if not first.isdecimal() or not last.isdecimal() or int(first) > int(last):
        raise typer.BadParameter(f"{option} must be a range such as 1-2, or 0; got {text!r}")
    if int(first) == 0 < int(last):
        raise typer.BadParameter(f"{option} must start from 1, got {text!r}")
    return None if int(first) == 0 else (int(first), int(last))


def numbers(option: str, text: str) -> list[int]:
    """Numbers separated by commas."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"{option} must be numbers such as 2,5,10; got {text!r}")
    return [int(part) for part in parts]
