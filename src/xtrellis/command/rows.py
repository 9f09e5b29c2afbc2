"""What the commands read: models, and rows with and without labels."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from .errors import note
from .options import Format
from .outputs import label_that_breaks_lines

BATCH = 1_024  # rows that are classified at once


@dataclass(frozen=True)
class RowOptions:
    """Options for reading rows."""

    format: Format | None = None
    text_column: str | None = None
    label_column: str | None = None
    zero_based: bool | None = None
    delimiter: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None or self.header is not None:
            if self.format not in (None, Format.csv):
                raise typer.BadParameter(
                    f"--delimiter and --no-header are for csv, not for {self.format}"
                )
            object.__setattr__(self, "format", Format.csv)
        if self.delimiter is not None:
            from ..data.tables import is_delimiter

            delimiter = {"tab": "\t", "\\t": "\t"}.get(self.delimiter, self.delimiter)
            if not is_delimiter(delimiter):
                raise typer.BadParameter(
                    f"--delimiter must be one character, or tab; got {self.delimiter!r}"
                )
            object.__setattr__(self, "delimiter", delimiter)

    def layout(self) -> dict[str, Any]:
        """The options that a model remembers about its training rows."""
        names = "text_column", "label_column", "delimiter", "header"
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def reading(self, loaded: Any = None) -> dict[str, Any]:
        """Parameters of a reader: as given, or else as the model remembers them."""
        remembered = getattr(loaded, "layout_", {})
        found = {**remembered, **self.layout()}
        format_ = None if self.format is None else self.format.value
        if format_ is None and found.keys() & {"delimiter", "header"}:
            format_ = Format.csv.value  # only csv has them, whatever the file is called
        return {"format": format_, **found}


@dataclass(frozen=True)
class TrainingData:
    """Rows to train on, and rows to validate on if there are any.

    ``first_feature`` is the number of the first feature in svmlight rows, 0 or 1; None for texts.
    ``shards`` are the training rows if they are too many to be read; X and y are then None.
    ``valid_terms`` are the terms of a folder of texts, whose features ``X_valid`` then are.
    """

    X: Any
    y: Any
    X_valid: Any = None
    y_valid: Any = None
    first_feature: int | None = None
    shards: Any = None
    valid_terms: Any = None

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.y) if self.shards is None else int(self.shards.n_rows)


def load(model: Path, jobs: int, quickly: bool = False) -> Any:
    """Load a model that uses this many threads; ``quickly`` loads only what prediction needs."""
    from .._checks import check_jobs
    from ..model.model_file import load_model

    check_jobs(jobs)
    if quickly:
        from .quick import load_quickly

        quick = load_quickly(model, jobs)
        if quick is not None:
            return quick
    loaded = load_model(model)
    getattr(loaded, "classifier_", loaded).n_jobs = jobs
    return loaded


# ---------------------------------------------------------------------- rows with labels


def read_training(rows: Path, valid: Path | None, options: RowOptions) -> TrainingData:
    """Read training rows, and validation rows of the same kind, whose features agree."""
    import numpy as np

    if valid is not None and str(rows) == str(valid) == "-":
        raise typer.BadParameter(
            "--valid: standard input is read for the training rows; name a file"
        )
    train = parse(rows, options)
    _check_labels(rows, train)
    if valid is None:
        if _is_text(train):
            return TrainingData(*train)
        zero_based = _zero_based([train], options)
        X = train.matrix(zero_based=zero_based)
        check_features(rows, X.shape[1])
        return TrainingData(X, train.y, first_feature=int(not zero_based))
    if _is_text(train):
        X_valid, y_valid, terms = read_texts(valid, options, np.unique(train[1]))
        return TrainingData(train[0], train[1], X_valid, y_valid, valid_terms=terms)
    other = parse(valid, options)
    check_kind(valid, _is_text(other) or terms_of(valid) is not None, False, "training rows are")
    zero_based = _zero_based([train, other], options)
    X = train.matrix(zero_based=zero_based)
    check_features(rows, X.shape[1])
    X_valid = other.matrix(X.shape[1], zero_based, "warn")
    y_valid = as_labels(valid, other.y, np.unique(train.y))
    return TrainingData(X, train.y, X_valid, y_valid, int(not zero_based))


def read_texts(path: Path, options: RowOptions, classes: Any) -> tuple[Any, Any, Any]:
    """Texts and their labels, and None; of a folder of texts, their features, and its terms."""
    terms, rows = terms_of(path), parse(path, options)
    check_kind(path, _is_text(rows) or terms is not None, True, "training rows are")
    if terms is None:
        return rows[0], as_labels(path, rows[1], classes), None
    return rows.matrix(terms.n_columns, True), as_labels(path, rows.y, classes), terms


def terms_of(path: Path) -> Any | None:
    """How the texts of a folder became features; None of anything else."""
    if not path.is_dir():
        return None
    from ..data.shards import open_shards

    return open_shards(path).features


def read_descriptions(path: Path) -> dict[str, list[str]]:
    """Read descriptions of classes, by label; a class may have several."""
    from ..data.streams import shown

    if path.is_dir():
        raise ValueError(f"{path}: --class-texts must name a file of texts, not a folder")
    rows = parse(path, RowOptions())
    check_kind(path, _is_text(rows), True, "descriptions of classes are")
    descriptions: dict[str, list[str]] = {}
    for text, label in zip(rows[0], rows[1].tolist(), strict=True):
        if not text.strip():
            raise ValueError(f"{path}: the text of the class {shown(label)} is empty")
        descriptions.setdefault(label, []).append(text)
    _check_lines(path, list(descriptions))
    return descriptions


def read_labelled(loaded: Any, path: Path, options: RowOptions) -> tuple[Any, Any]:
    """Read rows and labels of the kind that a model takes."""
    takes_text = hasattr(loaded, "features_")
    rows = parse(path, options, loaded=loaded)
    if path.is_dir():
        options = _as_converted(loaded, path, options)
    check_kind(path, _is_text(rows), takes_text, "the model takes")
    X, y = rows if takes_text else (_matrix_for(loaded, rows, options), rows.y)
    return X, as_labels(path, y, loaded.classes_)


def as_labels(path: Path, y: Any, classes: Any) -> Any:
    """Labels converted to the type of the classes, as from "7" to 7."""
    import numpy as np

    if y.dtype.kind == classes.dtype.kind:
        return y
    by_name = {str(label): number for number, label in enumerate(classes.tolist())}
    y_encoded = np.array([by_name.get(str(label), -1) for label in y.tolist()])
    if (y_encoded < 0).any():
        unknown = y[y_encoded < 0][:1].tolist()[0]
        raise ValueError(
            f"{path}: the label {unknown!r} has another type than the model's labels, such as "
            f"{classes[:1].tolist()[0]!r}; is this the right file?"
        )
    return classes[y_encoded]


def _check_labels(path: Path, rows: Any) -> None:
    """Raise an error about labels that no model can use, and warn about unlikely ones."""
    import numpy as np

    texts, y = rows if _is_text(rows) else (None, rows.y)
    check_classes(path, np.unique(y), y, texts)


def check_classes(path: Path, classes: Any, y: Any, texts: list[str] | None) -> None:
    """The same, given all labels and those of the rows, which may be numbers of them."""
    from ..data.labels import unlikely_labels
    from ..data.streams import shown

    if len(classes) < 2:
        raise ValueError(
            f"{path}: all rows have the label {shown(str(classes[0]))}; two or more are needed"
        )
    _check_lines(path, classes.tolist())
    doubt = unlikely_labels(y, texts)
    if doubt is not None:
        note(f"warning: {path}: {doubt}" + ("; a tsv row is label<TAB>text" if texts else ""))
    warnings.filterwarnings("ignore", ".*check (which part|that labels)")  # said just now


def check_features(path: Path, n_features: int) -> None:
    """Raise an error about rows that nothing can be learned from."""
    if not n_features:
        raise ValueError(f"{path}: no row has any feature; is this the right file?")


def _check_lines(path: Path, labels: list[Any]) -> None:
    """Raise an error about a label that would break the lines of predictions."""
    from ..data.streams import shown

    label = label_that_breaks_lines(labels)
    if label is not None:
        raise ValueError(
            f"{path}: the label {shown(label)} contains a tab or a newline, which would break the "
            "lines of predictions; replace it"
        )


def parse(path: Path, options: RowOptions, labelled: bool = True, loaded: Any = None) -> Any:
    """Texts and labels, or svmlight rows with features numbered as in the file."""
    from ..data.readers import parse_rows

    if path.is_dir():
        from ..data.shards import open_shards

        return open_shards(path).all_rows()
    return parse_rows(source_of(path), labelled=labelled, **options.reading(loaded))


def source_of(path: Path) -> Any:
    """What to read: a file, or standard input."""
    return sys.stdin.buffer if str(path) == "-" else path


def _is_text(rows: Any) -> bool:
    return isinstance(rows, tuple)


def check_kind(path: Path, is_text: bool, wants_text: bool, who: str) -> None:
    """Raise an error about texts where svmlight features are expected, or vice versa."""
    if is_text != wants_text:
        kinds = "texts", "svmlight features"
        found, wanted = kinds if is_text else kinds[::-1]
        advice = "; pass --format if the format was detected wrongly"
        if path.is_dir():  # whose format is known
            advice = ""
        raise ValueError(f"{path}: these are {found}, but {who} {wanted}{advice}")


# ---------------------------------------------------------------------- svmlight features


def _zero_based(files: list[Any], options: RowOptions) -> bool:
    """Whether features are counted from 0: as given, or as detected from all files together."""
    from ..data.svmlight import detect_zero_based

    return detect_zero_based(files) if options.zero_based is None else options.zero_based


def _matrix_for(loaded: Any, rows: Any, options: RowOptions) -> Any:
    """Rows as a matrix for a model. Unknown features are ignored with a warning.

    A model trained by this command remembers whether its features were counted from 0 or from 1.
    Other models do not, and then rows without a feature 0 are ambiguous.
    """
    from ..data.svmlight import detect_zero_based

    n_features, zero_based = loaded.n_features_in_, options.zero_based
    if zero_based is None and hasattr(loaded, "first_feature_"):
        zero_based = loaded.first_feature_ == 0
    if zero_based is None:
        zero_based = detect_zero_based([rows], n_features, "warn")
    return rows.matrix(n_features, zero_based, "warn")


# ---------------------------------------------------------------------- rows to classify


def read_batches(loaded: Any, path: Path, options: RowOptions) -> Iterator[Any]:
    """Read rows to classify, in batches; texts as they arrive, a folder shard by shard."""
    from ..data.readers import iter_texts

    if path.is_dir():
        yield from _shards(loaded, path, options)
        return
    if hasattr(loaded, "features_"):
        reading = options.reading(loaded)
        reading.pop("label_column", None)
        texts = iter_texts(source_of(path), **reading)
        yield from _as_they_arrive(texts)
        return
    options = RowOptions(options.format or Format.svmlight, zero_based=options.zero_based)
    rows = parse(path, options, labelled=False)
    check_kind(path, _is_text(rows), False, "the model takes")
    X = _matrix_for(loaded, rows, options)
    yield from (X[start : start + BATCH] for start in range(0, X.shape[0], BATCH))


def _shards(loaded: Any, path: Path, options: RowOptions) -> Iterator[Any]:
    """Batches of rows from a folder, with one shard in memory at a time."""
    from ..data.shards import open_shards

    shards, options = open_shards(path), _as_converted(loaded, path, options)
    for number in range(len(shards)):
        X = _matrix_for(loaded, shards.as_read(number), options)
        yield from (X[start : start + BATCH] for start in range(0, X.shape[0], BATCH))


def _as_converted(loaded: Any, path: Path, options: RowOptions) -> RowOptions:
    """Options that count features as the folder does, if neither they nor the model say how."""
    from ..data.shards import open_shards

    if options.zero_based is None and not hasattr(loaded, "first_feature_"):
        return replace(options, zero_based=open_shards(path).first_feature == 0)
    return options


def read_one(loaded: Any, row: str, zero_based: bool | None = None) -> Any:
    """One row given on the command line: a text, or features such as ``3:1 17:0.5``."""
    import io

    if hasattr(loaded, "features_"):
        return row
    from ..data.readers import parse_rows

    if ":" not in row or len(row.strip().splitlines()) > 1:
        raise ValueError("the model takes one line of features such as 3:1 17:0.5")
    rows = parse_rows(io.BytesIO(f"{row.strip()}\n".encode()), format="svmlight", labelled=False)
    return _matrix_for(loaded, rows, RowOptions(Format.svmlight, zero_based=zero_based))


def _as_they_arrive(texts: Iterator[str]) -> Iterator[list[str]]:
    """Batches of texts as they arrive: many at once from a file, single ones from a slow pipe."""
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
