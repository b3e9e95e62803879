"""Variants of CSV, by rows and cells; what is not changed stays as it is, letter by letter."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from cua_gym.gates.text_mutants import Edit, edits, partly
from cua_gym.gates.variants import MOST, Content, Variant, altered, halves, spread

__all__ = ["SUFFIXES", "broken"]

SUFFIXES = (".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class _Row:
    raw: str
    cells: tuple[str, ...]


def _rows(text: str, delimiter: str) -> list[_Row]:
    """Rows with the very text that they are, newline included."""
    lines = io.StringIO(text, newline="").readlines()
    reader = csv.reader(lines, delimiter=delimiter)
    found, done = [], 0
    try:
        for cells in reader:
            found.append(_Row("".join(lines[done : reader.line_num]), tuple(cells)))
            done = reader.line_num
    except csv.Error:
        found.append(_Row("".join(lines[done:]), ()))
    return found


def broken(start: str | None, solved: str) -> list[Content]:
    """Half of the changed rows undone, each on its own, dropped, doubled; their cells altered."""
    first = solved.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count)
    before, after = _rows(start or "", delimiter), _rows(solved, delimiter)
    every = edits([r.cells for r in before], [r.cells for r in after])

    def content(rows: Sequence[_Row]) -> bytes:
        return "".join(row.raw for row in rows).encode()

    def undo(undone: Collection[Edit]) -> bytes:
        return content(partly(before, after, every, undone))

    def repeat(at: int, times: int) -> bytes:
        whole = after[at] if after[at].raw.endswith("\n") else _Row(after[at].raw + "\n", ())
        return content([*after[:at], *[whole] * times, *after[at + 1 :]])

    def alter(at: int, column: int, cell: str) -> bytes:
        row = list(after[at].cells)
        row[column] = cell
        written = io.StringIO(newline="")
        ending = after[at].raw[len(after[at].raw.rstrip("\r\n")) :]
        csv.writer(written, delimiter=delimiter, lineterminator=ending).writerow(row)
        return content([*after[:at], _Row(written.getvalue(), ()), *after[at + 1 :]])

    found: list[Content] = halves(every, lambda undone: undo(set(undone)))
    parts: list[Content] = []
    for edit in spread(every):
        if edit.after is None:
            name = f"gone-row-{edit.before + 1 if edit.before is not None else 0}"
            parts.append(Variant("reverted", name, partial(undo, {edit})))
            continue
        at, name = edit.after, f"row-{edit.after + 1}"
        old = before[edit.before].cells if edit.before is not None else ()
        if len(every) > 1:
            parts.append(Variant("reverted", name, partial(undo, {edit})))
        if any(cell.strip() for cell in after[at].cells):
            parts.append(Variant("dropped", name, partial(repeat, at, 0)))
            parts.append(Variant("doubled", name, partial(repeat, at, 2)))
        for column, cell in enumerate(after[at].cells):
            if len(old) != len(after[at].cells) or old[column] != cell:
                for how, wrong in altered(cell):
                    where = f"{name}:column-{column + 1}:{how}"
                    parts.append(Variant("altered", where, partial(alter, at, column, wrong)))
    return found + spread(parts, MOST - len(found))
