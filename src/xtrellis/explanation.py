"""Why a class: the features that spoke for and against it, at each edge of its path and in total.

A margin is linear in the row, ``f_e = bias_e + sum_j x_j w_je``, so the terms ``x_j w_je`` are
exactly what each feature contributed to edge e. Summed over the edges of its path, they are what
each feature contributed to the class:

    sum_{e in P} f_e = sum_e bias_e + sum_j x_j sum_e w_je.

Local training chooses at each vertex among the edges that leave it, by a softmax, whose
probabilities are listed. The paper's code compares whole paths and has none. With several
trellises, totals are averaged over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import FloatArray, IntArray
from .decoding.lazy import normalised
from .decoding.paths import checked_costs
from .decoding.vertex_losses import PathHinge, VertexSoftmax
from .graph.trellis import Trellis
from .prediction import TrellisModel

_N_CHOICES = 3  # edges listed per vertex


@dataclass(frozen=True)
class Contribution:
    """What one feature of the row contributed.

    Attributes
    ----------
    feature : str or int
        Name of the feature, or its number.
    value : float
        Value in the row.
    weight : float
        Weight at the edge, or sum of the weights at the edges of the path.
    """

    feature: Any
    value: float
    weight: float

    @property
    def amount(self) -> float:
        """``value * weight``."""
        return self.value * self.weight


@dataclass(frozen=True)
class Choice:
    """An edge that leaves a vertex of the path.

    Attributes
    ----------
    head : int or None
        Vertex of the next slice that the edge leads to; None for the sink.
    margin : float
    probability : float
        Probability of this edge at its vertex.
    label
        The best class whose path reaches this vertex in the same way and then takes this edge,
        before any re-ranking.
    """

    head: int | None
    margin: float
    probability: float
    label: Any


@dataclass(frozen=True)
class Step:
    """An edge of the path of a class.

    Attributes
    ----------
    trellis : int
        Number of the trellis; 0 if there is only one.
    slice, vertex : int
        Where the edge starts; slice -1 is the source.
    head : int or None
        Vertex of the next slice that it leads to; None for the sink.
    edge : int
        Number of the edge.
    margin, bias : float
        The margin is the bias and all contributions, summed.
    contributions : tuple of Contribution
        Contributions of the row's features that have a weight at this edge, largest first.
    probability : float or None
        Probability of this edge at its vertex; None if the vertices have no softmax.
    choices : tuple of Choice
        The most likely edges at this vertex, best first; empty if the vertices have no softmax.
    """

    trellis: int
    slice: int
    vertex: int
    head: int | None
    edge: int
    margin: float
    bias: float
    contributions: tuple[Contribution, ...]
    probability: float | None = None
    choices: tuple[Choice, ...] = ()

    @property
    def is_forced(self) -> bool:
        """Whether no class takes another edge from here: there was nothing to learn."""
        return self.probability is not None and self.margin == self.bias == 1


@dataclass(frozen=True)
class Explanation:
    """Why a class was chosen for a row, or why not. ``print`` shows it.

    Attributes
    ----------
    label, probability
        The class being explained, and its probability.
    predicted, predicted_probability
        The most likely class, and its probability.
    margin, bias : float
        Sums over the edges that were a choice. The margin is the bias and all contributions.
    contributions : tuple of Contribution
        Contributions of the row's features, summed over the edges of the path, largest first.
    steps : tuple of Step
        The edges of the path, from the source to the sink.
    similarity : float or None
        Cosine between the row and the centroid of the class, if the best classes are re-ranked by
        centroids.
    top : int
        How many features ``print`` shows.
    against_rivals : float or None
        Margin of the SVM that tells the class from its rivals, if the best classes are re-ranked by
        those: below 1, it speaks against the class.
    """

    label: Any
    probability: float
    predicted: Any
    predicted_probability: float
    margin: float
    bias: float
    contributions: tuple[Contribution, ...]
    steps: tuple[Step, ...]
    similarity: float | None = None
    top: int = 10
    against_rivals: float | None = None

    @property
    def in_favour(self) -> tuple[Contribution, ...]:
        """Features that spoke for the class, strongest first."""
        return tuple(each for each in self.contributions if each.amount > 0)

    @property
    def against(self) -> tuple[Contribution, ...]:
        """Features that spoke against the class, strongest first."""
        return tuple(each for each in self.contributions if each.amount < 0)

    @property
    def n_trellises(self) -> int:
        """Number of trellises."""
        return 1 + max((step.trellis for step in self.steps), default=0)

    def renamed(self, name_of: Callable[[Any], Any]) -> Explanation:
        """The same explanation with features renamed."""

        def new(old: tuple[Contribution, ...]) -> tuple[Contribution, ...]:
            return tuple(replace(each, feature=name_of(each.feature)) for each in old)

        steps = tuple(replace(each, contributions=new(each.contributions)) for each in self.steps)
        return replace(self, contributions=new(self.contributions), steps=steps)

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries and lists, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self.headline, ""]
        lines += _side_by_side(self.in_favour[: self.top], self.against[: self.top])
        lines += ["", self.sums, "", "path"]
        for step in self.steps:
            lines.append(f"  {step_in_words(step, self.n_trellises)}")
            lines += [f"      {line}" for line in step_details(step, self.label)]
        return "\n".join(lines)

    @property
    def headline(self) -> str:
        """The class and its probability, and the predicted class if it is a different one."""
        text = f"{self.label}: {self.probability:.1%}"
        if self.label == self.predicted:
            return f"{text}, the most likely class"
        best = f"{self.predicted}: {self.predicted_probability:.1%}"
        return f"{text}; the most likely class is {best}"

    @property
    def sums(self) -> str:
        """The totals of the path in one line."""
        text = f"total margin of the path {self.margin:+.3f}, including bias {self.bias:+.3f}"
        if self.similarity is not None:
            text += f"; cosine with the centroid of the class {self.similarity:.3f}"
        if self.against_rivals is not None:
            text += f"; margin against rivals {self.against_rivals:+.3f}"
        return text


# ---------------------------------------------------------------------- one row


def explain_row(
    models: Sequence[TrellisModel],
    row: Any,
    encoded: int,
    probability: float,
    predicted: int,
    predicted_probability: float,
    top: int,
) -> Explanation:
    """Explanation of a class, given by number, for one row made by :func:`canonical_csr`."""
    for model in models:
        _check_linear(model)
    steps = [
        step for number, model in enumerate(models) for step in _steps(model, row, encoded, number)
    ]
    share = 1 / len(models)
    class_ = np.array([[encoded]], np.int64)
    centroids = next((each.centroids for each in models if each.centroids is not None), None)
    rivals = [each.rivals.margins(row, class_)[0, 0] for each in models if each.rivals is not None]
    labels = models[0].classes[[encoded, predicted]].tolist()
    return Explanation(
        labels[0],
        probability,
        labels[1],
        predicted_probability,
        share * sum(step.margin for step in steps if not step.is_forced),
        share * sum(step.bias for step in steps if not step.is_forced),
        _summed([step.contributions for step in steps], share),
        tuple(steps),
        None if centroids is None else float(centroids.cosines(row, class_)[0, 0]),
        top,
        float(np.mean(rivals)) if rivals else None,
    )


def _steps(model: TrellisModel, row: Any, encoded: int, number: int) -> list[Step]:
    """The edges of a class's path, and what the features of the row contributed to each."""
    trellis = model.trellis
    path = int(model.assignment.path_of_class[encoded])
    edges, vertices = trellis.path_edges(path), trellis.path_vertices(path)
    margins = model.margins(row)
    choices = _choices(model, margins, edges)
    steps = []
    for at, edge in enumerate(edges[edges >= 0].tolist()):
        features, weights, bias = model.weights.edge_weights(edge)
        _, mine, theirs = np.intersect1d(features, row.indices, True, return_indices=True)
        head = int(vertices[at]) if at < len(vertices) and vertices[at] >= 0 else None
        place = number, at - 1, int(vertices[at - 1]) if at else 0, head, edge
        contributions = _ordered(features[mine], row.data[theirs], weights[mine])
        chosen = choices[at] if choices else ()
        steps.append(Step(*place, float(margins[0, edge]), bias, contributions, *chosen))
    return steps


def _ordered(features: IntArray, values: FloatArray, weights: FloatArray) -> tuple[Any, ...]:
    """Contributions of some features, largest first; zeros are left out."""
    values, weights = values.astype(np.float64), weights.astype(np.float64)
    amounts = np.abs(values * weights)
    order = np.argsort(-amounts, kind="stable")
    order = order[amounts[order] > 0]
    rows = features[order].tolist(), values[order].tolist(), weights[order].tolist()
    return tuple(map(Contribution, *rows))


def _summed(parts: Sequence[tuple[Contribution, ...]], share: float) -> tuple[Any, ...]:
    """Contributions to several edges, summed by feature."""
    every = [each for part in parts for each in part]
    if not every:
        return ()
    features, inverse = np.unique([each.feature for each in every], return_inverse=True)
    values = np.empty(len(features))
    values[inverse] = [each.value for each in every]
    weights = np.bincount(inverse, [each.weight for each in every])
    return _ordered(features, values, share * weights)


def _check_linear(model: TrellisModel) -> None:
    if model.weights.nonlinear:
        raise ValueError(
            "only linear learners can be explained, and these are not: train with learner='svm'"
        )


# ---------------------------------------------------------------------- what else there was


def _choices(
    model: TrellisModel, margins: FloatArray, edges: IntArray
) -> list[tuple[float, tuple[Choice, ...]]]:
    """At each vertex of a path: the probability of its edge, and the most likely edges."""
    if model.code != "local" or not isinstance(model.loss, VertexSoftmax | PathHinge):
        return []
    trellis = model.trellis
    softmax = np.exp(-checked_costs(trellis, margins, normalised(model.loss))[0])
    onward = _best_ways_on(trellis, checked_costs(trellis, margins, model.loss))
    vertices = trellis.path_vertices(trellis.path_numbers(edges[np.newaxis]))[0]
    found = []
    for at, edge in enumerate(edges[edges >= 0].tolist()):
        leaving = trellis.vertex_edges(at - 1, int(vertices[at - 1]) if at else 0)
        _, heads = trellis.endpoints(leaving)
        likeliest = np.argsort(-softmax[leaving], kind="stable")[:_N_CHOICES]
        choices = []
        for way in likeliest.tolist():
            is_exit = heads[way] == trellis.n_vertices - 1
            head = None if is_exit else int(heads[way]) - 1 - at * trellis.slice_width
            by_way = _finished(trellis, onward, [*edges[:at].tolist(), int(leaving[way])], head)
            encoded = model.assignment.class_of_path[by_way]
            label = model.classes[[encoded]].tolist()[0] if encoded >= 0 else None
            margin = float(margins[0, leaving[way]])
            choices.append(Choice(head, margin, float(softmax[leaving[way]]), label))
        found.append((float(softmax[edge]), tuple(choices)))
    return found


