"""The page from the paper to the code: every link leads to a file that defines what it names."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs"
TEXT = (FOLDER / "paper_to_code.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\[`(?:[^`\]]*::)?([^`\]]+)`\]\(([^)#\s]+\.py)\)", TEXT)


@cache
def symbols(file):
    """Every function, class and variable of a module, and those in its classes."""
    names = set()

    def enter(body, prefix):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                enter(node.body, f"{prefix}{node.name}.")
            if isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        names.add(prefix + target.id)

    enter(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return names


def test_every_link_leads_to_its_symbol():
    assert len(LINKS) > 100
    missing = [(name, file) for name, file in LINKS if name not in symbols(FOLDER / file)]
    assert not missing


def test_links_to_code_name_a_symbol():
    targets = re.findall(r"\]\(([^)]+\.py)\)", TEXT)
    assert len(targets) == len(LINKS)


@pytest.mark.parametrize(
    "item",
    [
        *(f"({number})" for number in range(1, 7)),
        *("Algorithm 1", "Theorem 1", "Lemma 2", "Lemma 3", "Theorem 4", "Lemma 5"),
        *("Corollary 6", "Corollary 7", "Lemma 8", "Corollary 9", "Theorem 10"),
        *("Lemma 11", "Corollary 12", "E.1", "E.2", "E.3", "E.4", "E.5", "E.6"),
    ],
)
def test_all_of_the_paper_is_there(item):
    assert re.search(rf"^\| \*\*{re.escape(item)}\*\*", TEXT, flags=re.MULTILINE)
