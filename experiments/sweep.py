"""The trials: widths and seeds of every table and figure."""

from __future__ import annotations

from sets import load_set
from trials import SEEDS, Spec, local_spec, ltls_spec, paper_spec
from xtrellis.selection import default_slice_width

_PAPER_WIDTHS = {
    "icd10cm": (2, 3, 5, 7, 10, 15, 20, 30, 40),
    "wordnet_hypernym": (2, 4, 8, 15, 30, 50, 86),
}
_MOST_BEYOND = 40  # joint training holds all edges dense, which takes gigabytes for wider graphs
_LOCAL_WIDTHS = {"icd10cm": (2, 5, 10, 20, 40), "wordnet_hypernym": (2, 5, 10, 30, 86)}


def paper_widths(data: str) -> tuple[int, ...]:
    """Widths of W-LTLS as in the paper."""
    return _PAPER_WIDTHS.get(data) or _ladder(data)


def local_widths(data: str) -> tuple[int, ...]:
    """Widths of local training."""
    return _LOCAL_WIDTHS.get(data) or _ladder(data)


def _ladder(data: str) -> tuple[int, ...]:
    """Widths for any other set."""
    n_classes = load_set(data).n_classes
    top = default_slice_width(n_classes)
    return tuple(sorted({b for b in (2, 3, 5, 7, 10, 15, 20, 30) if b < top} | {top}))


def paper_specs(data: str) -> list[Spec]:
    """W-LTLS at all widths with five seeds; the first seed is pruned, too."""
    return [
        paper_spec(data, width, seed, prune=seed == 0)
        for width in paper_widths(data)
        for seed in SEEDS
    ]


def local_specs(data: str) -> list[Spec]:
    """Local training at all widths with five seeds; the first seed is pruned, too."""
    return [
        local_spec(data, width, seed, prune=seed == 0)
        for width in local_widths(data)
        for seed in SEEDS
    ]


def ltls_specs(data: str) -> list[Spec]:
    """LTLS with five seeds."""
    return [ltls_spec(data, seed) for seed in SEEDS]


def one_vs_rest_spec(data: str) -> Spec:
    """One-vs-rest, the widest trellis; with one seed, which only orders the rows."""
    return Spec(data, "independent", load_set(data).n_classes, "random", "arow")


def beyond_specs(data: str) -> dict[str, list[Spec]]:
    """Assignment and training at every width, with the first seed, by name."""
    widths = local_widths(data)
    wide = [width for width in widths if width <= _MOST_BEYOND]
    return {
        "independent, random": [paper_spec(data, b, prune=b in paper_widths(data)) for b in wide],
        "independent, similarity": [
            Spec(data, "independent", b, "similarity", "arow") for b in wide
        ],
        "local, random": [Spec(data, "local", b, "random") for b in widths],
        "local, similarity": [Spec(data, "local", b, prune=True) for b in widths],
        "joint, greedy": [ltls_spec(data, width=b) for b in wide],
    }
