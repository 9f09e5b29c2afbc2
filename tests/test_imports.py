"""Imports go one way: no cycles, and no room knows the rooms above it."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import xtrellis

ROOT = Path(xtrellis.__file__).parent

# From the top to the bottom; modules of one line may import each other, if there is no cycle.
ORDER = [
    {"evaluation"},
    {"text", "ensemble", "dask"},
    {"choosing_terms"},
    {"classifier", "ltls"},
    {"fitting_from_disk"},
    {"fitting", "growing", "_online_method"},
    {"choosing"},
    {"engine"},
    {"held_out", "resuming"},
    {"choosing_reranking"},
    {"judging"},
    {"base"},
    {"answers", "prunable"},
    {"explanation", "votes", "sets"},
    {"prediction"},
    {"selection"},
    {"learning", "decoding"},
    {"model"},
    {"graph"},
    {"kernels", "_threads", "_progress", "_checks", "_arrays", "_memory", "_nested", "_changing"},
]
BESIDE = {"__init__", "__main__", "command", "serving", "plots", "data"}

# Imports against that order, each with its reason.
ALLOWED = {
    ("selection.widths", "classifier"): "the estimator to try, unless one is given",
    ("selection.widths", "fitting"): "it trains a model for every width",
    ("selection.widths", "judging"): "and judges them by their log loss",
}


def modules():
    """Name and syntax tree of every module, the package's own name left out."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        yield name, ast.parse(path.read_text())


NAMES = {name for name, _ in modules()}


def imports(name, tree, lazy):
    """Modules of the package that a module imports: when it is loaded, or inside its functions."""
    package = name.split(".")
    if not (ROOT.joinpath(*package) / "__init__.py").exists():
        package = package[:-1]
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside |= {id(child) for child in ast.walk(node) if child is not node}
    typing = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            typing |= {id(child) for child in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or id(node) in typing:
            continue
        if (id(node) in inside) != lazy:
            continue
        if node.level:
            base = package[: len(package) - node.level + 1]
        elif (node.module or "").split(".")[0] == "xtrellis":
            base = []
        else:
            continue
        parts = [part for part in (node.module or "").split(".") if part not in ("", "xtrellis")]
        for alias in node.names:
            for target in (".".join([*base, *parts, alias.name]), ".".join([*base, *parts])):
                if target in NAMES and target != name:
                    yield target
                    break


def graph(*kinds):
    return {name: {t for k in kinds for t in imports(name, tree, k)} for name, tree in modules()}


def test_there_are_imports_to_look_at():
    assert "graph.trellis" in graph(False)["decoding.paths"]
    assert "kernels.decode" in graph(True)["decoding.paths"]


@pytest.mark.parametrize("lazy", [False, True], ids=["module level", "lazy"])
def test_no_cycles(lazy):
    try:
        TopologicalSorter(graph(lazy)).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_room_imports_from_a_room_above_it():
    level = {room: depth for depth, rooms in enumerate(ORDER) for room in rooms}
    upward = set()
    for name, targets in graph(False, True).items():
        room = name.split(".")[0]
        for target in {target.split(".")[0] for target in targets} - BESIDE:
            if room not in BESIDE and level[target] < level[room]:
                upward.add((name, target))
    assert upward == set(ALLOWED)
