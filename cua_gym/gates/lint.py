"""What can be wrong with a task that loads, seen without running it.

`cua_gym.task.load_task` refuses what cannot be meant; here is what can, and lets a score drift or
be talked into.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cua_gym.gates.answer_mutants import CLAIMS, SAID
from cua_gym.gates.record import Judgement
from cua_gym.syntax import syntax_tree
from cua_gym.task import Task
from cua_gym.task.lint import drifting_code, drifting_text

__all__ = ["lint"]

_VERDICTS = ("hidden/checks.py", "hidden/mutants.py")
_ORACLE = "oracle.py"
_WAITING = re.compile(r"time\.(?:time|monotonic|perf_counter)(?:_ns)?\b")
"""What an oracle may ask the clock for: how long it has waited."""
_DAY = re.compile(r"(?:\$\(|`|^|[;&|]\s*)\s*date\b(?P<options>[^)`;&|]*)", re.MULTILINE)
_OTHER_DAY = re.compile(r"(?:^|\s)(?:-d|--date|-r|--reference|-s|--set)")
_CLAIMED = frozenset(claim.strip(".").casefold() for claim in CLAIMS.values())
_CHANGES = re.compile(
    r"\b(?:save|store|write|put|create|make|rename|move|copy|append|add|export|extract|unpack)\b"
    r"[^.]*\b(?:as|to|into|in|under)\s+(?:the (?:file|folder)\s+)?[\"'`]?(?P<path>/[\w.-]+/\S+)",
    re.IGNORECASE,
)
HEADROOM = 1.5
"""The limit of steps over the expected ones: nobody goes the shortest way."""


def lint(task: Task) -> Judgement:
    """Faults of the files that `cua_gym.task.load_task` accepts."""
    faults = [*_code_faults(task), *_command_faults(task), *_claim_faults(task)]
    if task.limits.steps < HEADROOM * task.expected_steps:
        faults.append(
            f"task.toml: limits.steps is {task.limits.steps} and expected_steps "
            f"{task.expected_steps}; that leaves no room for a way that is not the shortest"
        )
    return Judgement.of(faults, "nothing drifts, and the work itself is looked at")


def _code_faults(task: Task) -> Iterator[str]:
    for name in (*_VERDICTS, _ORACLE):
        path = task.folder / name
        if not path.is_file():
            continue
        tree = syntax_tree(path.read_text("utf-8-sig"), str(path))
        for line, message in drifting_code(tree):
            if name != _ORACLE or not _WAITING.match(message):
                what = message.partition(";")[0]
                yield f"{name}:{line}: {what}; no verdict may depend on it"
        for line, text in _texts(tree):
            for message in drifting_text(text, date_pinned=True):
                yield f"{name}:{line}: {message}"


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """String constants that are no docstrings, with their lines."""
    comments = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in comments:
            yield node.lineno, node.value


def _command_faults(task: Task) -> Iterator[str]:
    """Commands whose output is another one tomorrow."""
    commands = [(f"evidence {p.name}", p.source) for p in task.declared_probes
                if p.kind == "command"]  # fmt: skip
    commands += [(f"setup step {n}", s.run) for n, s in enumerate(task.setup, 1) if s.run]
    for where, command in commands:
        for match in _DAY.finditer(command):
            if not _OTHER_DAY.search(match["options"]):
                yield f"task.toml: {where} asks for the date of today, which is another tomorrow"


def _claim_faults(task: Task) -> Iterator[str]:
    """A task that changes something, and is graded by what the agent says of it."""
    positive = [point for point in task.checkpoints if point.weight > 0]
    if not task.feasible:
        return
    for point in positive:
        if "submission" in point.evidence:
            yield (
                f"hidden/checkpoints.toml: {point.id} looks at how the attempt ended, which in a "
                "feasible task is no work; look at what was done"
            )
        said = str(point.args.get("expected", "")).strip().strip(".").casefold()
        if point.evidence == ("answer",) and said in _CLAIMED:
            yield (
                f"hidden/checkpoints.toml: {point.id} pays for the answer {said!r}, which is a "
                "claim; look at what was done"
            )
    if any(name not in SAID for point in positive for name in point.evidence):
        return
    match = _CHANGES.search(task.instruction)
    if match is not None or _scope_allows_changes(task):
        what = match["path"].rstrip(".,") if match else "what [scope] allows"
        yield (
            f"hidden/checkpoints.toml: the agent is to change {what}, and only its answer is "
            "looked at; look at what was changed"
        )


def _scope_allows_changes(task: Task) -> bool:
    return any(point.weight < 0 and point.args.get("may_change") for point in task.checkpoints)
