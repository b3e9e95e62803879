"""A task's two declarations, ``task.toml`` and ``hidden/checkpoints.toml``, as parsed text.

Only shapes and types are judged here; what they mean together is judged by `cua_gym.task.load`.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationError,
    model_validator,
)

from cua_gym.errors import TaskError
from cua_gym.machine.network.policy import Network, Policy

__all__ = [
    "CheckpointEntry",
    "CheckpointsFile",
    "EvidenceEntry",
    "ScopeTable",
    "SetupEntry",
    "TaskFile",
    "fault",
    "parse",
]


def _day(text: str) -> str:
    try:
        datetime.date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"there is no day {text}: {error}") from error
    return text


def _changes(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"\{[A-Za-z_][A-Za-z0-9_.]*\}", value):
        return value
    if isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value):
        return value
    raise ValueError(
        "'changes' is a list of patterns below the tree, such as [\"Notes/**\"], or one "
        f"placeholder that stands for such a list; not {value!r:.80}"
    )


def _network(value: Any) -> Any:
    if value in ("none", "open"):
        return value
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        Policy.of(tuple(value))  # which says what is no host
        return tuple(value)
    raise ValueError(
        f'\'network\' is "none", "open" or a list of hosts, such as ["example.org"]; not '
        f"{value!r:.80}"
    )


def _quoted(value: Any) -> Any:
    tables = value.items() if isinstance(value, dict) else ()
    nested = [f'"{key}.{name}"' for key, text in tables if isinstance(text, dict) for name in text]
    if nested:
        raise ValueError(f"a name with a dot stands in quotes: {', '.join(nested)}")
    return value


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Command = Annotated[str, Field(pattern=r"\S")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_day)]
ImageName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
LiteralPath = Annotated[str, Field(pattern=r"^/[^\x00{}]*$")]
GuestPath = Annotated[str, Field(pattern=r"^/[^\x00]*$")]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{1,63}$")]
EvidenceName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Size = Annotated[int, Field(ge=320, le=7680)]


_KINDS = ("file", "glob", "tree", "command", "clipboard", "windows", "a11y", "frame")
_START_KINDS = ("file", "glob", "tree", "command")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MachineTable(_Strict):
    """The computer that the task wants; unset is the default of `MachineSpec`."""

    image: ImageName | None = None
    cpus: int | None = Field(default=None, ge=1, le=64)
    memory_mb: int | None = Field(default=None, ge=256)
    screen: list[Size] | None = Field(default=None, min_length=2, max_length=2)
    network: Annotated[Network | None, PlainValidator(_network)] = None


class LimitsTable(_Strict):
    """When an attempt ends by itself."""

    steps: int = Field(default=50, ge=1, le=10_000)
    seconds: Seconds = 900.0


class FileStep(_Strict):
    """A file to put into the guest: from the inputs, or with this content."""

    to: GuestPath
    source: str | None = Field(default=None, alias="from")
    content: str | None = None
    user: Literal["root", "user"] = "user"
    mode: int = Field(default=0o644, ge=0, le=0o7777)

    @model_validator(mode="after")
    def _one_source(self) -> FileStep:
        if (self.source is None) == (self.content is None):
            raise ValueError("give exactly one of 'from' and 'content'")
        return self


class SetupEntry(_Strict):
    """One setup step: ``file``, ``run`` or ``open``."""

    file: FileStep | None = None
    run: Command | None = None
    open: list[str] | None = Field(default=None, min_length=1)
    user: Literal["root", "user"] = "user"
    until: Command | None = None
    window: str | None = None
    timeout_s: Seconds = 120.0

    @model_validator(mode="after")
    def _one_kind(self) -> SetupEntry:
        kinds = [k for k in ("file", "run", "open") if getattr(self, k) is not None]
        if len(kinds) != 1:
            raise ValueError("a setup step has exactly one of 'file', 'run' and 'open'")
        if (self.open is None) != (self.window is None):
            raise ValueError("'open' and 'window' (a regular expression for its title) go together")
        if self.open is not None and not self.open[0].strip():
            raise ValueError("'open' begins with a program's name")
        if self.until is not None and self.run is None:
            raise ValueError("'until' belongs to 'run'")
        return self


class EvidenceEntry(_Strict):
    """One thing to collect at the end, or in the start state before the agent acts."""

    name: EvidenceName
    at: Literal["start", "end"] = "end"
    file: GuestPath | None = None
    glob: GuestPath | None = None
    tree: GuestPath | None = None
    command: Command | None = None
    clipboard: Literal[True] | None = None
    windows: Literal[True] | None = None
    a11y: Literal[True] | None = None
    frame: Literal[True] | None = None
    user: Literal["root", "user"] = "root"
    timeout_s: Seconds | None = None
    limit_bytes: int = Field(default=16 * 1024 * 1024, ge=1, le=1024**3)
    live: bool = False

    @model_validator(mode="after")
    def _one_kind(self) -> EvidenceEntry:
        if len(self.kinds) != 1:
            raise ValueError(f"evidence has exactly one of {', '.join(_KINDS)}")
        if self.at == "start" and self.kinds[0] not in _START_KINDS:
            raise ValueError(f"at the start there is evidence of {', '.join(_START_KINDS)} only")
        return self

    @property
    def kinds(self) -> list[str]:
        """The kinds that are set; exactly one once validated."""
        return [k for k in _KINDS if getattr(self, k) is not None]


class TaskFile(_Strict):
    """``task.toml``."""

    name: Name
    title: Text
    instruction: Text
    area: Text
    level: int = Field(ge=1, le=3)
    expected_steps: int = Field(ge=1)
    measures: Text
    tool_policy: Literal["gui", "shell", "both"] = "gui"
    backend: Literal["vm", "any"] = "vm"
    feasible: bool = True
    pinned_date: Day | None = None
    machine: MachineTable = MachineTable()
    limits: LimitsTable = LimitsTable()
    setup: list[SetupEntry] = []
    evidence: list[EvidenceEntry] = []


class CheckpointEntry(_Strict):
    """One ``[[checkpoint]]``."""

    id: Name
    weight: float = Field(ge=-1, le=1)
    required: bool | None = None
    check: str = Field(pattern=r"^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$")
    evidence: str | list[str]
    args: dict[str, Any] = {}
    negate: bool = False
    after: list[str] = []


class ScopeTable(_Strict):
    """``[scope]``: what may change below a folder; it makes a negative checkpoint of its own."""

    tree: LiteralPath = "/home/user"
    changes: Annotated[list[str] | str, PlainValidator(_changes)]
    weight: float = Field(default=-0.5, ge=-1, lt=0)


class CheckpointsFile(_Strict):
    """``hidden/checkpoints.toml``."""

    checkpoint: list[CheckpointEntry] = []
    scope: ScopeTable | None = None
    discovered: Annotated[dict[str, Text], BeforeValidator(_quoted)] = {}


Model = TypeVar("Model", bound=_Strict)


def parse(path: Path, model: type[Model]) -> Model:
    """One declaration.

    Raises:
        TaskError: every fault with its line.
    """
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise TaskError(f"{path} is missing; `cua-gym task new` shows a whole task") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{path} is not UTF-8: {error}") from error
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {error.strerror}") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TaskError(f"{path}: no valid TOML: {error}") from error
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = [f"{_place(path, text, e['loc'])}: {_said(e)}" for e in error.errors()]
        raise TaskError("\n".join(faults)) from error


def fault(path: Path, where: Sequence[str | int], message: str) -> str:
    """``message`` with the file and line of a key, such as ``("evidence", 2, "file")``."""
    return f"{_place(path, path.read_text('utf-8'), where)}: {message}"


def _said(error: Any) -> str:
    key = ".".join(str(p) for p in error["loc"] if not isinstance(p, int))
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}; remove it or correct its spelling"
    if error["type"] == "missing":
        return f"{key!r} is missing; add it"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return f"{key}: {error['msg']}, not {error['input']!r:.80}"


def _place(path: Path, text: str, where: Sequence[str | int]) -> str:
    line = _line(text, where)
    return f"{path}:{line}" if line else str(path)


def _line(text: str, where: Sequence[str | int]) -> int | None:
    """The line of a key in TOML text, as near as keys stand in lines of their own."""
    lines = text.splitlines()
    start, end = 0, len(lines)
    best = None
    parts = list(where)
    if parts and isinstance(parts[0], str):
        table = parts[0]
        index = parts[1] if len(parts) > 1 and isinstance(parts[1], int) else 0
        headers = [
            i for i, line in enumerate(lines)
            if re.match(rf"\s*\[\[?\s*{re.escape(table)}\s*\]\]?", line)
        ]  # fmt: skip
        if index < len(headers):
            best = start = headers[index]
            following = (
                i for i in range(start + 1, len(lines)) if re.match(r"\s*\[\[?[\w.]+\]", lines[i])
            )
            end = next(following, len(lines))
            parts = [p for p in parts[1:] if isinstance(p, str)]
        else:
            # A plain key of the top: it stands before the first table.
            end = next((i for i in range(len(lines)) if re.match(r"\s*\[", lines[i])), len(lines))
    for key in parts:
        for i in range(start, end):
            if re.search(rf"(^|[\s{{,]|^\s*\"){re.escape(str(key))}\"?\s*=", lines[i]):
                best = i
                break
    return None if best is None else best + 1
