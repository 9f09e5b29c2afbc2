"""The demonstration: from raw text to a small model, on ICD-10-CM diagnosis wordings.

Trains LTLS, the paper's W-LTLS and local training at several widths, and one-vs-rest; chooses a
width by the bound; prunes and saves a model; classifies some sentences. Writes the model, pictures
and a report to a folder.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ..classifier import TrellisClassifier
from ..command import report
from ..data.datasets import TextSplit, load_icd10cm
from ..data.text_features import TextFeatures
from ..graph.trellis import Trellis
from ..ltls import LTLSClassifier
from ..model.model_file import load_model
from ..selection.width_trials import WidthSelection
from ..selection.widths import select_slice_width
from ..text import TrellisTextClassifier
from .compiling import timed

SENTENCES = (
    "second degree burn of the left hand",
    "type 2 diabetes with kidney disease",
    "closed fracture of the right wrist after a fall",
    "bitten by a dog",
    "chronic sinus infection",
    "premature baby with jaundice",
)


@dataclass(frozen=True)
class Result:
    """One row of the table of models."""

    family: str
    name: str
    label: str
    n_edges: int
    accuracy: float
    model_bytes: int
    row_microseconds: float
    train_seconds: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as it is shown."""
        return (
            self.name,
            f"{self.n_edges:,}",
            f"{self.accuracy:.2%}",
            f"{self.model_bytes / 1e6:.2f} MB",
            f"{self.row_microseconds:.1f} us",
            f"{self.train_seconds:.1f} s",
        )


HEADER = ("model", "edges", "accuracy", "file", "per row", "training")


def run(output: Path, n_jobs: int = -1) -> None:
    """Run the demonstration, and write its results to a folder."""
    output.mkdir(parents=True, exist_ok=True)
    data = load_icd10cm()
    print(
        f"ICD-10-CM: {len(data.train_texts):,} training texts, {len(data.test_texts):,} test "
        f"texts, {len(np.unique(data.train_labels)):,} classes",
        flush=True,
    )
    features = TextFeatures((1, 2), None, None)
    X = features.fit_transform(data.train_texts, 1)
    X_test = features.transform(data.test_texts)
    results = compare(X, data.train_labels, X_test, data.test_labels, n_jobs)
    selection = choose_width(X, data.train_labels, n_jobs)
    model, saved = ship(data, output, n_jobs)
    results.append(saved)
    answers = classify(model, data)
    figures = draw(results, selection, output)
    write_report(output, data, results, selection, answers, figures)


def compare(X: Any, y: Any, X_test: Any, y_test: Any, n_jobs: int) -> list[Result]:
    """Train and measure every kind of model."""
    common: dict[str, Any] = {"n_jobs": n_jobs, "random_state": 0}
    n_classes = len(np.unique(y))
    systems: list[tuple[str, str, str, Any]] = [
        ("LTLS", "LTLS", "", LTLSClassifier(**common)),
        *(
            ("W-LTLS", f"W-LTLS as in the paper, b = {b}", f"b = {b}", _paper(b, common))
            for b in (2, 5, 10, 20)
        ),
        *(
            ("local", f"local, C = 3, b = {b}", f"b = {b}", TrellisClassifier(b, C=3, **common))
            for b in (5, 10, 20, 40)
        ),
        ("one-vs-rest", "one-vs-rest SVM", "", _one_vs_rest(n_classes, common)),
    ]
    # Compile what predictions need here, so that their times below do not include compiling.
    for model in (systems[0][3], _paper(5, common), TrellisClassifier(5), _one_vs_rest(50, {})):
        few = clone(model).fit(X[:2_000], np.arange(min(2_000, X.shape[0])) % 50)
        few.predict_top_k(X[:10])
        few.predict(X[:10])
    print(_line(HEADER), flush=True)
    results = []
    for family, name, label, model in systems:
        seconds = timed(partial(model.fit, X, y))
        results.append(_measured(family, name, label, model, X_test, y_test, seconds))
        print(_line(results[-1].cells), flush=True)
    return results


