"""Where a module defines its names: for links to code, and for the test that checks them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def symbol_lines(file: Path) -> dict[str, int]:
    """Line of every function, class and variable of a module, and of those in its classes."""
    lines: dict[str, int] = {}

    def enter(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                lines[prefix + node.name] = node.lineno
            if isinstance(node, ast.ClassDef):
                enter(node.body, f"{prefix}{node.name}.")
            if isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        lines[prefix + target.id] = node.lineno

    enter(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return lines
