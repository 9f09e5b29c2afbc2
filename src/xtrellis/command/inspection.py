"""``xtrellis inspect``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, Model
from .outputs import check_plain_labels, check_stdout, print_facts
from .words import members, one_or_all

if TYPE_CHECKING:
    from ..selection.terms import TermTrial

_SHOWN = 5  # labels


def inspect(
    model: Model,
    labels: Annotated[
        bool, typer.Option("--labels", help="List all classes, and nothing else.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what a model file contains: classes, graph, weights, and how settings were chosen."""
    from ..model.model_file import load_model
    from .small import interpret_if_small

    check_stdout(model)
    interpret_if_small(model=model)
    loaded = load_model(model)
    if labels:
        _print_labels(model, loaded.classes_, json)
        return
    facts = _facts(model, loaded)
    parts = members(getattr(loaded, "classifier_", loaded))
    selections = [each.selection_ for each in parts if hasattr(each, "selection_")]
    tried = getattr(loaded, "term_trials_", ())
    if json:
        terms = {"term_trials": [asdict(each) for each in tried]} if tried else {}
        selections = [asdict(each) for each in selections]
        print_facts({**facts, **terms, "selections": selections}, json)
        return
    print_facts(_in_words(facts), json)
    if tried:
        print(f"\n{_term_trials(tried, _terms_in_words(facts['terms']))}")
    for selection in selections:
        print(f"\n{_trials(selection, len(loaded.classes_))}")


def _print_labels(model: Path, classes: Any, json: bool) -> None:
    """Print all classes, one per line or as one list."""
    if json:
        from json import dumps

        print(dumps(classes.tolist(), default=str))
        return
    check_plain_labels(model, classes)
    print("".join(f"{label}\n" for label in classes.tolist()), end="", flush=True)


def _facts(model: Path, loaded: Any) -> dict[str, Any]:
    """Facts about a model, by name; of several trellises, one if they have it in common."""
    found = getattr(loaded, "classifier_", loaded)
    parts = members(found)
    graphs, weights = [each.trellis_ for each in parts], [each.weights_ for each in parts]
    n_edges, n_weights = sum(g.n_edges for g in graphs), sum(w.n_nonzero for w in weights)
    facts: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "estimator": type(loaded).__name__,
        "classes": len(loaded.classes_),
        "labels": [str(label) for label in loaded.classes_[:_SHOWN].tolist()],
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
        "calibration": one_or_all([repr(each.calibration_) for each in parts]),
        "reranking": one_or_all([_strength(each.model_.centroids) for each in parts]),
        "rivals": one_or_all([_strength(each.model_.rivals) for each in parts]),
        "settings": " ".join(repr(loaded).split()),
    }
    if hasattr(loaded, "features_"):
        from ..selection.terms import Terms

        own = loaded.features_
        facts["terms"] = asdict(Terms(own.words, own.characters, own.word_share))
    if hasattr(loaded, "first_feature_"):
        facts["first_feature"] = loaded.first_feature_
    if getattr(loaded, "layout_", None):
        facts["layout"] = loaded.layout_
    thresholds = [getattr(each, "prune_threshold_", None) for each in parts]
    if None not in thresholds:
        facts["dropped_in_training"] = one_or_all(thresholds)
    if hasattr(found, "pruning_"):
        facts["pruned_at"] = found.pruning_.threshold
    return facts


def _strength(reranking: Any) -> float:
    """How much centroids or rivals count; 0 if there are none."""
    return 0.0 if reranking is None else float(reranking.strength)


def _in_words(facts: dict[str, Any]) -> dict[str, Any]:
    """The same facts for people to read."""
    from ..data.streams import shown

    labels = [label if label.isprintable() else shown(label) for label in facts["labels"]]
    more = ["..."] if facts["classes"] > _SHOWN else []
    words = {**facts, "labels": ", ".join([*labels, *more])}
    for name in ("reranking", "rivals"):
        words[name] = _for_each(facts[name], "on, with strength {:.3g}")
    if "terms" in facts:
        words["terms"] = _terms_in_words(facts["terms"])
    if "layout" in facts:
        words["layout"] = ", ".join(f"{name} {fact!r}" for name, fact in facts["layout"].items())
    if "dropped_in_training" in facts:
        words["dropped_in_training"] = _for_each(
            facts["dropped_in_training"], "weights up to {:.4g}"
        )
    return words


