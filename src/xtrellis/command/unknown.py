"""Texts that contain nothing a model knows: labels for them are guesses, and a line says so."""

from __future__ import annotations

from typing import Any

from .errors import note


def as_rows(loaded: Any, batch: Any) -> tuple[Any, Any]:
    """The classifier of features of a model, and its rows for a batch of texts or rows."""
    if not isinstance(batch, list):
        return loaded, batch
    if hasattr(loaded, "rows"):  # loaded for prediction only
        return loaded, loaded.rows(batch)
    return loaded.classifier_, loaded.transform(batch)


class UnknownTexts:
    """Counts texts without a known term, and tells of them in the end."""

    def __init__(self) -> None:
        self.n_texts = self.n_unknown = self.first = 0

    def count(self, rows: Any) -> list[int]:
        """Number of known terms in each text, given its row of features."""
        found: list[int] = (rows.indptr[1:] - rows.indptr[:-1]).tolist()
        for number, n_terms in enumerate(found, self.n_texts + 1):
            if n_terms == 0:
                self.n_unknown += 1
                self.first = self.first or number
        self.n_texts += len(found)
        return found

    def tell(self) -> None:
        """Print how many there were, if there were any."""
        if self.n_unknown == 1:
            note(
                f"warning: row {self.first} contains no term that the model knows, "
                "so its label is a guess"
            )
        elif self.n_unknown:
            note(
                f"warning: {self.n_unknown:,} of {self.n_texts:,} rows contain no term that the "
                f"model knows, such as row {self.first}, so their labels are guesses"
            )
