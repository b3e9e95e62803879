"""What this host can run: QEMU's version, its machine types, its display, and whether KVM works.

Responsible for asking once per boot and remembering. ``/dev/kvm`` proves nothing: hosts that are
virtual machines themselves offer one under which firmware runs and no kernel does.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cua_gym.errors import MachineError
from cua_gym.machine.qemu.kvm_probe import why_no_kvm

__all__ = ["BINARY", "Host", "choose_machine_type", "probe"]

BINARY = "qemu-system-x86_64"


@dataclass(frozen=True, slots=True)
class Host:
    """Facts about QEMU on this host.

    Attributes:
        version: as QEMU says it, with the distribution's revision.
        number: (major, minor).
        dbus_display: it can push its screen over D-Bus.
        no_kvm: why KVM is not usable; empty if it is.
        kvm_group: group of ``/dev/kvm``.
        cpu_model: the host processor's name; guests under KVM see it.
    """

    binary: str
    version: str
    number: tuple[int, int]
    machine_types: tuple[str, ...]
    dbus_display: bool
    no_kvm: str
    kvm_group: int | None
    cpu_model: str

    @property
    def read_only_memory(self) -> bool:
        """Whether a private mapping can come from a file that QEMU may not write."""
        return self.number >= (9, 0)

    def accelerator(self, wish: Literal["auto", "kvm", "tcg"] = "auto") -> str:
        """``kvm`` or ``tcg``.

        Raises:
            MachineError: KVM was asked for and does not work; says why.
        """
        if wish == "kvm" and self.no_kvm:
            raise MachineError(f"KVM does not work here: {self.no_kvm}")
        return wish if wish != "auto" else ("tcg" if self.no_kvm else "kvm")


def probe(cache: Path) -> Host:
    """Ask QEMU and the kernel; remembered in ``cache`` until the next boot or another QEMU.

    Raises:
        MachineError: QEMU is not installed.
    """
    found = shutil.which(BINARY)
    if found is None:
        raise MachineError(f"{BINARY} is not installed; apt install qemu-system-x86 qemu-utils")
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    status = Path(found).stat()
    kvm = Path("/dev/kvm")
    access = [kvm.exists() and os.access(kvm, os.R_OK | os.W_OK), os.geteuid()]
    stamp = [boot_id, found, status.st_size, status.st_mtime_ns, *access]
    path = cache / "host.json"
    try:
        saved: dict[str, Any] = json.loads(path.read_text())
        if saved.pop("stamp") == stamp:
            lists = {
                "number": tuple(saved["number"]),
                "machine_types": tuple(saved["machine_types"]),
            }
            return Host(**{**saved, **lists})
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        pass  # never asked, or written by another version
    host = _ask(found)
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps({**dataclasses.asdict(host), "stamp": stamp}))
    fresh.replace(path)
    return host


def choose_machine_type(host: Host, wanted: str) -> str:
    """The image's machine type, if this QEMU has it.

    Raises:
        MachineError: it has not.
    """
    if wanted not in host.machine_types:
        raise MachineError(
            f"the image wants machine type {wanted}, which QEMU {host.version} does not have; "
            "install QEMU 7.2 or newer"
        )
    return wanted


def _ask(binary: str) -> Host:
    said = _run(binary, "--version")
    match = re.search(r"version ((\d+)\.(\d+).*)", said)
    if match is None:
        raise MachineError(f"{binary} --version says {said[:80]!r}, which is no version")
    types = re.findall(r"^(pc-\S+)", _run(binary, "-machine", "help"), re.MULTILINE)
    displays = _run(binary, "-display", "help").split()
    kvm = Path("/dev/kvm")
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return Host(
        binary=binary,
        version=match[1].strip(),
        number=(int(match[2]), int(match[3])),
        machine_types=tuple(types),
        dbus_display="dbus" in displays,
        no_kvm=why_no_kvm(binary),
        kvm_group=kvm.stat().st_gid if kvm.exists() else None,
        cpu_model=model[1] if model else "",
    )


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout
