"""The report of ``xtrellis evaluate --html``: one page, for a screen of any size."""

from __future__ import annotations

import html
from collections.abc import Iterable

from ..evaluation import Evaluation
from ..evaluation.results import Confusion, examples_in_words
from . import report
from .charts import bar_chart, line_chart

_STYLE = """
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; }
.tiles div { background: #f3f5f8; border-radius: .4rem; padding: .6rem .8rem; }
.tiles b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.tiles span { color: #5f6b7a; font-size: .85rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
          gap: 1.5rem; }
svg { width: 100%; max-width: 30rem; height: auto; display: block;
      font: 12.5px system-ui, sans-serif; }
svg text { fill: #5f6b7a; } svg .name { fill: #1d2633; font-size: 13px; }
svg tspan { fill: #5f6b7a; font-size: 11px; }
svg .grid { stroke: #e5e8ee; } svg .same { stroke: #8a94a6; stroke-dasharray: 4 4; }
svg .line { fill: none; stroke: #0b5fd3; stroke-width: 2; } svg circle { fill: #0b5fd3; }
svg .bar { fill: #0b5fd3; } svg .empty { fill: #eef1f5; }
ol.errors { padding-left: 1.4rem; } ol.errors li { margin: .7rem 0; overflow-wrap: anywhere; }
ol.errors p { margin: .15rem 0; color: #5f6b7a; font-size: .92rem; }
"""


def report_of(found: Evaluation, title: str) -> str:
    """The whole page, self-contained: styles and pictures are part of it."""
    parts = [f"<style>{_STYLE}</style>", _tiles(found)]
    parts += [report.heading("How far to trust its answers"), _charts(found)]
    parts.append(_bars(found))
    if found.confusions:
        parts += [report.heading("Worst confusions"), _errors(found.confusions)]
    return report.page(title, parts)


def _tiles(found: Evaluation) -> str:
    """The overall figures."""
    of_known = ", known classes" if found.rows_of_unknown_classes else ""
    tiles = {
        "accuracy": f"{found.accuracy:.2%}",
        **{f"top-{k} accuracy": f"{value:.2%}" for k, value in found.top_k_accuracy.items()},
        "macro-F1": f"{found.macro_f1:.4f}",
        f"log loss (nats){of_known}": f"{found.log_loss:.4f}",
        "calibration error": f"{found.expected_calibration_error:.2%}",
        "calibration error expected by chance": f"{found.calibration_error_by_chance:.2%}",
        "rows": f"{found.rows:,}",
        "rows of unknown classes": f"{found.rows_of_unknown_classes:,}",
        "microseconds per row": f"{found.microseconds_per_row:,.1f}",
    }
    content = "".join(
        f"<div><b>{html.escape(value)}</b><span>{html.escape(name)}</span></div>"
        for name, value in tiles.items()
    )
    return f'<div class="tiles">{content}</div>'


def _charts(found: Evaluation) -> str:
    """Accuracy against the share answered, and against confidence."""
    answered = [(point.share, point.accuracy) for point in reversed(found.curve)]
    lowest = min(accuracy for _, accuracy in answered)
    curve = line_chart(
        answered,
        "share of rows answered, the most confident first",
        "accuracy",
        y_range=(int(lowest * 10) / 10 if lowest < 1 else 0.9, 1.0),
    )
    most = max(each.n_rows for each in found.bins)
    reliability = line_chart(
        [(each.confidence, each.accuracy) for each in found.bins],
        "probability of the answer",
        "accuracy",
        diagonal=True,
        sizes=[each.n_rows / most for each in found.bins],
    )
    figures = (
        (curve, "Accuracy if only the most confident answers are given."),
        (
            reliability,
            "Accuracy by probability: the two agree on the dashed line. Larger dots: more rows.",
        ),
    )
    content = "".join(
        f"<figure>{chart}<figcaption>{html.escape(text)}</figcaption></figure>"
        for chart, text in figures
    )
    return f'<div class="charts">{content}</div>'


def _bars(found: Evaluation) -> str:
    """Accuracy by class size and by level of the label, if there are several."""
    sections = {}
    if len(found.by_class_size) > 1:
        where = "in training" if found.sizes_known else "among these rows"
        sections["Accuracy by class size"] = [
            (
                group.name,
                group.accuracy,
                f"{_range(group.least, group.most)} rows each {where}, {group.n_rows:,} evaluated",
            )
            for group in found.by_class_size
            if group.n_rows
        ]
    if found.levels:
        sections["Accuracy by level of the label"] = [
            (f"first {level.depth}", level.accuracy, f"{level.n_classes:,} classes")
            for level in found.levels
        ]
    content = "".join(
        f"<div>{report.heading(title)}{bar_chart(bars)}</div>" for title, bars in sections.items()
    )
    return f'<div class="charts">{content}</div>'


def _errors(confusions: Iterable[Confusion]) -> str:
    """Confusions with their examples."""
    items = []
    for each in confusions:
        names = f"<b>{html.escape(str(each.label))}</b> taken for "
        names += f"<b>{html.escape(str(each.predicted))}</b>"
        examples = "".join(
            f"<p>{html.escape(text)}</p>" for text in examples_in_words(each, longest=300)
        )
        items.append(f"<li>{names}: {each.n_rows:,} of {each.n_of_label:,} rows{examples}</li>")
    return f'<ol class="errors">{"".join(items)}</ol>'


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
