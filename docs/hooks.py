"""What MkDocs cannot do by itself: bring in files from outside ``docs/``, and list the API.

Pages link to files of the repository by relative paths, so that the links work wherever the
repository is browsed. Here each linked file becomes part of the site: Markdown as a page, pictures
as they are, and Python as a page of source, where a link such as ``[`Trellis.digits`](trellis.py)``
leads to the line that defines the name. One API page per folder lists its public names.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from symbols import symbol_lines

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\[(?:`(?:[^`\]]*::)?(?P<name>[^`\]]+)`|[^\]]*)\])\((?P<target>[^)#\s]+)\)")
ROLE = re.compile(r":(?:func|class|meth|data|attr|exc|mod):`~?(?P<name>[^`]+)`")
DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", flags=re.MULTILINE)
FOLDERS = (
    "xtrellis",
    "graph",
    "learning",
    "decoding",
    "selection",
    "model",
    "data",
    "evaluation",
    "plots",
    "dask",
)
MOVED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
MOVED["CHANGELOG.md"] = "changelog.md"


# ---------------------------------------------------------------------- files


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie elsewhere, all that pages link to, and the API reference."""
    waiting = [*MOVED, *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if not path.startswith("docs/"):
            files.append(_file(path, config))
        if path.endswith(".md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            found = {_linked(path, match["target"]) for match in LINK.finditer(text)}
            new = {target for target in found - seen if target and (ROOT / target).is_file()}
            waiting += sorted(new)
            seen |= new
    for folder in FOLDERS:
        files.append(File.generated(config, f"api/{folder}.md", content=_api_page(folder)))
    return files


def _file(path: str, config: Any) -> File:
    """A file of the repository as a file of the site."""
    if path.endswith(".py"):
        text = f"# {path}\n\n```python\n{(ROOT / path).read_text(encoding='utf-8')}```\n"
        return File.generated(config, _uri(path), content=text)
    return File.generated(config, _uri(path), abs_src_path=str(ROOT / path))


def _uri(path: str) -> str:
    """Where a file of the repository is in the site's sources."""
    if path.endswith(".py"):
        return f"source/{path}.md"
    return MOVED.get(path, path.removeprefix("docs/"))


def _path(uri: str) -> str:
    """The file of the repository that a page of the site is."""
    for path, moved in MOVED.items():
        if uri == moved:
            return path
    return f"docs/{uri}" if (ROOT / "docs" / uri).is_file() else uri


def _linked(path: str, target: str) -> str | None:
    """The file that a link leads to, seen from the repository's root; None if it is elsewhere."""
    if "://" in target or target.startswith("mailto:"):
        return None
    return os.path.normpath(PurePosixPath(path).parent / target).replace(os.sep, "/")


# ---------------------------------------------------------------------- links


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links at the pages of the site, and links of names at their lines."""
    if page.file.src_uri.startswith(("source/", "api/")):
        return markdown
    path, folder = _path(page.file.src_uri), PurePosixPath(page.file.src_uri).parent

    def replaced(match: re.Match[str]) -> str:
        target = _linked(path, match["target"])
        if target is None or not (ROOT / target).is_file():
            return match[0]  # MkDocs warns of it
        line = symbol_lines(ROOT / target).get(match["name"]) if target.endswith(".py") else None
        anchor = f"#line-0-{line}" if line else ""
        return f"{match[1]}({os.path.relpath(_uri(target), folder).replace(os.sep, '/')}{anchor})"

    return LINK.sub(replaced, markdown)


# ---------------------------------------------------------------------- API reference


def _module(folder: str) -> Any:
    return importlib.import_module("xtrellis" if folder == "xtrellis" else f"xtrellis.{folder}")


@cache
def _places() -> dict[str, dict[str, str]]:
    """For each folder its public names, from its ``__all__``, and where they are defined."""
    places: dict[str, dict[str, str]] = {}
    for folder in FOLDERS:
        module = _module(folder)
        names = sorted(name for name in module.__all__ if not name.startswith("__"))
        values = {name: getattr(module, name) for name in names}
        places[folder] = {name: f"{value.__module__}.{name}" for name, value in values.items()}
    return places


def _api_page(folder: str) -> str:
    """The public names of a folder, documented by their docstrings; once, if they are in two."""
    module, parts = _module(folder), []
    for name, place in _places()[folder].items():
        if folder != "xtrellis" and name in _places()["xtrellis"]:
            parts.append(f"## {name}\n\nSee [`xtrellis.{name}`][{place}].")
        else:
            parts.append(f"::: {place}")
    return "\n\n".join([f"# {module.__name__}", _linked_names(inspect.getdoc(module)), *parts])


class Docstrings(griffe.Extension):
    """Docstrings as Markdown: roles become links, and doctests in running text code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            text = _linked_names(obj.docstring.value)
            if not re.search(r"^Examples\n---", text, flags=re.MULTILINE):
                text = DOCTEST.sub(r"```pycon\n\g<0>\n```", text)
            obj.docstring.value = text


def _linked_names(text: str | None) -> str:
    """Links in place of roles such as :func:`best_paths`, where the name is a public one."""
    everything = {name: place for names in _places().values() for name, place in names.items()}

    def replaced(match: re.Match[str]) -> str:
        owner, _, member = re.sub(r"^xtrellis\.([a-z]+\.)?", "", match["name"]).partition(".")
        if owner not in everything:
            return f"`{match['name']}`"
        place = everything[owner] + (f".{member}" if member else "")
        return f"[`{match['name']}`][{place}]"

    return ROLE.sub(replaced, text or "")
