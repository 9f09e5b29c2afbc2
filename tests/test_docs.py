"""The code in README and guide runs as it stands there."""

import re
from pathlib import Path

import pytest

from samples import topics

ROOT = Path(__file__).resolve().parents[1]


def code_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_examples_run(page):
    blocks = code_blocks(page)
    assert blocks
    for block in blocks:
        names: dict = {}
        exec(block, names)
        if "clf" in names and not hasattr(names["clf"], "classes_"):
            X, y = topics(n_classes=6, n_rows=150)
            assert names["clf"].fit(X, y).score(X, y) > 0.8


def test_the_guides_learner_is_short():
    (block,) = [block for block in code_blocks("docs/guide.md") if "(Learner)" in block]
    assert len(block.strip().splitlines()) < 40


def test_links_lead_somewhere():
    for page in (
        "README.md",
        "CHANGELOG.md",
        "docs/guide.md",
        "docs/paper.md",
        "experiments/README.md",
    ):
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert ((ROOT / page).parent / target).exists(), (page, target)
