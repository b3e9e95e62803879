"""Variants of workbooks (xlsx, ods), cell by cell, and workbooks saved by another program."""

from __future__ import annotations

import io
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import openpyxl

from cua_gym.gates import workbook_cells
from cua_gym.gates.variants import MOST, Content, Variant, altered, halves, place, spread
from cua_gym.gates.workbook_cells import Book, Cell, Place
from cua_gym.task.authoring import workbook_bytes

__all__ = ["broken", "kept"]

Recalculated = Callable[[bytes, str], bytes]
"""A workbook (and whether it is ``xlsx`` or ``ods``) as LibreOffice saves it."""


def broken(start: Mapping[str, bytes] | None, book: Book) -> list[Content]:
    """Half of the changed cells undone, each on its own, moved, and altered; sheets' names too."""
    old = None if start is None else workbook_cells.read(start)
    before = {} if old is None else _under_new_names(old, book.names)
    changed = [at for at, cell in book.cells.items() if not cell.same(before.get(at))]

    def undo(places: Sequence[Place]) -> bytes:
        return book.saved([(at, before.get(at)) for at in places])

    def put(at: Place, cell: Cell | None) -> bytes:
        return book.saved([(at, cell)])

    found: list[Content] = halves(changed, undo)
    known = [] if old is None else old.names
    for sheet in book.names if set(book.names) != set(known) and known else ():
        if sheet not in known:
            for how, name in altered(sheet):
                if name:
                    make = partial(book.renamed, sheet, name)
                    found.append(Variant("altered", f"{place(sheet)}:name-{how}", make))
    parts: list[Content] = []
    for at in spread(changed):
        name = f"{place(at[0])}!{at[1]}"
        if len(changed) > 1:
            parts.append(Variant("reverted", name, partial(undo, [at])))
        if book.movable(at):
            parts.append(Variant("moved", name, partial(book.moved, at)))
        for how, cell in _wrong(book.cells[at]):
            parts.append(Variant("altered", f"{name}:{how}", partial(put, at, cell)))
    return found + spread(parts, MOST - len(found))


def _under_new_names(old: Book, names: Sequence[str]) -> dict[Place, Cell]:
    """The old cells; a sheet that was renamed is the one that stood in its place."""
    renamed = {}
    if len(old.names) == len(names):
        pairs = zip(old.names, names, strict=True)
        renamed = {a: b for a, b in pairs if a not in names and b not in old.names}
    return {(renamed.get(sheet, sheet), at): cell for (sheet, at), cell in old.cells.items()}


def _wrong(cell: Cell) -> Iterator[tuple[str, Cell | None]]:
    """Wrong cells beside a right one; of a formula, what it comes to is typed, wrongly."""
    if cell.kind not in ("number", "text") or not cell.text.strip():
        yield "empty", None
        return
    for how, text in altered(cell.text):
        number = cell.kind == "number" and how not in ("nan", "null") and _is_number(text)
        yield how, Cell("number" if number else "text", text) if text else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def kept(solved: bytes, kind: str, recalculated: Recalculated) -> Iterator[Content]:
    """The workbook saved by a library, and by LibreOffice where that is installed."""
    if kind == "xlsx":
        yield Variant("resaved", "openpyxl", partial(_by_openpyxl, solved))
    if shutil.which("soffice") is not None:
        yield Variant("resaved", "libreoffice", partial(recalculated, solved, kind))


def _by_openpyxl(data: bytes) -> bytes:
    with warnings.catch_warnings():
        # It tells what it leaves out.
        warnings.simplefilter("ignore")
        return workbook_bytes(openpyxl.load_workbook(io.BytesIO(data)))
