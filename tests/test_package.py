"""The package as a whole: instant to import, no import cycles, public names documented."""

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import requires
from pathlib import Path

import pytest

import xtrellis

HEAVY = ("numba", "sklearn", "scipy", "matplotlib", "pandas", "joblib")
PUBLIC = [name for name in xtrellis.__all__ if name != "__version__"]
FOLDERS = ("graph", "learning", "decoding", "selection", "model", "data", "evaluation", "plots")
SOURCE = Path(xtrellis.__file__).parent
OF_EXTRAS = {
    *("cloudpickle", "dask", "distributed", "pandas"),  # dask
    *("fastapi", "pydantic", "starlette", "uvicorn"),  # serve
    *("matplotlib", "pyarrow"),  # plot, parquet
}


def test_import_loads_nothing_heavy():
    code = (
        "import sys, xtrellis; "
        f"print([m for m in {HEAVY!r} if m in sys.modules], 'numpy' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[] False"


def test_only_declared_packages_are_imported():
    """Those of the base installation, or of an extra: tests have more packages than users do."""
    required = [each for each in requires("xtrellis") or [] if "extra ==" not in each]
    names = {re.split(r"[^\w-]", each)[0].replace("-", "_") for each in required}
    found = {
        name.partition(".")[0]
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom) and node.level == 0
            else []
        )
    }
    base = {*names, "sklearn", "llvmlite", "xtrellis"}  # of scikit-learn, and of Numba
    assert found - set(sys.stdlib_module_names) - base == OF_EXTRAS


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_docstrings_with_examples(name):
    value = getattr(xtrellis, name)
    assert inspect.getdoc(value)
    assert doctest.DocTestParser().get_examples(inspect.getdoc(value)), f"{name} has no example"


def test_the_top_has_the_estimators_and_little_else():
    assert set(PUBLIC) == {
        *("TrellisClassifier", "LTLSClassifier", "TrellisEnsemble", "TrellisTextClassifier"),
        *("load_model", "select_slice_width", "load_icd10cm", "load_wordnet"),
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_of_folders_have_docstrings(folder):
    module = importlib.import_module(f"xtrellis.{folder}")
    names = [name for name in module.__all__ if not name.startswith("_")]
    assert names
    for name in names:
        assert inspect.getdoc(getattr(module, name)), f"xtrellis.{folder}.{name} has no docstring"


def module_name(file):
    parts = ("xtrellis", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def imported_modules(file):
    """Modules of the package that a file imports when it is imported itself."""
    name = module_name(file)
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = package.split(".")[: package.count(".") + 2 - node.level]
            base = ".".join([*parts, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names} | {base}
    return found - {name, package}


def test_imports_have_no_cycle():
    files = {module_name(file): file for file in SOURCE.rglob("*.py")}
    graph = {name: imported_modules(file) & set(files) for name, file in files.items()}
    assert "xtrellis.graph.trellis" in graph["xtrellis.graph.codebook"], "imports are seen"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_kernels_import_nothing_of_the_package_but_kernels():
    for file in (SOURCE / "kernels").glob("*.py"):
        others = {name for name in imported_modules(file) if ".kernels" not in name}
        assert others <= {"xtrellis"}, f"{file.name} imports {others}"


def test_names_are_listed_and_unknown_ones_refused():
    assert set(PUBLIC) <= set(dir(xtrellis))
    with pytest.raises(AttributeError, match="attribute nonsense"):
        xtrellis.nonsense  # noqa: B018
