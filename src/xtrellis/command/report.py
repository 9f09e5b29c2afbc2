"""Reports: one self-contained HTML page with tables and pictures."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1d2633; background: #fff;
       max-width: 62rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .38rem .7rem; border-bottom: 1px solid #e5e8ee; text-align: right; }
th { border-bottom: 2px solid #b8c0cc; font-weight: 600; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
tr.best td { background: #eef4fd; font-weight: 600; }
figure { margin: 1rem 0; } figcaption { color: #5f6b7a; font-size: .9rem; }
img { max-width: 100%; height: auto; } code { background: #f3f5f8; padding: .1em .3em; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr)); gap: 1rem; }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A complete page from parts of HTML.

    >>> page("Trees & paths", [paragraph("a < b")]).count("a &lt; b")
    1
    """
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def heading(text: str) -> str:
    """Section heading."""
    return f"<h2>{html.escape(text)}</h2>"


def paragraph(text: str) -> str:
    """Paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    best: int | None = None,
    texts: Sequence[int] = (0,),
) -> str:
    """Table with texts to the left and numbers to the right; the best row is highlighted."""

    def cells(tag: str, row: Sequence[Any]) -> str:
        marks = [' class="text"' if at in texts else "" for at in range(len(row))]
        return "".join(
            f"<{tag}{mark}>{html.escape(str(cell))}</{tag}>"
            for mark, cell in zip(marks, row, strict=True)
        )

    lines = [f"<tr>{cells('th', header)}</tr>"]
    for number, row in enumerate(rows):
        mark = ' class="best"' if number == best else ""
        lines.append(f"<tr{mark}>{cells('td', row)}</tr>")
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def picture(figure: Figure, caption: str) -> str:
    """Matplotlib figure, embedded in the page."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    content = base64.b64encode(buffer.getvalue()).decode()
    text = html.escape(caption)
    return (
        f'<figure><img alt="{text}" src="data:image/png;base64,{content}">'
        f"<figcaption>{text}</figcaption></figure>"
    )


def side_by_side(parts: Iterable[str]) -> str:
    """Parts side by side, if the screen is wide enough."""
    return '<div class="pair">' + "".join(parts) + "</div>"
