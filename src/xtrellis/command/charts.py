"""Charts written as SVG: small, sharp at any size, and without Matplotlib."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

_WIDTH, _HEIGHT = 360, 240  # SVG units; the page scales them
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 20, 12, 40

Point = tuple[float, float]


def line_chart(
    points: Sequence[Point],
    x_label: str,
    y_label: str,
    *,
    x_range: Point = (0.0, 1.0),
    y_range: Point = (0.0, 1.0),
    diagonal: bool = False,
    sizes: Sequence[float] = (),
) -> str:
    """A line through points with coordinates from 0 to 1, with axes in per cent.

    ``sizes`` from 0 to 1 set the areas of the dots; ``diagonal`` draws where x equals y.

    >>> chart = line_chart([(0.0, 0.5), (1.0, 1.0)], "rows & columns", "right")
    >>> chart.startswith("<svg"), "rows &amp; columns" in chart
    (True, True)
    """

    def place(point: Point) -> Point:
        x = (point[0] - x_range[0]) / ((x_range[1] - x_range[0]) or 1)
        y = (point[1] - y_range[0]) / ((y_range[1] - y_range[0]) or 1)
        across, up = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + x * across, _HEIGHT - _BOTTOM - y * up

    parts = [_grid(x_range, y_range, place)]
    if diagonal:
        low, high = max(x_range[0], y_range[0]), min(x_range[1], y_range[1])
        (x, y), (x_end, y_end) = place((low, low)), place((high, high))
        parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x_end:.1f}" y2="{y_end:.1f}" class="same"/>'
        )
    placed = [place(point) for point in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    parts.append(f'<polyline points="{path}" class="line"/>')
    radii = [2 + 7 * size**0.5 for size in sizes] or [3.0] * len(placed)
    for (x, y), radius, (share, value) in zip(placed, radii, points, strict=True):
        title = f"<title>{share:.1%}: {value:.1%}</title>"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{title}</circle>')
    middle = _LEFT + (_WIDTH - _LEFT - _RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{html.escape(x_label)}</text>'
    )
    return _svg(_HEIGHT, f"{y_label} against {x_label}", parts)


def bar_chart(bars: Sequence[tuple[str, float, str]]) -> str:
    """Horizontal bars, each with a name above it, a fraction that sets its length, and a note.

    >>> bar_chart([("head", 0.9, "10 classes")]).count("<rect")
    2
    """
    step, parts = 46, []
    for number, (name, share, text) in enumerate(bars):
        y = number * step
        length = (_WIDTH - 52) * min(max(share, 0.0), 1.0)
        label = f"{html.escape(name)} <tspan>{html.escape(text)}</tspan>"
        parts += [
            f'<text x="0" y="{y + 14}" class="name">{label}</text>',
            f'<rect x="0" y="{y + 20}" width="{_WIDTH - 52}" height="14" class="empty"/>',
            f'<rect x="0" y="{y + 20}" width="{length:.1f}" height="14" class="bar"/>',
            f'<text x="{_WIDTH - 46}" y="{y + 32}">{share:.1%}</text>',
        ]
    return _svg(len(bars) * step, ", ".join(name for name, _, _ in bars), parts)


def _grid(x_range: Point, y_range: Point, place: Callable[[Point], Point]) -> str:
    """Lines and numbers at five steps of each axis."""
    parts, places = [], _decimals(y_range)
    for step in range(5):
        x_value = x_range[0] + step / 4 * (x_range[1] - x_range[0])
        y_value = y_range[0] + step / 4 * (y_range[1] - y_range[0])
        x, _ = place((x_value, y_range[0]))
        _, y = place((x_range[0], y_value))
        below = _HEIGHT - _BOTTOM + 16
        parts += [
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" class="grid"/>',
            f'<text x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{y_value:.{places}%}</text>',
            f'<text x="{x:.1f}" y="{below}" text-anchor="middle">{x_value:.0%}</text>',
        ]
    return "".join(parts)


def _decimals(ends: Point) -> int:
    """Decimals, as many as tell where the steps of an axis are; at most two."""
    steps = [100 * (ends[0] + step / 4 * (ends[1] - ends[0])) for step in range(5)]
    fitting = (
        places
        for places in range(2)
        if all(abs(round(value, places) - value) < 1e-6 for value in steps)
    )
    return next(fitting, 2)


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{html.escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )
