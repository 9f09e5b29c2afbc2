"""The page from the paper to the code: every link leads to a file that defines what it names."""

import re
from pathlib import Path

import pytest

from symbols import symbol_lines

FOLDER = Path(__file__).resolve().parents[1] / "docs"
TEXT = (FOLDER / "paper_to_code.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\[`(?:[^`\]]*::)?([^`\]]+)`\]\(([^)#\s]+\.py)\)", TEXT)


def test_every_link_leads_to_its_symbol():
    assert len(LINKS) > 100
    missing = [(name, file) for name, file in LINKS if name not in symbol_lines(FOLDER / file)]
    assert not missing


def test_symbols_have_the_lines_of_their_definitions(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("A = 1\n\nclass B:\n    c: int = 2\n\n    def d(self):\n        e = 3\n")
    assert symbol_lines(file) == {"A": 1, "B": 3, "B.c": 4, "B.d": 6}


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
