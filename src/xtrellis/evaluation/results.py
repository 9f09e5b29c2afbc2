"""What an evaluation finds, and how it reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class SizeGroup:
    """Rows of classes of similar size.

    Attributes
    ----------
    name : str
        "head", "middle" or "tail": the classes of most rows, which together have a third of them,
        of fewest rows, likewise, and those between; "all" if all are alike.
    least, most : int
        Rows of a class of this group.
    n_classes, n_rows : int
        Classes of this group, and evaluated rows of these classes.
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
    """Rows of one class that were taken for another: how many, of how many, and some of them.

    Examples are texts, or numbers of rows.
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
    """If only the most likely answers are given: their share, least probability and accuracy."""

    share: float
    min_probability: float
    accuracy: float


@dataclass(frozen=True)
class Bin:
    """Rows of similar confidence: how many, their mean probability, and the share that is right."""

    n_rows: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Evaluation:
    """How good a classifier is on some rows. ``print`` shows it.

    Attributes
    ----------
    rows : int
    accuracy, macro_f1 : float
        Macro-F1 is the mean over all classes that occur among the labels or the predictions.
    top_k_accuracy : dict of int to float
        Share of rows whose label is among the k most likely classes.
    log_loss : float
        Mean of -log p(label), over rows of known classes; classes behind the 20 most likely ones
        are taken to share evenly what these leave.
    mean_probability, expected_calibration_error : float
        Of the most likely classes; see :func:`expected_calibration_error`.
    rows_of_unknown_classes : int
        Rows of classes that training lacks; their predictions are wrong.
    microseconds_per_row : float
        Of ``predict``, on at most 5,000 rows together.
    by_class_size : tuple of SizeGroup
    sizes_known : bool
        Whether the sizes of classes are those in training, which older model files lack; if not,
        they are those among the evaluated rows.
    confusions : tuple of Confusion
        The most frequent ones.
    levels : tuple of Level
        If labels have levels.
    curve : tuple of CurvePoint
        Accuracy against the share of rows answered.
    bins : tuple of Bin
        Rows by confidence: the expected calibration error in detail.
    """

    rows: int
    accuracy: float
    top_k_accuracy: dict[int, float]
    macro_f1: float
    log_loss: float
    mean_probability: float
    expected_calibration_error: float
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
        """The single numbers."""
        return {
            "rows": self.rows,
            "accuracy": self.accuracy,
            **{f"top_{k}_accuracy": value for k, value in self.top_k_accuracy.items()},
            "macro_f1": self.macro_f1,
            "log_loss": self.log_loss,
            "mean_probability": self.mean_probability,
            "expected_calibration_error": self.expected_calibration_error,
            "rows_of_unknown_classes": self.rows_of_unknown_classes,
            "microseconds_per_row": self.microseconds_per_row,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries and lists, which JSON can hold."""
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
    """Tables of an evaluation: class sizes, levels, confusions and, if wanted, the curve."""
    lines: list[str] = []
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
    """Rows of a confusion: texts, cut if they are long, or numbers of rows."""
    if not all(isinstance(each, str) for each in found.examples):
        return [f"row {', '.join(map(str, found.examples))}"]
    texts = [" ".join(each.split()) for each in found.examples]
    return [text if len(text) <= longest else f"{text[: longest - 3]}..." for text in texts]
