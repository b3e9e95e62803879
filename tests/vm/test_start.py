"""Evidence of the start on a real machine: it lies with the saved state, out of any reach."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from cua_gym.grading.evidence import collect
from cua_gym.grading.items import Evidence
from cua_gym.grading.probes import Probe
from cua_gym.grading.start import StartEvidence
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.qemu.machine import QemuMachine
from cua_gym.machine.start import start_machine
from evaluators import files
from tests.grading.conftest import SUBMIT, Asked

pytestmark = pytest.mark.vm

PROBES = (
    Probe("before", "file", "/home/user/note.txt", at="start"),
    Probe("scope_start", "tree", "/home/user", at="start", timeout_s=180),
    Probe("scope_end", "tree", "/home/user", timeout_s=180),
    Probe("linked", "tree", "/home/user/Documents", timeout_s=180),
)


def test_a_restored_start_state_brings_its_evidence(tmp_path: Path) -> None:
    """Taken once; what changed since is found, and nothing else is."""
    made = []

    def prepare(machine: Machine) -> Mapping[str, bytes]:
        machine.shell.write("/home/user/note.txt", b"old")
        machine.shell.write("/home/user/other.txt", b"old")
        made.append(StartEvidence.take(machine, PROBES))
        return made[-1].files()

    key = f"test-start-{uuid.uuid4().hex}"
    start_machine(MachineSpec(), key=key, prepare=prepare).close()
    with start_machine(MachineSpec(), key=key, prepare=prepare) as machine:
        assert isinstance(machine, QemuMachine)
        assert machine.kept is not None
        state = machine.kept.parent
        try:
            told: list[str] = []
            start = StartEvidence.of(machine, PROBES, told.append)
            assert (start, told, len(made)) == (made[0], [], 1)
            machine.shell.run("echo new >note.txt; rm other.txt; mv Documents D; ln -s D Documents")
            machine.freeze()
            asked = Asked(PROBES, None)  # type: ignore[arg-type] # nothing is graded
            collect(machine, asked, tmp_path / "evidence", SUBMIT, start)
        finally:
            shutil.rmtree(state)
    evidence = Evidence(tmp_path / "evidence")
    assert evidence["before"].bytes() == b"old"
    assert evidence["linked"].state == "refused"
    both = evidence.only(["scope_start", "scope_end"])
    free = ["note.txt", "other.txt", "D", "D/**", "Documents", "Documents/**"]
    assert files.only_changed(both, may_change=free).passed
    found = files.only_changed(both, may_change=free[2:])
    assert "gone ['other.txt'], changed ['note.txt']" in found.message
