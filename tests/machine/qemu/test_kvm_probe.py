"""The guest that proves an accelerator."""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from cua_gym.machine.qemu import kvm_probe
from cua_gym.machine.qemu.accelerator import Host


def test_the_test_guest_passes_where_a_guest_runs(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under emulation it runs to its end, so a failure under KVM is KVM's."""
    monkeypatch.setattr(kvm_probe, "PROBE_S", 60.0)
    assert kvm_probe.why_no_kvm(host.binary, "tcg", "qemu64") == ""


def test_a_guest_that_does_not_finish_is_a_reason(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hang is an answer, not a hang."""
    monkeypatch.setattr(kvm_probe, "BOOT_SECTOR", b"\xf4\xeb\xfd".ljust(510, b"\0") + b"\x55\xaa")
    monkeypatch.setattr(kvm_probe, "PROBE_S", 1.0)
    assert "hung" in kvm_probe.why_no_kvm(host.binary, "tcg", "qemu64")


def test_a_qemu_that_refuses_is_quoted(host: Host) -> None:
    """The reason names what QEMU said."""
    assert "nonsense" in kvm_probe.why_no_kvm(host.binary, "tcg", "nonsense")


@pytest.mark.skipif(shutil.which("as") is None, reason="no assembler here")
def test_the_boot_sector_is_its_source_assembled(tmp_path: Path) -> None:
    """The bytes in the package are those of the commented source."""
    source = str(resources.files("cua_gym.machine.qemu").joinpath("kvm_probe.s"))
    made, linked = str(tmp_path / "o"), tmp_path / "bin"
    subprocess.run(["as", "-o", made, source], check=True)
    options = ["-m", "elf_x86_64", "-Ttext", "0x7c00", "--oformat", "binary"]
    subprocess.run(["ld", *options, "-o", str(linked), made], check=True)
    assert linked.read_bytes() == kvm_probe.BOOT_SECTOR
