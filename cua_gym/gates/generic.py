"""Mutants that any task has: made by comparing what was found untouched and what was found solved.

Every evidence that a positive checkpoint names is reverted, removed and emptied, part of its
changes undone, each changed value altered (`formats`); none of it may keep the full score. And it
is written in other ways that mean the same; none of them may lose any. What the agent says is
varied too (`answer_mutants`).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cua_gym.gates import formats, glob_mutants
from cua_gym.gates.answer_mutants import SAID, answer_mutants
from cua_gym.gates.mutant import Change, Mutant, breaks, keeps
from cua_gym.gates.variants import MOST, Variant, spread
from cua_gym.grading.checkpoints import Checkpoint
from cua_gym.grading.items import Evidence, Item

__all__ = ["DO_NOT_APPLY", "generic_mutants"]

_WRITTEN = ("newlines*", "final-newline*", "reformatted*", "attributes*", "repacked*", "resaved*",
            "reencoded*", "rewritten*")  # fmt: skip
_FREE = tuple(f"altered:*:{how}" for how in ("appended", "extended", "prefixed", "cut"))

DO_NOT_APPLY: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("files.same_bytes", _WRITTEN, "every byte is looked at"),
    ("files.moved", _WRITTEN, "every byte is looked at"),
    ("files.tree_equals", _WRITTEN, "every byte is looked at"),
    ("files.entry", ("reverted:*",), "one entry of a whole listing is looked at"),
    ("*.states", _FREE, "words around the facts are free"),
    ("desktop.no_window", ("emptied",), "where there is no window, there is none of that title"),
    ("browser.*", ("*:*",), "a profile is full of what the browser counts for itself"),
    ("processes_services.*", ("*:*",), "of a list of the whole system much comes and goes"),
)  # fmt: skip
"""Checks; mutants of what they look at that do not apply (`Variant.name`); the reason.

A mutant that must keep the score does not apply when any checkpoint looks so; one that must lose
part of it does not when all positive checkpoints do.
"""


_EXACT = {"newlines": "newline", "final-newline": "final_newline"}
"""The argument of a check by which a difference counts that otherwise does not."""


def generic_mutants(
    start: Evidence, solved: Evidence, checkpoints: Sequence[Checkpoint]
) -> Iterator[Mutant]:
    """The mutants of a solved task's evidence: always the same ones, each name once.

    Args:
        start: evidence of an agent that did nothing.
        solved: evidence of the oracle.
        checkpoints: of the task.
    """
    positive = [point for point in checkpoints if point.weight > 0]
    for name in dict.fromkeys(name for point in positive for name in point.evidence):
        if name not in SAID and solved[name].at == "end":  # nobody can change what was
            points = [point for point in checkpoints if name in point.evidence]
            yield from _Subject(start[name], solved[name], points).mutants()
    untouched: dict[str, Change] = {
        name: start[name]
        for name in solved
        if name not in SAID and not _alike(start[name], solved[name])
    }
    yield from answer_mutants(untouched, solved, positive)


@dataclass(frozen=True, slots=True)
class _Subject:
    """One evidence, untouched and solved, and the checkpoints that look at it."""

    before: Item
    after: Item
    points: Sequence[Checkpoint]

    def mutants(self) -> Iterator[Mutant]:
        if self.after.state == "refused":
            return
        yield from self._named(list(self._whole()), breaking=True)
        broken, kept = self._parts()
        yield from self._named(broken, breaking=True)
        yield from self._named(kept, breaking=False)

    def _whole(self) -> Iterator[Variant[Change]]:
        before, after = self.before, self.after
        if not _alike(before, after):
            yield Variant("reverted", "", lambda: before)
        if after.state != "absent" and before.state != "absent":
            yield Variant("absent", "", lambda: None)
        empty = b"[]" if after.kind in ("windows", "a11y") else b""
        there = _content(after) is not None or _content(before) is not None
        if there and (_content(after) or b"?").strip() not in (b"", empty):
            yield Variant("emptied", "", lambda: empty)

    def _parts(self) -> tuple[list[Variant[Change]], list[Variant[Change]]]:
        content = _content(self.after)
        match self.after.kind:
            case "glob":
                return glob_mutants.variants(self.before, self.after)
            case "file" | "command" | "clipboard" | "tree" if content is not None:
                old = _content(self.before)
                broken, kept = formats.variants(self.after.source, old, content)
                # How a command's output is written is nobody's choice.
                return [*broken], [*kept] if self.after.kind == "file" else []
        return [], []

    def _named(self, found: Sequence[Variant[Change]], *, breaking: bool) -> Iterator[Mutant]:
        taken: set[str] = set()
        for variant in spread([v for v in found if self._applies(v, breaking)], MOST):
            where = f":{variant.where}" if variant.where else ""
            name = f"{variant.what}:{self.after.name}{where}"
            while name in taken:  # names are cut, and two may be one then
                name += "-"
            taken.add(name)
            yield (breaks if breaking else keeps)(name, **{self.after.name: variant.make()})

    def _applies(self, variant: Variant[Change], breaking: bool) -> bool:
        if breaking:
            return not all(_excused(p, variant) for p in self.points if p.weight > 0)
        return not any(_excused(p, variant) for p in self.points)


def _excused(point: Checkpoint, variant: Variant[Change]) -> bool:
    if point.args.get(_EXACT.get(variant.what, "")) == "exact":
        return True
    return any(
        fnmatch.fnmatchcase(point.check, check)
        and any(fnmatch.fnmatchcase(variant.name, pattern) for pattern in patterns)
        for check, patterns, _ in DO_NOT_APPLY
    )


def _content(item: Item) -> bytes | None:
    """The one content that an item has, or None."""
    return item.bytes() if item.present and not item.exit and item.kind != "glob" else None


def _alike(one: Item, two: Item) -> bool:
    """Whether two attempts left the same."""

    def told(item: Item) -> tuple[object, ...]:
        return item.state, item.exit, [(e.guest, e.kind, e.sha256) for e in item.entries]

    return told(one) == told(two)
