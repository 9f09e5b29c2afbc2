"""Greedy path assignment of LTLS: a class takes its path when training first meets it.

Section 4.1 of the paper. Of the paths that are best for the row at hand, the class takes the first
that is still free.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._checks import checked_integer
from ..decoding.paths import AnyLoss, checked_costs, k_shortest_paths
from ..graph.assignment import PathAssignment, given_assignment
from ..graph.trellis import Trellis


class GreedyAssignment:
    """Hands out paths one class at a time: the best one that is still free (LTLS).

    Parameters
    ----------
    trellis : Trellis
        The graph.
    n_candidates : int, default=20
        A new class takes the first free path among this many best ones; if none of them is
        free, the free path with the lowest number.

    Examples
    --------
    >>> import numpy as np
    >>> from xtrellis.graph import Trellis
    >>> from xtrellis.learning import GreedyAssignment
    >>> trellis = Trellis(9, 2)
    >>> greedy = GreedyAssignment(trellis)
    >>> margins = np.linspace(-1, 1, trellis.n_edges)
    >>> greedy.assign(4, margins), greedy.assign(2, margins), greedy.assign(4, -margins)
    (8, 7, 8)
    >>> greedy.finish().path_of_class       # classes never seen take what is left, in order
    array([0, 1, 7, 2, 8, 3, 4, 5, 6])
    """

    def __init__(self, trellis: Trellis, n_candidates: int = 20) -> None:
        if checked_integer("n_candidates", n_candidates) < 1:
            raise ValueError(f"n_candidates must be at least 1, got {n_candidates}")
        self.trellis = trellis
        self.n_candidates = min(n_candidates, trellis.n_classes)
        self.path_of_class = np.full(trellis.n_classes, -1, dtype=np.int64)
        self.class_of_path = np.full(trellis.n_classes, -1, dtype=np.int64)
        self._first_free = 0

    def assign(self, label: int, margins: npt.ArrayLike, loss: AnyLoss = "squared") -> int:
        """Path of class ``label``; a class seen for the first time is given one.

        Parameters
        ----------
        label : int
            The class, from 0 to K - 1.
        margins : array-like of shape (n_edges,)
            Margins of the row at hand, which say how good each path is.
        loss : default="squared"
            As for :func:`xtrellis.decoding.best_paths`.
        """
        if not 0 <= checked_integer("label", label) < self.trellis.n_classes:
            raise ValueError(f"label must be from 0 to {self.trellis.n_classes - 1}, got {label}")
        if self.path_of_class[label] < 0:
            row = np.asarray(margins)[np.newaxis]
            if row.ndim != 2:
                raise ValueError(
                    f"margins must be those of one row, shape ({self.trellis.n_edges},), "
                    f"got shape {row.shape[1:]}"
                )
            costs = checked_costs(self.trellis, row, loss)
            best = k_shortest_paths(self.trellis, costs, self.n_candidates)[0][0]
            free = best[self.class_of_path[best] < 0]
            self._take(label, int(free[0]) if free.size else self._lowest_free())
        return int(self.path_of_class[label])

    def finish(self) -> PathAssignment:
        """The whole assignment: classes never seen take the paths left over, in order."""
        paths = self.path_of_class.copy()
        paths[paths < 0] = np.flatnonzero(self.class_of_path < 0)
        return given_assignment(self.trellis, paths)

    def _lowest_free(self) -> int:
        while self.class_of_path[self._first_free] >= 0:
            self._first_free += 1
        return self._first_free

    def _take(self, label: int, path: int) -> None:
        self.path_of_class[label] = path
        self.class_of_path[path] = label
