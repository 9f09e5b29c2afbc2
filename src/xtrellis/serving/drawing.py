"""What the page draws: the slices of a trellis, the path of a class, the vertices examined."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..decoding.paths import checked_costs
from ..prediction import TrellisModel


def drawings(classifier: Any, row: Any, label: Any) -> list[dict[str, Any]]:
    """One drawing per trellis of a classifier, for one canonical row and one class."""
    encoded = classifier._number_of(label)
    return [_drawing(model, row, encoded) for model in classifier._models()]


def _drawing(model: TrellisModel, row: Any, encoded: int) -> dict[str, Any]:
    path = model.trellis.path_vertices(int(model.assignment.path_of_class[encoded]))
    return {
        "slices": list(model.trellis.slice_sizes),
        "path": path[path >= 0].tolist(),
        "looked_at": looked_at(model, row),
    }


def looked_at(model: TrellisModel, row: Any) -> list[list[int]] | None:
    """The vertices of each slice whose margins the search for the best path computed.

    None means all of them. The search opens vertices in order of the cost of reaching them, and
    reports how many it opened, n: these are the n cheapest. Among equally cheap vertices, the
    search may have opened a different one.

    Vertices of the last slice have no margins to compute, so none of them is listed.
    """
    if not model.is_lazy:
        return None
    n_opened = int(model.opened(row)[0])
    reached = _costs_to_reach(model, row)
    ends = np.cumsum([len(costs) for costs in reached])
    order = np.argsort(np.concatenate(reached), kind="stable") if reached else np.empty(0, int)
    opened = np.sort(order[: n_opened - 1])  # the source is opened, too
    found: list[list[int]] = [[] for _ in model.trellis.slice_sizes]
    for vertex in opened.tolist():
        index = int(np.searchsorted(ends, vertex, side="right"))
        found[index].append(vertex - int(ends[index]) + len(reached[index]))
    return found


def _costs_to_reach(model: TrellisModel, row: Any) -> list[Any]:
    """Least cost from the source to each vertex of each slice but the last."""
    trellis = model.trellis
    costs = checked_costs(trellis, model.margins(row), model.loss).astype(np.float64)
    reached, before = [], np.zeros(1)
    for table in trellis.edge_tables[: trellis.n_slices - 1]:
        before = (before[:, np.newaxis] + table.gather(costs, fill=np.inf)[0, :, :-1]).min(axis=0)
        reached.append(before)
    return reached
