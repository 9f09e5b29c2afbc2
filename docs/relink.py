"""Put the right line numbers into the links of docs/paper_to_code.md.

    python docs/relink.py

A link names a symbol and the line that defines it: [`Trellis.n_edges`](../src/...py#L110). Before
``::`` may stand the file, for the reader. Only the numbers are changed; ``tests`` checks them.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import lru_cache
from pathlib import Path

PAGE = Path(__file__).parent / "paper_to_code.md"
LINK = re.compile(r"\[`(?:[^`\]]*::)?([^`\]]+)`\]\(([^)#\s]+)#L(\d+)\)")


@lru_cache
def symbols(file: Path) -> dict[str, int]:
    """Line of every function, class and variable of a module, and of those in its classes."""
    lines: dict[str, int] = {}

    def enter(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                lines.setdefault(prefix + node.name, node.lineno)
            if isinstance(node, ast.ClassDef):
                enter(node.body, f"{prefix}{node.name}.")
            if isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        lines.setdefault(prefix + target.id, node.lineno)

    enter(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return lines


def relinked(text: str, folder: Path) -> str:
    """The text of a page in a folder, with the line of every linked symbol as it is now."""

    def relink(link: re.Match[str]) -> str:
        symbol, target, number = link.groups()
        file = (folder / target).resolve()
        if not file.is_file():
            raise LookupError(f"{target}: there is no such file")
        if symbol not in symbols(file):
            raise LookupError(f"{target} has no {symbol}")
        return link[0].removesuffix(f"#L{number})") + f"#L{symbols(file)[symbol]})"

    return LINK.sub(relink, text)


if __name__ == "__main__":
    try:
        page = relinked(PAGE.read_text(encoding="utf-8"), PAGE.parent)
    except LookupError as error:
        sys.exit(f"{PAGE.name}: {error}")
    PAGE.write_text(page, encoding="utf-8")
