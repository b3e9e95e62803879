"""Variants of documents and slides (docx, odt, pptx, odp), paragraph by paragraph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from xml.etree import ElementTree

import defusedxml.ElementTree

from cua_gym.gates.text_mutants import Edit, edits
from cua_gym.gates.variants import MOST, Content, Variant, altered, halves, spread
from cua_gym.gates.zip_mutants import pack

__all__ = ["broken"]

_PARTS = re.compile(
    r"word/(document|header\d*|footer\d*)\.xml"
    r"|ppt/(slides/slide|notesSlides/notesSlide)\d+\.xml"
    r"|content\.xml"
)
_OPEN = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"


@dataclass(frozen=True, slots=True)
class _Paragraph:
    member: str
    root: ElementTree.Element
    node: ElementTree.Element

    @property
    def text(self) -> str:
        if self.node.tag.startswith(_OPEN):
            return "".join(self.node.itertext()).strip()
        return "".join(run.text or "" for run in self._runs).strip()

    @property
    def _runs(self) -> list[ElementTree.Element]:
        return [e for e in self.node.iter() if str(e.tag).endswith("}t")]

    def say(self, text: str) -> Callable[[], None]:
        """Put another text here; what is returned puts it back as it was."""
        node = self.node
        if node.tag.startswith(_OPEN):
            was, inner = node.text, list(node)
            node.text, node[:] = text, []

            def back() -> None:
                node.text, node[:] = was, inner

            return back
        runs = self._runs
        texts = [run.text for run in runs]
        for run, part in zip(runs, [text, *[""] * (len(runs) - 1)], strict=True):
            run.text = part

        def back_runs() -> None:
            for run, old in zip(runs, texts, strict=True):
                run.text = old

        return back_runs


def _said(changes: Sequence[tuple[_Paragraph, str]]) -> dict[str, bytes]:
    """The members in which these paragraphs lie, with these texts in them."""
    back = [paragraph.say(text) for paragraph, text in changes]
    found = {
        p.member: ElementTree.tostring(p.root) for p in {p.member: p for p, _ in changes}.values()
    }
    for undo in reversed(back):
        undo()
    return found


def _paragraphs(members: Mapping[str, bytes]) -> Iterator[_Paragraph]:
    """Those that say something, in the order of the members."""
    for name, data in members.items():
        if _PARTS.fullmatch(name):
            root = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
            for node in root.iter():
                tag = str(node.tag)
                paragraph = _Paragraph(name, root, node)
                plain = tag in (f"{_OPEN}p", f"{_OPEN}h") or (
                    tag.endswith("}p") and "openxmlformats" in tag
                )
                if plain and paragraph.text:
                    yield paragraph


def broken(start: Mapping[str, bytes] | None, solved: Mapping[str, bytes]) -> list[Content]:
    """Half of the changed paragraphs undone, each on its own, and each altered.

    What is new is undone by an empty paragraph; what is gone stays gone, so how things look, and
    what was deleted, is not varied here.
    """
    before = [] if start is None else [p.text for p in _paragraphs(start)]
    after = list(_paragraphs(solved))
    every = [e for e in edits(before, [p.text for p in after]) if e.after is not None]

    def old(edit: Edit) -> str:
        return "" if edit.before is None else before[edit.before]

    def say(changes: Sequence[tuple[_Paragraph, str]]) -> bytes:
        return pack({**solved, **_said(changes)})

    def undo(some: Sequence[Edit]) -> bytes:
        return say([(after[e.at], old(e)) for e in some])

    found: list[Content] = halves(every, undo)
    parts: list[Content] = []
    for edit in spread(every):
        paragraph, name = after[edit.at], f"paragraph-{edit.at + 1}"
        if len(every) > 1:
            parts.append(Variant("reverted", name, partial(undo, [edit])))
        for how, wrong in altered(paragraph.text):
            parts.append(Variant("altered", f"{name}:{how}", partial(say, [(paragraph, wrong)])))
    return found + spread(parts, MOST - len(found))
