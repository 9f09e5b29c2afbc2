"""Brute force over all paths: what every fast algorithm of the library is compared with.

Nothing here uses the library. The graph is built edge by edge as Algorithm 1 of the paper says,
all its paths are walked, and losses are summed over whole codewords, in extended precision.
"""

from functools import lru_cache

import numpy as np

SOURCE, SINK = "source", "sink"

LOSSES = {
    "exponential": lambda z: np.exp(-z),
    "squared": lambda z: (1 - z) ** 2,
    "log": lambda z: np.logaddexp(0, -z),
    "hinge": lambda z: np.maximum(0, 1 - z),
    "squared_hinge": lambda z: np.maximum(0, 1 - z) ** 2,
}


@lru_cache(maxsize=256)
def graph_edges(n_classes, width):
    """List of edges (tail, head), numbered as in the figure of Appendix C."""
    digits = []
    rest = n_classes
    while rest:
        digits.append(rest % width)
        rest //= width
    last = len(digits) - 1
    sizes = [width] * last + [digits[last]]
    edges = [(SOURCE, (0, v)) for v in range(sizes[0])]
    for i in range(last):
        edges += [((i, v), (i + 1, w)) for v in range(sizes[i]) for w in range(sizes[i + 1])]
    for i in range(last, -1, -1):
        edges += [((i, v), SINK) for v in range(digits[i])]
    return edges


@lru_cache(maxsize=256)
def all_paths(n_classes, width):
    """Every source-sink path as a tuple of edge numbers: depth first, exits before vertices."""
    edges = graph_edges(n_classes, width)
    leaving = {}
    for number, (tail, head) in enumerate(edges):
        leaving.setdefault(tail, []).append((head != SINK, number, head))
    paths = []

    def walk(vertex, path):
        if vertex == SINK:
            paths.append(path)
            return
        for _, number, head in sorted(leaving[vertex], key=lambda option: option[:2]):
            walk(head, (*path, number))

    walk(SOURCE, ())
    return paths


@lru_cache(maxsize=256)
def coding_matrix(n_classes, width, code="independent"):
    """The K x |E| matrix of codewords."""
    edges = graph_edges(n_classes, width)
    paths = all_paths(n_classes, width)
    tails = [tail for tail, _ in edges]
    matrix = np.full((len(paths), len(edges)), -1 if code == "independent" else 0)
    for word, path in zip(matrix, paths, strict=True):
        if code == "local":
            visited = {edges[number][0] for number in path}
            word[[tail in visited for tail in tails]] = -1
        word[list(path)] = 1
    return matrix


def total_losses(matrix, margins, loss):
    """Equation (1): the total loss of every class, from the coding matrix; (n, K)."""
    margins = np.asarray(margins, dtype=np.longdouble)
    return np.stack([loss(matrix * row).sum(axis=1) for row in margins])


def depth(vertex):
    """Distance from the source."""
    return 0 if vertex == SOURCE else vertex[0] + 1


@lru_cache(maxsize=256)
def conflicting_edges(n_classes, width):
    """S(e) of equation (5), a set of edge numbers for every edge."""
    edges = graph_edges(n_classes, width)
    sets = []
    for tail, head in edges:
        if head == SINK:
            sets.append({j for j, (u, _) in enumerate(edges) if depth(u) >= depth(tail)})
        else:
            sets.append({j for j, (u, _) in enumerate(edges) if depth(u) == depth(tail)})
    return sets


def paper_weights(n_classes, width, margins, loss):
    """Equation (6): edge weights whose path sums are the total losses; one row of margins."""
    margins = np.asarray(margins, dtype=np.longdouble)
    chosen, refused = loss(margins), loss(-margins)
    return np.array(
        [
            chosen[j] + sum(refused[k] for k in conflicts if k != j)
            for j, conflicts in enumerate(conflicting_edges(n_classes, width))
        ]
    )


def path_sums(n_classes, width, weights):
    """Sum of the edge weights of every path."""
    return np.array([weights[list(path)].sum() for path in all_paths(n_classes, width)])


def log_sum_exp(values):
    top = values.max(axis=-1, keepdims=True)
    return (top + np.log(np.exp(values - top).sum(axis=-1, keepdims=True)))[..., 0]