def _best_ways_on(trellis: Trellis, costs: FloatArray) -> list[IntArray]:
    """For each slice, the column of its edge table with which each vertex's best path continues."""
    ways: list[IntArray] = []
    beyond: npt.NDArray[np.float64] = np.empty(0)
    for table in reversed(trellis.edge_tables[1:]):
        totals = table.gather(costs.astype(np.float64), fill=np.inf)[0]
        totals[:, :-1] += beyond
        ways.append(totals.argmin(axis=1))
        beyond = totals.min(axis=1)
    return ways[::-1]


def _finished(trellis: Trellis, onward: list[IntArray], edges: list[int], head: int | None) -> int:
    """Number of the best path that begins with these edges, the last of which leads to ``head``."""
    while head is not None:
        index = len(edges) - 1
        way, n_heads = int(onward[index][head]), trellis.edge_tables[index + 1].n_heads
        edges.append(int(trellis.leaving_edges(index, head)[way]))
        head = way if way < n_heads else None
    edges += [-1] * (trellis.n_slices + 1 - len(edges))
    return int(trellis.path_numbers([edges])[0])


# ---------------------------------------------------------------------- one class


def strongest_features(models: Sequence[TrellisModel], encoded: int, top: int) -> list[Any]:
    """Features with the largest weights, summed over the path of a class, and these sums."""
    totals: dict[int, float] = {}
    for model in models:
        _check_linear(model)
        edges = model.trellis.path_edges(int(model.assignment.path_of_class[encoded]))
        for edge in edges[edges >= 0].tolist():
            features, weights, _ = model.weights.edge_weights(edge)
            for feature, weight in zip(features.tolist(), weights.tolist(), strict=True):
                totals[feature] = totals.get(feature, 0.0) + weight / len(models)
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return [item for item in ordered[:top] if item[1] > 0]


# ---------------------------------------------------------------------- in words


def step_in_words(step: Step, n_trellises: int = 1) -> str:
    """Start and end of an edge, with its probability and margin."""
    tail = "source" if step.slice < 0 else f"vertex {step.vertex} of slice {step.slice}"
    head = "sink" if step.head is None else f"vertex {step.head} of slice {step.slice + 1}"
    likely = "" if step.probability is None else f" {step.probability:.1%},"
    many = f"trellis {step.trellis}: " if n_trellises > 1 else ""
    found = "the only way" if step.is_forced else f"{likely} margin {step.margin:+.3f}".strip()
    return f"{many}{tail} -> {head}: {found}"


def step_details(step: Step, label: Any, n_words: int = 5) -> list[str]:
    """The strongest features of an edge, and the edges that could have been taken instead."""
    words = [f"{each.feature} {each.amount:+.3f}" for each in step.contributions[:n_words]]
    lines = [", ".join(words)] if words else []
    others = [
        f"{'sink' if each.head is None else f'vertex {each.head}'} {each.probability:.1%} "
        f"({each.label})"
        for each in step.choices
        if each.head != step.head and each.probability >= 0.0005
    ]
    return [*lines, *([f"instead: {', '.join(others)}"] if others else [])]


def _side_by_side(left: Sequence[Contribution], right: Sequence[Contribution]) -> list[str]:
    """Features for and against, in two columns."""
    if not left and not right:
        return ["no feature of the row has a weight on the path of this class"]
    parts = ("for it", left), ("against it", right)
    columns = [[name, *(f"{e.amount:+8.3f}  {e.feature}" for e in part)] for name, part in parts]
    width = max(map(len, columns[0])) + 4
    pairs = zip_longest(*columns, fillvalue="")
    return [f"{left:{width}}{right}".rstrip() for left, right in pairs]
