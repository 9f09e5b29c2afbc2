"""What the commands read and write: models, rows and labels, lines of results."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

BATCH = 1_024  # rows that are classified at once


class Format(StrEnum):
    """Formats of input; see ``xtrellis.readers``."""

    svmlight = "svmlight"
    tsv = "tsv"
    fasttext = "fasttext"
    csv = "csv"
    lines = "lines"


# ---------------------------------------------------------------------- in


def load(model: Path, jobs: int) -> Any:
    """Model of a file, to predict with so many threads."""
    from ..model.model_file import load_model

    loaded = load_model(model)
    getattr(loaded, "classifier_", loaded).n_jobs = jobs
    return loaded


def _source(path: Path) -> Any:
    return sys.stdin.buffer if str(path) == "-" else path


def read(
    path: Path,
    format: Format | None,
    text_column: str,
    label_column: str,
    n_features: int | None = None,
    one_based: bool = False,
) -> tuple[Any, Any]:
    """Rows and labels. Features keep the numbers that svmlight files give them."""
    from ..data.readers import read_rows

    return read_rows(
        _source(path),
        format=None if format is None else format.value,
        text_column=text_column,
        label_column=label_column,
        n_features=n_features,
        zero_based=not one_based,
    )


def read_for(
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
    X, y = read(path, format, text_column, label_column, n_features, one_based)
    check_kind(isinstance(X, list), takes_text, path)
    return X, like(y, loaded.classes_)


def like(y: Any, classes: Any) -> Any:
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


def check_kind(is_text: bool, wants_text: bool, path: Path) -> None:
    """Complain of texts for a model of features, and the other way round."""
    if is_text != wants_text:
        kinds = "texts", "svmlight features"
        found, wanted = kinds if is_text else kinds[::-1]
        raise ValueError(
            f"{path}: these are {found}, and the model takes {wanted}; if the format was told "
            f"wrongly, give --format"
        )


def batches(
    loaded: Any, source: Path, format: Format | None, text_column: str, one_based: bool
) -> Iterator[Any]:
    """Rows to classify, in batches."""
    from ..data.readers import iter_texts, read_rows

    if not hasattr(loaded, "features_"):
        n_features = loaded.n_features_in_
        X, _ = read_rows(
            _source(source),
            format="svmlight" if format is None else format.value,
            labelled=False,
            n_features=n_features,
            zero_based=not one_based,
        )
        check_kind(isinstance(X, list), False, source)
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


# ---------------------------------------------------------------------- out


def check_target(path: Path, *inputs: Path | None) -> None:
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


@contextmanager
def output_lines(path: Path | None) -> Iterator[Callable[[str], Any]]:
    """Where to write lines; a file takes its place only when it is whole."""
    if path is None or str(path) == "-":

        def write(lines: str) -> None:
            sys.stdout.write(lines)
            sys.stdout.flush()

        yield write
        return
    from ..model.atomic import replacing

    with replacing(path) as beside, open(beside, "w", encoding="utf-8") as file:
        yield file.write


def plain_line(labels: list[Any], shares: list[float], proba: bool) -> str:
    """Labels of a row, and their probabilities if wanted, separated by tabs."""
    if not proba:
        return "\t".join(map(str, labels)) + "\n"
    pairs = (f"{label}\t{share:.4f}" for label, share in zip(labels, shares, strict=True))
    return "\t".join(pairs) + "\n"


def json_line(labels: list[Any], shares: list[float], proba: bool) -> str:
    """Labels of a row and their probabilities as JSON."""
    import json

    content = {"labels": labels, "probabilities": [round(share, 6) for share in shares]}
    return json.dumps(content, ensure_ascii=False, default=str) + "\n"


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
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
