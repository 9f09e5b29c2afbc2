"""The pages: their code runs, their links and names lead somewhere, their tables match the tree."""

import re
from pathlib import Path

import pytest

from samples import topics

ROOT = Path(__file__).resolve().parents[1]
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
PAGES = [
    *TOP,
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md"))),
    "examples/README.md",
    "experiments/README.md",
]
# Folders that a user imports from; the other folders are the command and the kernels.
FOLDERS = {"graph", "learning", "decoding", "selection", "model"}
FOLDERS |= {"data", "evaluation", "plots", "dask"}


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def code_blocks(page):
    return re.findall(r"```python\n(.*?)```", text_of(page), flags=re.DOTALL)


def test_the_pages_are_found():
    assert {"docs/guide.md", "docs/paper.md", "docs/paper_to_code.md", "docs/speed.md"} < {*PAGES}


@pytest.mark.parametrize(("page", "n_blocks"), [("README.md", 1), ("docs/guide.md", 5)])
def test_examples_run(page, n_blocks):
    """What a block calls clf can be fitted, or is fitted; its last line has the type it shows."""
    blocks = code_blocks(page)
    assert len(blocks) >= n_blocks
    for block in blocks:
        names: dict = {}
        exec(block, names)
        assert "clf" in names, "a block that is not checked"
        if not hasattr(names["clf"], "classes_"):
            X, y = topics(n_classes=6, n_rows=150)
            assert names["clf"].fit(X, y).score(X, y) > 0.8
        else:
            assert len(names["clf"].classes_) > 1


def test_the_readmes_example_answers_as_its_comment_says():
    (block,) = code_blocks("README.md")
    names: dict = {}
    exec(block, names)
    shown = re.search(r"# (\w+) \((\d+) %\)", block)
    assert names["labels"][0, 0] == shown[1]
    assert names["probabilities"][0, 0] == pytest.approx(int(shown[2]) / 100, abs=0.05)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)", text_of(page))
    assert targets or page in ("CHANGELOG.md", "docs/speed.md")
    missing = [
        target
        for target in targets
        if not target.startswith("http") and not ((ROOT / page).parent / target).exists()
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_files_and_targets_that_pages_name_exist(page):
    text = text_of(page)
    files = re.findall(r"\b((?:benchmarks|experiments|examples|tests|src|docs)/[\w/.]+\.\w+)", text)
    assert not [file for file in files if not (ROOT / file).exists()]
    targets = re.findall(r"^(?:    |.*`)make ([a-z-]+)", text, flags=re.MULTILINE)
    known = re.findall(r"^([a-z-]+):", text_of("Makefile"), flags=re.MULTILINE)
    assert set(targets) <= set(known)


def test_the_readmes_table_of_the_package_matches_the_tree():
    rows = re.findall(r"^\| ((?:`[\w.]+`(?:, )?)+) \|", text_of("README.md"), flags=re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    package = ROOT / "src" / "xtrellis"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    modules = {path.stem for path in package.glob("*.py") if not path.stem.startswith("_")}
    assert listed == folders | modules


def test_the_api_reference_has_a_page_per_folder():
    pages = set(re.findall(r"api/(\w+)\.md", text_of("mkdocs.yml")))
    hooks = re.search(r"FOLDERS = \(([^)]*)\)", text_of("docs/hooks.py"))[1]
    assert pages == set(re.findall(r'"(\w+)"', hooks)) == FOLDERS | {"xtrellis"}


@pytest.mark.parametrize("page", PAGES)
def test_no_names_that_are_gone(page):
    gone = r"\b(?:save_model|max_memory|min_count|path_assignment|command_line|command_rows)\b"
    assert not re.findall(gone, text_of(page))


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table_rows(text, heading):
    """Rows of the table with this first title: their cells by title, set and system."""
    lines = [line for line in text.splitlines() if line[:1] == "|"]
    start = next(i for i, line in enumerate(lines) if cells(line)[:2] == ["set", heading])
    titles, rows = cells(lines[start]), {}
    for line in lines[start + 2 :]:
        if len(cells(line)) != len(titles):
            break
        row = dict(zip(titles, cells(line), strict=True))
        rows[row["set"], row["system"].strip("*")] = row
    return rows


def test_the_readmes_results_are_those_that_the_benchmark_printed():
    """The table is an excerpt of what ``bench_defaults.py`` printed; neither may go stale."""
    measured = table_rows(text_of("benchmarks/results/defaults.md"), "system")
    shown = table_rows(text_of("README.md"), "system")
    assert len(shown) >= 12
    for key, row in shown.items():
        for title in row.keys() - {"system"}:
            assert row[title] == measured[key][title], (key, title)


def test_accuracies_in_the_page_on_the_paper_are_those_of_the_experiments():
    results = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "experiments/results").glob("*.md")
    )
    quoted = re.findall(r"(?<![\d.,])\d{2}\.\d{2}(?!\d)", text_of("docs/paper.md"))
    assert len(quoted) > 20
    assert not [number for number in quoted if number not in results]