def _terms_in_words(terms: dict[str, Any]) -> str:
    from ..selection.terms import Terms

    return str(Terms(**terms))


def _term_trials(trials: Sequence[TermTrial], chosen: str) -> str:
    """Table of the terms that were tried on held-out texts.

    >>> from xtrellis.selection.terms import Terms, TermTrial
    >>> trials = TermTrial(Terms((1, 2), None), 0.89), TermTrial(Terms(None, (1, 4)), 0.91)
    >>> print(_term_trials(trials, "characters 1-4"))
    terms tried on held-out texts; other terms than words must be clearly more accurate
    accuracy  terms
      89.00%  words 1-2
      91.00%  characters 1-4  <- chosen
    """
    lines = [
        "terms tried on held-out texts; other terms than words must be clearly more accurate",
        "accuracy  terms",
    ]
    for trial in trials:
        mark = "  <- chosen" if str(trial.terms) == chosen else ""
        lines.append(f"{trial.accuracy:8.2%}  {trial.terms}{mark}")
    return "\n".join(lines)


def _for_each(values: Any, phrase: str) -> str:
    """A number as a phrase, or several; 0 as "off"."""
    values = values if isinstance(values, list) else [values]
    return "; ".join(phrase.format(value) if value else "off" for value in values)


def _trials(selection: Any, n_classes: int) -> str:
    """Table of what was tried on held-out rows, and what was chosen.

    >>> from xtrellis.selection.settings import Selection, Trial
    >>> trials = Trial("plain", 1.0, 9, 0.97, 0.88, 0.9), Trial("plain", 3.0, 9, 0.94, 0.89, 0.9)
    >>> print(_trials(Selection("plain", 3.0, 9, 80, trials), 80))
    tried on held-out rows of 80 classes; of the settings with a low log loss, the first was chosen
    whose accuracy is within chance of the best, and a wider trellis only if clearly more accurate
    order        C  width  log loss  accuracy   top-5
    plain        1      9     0.970    88.00%  90.00%
    plain        3      9     0.940    89.00%  90.00%  <- chosen
    """
    chosen = _chosen(selection, n_classes)
    lines = [
        f"tried on held-out rows of {selection.n_classes:,} classes; of the settings with a low "
        "log loss, the first was chosen",
        "whose accuracy is within chance of the best, and a wider trellis only if clearly more "
        "accurate",
        *_smaller_sample(selection, n_classes),
        "order        C  width  log loss  accuracy   top-5",
    ]
    for trial in selection.trials:
        mark = "  <- chosen" if trial is chosen else ""
        lines.append(
            f"{trial.order:9} {trial.C:4g} {trial.slice_width:6} {trial.log_loss:9.3f} "
            f"{trial.accuracy:9.2%} {trial.top_5_accuracy:7.2%}{mark}"
        )
    return "\n".join(lines)


def _smaller_sample(selection: Any, n_classes: int) -> list[str]:
    """What widths mean if the trials were of some of the classes."""
    if selection.n_classes == n_classes:
        return []
    return [
        f"(widths suit {selection.n_classes:,} classes; for all {n_classes:,} the chosen one is "
        f"{selection.slice_width})"
    ]


def _chosen(selection: Any, n_classes: int) -> Any:
    """The trial whose settings were chosen; trials on fewer classes have narrower slices."""
    from ..selection.default_width import default_slice_width

    trials = [t for t in selection.trials if (t.order, t.C) == (selection.order, selection.C)]
    times = selection.slice_width / default_slice_width(n_classes)
    own = times * default_slice_width(selection.n_classes)
    if selection.slice_width == n_classes:  # one-vs-rest
        own = selection.n_classes
    return min(trials, key=lambda trial: abs(trial.slice_width - own))
