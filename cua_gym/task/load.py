"""From a task folder to a `Task`: everything that can be wrong is found here, before any boot."""

from __future__ import annotations

import difflib
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cua_gym import template
from cua_gym.errors import GradingError, TaskError
from cua_gym.grading.check import Check, argument_faults
from cua_gym.grading.checkpoints import Checkpoint
from cua_gym.grading.items import Evidence, Item
from cua_gym.grading.library import CheckLibrary
from cua_gym.grading.probes import RESERVED, Probe
from cua_gym.image.recipe import bundled_images, recipe_names
from cua_gym.machine.base import MachineSpec
from cua_gym.task.files import (
    CheckpointEntry,
    CheckpointsFile,
    EvidenceEntry,
    TaskFile,
    fault,
    parse,
)
from cua_gym.task.lint import drifting_code, drifting_text
from cua_gym.task.model import Limits, Task, Variation

__all__ = ["load_task"]

_LIVE = ("clipboard", "windows", "a11y")
_ANY_TYPE = ConfigDict(arbitrary_types_allowed=True)


def load_task(folder: Path, evaluators: Path | None = None) -> Task:
    """Read and judge a task folder, its first variation included.

    Args:
        evaluators: the suite's check functions; by default ``evaluators`` beside ``tasks``.

    Raises:
        TaskError: every fault found, a line each, with file, line and remedy.
    """
    folder = folder.resolve()
    evaluators = (evaluators or folder.parent.parent / "evaluators").resolve()
    task_file, hidden_file = folder / "task.toml", folder / "hidden" / "checkpoints.toml"
    declared = parse(task_file, TaskFile)
    checkpoints = parse(hidden_file, CheckpointsFile)
    faults = [
        *_task_faults(task_file, declared),
        *_checkpoint_faults(hidden_file, checkpoints, declared, evaluators),
    ]
    if faults:
        raise TaskError("\n".join(faults))
    task = _build(folder, evaluators, declared, checkpoints)
    if faults := list(_variation_faults(task, task_file, hidden_file, declared)):
        raise TaskError("\n".join(faults))
    return task


def _task_faults(path: Path, declared: TaskFile) -> Iterator[str]:
    folder = path.parent
    if declared.name != folder.name:
        yield fault(path, ["name"], f"name {declared.name!r} must be the folder's, {folder.name!r}")
    pinned = declared.pinned_date is not None
    for message in drifting_text(declared.instruction, pinned):
        yield fault(path, ["instruction"], message)
    for number, step in enumerate(declared.setup):
        for text in (step.run, step.until, step.file and step.file.content, *(step.open or ())):
            for message in drifting_text(text or "", date_pinned=True):
                yield fault(path, ["setup", number], message)
        if step.window is not None:
            yield from _regex_fault(path, number, step.window)
    if declared.machine.image is not None:
        yield from _image_fault(path, declared.machine.image)
    for file in ("vary.py", "hidden/answers.py"):
        source = folder / file
        if source.is_file():
            for line, message in drifting_code(source.read_text("utf-8")):
                yield f"{source}:{line}: {message}"
    if not (folder / "oracle.py").is_file():
        yield f"{folder / 'oracle.py'} is missing; a task that nobody can show solved is not graded"
    names = [e.name for e in declared.evidence]
    for number, name in enumerate(names):
        if name in RESERVED:
            yield fault(path, ["evidence", number, "name"], f"{name!r} is taken by every episode")
        if name in names[:number]:
            yield fault(path, ["evidence", number, "name"], f"{name!r} is there twice; rename one")


def _image_fault(path: Path, image: str) -> Iterator[str]:
    search = (path.parent.parent.parent / "images", bundled_images())
    names = recipe_names(search)
    if image not in names:
        near = difflib.get_close_matches(image, names, n=3, cutoff=0.4) or names
        message = f"no recipe of an image {image!r} in {search[0]} or among the bundled ones"
        yield fault(path, ["machine", "image"], f"{message}; there is {', '.join(near)}")


def _regex_fault(path: Path, number: int, pattern: str) -> Iterator[str]:
    try:
        re.compile(pattern)
    except re.error as error:
        yield fault(path, ["setup", number, "window"], f"no regular expression: {error}")


def _checkpoint_faults(
    path: Path, declared: CheckpointsFile, task: TaskFile, evaluators: Path
) -> Iterator[str]:
    points = declared.checkpoint
    if not points:
        yield f"{path}: no checkpoints, so nothing could be graded; add a [[checkpoint]]"
        return
    known = {e.name for e in task.evidence} | {"answer", "submission"}
    library = CheckLibrary(evaluators, path.parent)
    for number, point in enumerate(points):
        where: tuple[str | int, ...] = ("checkpoint", number)
        if point.id in [p.id for p in points[:number]]:
            yield fault(path, [*where, "id"], f"checkpoint {point.id!r} is there twice; rename one")
        for earlier in points[:number]:
            if _question(earlier) == _question(point):
                message = f"{point.id!r} asks the same as {earlier.id!r}; remove one"
                yield fault(path, [*where, "check"], message)
        if point.weight == 0:
            yield fault(path, [*where, "weight"], "a weight of 0 counts for nothing; remove it")
        if point.weight < 0 and point.required:
            yield fault(path, [*where, "required"], "a negative checkpoint cannot be required")
        for name in _evidence(point):
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
    total = math.fsum(p.weight for p in points if p.weight > 0)
    if abs(total - 1) > 1e-9:
        yield f"{path}: positive weights sum to {total:g}; they must sum to 1"


