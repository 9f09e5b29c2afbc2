"""What width selection finds: a trial per width, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes

    from ..classifier import TrellisClassifier

Criterion = Literal["bound", "log_loss"]


@dataclass(frozen=True)
class WidthTrial:
    """What was measured for one width.

    Attributes
    ----------
    slice_width, n_edges : int
    bound : float
        ``l * epsilon / (rho * L(0))`` with the squared hinge, equation (3), on training rows.
    average_binary_loss : float
        epsilon of equation (4).
    log_loss : float
        Mean of -log2 p(true class) on the rows held out for calibration, or on training rows if
        there are none. A row whose class is not the most probable one adds at least 1, so this,
        too, is a bound on the error on these rows.
    training_error : float
        Share of training rows whose class is predicted wrongly.
    model_bytes : int
        Memory of the weights.
    fit_seconds : float

    Examples
    --------
    >>> from xtrellis.selection import WidthTrial
    >>> trial = WidthTrial(
    ...     slice_width=5, n_edges=35, bound=0.4, average_binary_loss=0.05, log_loss=0.3,
    ...     training_error=0.1, model_bytes=70_000, fit_seconds=1.5)
    >>> trial.bound
    0.4
    """

    slice_width: int
    n_edges: int
    bound: float
    average_binary_loss: float
    log_loss: float
    training_error: float
    model_bytes: int
    fit_seconds: float


@dataclass(frozen=True)
class WidthSelection:
    """The widths that :func:`select_slice_width` tried, and its choice.

    Attributes
    ----------
    slice_width : int
        The width chosen.
    trials : list of WidthTrial
        What was measured for each width, the narrowest first.
    criterion : {"bound", "log_loss"}
        What the choice was made by.
    skipped : dict of int to str
        Widths that were left out because they need too much memory, and why.
    interrupted : bool
        Whether Ctrl-C ended the search.
    classifier : TrellisClassifier or None
        The trained classifier of the chosen width. None in the ``width_selection_`` of a
        classifier, which is itself that classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xtrellis import select_slice_width
    >>> X, y = load_digits(return_X_y=True)
    >>> selection = select_slice_width(X / 16, y, widths=[2, 4], random_state=0)
    >>> [(trial.slice_width, trial.n_edges) for trial in selection.trials]
    [(2, 14), (4, 16)]
    >>> selection.classifier.trellis_.slice_width == selection.slice_width
    True
    """

    slice_width: int
    trials: list[WidthTrial]
    criterion: Criterion
    skipped: dict[int, str] = field(default_factory=dict)
    interrupted: bool = False
    classifier: TrellisClassifier | None = field(default=None, repr=False)

    def table(self) -> str:
        """The ladder as plain text, with an arrow at the width chosen."""
        names = ("b", "edges", "bound", "log loss", "training error", "weights", "fit")
        lines = [[*names, ""]]
        for trial in self.trials:
            chosen = trial.slice_width == self.slice_width
            lines.append(
                [
                    str(trial.slice_width),
                    f"{trial.n_edges:,}",
                    f"{trial.bound:.4f}",
                    f"{trial.log_loss:.4f}",
                    f"{trial.training_error:.2%}",
                    f"{trial.model_bytes / 1e6:.2f} MB",
                    f"{trial.fit_seconds:.1f} s",
                    f"<- by {self.criterion.replace('_', ' ')}" if chosen else "",
                ]
            )
        sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(cell.rjust(size) for cell, size in zip(line[:-1], sizes, strict=False))
            + ("  " + line[-1]).rstrip()
            for line in lines
        ]
        text += [f"{width} skipped: {reason}" for width, reason in self.skipped.items()]
        if self.interrupted:
            text.append("interrupted: wider graphs were not tried")
        return "\n".join(text)

    def __str__(self) -> str:
        return self.table()

    def plot(self, target: str | PathLike[str] | Axes | None = None) -> Axes:
        """Draw the ladder: into a file, on given axes, or on a new figure.

        See :func:`draw_widths`.
        """
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure

        from ..plots import draw_widths
        from ..plots.axes import WIDTHS_SIZE

        if target is None or isinstance(target, Axes):
            return draw_widths(self, target)
        figure = Figure(figsize=WIDTHS_SIZE, layout="constrained")
        ax = draw_widths(self, figure.subplots())
        figure.savefig(target, dpi=150)
        return ax
