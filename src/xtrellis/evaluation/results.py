"""The results of an evaluation, and how they are printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class SizeGroup:
    """Rows of classes of similar size.

    Attributes
    ----------
    name : str
        "head" for the largest classes, which together have a third of the rows, "tail" for the
        smallest ones, which also have a third, and "middle" for the others; "all" if the classes
        do not differ in size.
    least, most : int
        Number of rows of the smallest and of the largest class in the group.
    n_classes, n_rows : int
        Number of classes in the group, and of evaluated rows of these classes.
    accuracy : float
        On these rows; nan if there are none.
    """

    name: str
    least: int
    most: int
    n_classes: int
    n_rows: int
    accuracy: float


@dataclass(frozen=True)
class Confusion:
    """Rows of one class that were predicted as another.

    Attributes
    ----------
    label, predicted
        The true class, and the one that was predicted.
    n_rows, n_of_label : int
        Number of rows confused in this way, and of all rows of the true class.
    examples : tuple
        Some of these rows: texts, or numbers of rows.
    """

    label: Any
    predicted: Any
    n_rows: int
    n_of_label: int
    examples: tuple[Any, ...]


@dataclass(frozen=True)
class Level:
    """Accuracy on the first parts of labels such as A/B/C."""

    depth: int
    n_classes: int
    accuracy: float


@dataclass(frozen=True)
class CurvePoint:
    """Share, lowest probability and accuracy of answers if only the most likely ones are given."""

    share: float
    min_probability: float
    accuracy: float


@dataclass(frozen=True)
class Bin:
    """Rows of similar confidence: their number, mean probability and accuracy."""

    n_rows: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Evaluation:
    """How good a classifier is on some rows. ``print`` shows a summary.

    Attributes
    ----------
    rows : int
    accuracy, macro_f1 : float
        Macro-F1 is the mean over all classes that occur among the labels or the predictions.
    top_k_accuracy : dict of int to float
        Share of rows whose label is among the k most likely classes.
    log_loss : float
        Mean of -log p(label), over rows of known classes; the classes after the 20 most likely ones
        are assumed to share the remaining probability evenly.
    mean_probability, expected_calibration_error : float
        Mean probability of the predicted classes, and how far it is from their accuracy; see
        :func:`expected_calibration_error`.
    calibration_error_by_chance : float
        What the expected calibration error would be, on so many rows, if there were none.
    rows_of_unknown_classes : int
        Rows of classes that did not occur in training, so that their predictions are wrong.
    microseconds_per_row : float
        Time that ``predict`` takes per row, on a batch of at most 5,000 rows.
    by_class_size : tuple of SizeGroup
    sizes_known : bool
        Whether class sizes are numbers of training rows. Older model files do not contain these;
        then the evaluated rows are counted.
    confusions : tuple of Confusion
        The most frequent confusions.
    levels : tuple of Level
        Accuracy per level, if labels have levels.
    curve : tuple of CurvePoint
        Accuracy against the share of rows answered.
    bins : tuple of Bin
        Rows grouped by confidence: the expected calibration error in detail.
    """

    rows: int
    accuracy: float
    top_k_accuracy: dict[int, float]
    macro_f1: float
    log_loss: float
    mean_probability: float
    expected_calibration_error: float
    calibration_error_by_chance: float
    rows_of_unknown_classes: int
    microseconds_per_row: float
    by_class_size: tuple[SizeGroup, ...]
    sizes_known: bool
    confusions: tuple[Confusion, ...]
    levels: tuple[Level, ...]
    curve: tuple[CurvePoint, ...]
    bins: tuple[Bin, ...] = field(repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """The single numbers, without tables."""
        return {
            "rows": self.rows,
            "accuracy": self.accuracy,
            **{f"top_{k}_accuracy": value for k, value in self.top_k_accuracy.items()},
            "macro_f1": self.macro_f1,
            "log_loss": self.log_loss,
            "mean_probability": self.mean_probability,
            "expected_calibration_error": self.expected_calibration_error,
            "calibration_error_by_chance": self.calibration_error_by_chance,
            "rows_of_unknown_classes": self.rows_of_unknown_classes,
            "microseconds_per_row": self.microseconds_per_row,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries and lists, ready for JSON."""
        details = asdict(self)
        kept = ("by_class_size", "sizes_known", "confusions", "levels", "curve", "bins")
        return {**self.facts, **{name: details[name] for name in kept}}

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        lines = [
            f"{name.replace('_', ' '):{width}}  "
            + (f"{value:,}" if isinstance(value, int) else f"{value:.4f}")
            for name, value in self.facts.items()
        ]
        return "\n".join([*lines, *details_in_words(self)])


# ---------------------------------------------------------------------- in words


def details_in_words(found: Evaluation, with_curve: bool = False) -> list[str]:
    """The tables as lines of text: class sizes, levels, confusions and, if asked for, the curve."""
    lines: list[str] = []
    if found.rows_of_unknown_classes:
        lines.append("rows of unknown classes count as wrong, and are not part of the log loss")
    if len(found.by_class_size) > 1:
        source = "training rows" if found.sizes_known else "of these rows"
        lines += ["", f"by class size          {source:>15}  classes     rows  accuracy"]
        for group in found.by_class_size:
            sizes = f"{group.least:,}-{group.most:,}"
            lines.append(
                f"  {group.name:20} {sizes:>15}  {group.n_classes:7,}  {group.n_rows:7,}"
                f"  {group.accuracy:8.4f}"
            )
    if found.levels:
        lines += ["", "by level of the label                   classes           accuracy"]
        for level in found.levels:
            lines.append(
                f"  first {level.depth:<32}{level.n_classes:7,}           {level.accuracy:8.4f}"
            )
    if found.confusions:
        lines += ["", "worst confusions"]
        for each in found.confusions:
            lines.append(f"  {confusion_in_words(each)}")
            lines += [f"      {example}" for example in examples_in_words(each)]
    if with_curve:
        lines += ["", "share answered  min probability  accuracy"]
        for point in found.curve:
            lines.append(
                f"{point.share:14.0%}  {point.min_probability:15.4f}  {point.accuracy:8.4f}"
            )
    return lines


def confusion_in_words(found: Confusion) -> str:
    """One line about a confusion."""
    return f"{found.label} taken for {found.predicted}: {found.n_rows:,} of {found.n_of_label:,}"


def examples_in_words(found: Confusion, longest: int = 90) -> list[str]:
    """The examples of a confusion: texts, shortened if they are long, or numbers of rows."""
    if not all(isinstance(each, str) for each in found.examples):
        return [f"row {', '.join(map(str, found.examples))}"]
    texts = [" ".join(each.split()) for each in found.examples]
    return [text if len(text) <= longest else f"{text[: longest - 3]}..." for text in texts]
