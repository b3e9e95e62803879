"""What checkpoints want of an agent's work: the literals in their arguments, and file names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cua_gym import template
from cua_gym.grading.check import Check
from cua_gym.grading.checkpoints import Checkpoint
from cua_gym.grading.library import CheckLibrary
from cua_gym.task import Variation

__all__ = ["Wanted", "wanted"]

_OPTIONS = (
    "absolute", "relative", "tolerance", "max_difference", "share", "box", "variants",
    "unit_variants", "forbidden", "absent", "noise",
)  # fmt: skip
"""Parameters that say how to look, or what must not be there, with or without a default."""
_EITHER = ("facts",)
"""Parameters whose lists are other words for one thing: one of them is enough."""
_LANGUAGE = frozenset(
    """select distinct from where and or not null is in like glob between join left inner outer
    cross on using group by having order asc desc limit offset union all except intersect exists
    case when then else end as cast integer real text count sum min max avg total round abs
    coalesce ifnull length lower upper trim substr date time datetime strftime group_concat with
    true false""".split()  # noqa: SIM905 - a list of them would fill a page
)
"""Words of SQL, which a query needs and nobody has to know."""
_MARK = "\0"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing that a checkpoint wants.

    Attributes:
        checkpoint: its id.
        place: the argument, such as ``expected[2]``; or ``evidence``, for a file's name.
        either: texts, numbers or bytes of which one is enough.
        sources: placeholders that it came from, such as ``answer.total``.
        parts: of a text around placeholders: each part with its placeholder, "" for the text.
    """

    checkpoint: str
    place: str
    either: tuple[str | int | float | bytes, ...]
    sources: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()


def wanted(variation: Variation, *, tempting: bool = False) -> Iterator[Wanted]:
    """Everything that the positive checkpoints of a variation want.

    Args:
        tempting: what the negative ones look for instead.
    """
    task = variation.task
    values: dict[str, Any] = dict(variation.rubric.values)
    values |= {f"input.{name}": data for name, data in variation.inputs.items()}
    for path in sorted(task.hidden.rglob("*")):
        if path.is_file():
            values[f"hidden.{path.relative_to(task.hidden).as_posix()}"] = path.read_bytes()
    library = CheckLibrary(task.evaluators, task.hidden)
    asked = [point for point in task.checkpoints if (point.weight < 0) is tempting]
    for point in asked:
        yield from _of_arguments(point, library.find(point.check), values)
    for probe in variation.probes:
        points = [point for point in asked if probe.name in point.evidence]
        if points and probe.kind in ("file", "glob"):
            for word in _of_path(probe.source):
                yield Wanted(points[0].id, f"the name of evidence {probe.name}", (word,))


def _of_path(source: str) -> Iterator[str]:
    path = PurePosixPath(source)
    # Files below dotted folders are named by programs, not by whoever uses them.
    if not any(part.startswith(".") for part in path.parts):
        yield from (word for word in re.split(r"[*?]+|\[[^]]*\]", path.name) if word.strip("._- "))


def _of_arguments(point: Checkpoint, check: Check, values: Mapping[str, Any]) -> Iterator[Wanted]:
    hints = get_type_hints(check, include_extras=True)
    parameters = inspect.signature(check).parameters
    for name, raw in point.args.items():
        option = parameters[name].default is not inspect.Parameter.empty
        hint = hints.get(name, Any)
        if name in _OPTIONS or _fixed(hint) or (option and not any(template.names(raw))):
            continue
        leaves = list(_leaves(name, raw, values))
        if name in _EITHER:
            leaves = _joined(leaves)
        for leaf in leaves:
            if words := list(_words(hint, leaf)):
                yield from (
                    replace(leaf, checkpoint=point.id, either=(w,), parts=()) for w in words
                )
            elif not _formal(hint):
                yield replace(leaf, checkpoint=point.id)


def _fixed(hint: Any) -> bool:
    """Whether only certain words fit, which are the check's own and no content."""
    return get_origin(hint) is Literal or any(map(_fixed, get_args(hint)))


def _judges(hint: Any) -> Iterator[Any]:
    """The functions that `Annotated` names anywhere in a hint."""
    if get_origin(hint) is Annotated:
        yield from filter(callable, hint.__metadata__)
    for part in get_args(hint):
        if get_origin(part) is not None:
            yield from _judges(part)


def _formal(hint: Any) -> bool:
    """Whether it is written in a language, such as SQL: what is not content is said by its form."""
    return any(True for _ in _judges(hint))


def _words(hint: Any, leaf: Wanted) -> Iterator[str]:
    """The literal words of a pattern, a query or a path; none of anything else."""
    judges = list(_judges(hint))
    for text in leaf.either if judges else ():
        if re.compile in judges:
            yield from _of_pattern(str(text))
        else:
            words = re.findall(r"[^\W\d_][\w]{2,}", str(text))
            yield from (word for word in words if word.casefold() not in _LANGUAGE)


def _of_pattern(pattern: str) -> Iterator[str]:
    plain = re.sub(r"\(\?(?:P?<[^>]*>|[:=!aiLmsux-]+|<[=!])|\[\^?\]?[^]]*\]", "\n", pattern)
    plain = re.sub(r"\\[AbBdDsSwWZ]|(?<!\\)[.^$*+?(){}|]|\{[\d,]*\}", "\n", plain)
    plain = re.sub(r"\\(\W)", r"\1", plain)
    yield from (part.strip() for part in plain.split("\n") if re.search(r"\w{3}", part))


def _leaves(place: str, raw: Any, values: Mapping[str, Any]) -> Iterator[Wanted]:
    """Texts, numbers and bytes in an argument, with the placeholders that they came from."""
    if isinstance(raw, dict):
        for key, item in raw.items():
            yield Wanted("", f"{place} (a key)", (key,))
            yield from _leaves(f"{place}.{key}", item, values)
    elif isinstance(raw, list):
        for number, item in enumerate(raw):
            yield from _leaves(f"{place}[{number}]", item, values)
    elif isinstance(raw, str) and any(template.names(raw)):
        sources = tuple(dict.fromkeys(template.names(raw)))
        filled = template.fill(raw, values)
        if not isinstance(filled, str):
            yield from (replace(leaf, sources=sources) for leaf in _leaves(place, filled, {}))
        elif filled.strip():
            yield Wanted("", place, (filled,), sources, tuple(_parts(raw, values)))
    elif isinstance(raw, str):
        if raw.strip():
            yield Wanted("", place, (raw,))
    elif isinstance(raw, int | float | bytes) and not isinstance(raw, bool):
        yield Wanted("", place, (raw,))


def _parts(raw: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    marked = template.fill(f"{raw} ", {name: f"{_MARK}{name}{_MARK}" for name in values})
    for number, piece in enumerate(marked.split(_MARK)):
        if number % 2:
            yield str(values[piece]), piece
        elif piece.strip():
            yield piece, ""


def _joined(leaves: list[Wanted]) -> list[Wanted]:
    """One thing for each inner list."""
    groups: dict[str, list[Wanted]] = {}
    for leaf in leaves:
        groups.setdefault(leaf.place.rpartition("[")[0], []).append(leaf)
    return [
        Wanted(
            "",
            place,
            tuple(value for leaf in group for value in leaf.either),
            tuple(dict.fromkeys(source for leaf in group for source in leaf.sources)),
        )
        for place, group in groups.items()
    ]
