"""``xtrellis prune`` and ``xtrellis inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .errors import note
from .options import (
    Delimiter,
    FormatOption,
    Header,
    Jobs,
    Json,
    LabelColumn,
    Model,
    TextColumn,
    ZeroBased,
)
from .outputs import check_output, check_stdout, print_facts, save_model, size_in_words
from .rows import RowOptions, load, read_labelled
from .words import members, one_or_all
from .words import pruned as pruned_in_words


def prune(
    model: Model,
    rows: Annotated[
        Path,
        typer.Argument(
            help="Rows with labels that it was not trained on; - is standard input.",
            show_default=False,
        ),
    ],
    pruned: Annotated[Path, typer.Argument(help="Model file to write.", show_default=False)],
    max_drop: Annotated[
        float, typer.Option(help="Accuracy that may be lost; 0.01 is one point.")
    ] = 0.01,
    threshold: Annotated[
        float | None,
        typer.Option(help="Remove weights up to this size; the rows only measure the accuracy."),
    ] = None,
    bits: Annotated[
        int, typer.Option(help="Bits of each weight in the file: 8, which rounds them, or 32.")
    ] = 8,
    format: FormatOption = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    header: Header = None,
    zero_based: ZeroBased = None,
    jobs: Jobs = -1,
) -> None:
    """Remove small weights of a model, and write the smaller model to another file."""
    check_output(pruned, model, rows)
    loaded = load(model, jobs)
    X, y = read_labelled(
        loaded, rows, RowOptions(format, text_column, label_column, zero_based, delimiter, header)
    )
    loaded.prune(X, y, max_drop=max_drop, threshold=threshold, bits=bits)
    done = getattr(loaded, "classifier_", loaded).pruning_
    before = model.stat().st_size
    size = save_model(loaded, pruned)
    note(
        f"{pruned_in_words(done)}, accuracy {done.accuracy_before:.2%} -> {done.accuracy_after:.2%}"
    )
    note(f"{pruned}: {size_in_words(size)}, before {size_in_words(before)}")


def inspect(model: Model, json: Json = False) -> None:
    """Show what a model file contains: its classes, graph, weights and settings."""
    from ..data.streams import shown
    from ..model.model_file import load_model

    check_stdout(model)
    loaded = load_model(model)
    found = getattr(loaded, "classifier_", loaded)
    parts = members(found)
    graphs, weights = [each.trellis_ for each in parts], [each.weights_ for each in parts]
    n_edges, n_weights = sum(g.n_edges for g in graphs), sum(w.n_nonzero for w in weights)
    labels = [str(label) for label in loaded.classes_[:5].tolist()]
    facts: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "estimator": type(loaded).__name__,
        "classes": len(loaded.classes_),
        "labels": ", ".join(label if label.isprintable() else shown(label) for label in labels)
        + (", ..." if len(loaded.classes_) > 5 else ""),
        "features": found.n_features_in_,
        "trellises": len(parts),
        "slice_width": one_or_all([g.slice_width for g in graphs]),
        "slices": one_or_all([g.n_slices for g in graphs]),
        "edges": n_edges,
        "weights": n_weights,
        "share_of_weights": n_weights / max(1, n_edges * found.n_features_in_),
        "features_with_weights": one_or_all([w.n_seen for w in weights]),
        "decoding": one_or_all([repr(each.loss_) for each in parts]),
        "temperature": one_or_all([each.temperature_ for each in parts]),
        "settings": " ".join(repr(loaded).split()),
    }
    if hasattr(loaded, "first_feature_"):
        facts["first_feature"] = loaded.first_feature_
    if hasattr(found, "pruning_"):
        facts["pruned_at"] = found.pruning_.threshold
    print_facts(facts, json)
