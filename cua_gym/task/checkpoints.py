"""What can be wrong with a task's checkpoints: each alone, all together, their arguments."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from cua_gym.errors import GradingError, TaskError
from cua_gym.grading.check import Check, argument_faults
from cua_gym.grading.checkpoints import Checkpoint
from cua_gym.grading.items import Evidence, Item
from cua_gym.grading.library import CheckLibrary, authors_code
from cua_gym.task.files import CheckpointEntry, CheckpointsFile, TaskFile, fault

__all__ = [
    "COLLATERAL",
    "SCOPE_EVIDENCE",
    "checkpoint_faults",
    "discovered_faults",
    "evidence_names",
    "value_faults",
    "with_scope",
]

COLLATERAL = "collateral"
"""The checkpoint that ``[scope]`` makes."""
SCOPE_EVIDENCE = ("scope_start", "scope_end")
"""The listings that it compares."""

_TYPES = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False)


def checkpoint_faults(
    path: Path, declared: CheckpointsFile, task: TaskFile, evaluators: Path
) -> Iterator[str]:
    """Faults that show without any seed's values."""
    if not declared.checkpoint:
        yield f"{path}: no checkpoints, so nothing could be graded; add a [[checkpoint]]"
        return
    points = with_scope(declared)
    known = {e.name for e in task.evidence} | {"answer", "submission"}
    if declared.scope is not None:
        known |= set(SCOPE_EVIDENCE)
    library = CheckLibrary(evaluators, path.parent)
    asked: dict[str, str] = {}
    for number, point in enumerate(points):
        where: tuple[str | int, ...] = ("checkpoint", number)
        if point.id == COLLATERAL and number == len(declared.checkpoint):
            where = ("scope",)
        if point.id in [p.id for p in points[:number]]:
            yield fault(path, [*where, "id"], f"checkpoint {point.id!r} is there twice; rename one")
        if point.weight == 0:
            yield fault(path, [*where, "weight"], "a weight of 0 counts for nothing; remove it")
        if point.weight < 0 and point.required:
            yield fault(path, [*where, "required"], "a negative checkpoint cannot be required")
        if point.weight > 0 and point.negate:
            message = "what is not there would count as right; ask for what is to be there instead"
            yield fault(path, [*where, "negate"], message)
        for name in evidence_names(point):
            if name not in known:
                message = f"no evidence {name!r} is declared; there is {', '.join(sorted(known))}"
                yield fault(path, [*where, "evidence"], message)
        try:
            function = library.find(point.check)
        except GradingError as error:
            yield fault(path, [*where, "check"], str(error))
            continue
        subject = Evidence if isinstance(point.evidence, list) else Item
        for message in argument_faults(function, subject, set(point.args)):
            yield fault(path, [*where, "args"], f"{point.check}: {message}")
        earlier = asked.setdefault(_question(point, function), point.id)
        if earlier != point.id:
            message = f"{point.id!r} asks the same as {earlier!r}; remove one"
            yield fault(path, [*where, "check"], message)
    yield from _gate_faults(path, points)
    total = math.fsum(p.weight for p in points if p.weight > 0)
    if abs(total - 1) > 1e-9:
        yield f"{path}: positive weights sum to {total:g}; they must sum to 1"


def with_scope(declared: CheckpointsFile) -> list[CheckpointEntry]:
    """The checkpoints that are written down, and the one that ``[scope]`` stands for."""
    scope = declared.scope
    if scope is None:
        return declared.checkpoint
    return [
        *declared.checkpoint,
        CheckpointEntry(
            id=COLLATERAL,
            weight=scope.weight,
            check="files.only_changed",
            evidence=list(SCOPE_EVIDENCE),
            args={"may_change": scope.changes},
            negate=True,
        ),
    ]


def _gate_faults(path: Path, points: Sequence[CheckpointEntry]) -> Iterator[str]:
    """What is wrong with the ``after`` of checkpoints."""
    weights = {point.id: point.weight for point in points}
    after = {point.id: point.after for point in points}
    for number, point in enumerate(points):
        where = ("checkpoint", number, "after")
        for gate in point.after:
            if gate not in weights:
                message = f"no checkpoint {gate!r}; there is {', '.join(weights)}"
                yield fault(path, where, message)
            elif weights[gate] < 0:
                message = f"{gate!r} is negative: passed is bad news; give a positive one"
                yield fault(path, where, message)
        if point.id in _behind(point.id, after):
            yield fault(path, where, f"{point.id!r} waits for itself; break the circle")


def _behind(start: str, after: Mapping[str, Sequence[str]]) -> set[str]:
    """All that must pass before it."""
    found: set[str] = set()
    queue = list(after[start])
    while queue:
        gate = queue.pop()
        if gate not in found:
            found.add(gate)
            queue += after.get(gate, ())
    return found


def discovered_faults(
    path: Path,
    discovered: Mapping[str, str],
    points: Sequence[Checkpoint],
    values: Mapping[str, object],
) -> Iterator[str]:
    """Names in ``[discovered]`` that stand for nothing.

    Args:
        values: what placeholders stand for.
    """
    kinds = ("answer.", "params.", "hidden.")
    known = {point.id for point in points} | {name for name in values if name.startswith(kinds)}
    for name in discovered:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.4)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            message = f"{name!r} is no checkpoint, answer.NAME, params.NAME or hidden.FILE"
            yield fault(path, ("discovered", name), message + hint)


def evidence_names(point: CheckpointEntry) -> list[str]:
    """What a checkpoint looks at."""
    return point.evidence if isinstance(point.evidence, list) else [point.evidence]


def value_faults(function: Check, arguments: Mapping[str, object]) -> Iterator[str]:
    """Arguments that are not what a check's parameters are annotated with.

    A text where a list belongs would be taken letter by letter, and pass. A function within
    ``Annotated`` is called with the value, and must not raise: ``Annotated[str, re.compile]``.
    """
    hints = get_type_hints(function, include_extras=True)
    for name, value in arguments.items():
        hint = hints.get(name, Any)
        try:
            TypeAdapter(hint, config=_TYPES).validate_python(value, strict=True)
            for judge in filter(callable, getattr(hint, "__metadata__", ())):
                with authors_code(f"{name} is {value!r:.80}, which", TaskError):
                    judge(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = "".join(f"[{part}]" for part in first["loc"] if isinstance(part, int))
            yield f"{name}{place} is {first['input']!r:.80}: {first['msg']}"
        except (PydanticUserError, TaskError) as error:
            yield str(error)


def _question(point: CheckpointEntry, function: Check) -> str:
    """What is asked, with the defaults that the task leaves out."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return repr((point.check, evidence_names(point), sorted(_plain(defaults | point.args).items())))


def _plain(value: Any) -> Any:
    """One form of what a check cannot tell apart, such as ``()`` and ``[]``, 0 and 0.0."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return float(value) if type(value) is int else value