def _paper(b: int, common: dict[str, Any]) -> TrellisClassifier:
    return TrellisClassifier.paper(b, epochs=5, **common)


def _one_vs_rest(n_classes: int, common: dict[str, Any]) -> TrellisClassifier:
    return TrellisClassifier(
        n_classes, training="independent", assignment="random", calibration=0.0, **common
    )


def _measured(
    family: str,
    name: str,
    label: str,
    model: Any,
    X_test: Any,
    y_test: Any,
    seconds: float,
) -> Result:
    """Accuracy, file size, and prediction time per row with one thread."""
    inside = getattr(model, "classifier_", model)
    with tempfile.TemporaryDirectory() as folder:
        size = model.save(Path(folder) / "measured.xtrellis")
    n_jobs, inside.n_jobs = inside.n_jobs, 1
    times = []
    for _ in range(3):
        start = time.perf_counter()
        predicted = inside.predict(X_test)
        times.append(time.perf_counter() - start)
    inside.n_jobs = n_jobs
    return Result(
        family,
        name,
        label,
        inside.trellis_.n_edges,
        float((predicted == y_test).mean()),
        size,
        min(times) / len(y_test) * 1e6,
        seconds,
    )


def choose_width(X: Any, y: Any, n_jobs: int) -> WidthSelection:
    """Choose a width as the paper does: where the bound on the training error stops falling."""
    print("\nwidths for the paper's settings, by the bound on the training error", flush=True)
    estimator = TrellisClassifier.paper(2, epochs=2, n_jobs=n_jobs, random_state=0)
    selection = select_slice_width(X, y, estimator=estimator, widths=(2, 4, 7, 12, 22))
    print(selection.table(), flush=True)
    return selection


def ship(data: TextSplit, output: Path, n_jobs: int) -> tuple[TrellisTextClassifier, Result]:
    """Train a model on texts, prune it, save it, and load it again."""
    classifier = TrellisClassifier(C=3, n_jobs=n_jobs, random_state=0)
    model = TrellisTextClassifier(classifier)
    rows = data.train_texts, data.train_labels
    seconds = timed(lambda: model.fit(*rows).prune(*rows, max_drop=0.005, validation_fraction=0.1))
    path = output / "icd10cm.xtrellis"
    size = model.save(path)
    model = load_model(path)
    done = model.classifier_.pruning_
    print(
        f"\npruned at {done.threshold:.3f}: {done.n_before:,} weights -> {done.n_after:,}; "
        f"{path}: {size / 1e6:.2f} MB, vocabulary included"
    )
    saved = _measured(
        "local, pruned",
        "b = 40, terms chosen, pruned, with its vocabulary",
        "terms chosen, pruned",
        model,
        model.transform(data.test_texts),
        data.test_labels,
        seconds,
    )
    print(_line(saved.cells), flush=True)
    return model, saved


def classify(model: TrellisTextClassifier, data: TextSplit) -> list[tuple[str, str, str, str]]:
    """The five best codes of some sentences: sentence, code, probability, a wording of the code.

    The wording is the one most similar to the sentence among the code's training texts.
    """
    rows = []
    labels, probabilities = model.predict_top_k(list(SENTENCES), k=5)
    similarity = (model.transform(SENTENCES) @ model.transform(data.train_texts).T).toarray()
    print("\nsentences, their five best codes, and the most similar training text of each code")
    for number, sentence in enumerate(SENTENCES):
        print(f"\n{sentence}")
        for code, probability in zip(labels[number], probabilities[number], strict=True):
            own = np.flatnonzero(data.train_labels == code)
            wording = data.train_texts[own[similarity[number, own].argmax()]]
            print(f"  {probability:>6.1%}  {code}  ({wording})")
            rows.append((sentence, str(code), f"{probability:.1%}", wording))
    return rows


