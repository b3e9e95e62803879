"""What was there at the start: evidence of the start state, taken before anybody acts.

It is taken once, when the start state is made, and lies with the saved state on the host, out of
the agent's reach; collection lays it beside what is there at the end. A start state that brings
none, or one that other probes took, is asked again when it has been restored: it is the start
still.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from cua_gym.errors import GradingError, TaskError
from cua_gym.grading.collector import Collector
from cua_gym.grading.items import VERSION
from cua_gym.grading.probes import LISTING, Probe
from cua_gym.machine.base import Machine

__all__ = ["StartEvidence"]

RECORDS = "start.json"


@dataclass(frozen=True, slots=True)
class StartEvidence:
    """What the probes of the start brought; nothing, where a task has none.

    Attributes:
        recipe: what took it: the probes, and how a listing is made.
        records: a line of the manifest each.
        contents: by file name in the evidence folder.
    """

    recipe: Mapping[str, Any] | None = None
    records: Sequence[Mapping[str, Any]] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        machine: Machine,
        probes: Sequence[Probe],
        progress: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """What lies with the start state that the machine became; else it is taken now.

        Raises:
            MachineError, TaskError: as for `take`.
        """
        nothing = cls()
        if nothing.answers(probes):
            return nothing
        kept = None if machine.kept is None else cls.load(machine.kept)
        if kept is not None and kept.answers(probes):
            return kept
        progress("looking at what is there at the start")
        return cls.take(machine, probes)

    @classmethod
    def take(cls, machine: Machine, probes: Sequence[Probe]) -> Self:
        """Take it from a machine in its start state, which runs before and afterwards.

        Raises:
            MachineError: the machine failed.
            TaskError: a probe could not be carried out; nobody has acted, so the task is at fault.
        """
        probes = _of_start(probes)
        if not probes:
            return cls()
        with tempfile.TemporaryDirectory(prefix="cua-gym-start-") as name:
            collector = Collector(machine, Path(name))
            machine.freeze()
            try:
                found = {p.name: collector.take(p) for p in probes if not p.live}
            except GradingError as error:
                raise TaskError(f"at the start: {error}") from error
            finally:
                machine.thaw()
            try:
                found |= {p.name: collector.take(p) for p in probes if p.live}
            except GradingError as error:
                raise TaskError(f"at the start: {error}") from error
            for item in found.values():
                if item.state == "refused":
                    raise TaskError(f"evidence {item.probe.name} at the start: {item.note}")
            contents = {
                path.relative_to(name).as_posix(): path.read_bytes()
                for path in Path(name).rglob("*")
                if path.is_file()
            }
        return cls(_recipe(probes), [found[p.name].record() for p in probes], contents)

    def answers(self, probes: Sequence[Probe]) -> bool:
        """Whether it is what these probes, taken now, would bring of the start."""
        return self.recipe == _recipe(_of_start(probes))

    def files(self) -> dict[str, bytes]:
        """All of it as files, to be kept with a state; `load` is the inverse."""
        if self.recipe is None:
            return {}
        head = {"recipe": self.recipe, "records": list(self.records)}
        return {RECORDS: json.dumps(head).encode(), **self.contents}

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """What was kept in a folder, None when it is not there or not whole."""
        try:
            head = json.loads((folder / RECORDS).read_bytes())
            records = head["records"]
            stored = [e["stored"] for r in records for e in r["entries"] if e["stored"] is not None]
            contents = {name: (folder / name).read_bytes() for name in stored}
            return cls(head["recipe"], records, contents)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, folder: Path) -> Sequence[Mapping[str, Any]]:
        """Lay the contents into an evidence folder; the lines for its manifest."""
        for name, data in self.contents.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return self.records


def _of_start(probes: Sequence[Probe]) -> list[Probe]:
    return [p for p in probes if p.at == "start"]


def _recipe(probes: Sequence[Probe]) -> dict[str, Any] | None:
    if not probes:
        return None
    return {"version": VERSION, "listing": LISTING, "probes": [asdict(p) for p in probes]}