def _question(point: CheckpointEntry) -> tuple[object, ...]:
    return point.check, repr(_evidence(point)), repr(sorted(point.args.items()))


def _evidence(point: CheckpointEntry) -> list[str]:
    return point.evidence if isinstance(point.evidence, list) else [point.evidence]


def _build(
    folder: Path, evaluators: Path, declared: TaskFile, checkpoints: CheckpointsFile
) -> Task:
    machine = declared.machine
    wanted = {
        key: value
        for key in ("image", "cpus", "memory_mb")
        if (value := getattr(machine, key)) is not None
    }
    if machine.screen is not None:
        wanted["screen"] = (machine.screen[0], machine.screen[1])
    marked = any(p.required for p in checkpoints.checkpoint)
    return Task(
        folder=folder,
        evaluators=evaluators,
        name=declared.name,
        title=declared.title,
        instruction=declared.instruction,
        area=declared.area,
        level=declared.level,
        expected_steps=declared.expected_steps,
        measures=declared.measures,
        tool_policy=declared.tool_policy,
        backend=declared.backend,
        feasible=declared.feasible,
        spec=MachineSpec(**wanted),
        limits=Limits(declared.limits.steps, declared.limits.seconds),
        setup=tuple(declared.setup),
        declared_probes=tuple(_probe(e) for e in declared.evidence),
        checkpoints=tuple(
            Checkpoint(
                id=p.id,
                weight=p.weight,
                required=bool(p.required) if marked else p.weight > 0,
                check=p.check,
                evidence=tuple(_evidence(p)),
                listed=isinstance(p.evidence, list),
                args=p.args,
                negate=p.negate,
            )
            for p in checkpoints.checkpoint
        ),
        hash=_hash(folder),
    )


def _probe(entry: EvidenceEntry) -> Probe:
    kind = entry.kinds[0]
    source = getattr(entry, kind)
    return Probe(
        name=entry.name,
        kind=kind,  # type: ignore[arg-type] # the model's keys are the probe's kinds
        source=source if isinstance(source, str) else "",
        user=None if entry.user == "user" else entry.user,
        timeout_s=entry.timeout_s,
        limit_bytes=entry.limit_bytes,
        # Programs of the desktop account answer these, and a command of that account would wait
        # in the freezer for ever.
        live=entry.live or kind in _LIVE or (kind == "command" and entry.user == "user"),
    )


def _variation_faults(
    task: Task, task_file: Path, hidden_file: Path, declared: TaskFile
) -> Iterator[str]:
    """Faults that show only once the first seed's values are there."""
    variation = task.variation(0)
    again = task.variation(0)
    if (variation.params, variation.inputs) != (again.params, again.inputs):
        yield f"{task.folder / 'vary.py'}: seed 0 gave two different results; use only its rng"
    for number, step in enumerate(declared.setup):
        texts = [step.run, step.until, step.open, step.window]
        if step.file is not None:
            texts += [step.file.to, step.file.content, step.file.source]
            yield from _source_fault(task_file, number, step.file.source, variation)
        yield from _fill_faults(task_file, ["setup", number], texts, variation.params)
    for number, entry in enumerate(declared.evidence):
        texts = [entry.file, entry.glob, entry.command]
        yield from _fill_faults(task_file, ["evidence", number], texts, variation.params)
    values: dict[str, object] = dict(variation.rubric.values)
    values |= {f"input.{name}": data for name, data in variation.inputs.items()}
    for path in task.hidden.rglob("*"):
        values[f"hidden.{path.relative_to(task.hidden).as_posix()}"] = b""
    library = CheckLibrary(task.evaluators, task.hidden)
    for number, point in enumerate(task.checkpoints):
        where: list[str | int] = ["checkpoint", number, "args"]
        if unfilled := list(_fill_faults(hidden_file, where, [dict(point.args)], values)):
            yield from unfilled
            continue
        filled = template.fill(dict(point.args), values)
        for message in _type_faults(library.find(point.check), filled):
            yield fault(hidden_file, where, f"{point.check}: {message}")


def _type_faults(function: Check, arguments: Mapping[str, object]) -> Iterator[str]:
    """A text where a list belongs would be taken letter by letter, and pass."""
    hints = get_type_hints(function)
    for name, value in arguments.items():
        kind = TypeAdapter(hints.get(name, Any), config=_ANY_TYPE)
        try:
            kind.validate_python(value, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            place = "".join(f"[{part}]" for part in first["loc"] if isinstance(part, int))
            yield f"{name}{place} is {first['input']!r:.80}: {first['msg']}"


def _source_fault(
    path: Path, number: int, source: str | None, variation: Variation
) -> Iterator[str]:
    if source is None:
        return
    try:
        name = template.fill_text(source, variation.params).removeprefix("inputs/")
    except template.TemplateError:
        return  # reported with the step's other texts
    if name not in variation.inputs:
        known = ", ".join(sorted(variation.inputs)) or "none"
        message = f"no input {name!r} in inputs/ or from vary.py's inputs(); there is {known}"
        yield fault(path, ["setup", number, "from"], message)


def _fill_faults(
    path: Path, where: Sequence[str | int], texts: Sequence[object], values: Mapping[str, object]
) -> Iterator[str]:
    for text in texts:
        try:
            template.fill(text, values)
        except template.TemplateError as error:
            yield fault(path, where, str(error))


def _hash(folder: Path) -> str:
    """SHA-256 over names and bytes of all files but Python's caches."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(folder).as_posix().encode()
            data = path.read_bytes()
            digest.update(b"%d %s\0%d\0" % (len(name), name, len(data)) + data)
    return digest.hexdigest()