def draw(results: list[Result], selection: WidthSelection, output: Path) -> dict[str, Any]:
    """Draw the pictures, for files and for the report; none if Matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\nno pictures: they need Matplotlib (pip install 'xtrellis[plot]')")
        return {}
    from ..plots import draw_trade_off, draw_trellis, draw_widths
    from ..plots.axes import WIDTHS_SIZE

    figures: dict[str, Any] = {}

    def new(name: str, size: tuple[float, float] = WIDTHS_SIZE) -> Any:
        figures[name] = Figure(figsize=size, layout="constrained")
        return figures[name].subplots()

    families: dict[str, list[Result]] = {}
    for result in results:
        families.setdefault(result.family, []).append(result)
    costs = {
        "accuracy_size": ("model_bytes", 1e6, "model file (MB)"),
        "accuracy_time": ("row_microseconds", 1.0, "prediction, one thread (microseconds per row)"),
    }
    for name, (attribute, unit, label) in costs.items():
        groups = {
            family: [(getattr(r, attribute) / unit, 100 * r.accuracy, r.label) for r in own]
            for family, own in families.items()
        }
        draw_trade_off(groups, label, ax=new(name))
    draw_widths(selection, new("widths"))
    draw_trellis(Trellis(64, 4), 17, new("trellis", (7.5, 4.0)))
    print()
    for name, figure in figures.items():
        path = output / f"{name}.png"
        figure.savefig(path, dpi=130)
        print(f"picture: {path}")
    return figures


def write_report(
    output: Path,
    data: TextSplit,
    results: list[Result],
    selection: WidthSelection,
    answers: list[tuple[str, str, str, str]],
    figures: dict[str, Any],
) -> None:
    """Write one page with all results."""

    def pictures(captions: dict[str, str]) -> str:
        shown = [
            report.picture(figures[name], text)
            for name, text in captions.items()
            if name in figures
        ]
        return report.side_by_side(shown)

    best = max(range(len(results)), key=lambda row: results[row].accuracy)
    firsts = {answer[0]: number for number, answer in reversed(list(enumerate(answers)))}
    rows = [
        (answer[0] if firsts[answer[0]] == number else "", *answer[1:])
        for number, answer in enumerate(answers)
    ]
    trials = [
        (
            f"{t.slice_width}{'  (chosen)' if t.slice_width == selection.slice_width else ''}",
            f"{t.n_edges:,}",
            f"{t.average_binary_loss:.4f}",
            f"{t.bound:.3f}",
            f"{t.training_error:.2%}",
            f"{t.model_bytes / 1e6:.1f} MB",
        )
        for t in selection.trials
    ]
    chosen = [t.slice_width for t in selection.trials].index(selection.slice_width)
    parts = [
        report.paragraph(
            f"ICD-10-CM diagnosis wordings to 3-character codes: {len(data.train_texts):,} "
            f"training texts, {len(data.test_texts):,} test texts, "
            f"{len(np.unique(data.train_labels)):,} classes. TF-IDF of words and pairs of words."
        ),
        report.heading("Accuracy and cost of each model"),
        report.table(HEADER, [result.cells for result in results], best),
        pictures(
            {
                "accuracy_size": "Accuracy against the size of the model file.",
                "accuracy_time": "Accuracy against the prediction time.",
            }
        ),
        report.heading("Choosing the width from training data alone"),
        report.table(
            ("slice width b", "edges", "average binary loss", "bound", "training error", "weights"),
            trials,
            chosen,
        ),
        pictures(
            {
                "widths": "The bound on the training error stops falling at the chosen width.",
                "trellis": "A small trellis: 64 classes, slices of 4 vertices, path 17.",
            }
        ),
        report.heading("Sentences that the model has not seen"),
        report.table(
            ("sentence", "code", "probability", "most similar training text of the code"),
            rows,
            texts=(0, 1, 3),
        ),
    ]
    path = output / "report.html"
    path.write_text(report.page("xtrellis on ICD-10-CM", parts), encoding="utf-8")
    print(f"report: {path}")


def _line(cells: tuple[str, ...]) -> str:
    """Cells as one line of a table."""
    return f"{cells[0]:52}" + "".join(f"{cell:>11}" for cell in cells[1:])
