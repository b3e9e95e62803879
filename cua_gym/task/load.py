"""From a task folder to a `Task`: everything that can be wrong is found here, before any boot."""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cua_gym import template
from cua_gym.errors import TaskError
from cua_gym.grading.checkpoints import Checkpoint
from cua_gym.grading.library import CheckLibrary
from cua_gym.grading.probes import RESERVED, Probe
from cua_gym.image.recipe import bundled_images, recipe_names
from cua_gym.machine.base import MachineSpec
from cua_gym.syntax import syntax_tree
from cua_gym.task.checkpoints import (
    SCOPE_EVIDENCE,
    checkpoint_faults,
    discovered_faults,
    evidence_names,
    value_faults,
    with_scope,
)
from cua_gym.task.files import (
    CheckpointsFile,
    EvidenceEntry,
    SetupEntry,
    TaskFile,
    fault,
    parse,
)
from cua_gym.task.lint import drifting_code, drifting_text
from cua_gym.task.model import Limits, Task, Variation

__all__ = ["load_task"]

_LIVE = ("clipboard", "windows", "a11y")
_PYTHON = (
    "vary.py", "oracle.py", "hidden/answers.py", "hidden/checks.py", "hidden/mutants.py",
)  # fmt: skip
GATES = "gates.json"
"""What `cua-gym task check` found; it says something of the task and is no part of it."""
COMMAND_S = 30.0
TREE_S = 180.0
"""What a listing may take; see `cua_gym.grading.probes.LISTING`."""
_TRIED = (0, 1, 2)
"""Seeds whose variations are judged with the task."""


def load_task(folder: Path, evaluators: Path | None = None) -> Task:
    """Read and judge a task folder, its first variations included.

    Args:
        evaluators: the suite's check functions; by default ``evaluators`` beside ``tasks``.

    Raises:
        TaskError: every fault found, a line each, with file, line and remedy.
    """
    folder = folder.resolve()
    evaluators = (evaluators or folder.parent.parent / "evaluators").resolve()
    task_file, hidden_file = folder / "task.toml", folder / "hidden" / "checkpoints.toml"
    if faults := list(_file_faults(folder)):
        raise TaskError("\n".join(faults))
    declared = parse(task_file, TaskFile)
    checkpoints = parse(hidden_file, CheckpointsFile)
    faults = [
        *_task_faults(task_file, declared),
        *_source_faults(folder),
        *checkpoint_faults(hidden_file, checkpoints, declared, evaluators),
    ]
    if faults:
        raise TaskError("\n".join(faults))
    task = _build(folder, evaluators, declared, checkpoints)
    for seed in _TRIED:
        if faults := list(_variation_faults(task, task_file, hidden_file, declared, seed)):
            raise TaskError("\n".join(faults))
    return task


