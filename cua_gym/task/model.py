"""A loaded task, and a variation of it: the task with one seed's names, numbers and files."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from cua_gym import template
from cua_gym.errors import TaskError
from cua_gym.grading.checkpoints import Checkpoint, Rubric
from cua_gym.grading.library import authors_code, import_file
from cua_gym.grading.probes import Probe
from cua_gym.machine.base import MachineSpec
from cua_gym.task.files import SetupEntry

__all__ = ["Limits", "Task", "Variation"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When an attempt ends by itself."""

    steps: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A validated task folder; `cua_gym.task.load_task` makes it.

    Attributes:
        folder: the task's folder.
        evaluators: folder of the suite's check functions.
        instruction: what the agent is told, with placeholders.
        area: kind of application or work, such as ``editor``.
        level: 1 easy to 3 hard.
        expected_steps: actions that somebody who knows the way needs.
        measures: which ability it is meant to show.
        tool_policy: what the agent may use.
        backend: ``vm`` needs a whole computer, ``any`` runs on a light desktop too.
        feasible: False when giving up can be right.
        setup: steps from the image's ready state to the start state.
        declared_probes: what to collect, with placeholders; those of ``[scope]`` too.
        checkpoints: how it is graded; that of ``[scope]`` comes last.
        discovered: wanted values that stand nowhere for the agent, by placeholder or checkpoint,
            and how one finds them.
        hash: SHA-256 of all files in the folder.
    """

    folder: Path
    evaluators: Path
    name: str
    title: str
    instruction: str
    area: str
    level: int
    expected_steps: int
    measures: str
    tool_policy: Literal["gui", "shell", "both"]
    backend: Literal["vm", "any"]
    feasible: bool
    spec: MachineSpec
    limits: Limits
    setup: tuple[SetupEntry, ...]
    declared_probes: tuple[Probe, ...]
    checkpoints: tuple[Checkpoint, ...]
    discovered: Mapping[str, str]
    hash: str

    def on(self, backend: Literal["qemu", "x11"] | None) -> Task:
        """The task on that kind of computer; None leaves it as it is.

        Raises:
            TaskError: it needs a whole one.
        """
        if backend == "x11" and self.backend != "any":
            raise TaskError(
                f"{self.name} needs a whole computer, which a light desktop is not: "
                f"{self.folder / 'task.toml'} says backend = {self.backend!r}. Run it with "
                "backend 'qemu'; or, if its programs and setup do without systemd and it was "
                "tried, let the file say backend = 'any'"
            )
        if backend is None:
            return self
        return replace(self, spec=replace(self.spec, backend=backend))

    @property
    def images(self) -> Path:
        """The suite's recipes, searched before the bundled ones; it need not exist."""
        return self.folder.parent.parent / "images"

    @property
    def hidden(self) -> Path:
        """The folder that never enters the guest."""
        return self.folder / "hidden"

    def module(self, name: str) -> ModuleType | None:
        """One of the task's own Python files, or None when it has none.

        Raises:
            TaskError: it cannot be imported.
        """
        path = self.folder / name
        if not path.is_file():
            return None
        with authors_code(str(path), TaskError):
            return import_file(path)

    def variation(self, seed: int) -> Variation:
        """The task for one seed: the same on every machine and in every process.

        Raises:
            TaskError: ``vary.py`` or ``hidden/answers.py`` failed or gave what it must not.
        """
        digest = hashlib.sha256(f"{self.name}:{seed}".encode()).digest()
        rng = random.Random(int.from_bytes(digest, "big"))
        vary = self.module("vary.py")
        params = self._call(vary, "vary.py", "vary", {}, rng)
        _require_plain(self.folder / "vary.py", "vary", params)
        inputs = _static_inputs(self.folder / "inputs")
        # Copies, so that no file of the author's can change what another is given.
        made = self._call(vary, "vary.py", "inputs", {}, json.loads(json.dumps(params)))
        for name, data in made.items():
            if not isinstance(name, str) or not isinstance(data, bytes):
                raise TaskError(f"{self.folder / 'vary.py'}: inputs() gives names and bytes")
            inputs[name] = data
        answers = self._call(
            self.module("hidden/answers.py"),
            "hidden/answers.py",
            "answers",
            {},
            json.loads(json.dumps(params)),
            dict(inputs),
        )
        _require_plain(self.folder / "hidden/answers.py", "answers", answers)
        try:
            instruction = template.fill_text(self.instruction, params).strip()
        except template.TemplateError as error:
            raise TaskError(f"{self.folder / 'task.toml'}: instruction: {error}") from error
        return Variation(self, seed, params, instruction, inputs, answers)

    def _call(
        self, module: ModuleType | None, file: str, name: str, default: Any, *arguments: Any
    ) -> dict[str, Any]:
        function = getattr(module, name, None)
        if function is None:
            return dict(default)
        path = self.folder / file
        with authors_code(f"{path}: {name}()", TaskError):
            result = function(*arguments)
        if not isinstance(result, Mapping):
            raise TaskError(f"{path}: {name}() returned {type(result).__name__}, not a dict")
        return dict(result)


@dataclass(frozen=True, slots=True, eq=False)
class Variation:
    """A task with one seed's values: what an episode attempts.

    Attributes:
        params: what ``vary.py`` chose; plain JSON values.
        instruction: what the agent is told.
        inputs: files for the setup, by name.
        answers: what ``hidden/answers.py`` computed; for the graders alone.
    """

    task: Task
    seed: int
    params: Mapping[str, Any]
    instruction: str
    inputs: Mapping[str, bytes] = field(repr=False)
    answers: Mapping[str, Any] = field(repr=False)

    @property
    def start_key(self) -> str | None:
        """Names the start state that the setup leads to; None where there is no setup.

        Only what the setup is given decides it, so that another text or grader needs no new one.
        """
        if not self.task.setup:
            return None
        steps = [step.model_dump(mode="json") for step in self.task.setup]
        digest = hashlib.sha256(json.dumps(steps).encode())
        digest.update(json.dumps(self.params, sort_keys=True, default=str).encode())
        for name, data in sorted(self.inputs.items()):
            digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
        return f"{self.task.name}-{digest.hexdigest()[:16]}"

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What to collect, placeholders filled."""
        return tuple(
            replace(p, source=template.fill_text(p.source, self.params))
            for p in self.task.declared_probes
        )

    @property
    def rubric(self) -> Rubric:
        """What to grade by."""
        values = {f"params.{k}": v for k, v in self.params.items()}
        values |= {f"answer.{k}": v for k, v in self.answers.items()}
        return Rubric(
            feasible=self.task.feasible,
            checkpoints=self.task.checkpoints,
            hidden=self.task.hidden,
            evaluators=self.task.evaluators,
            values=values,
            inputs=self.inputs,
        )


def _require_plain(path: Path, function: str, values: Mapping[str, Any]) -> None:
    for key in values:
        if not isinstance(key, str) or not key.isidentifier():
            raise TaskError(f"{path}: {function}() has the key {key!r}; keys are identifiers")
    try:
        copy = json.loads(json.dumps(values, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(f"{path}: {function}() must give plain JSON values: {error}") from error
    if copy != values:
        # A tuple would come back from the record as a list.
        raise TaskError(f"{path}: {function}() must give plain JSON values; use lists, not tuples")


def _static_inputs(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
