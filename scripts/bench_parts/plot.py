"""A report's growing rows as an SVG picture: a panel for each kind of machine, part and unit.

It follows the reader's light or dark mode, and needs no library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from .report import Report, Row

__all__ = ["svg"]

_COLOURS = (
    "#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#ec4899",
    "#a3a3a3", "#a16207", "#1e40af", "#84cc16", "#be185d", "#0891b2",
)  # fmt: skip
_WIDTH, _HEIGHT, _LEGEND = 360, 190, 320
_STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #333 } .axis { stroke: #999; stroke-width: 1 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .axis { stroke: #777 } }
</style>"""


def svg(report: Report) -> str:
    """The picture; logarithmic both ways."""
    growing = [r for r in report.rows if r.many is not None]
    keys = dict.fromkeys((r.machine, r.part, r.unit) for r in growing)
    panels = []
    for i, key in enumerate(keys):
        rows = [r for r in growing if (r.machine, r.part, r.unit) == key]
        title = f"{key[0]}, {key[1]}: {key[2]}"
        panels.append(
            f'<g transform="translate(60 {30 + i * (_HEIGHT + 70)})">'
            f'<text y="-10" font-weight="bold">{escape(title)}</text>'
            f"{_panel(rows)}</g>"
        )
    width, height = _WIDTH + _LEGEND + 90, max(1, len(keys)) * (_HEIGHT + 70) + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{_STYLE}{"".join(panels)}</svg>\n'
    )


def _panel(rows: Sequence[Row]) -> str:
    counts = sorted({r.many for r in rows if r.many is not None})
    values = [max(r.p50, 1e-6) for r in rows]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.01))
    step = _WIDTH / max(1, len(counts) - 1)

    def y(value: float) -> float:
        return _HEIGHT * (1 - (math.log10(max(value, 1e-6)) - low) / (high - low))

    parts = [f'<path class="axis" fill="none" d="M0 0V{_HEIGHT}H{_WIDTH}"/>']
    for i, count in enumerate(counts):
        parts.append(f'<text x="{i * step:.0f}" y="{_HEIGHT + 18}">{count}</text>')
    parts += [
        f'<text x="-8" y="{y(10.0**p) + 4:.0f}" text-anchor="end">{10.0**p:g}</text>'
        for p in range(low, high + 1)
    ]
    for i, what in enumerate(dict.fromkeys(r.what for r in rows)):
        colour = _COLOURS[i % len(_COLOURS)]
        points = [(counts.index(r.many) * step, y(r.p50)) for r in rows if r.what == what]  # type: ignore[arg-type]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>'
                  for px, py in points]  # fmt: skip
        parts.append(f'<text x="{_WIDTH + 16}" y="{12 + 17 * i}" style="fill:{colour}">'
                     f"{escape(what)}</text>")  # fmt: skip
    return "".join(parts)