def _file_faults(folder: Path) -> Iterator[str]:
    """What must be right before anything here is read on, or run."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            # It could bring a file of the host, or a hidden one, into the machine.
            yield f"{path} is a link; put the file itself there"
        elif not path.is_file() and not path.is_dir():
            yield f"{path} is neither a file nor a folder; remove it"
        elif path.relative_to(folder).as_posix() in _PYTHON:
            try:
                _python(path)
            except OSError as error:
                yield f"{path} cannot be read: {error.strerror}"
            except (SyntaxError, ValueError) as error:
                yield f"{path} is no Python: {error}"
    oracle = folder / "oracle.py"
    if not oracle.exists():
        yield f"{oracle} is missing; a task that nobody can show solved is not graded"


def _python(path: Path) -> ast.Module:
    return syntax_tree(path.read_text("utf-8-sig"), str(path))


def _source_faults(folder: Path) -> Iterator[str]:
    """Values that no seed decides, and an oracle that solves nothing; none of it is run."""
    for path in (folder / "vary.py", folder / "hidden/answers.py"):
        if path.exists():
            for line, message in drifting_code(_python(path)):
                yield f"{path}:{line}: {message}"
    oracle = folder / "oracle.py"
    named = [node.name for node in _python(oracle).body if isinstance(node, ast.FunctionDef)]
    if "solve" not in named:
        yield f"{oracle} defines no solve(params, desk); `cua-gym task new` shows one"


def _task_faults(path: Path, declared: TaskFile) -> Iterator[str]:
    folder = path.parent
    if declared.name != folder.name:
        yield fault(path, ["name"], f"name {declared.name!r} must be the folder's, {folder.name!r}")
    if declared.machine.image is not None:
        yield from _image_fault(path, declared.machine.image)
    names = [e.name for e in declared.evidence]
    for number, name in enumerate(names):
        if name in (*RESERVED, *SCOPE_EVIDENCE):
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


def _build(
    folder: Path, evaluators: Path, declared: TaskFile, checkpoints: CheckpointsFile
) -> Task:
    machine = declared.machine
    wanted = {
        key: value
        for key in ("image", "cpus", "memory_mb", "network")
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
        declared_probes=(*map(_probe, declared.evidence), *_scope_probes(checkpoints)),
        checkpoints=tuple(
            Checkpoint(
                id=p.id,
                weight=p.weight,
                required=bool(p.required) if marked else p.weight > 0,
                check=p.check,
                evidence=tuple(evidence_names(p)),
                listed=isinstance(p.evidence, list),
                args=p.args,
                negate=p.negate,
                after=tuple(p.after),
            )
            for p in with_scope(checkpoints)
        ),
        discovered=dict(checkpoints.discovered),
        hash=_hash(folder),
    )


def _scope_probes(checkpoints: CheckpointsFile) -> Iterator[Probe]:
    if checkpoints.scope is not None:
        start, end = SCOPE_EVIDENCE
        tree = checkpoints.scope.tree
        yield Probe(start, "tree", tree, at="start", timeout_s=TREE_S)
        yield Probe(end, "tree", tree, timeout_s=TREE_S)


def _probe(entry: EvidenceEntry) -> Probe:
    kind = entry.kinds[0]
    source = getattr(entry, kind)
    return Probe(
        name=entry.name,
        kind=kind,  # type: ignore[arg-type] # the model's keys are the probe's kinds
        source=source if isinstance(source, str) else "",
        at=entry.at,
        user=None if entry.user == "user" else entry.user,
        timeout_s=entry.timeout_s or (TREE_S if kind == "tree" else COMMAND_S),
        limit_bytes=entry.limit_bytes,
        # Programs of the desktop account answer these, and a command of that account would wait
        # in the freezer for ever.
        live=entry.live or kind in _LIVE or (kind == "command" and entry.user == "user"),
    )


def _variation_faults(
    task: Task, task_file: Path, hidden_file: Path, declared: TaskFile, seed: int
) -> Iterator[str]:
    """Faults that show only once a seed's values are there."""
    try:
        variation, again = task.variation(seed), task.variation(seed)
    except TaskError as error:
        yield f"{error} (seed {seed})"
        return
    for file, one, two in (
        ("vary.py", (variation.params, variation.inputs), (again.params, again.inputs)),
        ("hidden/answers.py", variation.answers, again.answers),
    ):
        if one != two:
            path = task.folder / file
            yield f"{path}: seed {seed} gave two different results; use only what it is given"
    if not variation.instruction:
        yield fault(task_file, ["instruction"], f"it is blank for seed {seed}")
    for message in drifting_text(variation.instruction, declared.pinned_date is not None):
        yield fault(task_file, ["instruction"], message)
    for number, step in enumerate(declared.setup):
        for message in _step_faults(step, variation):
            yield fault(task_file, ["setup", number], message)
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
        if point.evidence == SCOPE_EVIDENCE:
            where = ["scope", "changes"]
        if unfilled := list(_fill_faults(hidden_file, where, [dict(point.args)], values)):
            yield from unfilled
            continue
        filled = template.fill(dict(point.args), values)
        for message in value_faults(library.find(point.check), filled):
            yield fault(hidden_file, where, f"{point.check}: {message}")
    yield from discovered_faults(hidden_file, task.discovered, task.checkpoints, values)


def _step_faults(step: SetupEntry, variation: Variation) -> Iterator[str]:
    file = step.file
    texts = [step.run, step.until, *(step.open or ()), *((file.content, file.to) if file else ())]
    # As when the step is done: what a value brings into the pattern is text, not a pattern.
    literal = {key: re.escape(str(value)) for key, value in variation.params.items()}
    try:
        shown = [template.fill_text(text or "", variation.params) for text in texts]
        window = template.fill_text(step.window or "", literal)
        source = template.fill_text((file and file.source) or "", variation.params)
    except template.TemplateError as error:
        yield str(error)
        return
    for text in shown:
        yield from drifting_text(text, date_pinned=True)
    try:
        re.compile(window)
    except re.error as error:
        yield f"window {window!r} is no regular expression: {error}"
    if file and file.source is not None and source.removeprefix("inputs/") not in variation.inputs:
        known = ", ".join(sorted(variation.inputs)) or "none"
        yield f"no input {source!r} in inputs/ or from vary.py's inputs(); there is {known}"


def _fill_faults(
    path: Path, where: Sequence[str | int], texts: Sequence[object], values: Mapping[str, object]
) -> Iterator[str]:
    for text in texts:
        try:
            template.fill(text, values)
        except template.TemplateError as error:
            yield fault(path, where, str(error))


def _hash(folder: Path) -> str:
    """SHA-256 over names and bytes of all files but Python's caches and what the gates found."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path == folder / GATES:
            continue
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(folder).as_posix().encode()
            data = path.read_bytes()
            digest.update(b"%d %s\0%d\0" % (len(name), name, len(data)) + data)
    return digest.hexdigest()
