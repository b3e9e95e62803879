"""A report as a page of Markdown: one table for each part, one column for each number at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .report import Ratio, Report, Row

__all__ = ["markdown"]


def markdown(report: Report, texts: dict[str, str]) -> str:
    """The page.

    Args:
        texts: for each part, what its numbers contain.
    """
    host = report.host
    lines = [
        "# Measured",
        "",
        f"Written by `make bench` on {host.get('date', '?')}. Machines are shared and noisy: "
        "compare rows of one run, not numbers of two.",
        "",
        ", ".join(f"{name} {value}" for name, value in host.items() if name != "date"),
        "",
        "![steps, memory and resets by the number of environments](bench.svg)",
    ]
    for part in dict.fromkeys(row.part for row in report.rows):
        lines += ["", f"## {part.capitalize()}", "", texts.get(part, "").strip()]
        for machine in dict.fromkeys(row.machine for row in report.rows if row.part == part):
            rows = [r for r in report.rows if (r.part, r.machine) == (part, machine)]
            loads = [r.load for r in rows]
            lines += ["", f"On `{machine}`, with a load of {min(loads):.1f} to {max(loads):.1f}:"]
            lines += _single([r for r in rows if r.many is None])
            lines += _growing([r for r in rows if r.many is not None])
    lines += _ratios(report.ratios)
    if report.left_out:
        lines += ["", "## Left out", ""]
        for one in report.left_out:
            many = "" if one["many"] is None else f"{one['many']} x "
            lines.append(f"- {one['machine']}, {one['part']}: {many}{one['what']}: {one['why']}")
    return "\n".join(lines) + "\n"


def _single(rows: Sequence[Row]) -> list[str]:
    return _table(
        ["what", "p50", "p95", "unit", "n"],
        [[r.what, f"{r.p50:.3g}", f"{r.p95:.3g}", r.unit, str(r.n)] for r in rows],
    )


def _growing(rows: Sequence[Row]) -> list[str]:
    counts = sorted({r.many for r in rows if r.many is not None})
    body = []
    for what in dict.fromkeys(r.what for r in rows):
        of_it = {r.many: r for r in rows if r.what == what}
        cells = [f"{of_it[n].p50:.3g} ({of_it[n].p95:.3g})" if n in of_it else "" for n in counts]
        body.append([what, next(iter(of_it.values())).unit, *cells])
    return _table(["what, p50 (p95)", "unit", *map(str, counts)], body)


def _ratios(ratios: Sequence[Ratio]) -> list[str]:
    body = [
        [r.machine, r.what, "" if r.many is None else str(r.many), f"{r.value:.3g}", r.wanted]
        for r in ratios
    ]
    table = _table(["machine", "what", "at once", "number", "wanted"], body)
    return ["", "## Ratios", *table] if ratios else []


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    rows = ["| " + " | ".join(cells) + " |" for cells in body]
    if not rows:
        return []
    marks = ["---" if name.startswith(("what", "unit", "mach")) else "---:" for name in head]
    return ["", "| " + " | ".join(head) + " |", "| " + " | ".join(marks) + " |", *rows]
