"""The page from the paper to the code: every link leads to the line that it names."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs"
TEXT = (FOLDER / "paper_to_code.md").read_text(encoding="utf-8")
RELINK = runpy.run_path(str(FOLDER / "relink.py"))
LINKS = [link.groups() for link in RELINK["LINK"].finditer(TEXT)]


@pytest.fixture
def module(tmp_path):
    (tmp_path / "module.py").write_text(
        "LIMIT = 3\n\n\n@cache\ndef size():\n    pass\n\n\n"
        "class Box:\n    width: int\n\n    def size(self):\n        pass\n"
    )
    return tmp_path


def test_every_link_leads_to_its_symbol():
    for symbol, target, number in LINKS:
        lines = (FOLDER / target).read_text(encoding="utf-8").splitlines()
        line = lines[int(number) - 1] if int(number) <= len(lines) else ""
        name = re.escape(symbol.rpartition(".")[2])
        message = f"{target}#L{number} does not define {symbol}: run python docs/relink.py"
        assert re.match(rf"\s*((def|class) )?{name}\b", line), message
    assert len(LINKS) > 100


def test_the_numbers_are_those_of_relink():
    """A line may hold the right name in the wrong class; the parser tells them apart."""
    assert RELINK["relinked"](TEXT, FOLDER) == TEXT, "run python docs/relink.py"


def test_links_to_modules_name_a_line():
    targets = re.findall(r"\]\(([^)]+)\)", TEXT)
    for target in targets:
        if not target.startswith("http"):
            assert (FOLDER / target.partition("#")[0]).exists(), target
    numbered = [target for target in targets if "#L" in target]
    assert len(numbered) == len(LINKS)
    for target in set(targets) - set(numbered):
        assert not re.match(r"\.\./(src|tests)/.*\.py", target), f"{target} names no line"


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


@pytest.mark.parametrize(
    ("label", "line"),
    [("LIMIT", 1), ("size", 5), ("module.py::Box", 9), ("Box.width", 10), ("Box.size", 12)],
)
def test_relinking(module, label, line):
    text = "before [`{}`](module.py#L{}) after"
    assert RELINK["relinked"](text.format(label, 99), module) == text.format(label, line)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("[`gone`](module.py#L1)", "module.py has no gone"),
        ("[`size`](other.py#L1)", "other.py: there is no such file"),
    ],
)
def test_relinking_what_is_gone(module, link, message):
    with pytest.raises(LookupError, match=message):
        RELINK["relinked"](link, module)
