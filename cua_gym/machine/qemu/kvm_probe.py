"""Whether KVM runs a guest: by running one.

The guest is a boot sector (`kvm_probe.s`) that does what a kernel does first and firmware never:
long mode with paging, model-specific registers, ring 3 and back by system call. Hosts that only
pretend (nested ones without hardware support) abort or hang in it, as they do in a kernel.
"""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

from cua_gym.machine.qemu.process import drop_privileges

__all__ = ["BOOT_SECTOR", "why_no_kvm"]

# kvm_probe.s, assembled: as -o p.o kvm_probe.s && ld -m elf_x86_64 -Ttext 0x7c00 --oformat binary
_CODE = """
fa31c08ed88ec08ed0bc0070bf0010b90018f3abc70600100720c70600200730bf003066b887000000b9000266890566
050000200083c708e2f266b8a00600000f22e066b8001000000f22d866b9800000c00f32660d010900000f300f011618
7d66b8330005800f22c0ea6f7c0800b8100000008ed0bc0070000031c00fa20f31b9810000c031c0ba080018000f30ff
c1b8cc7c000031d20f30b9010100c0b8005000000f300f01f8b9b77c000041bb02000000480f07660fefc0660fd4c048
c7c000600000f0ff000f05f40f01f8b8001000000f22d80f013c2500600000b02ae6f4f4ebfd66900000000000000000
ffff0000009aaf00ffff00000092cf000000000000000000ffff000000f2cf00ffff000000faaf002f00e87c
"""
BOOT_SECTOR = bytes.fromhex(_CODE).ljust(510, b"\0") + b"\x55\xaa"

PROBE_S = 10.0
_PASSED = 0x2A << 1 | 1  # how isa-debug-exit turns the byte into an exit status


def why_no_kvm(binary: str, accelerator: str = "kvm", cpu: str = "host,migratable=on") -> str:
    """Why KVM is not usable by machines of this account; empty if a guest ran under it."""
    kvm = Path("/dev/kvm")
    if accelerator == "kvm" and not kvm.exists():
        return "there is no /dev/kvm"
    group = kvm.stat().st_gid if kvm.exists() and stat.S_ISCHR(kvm.stat().st_mode) else None
    disk = os.memfd_create("cua-gym-probe", os.MFD_CLOEXEC)
    try:
        os.write(disk, BOOT_SECTOR)
        readable = os.open(f"/proc/self/fd/{disk}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _run(binary, accelerator, cpu, readable, group)
        finally:
            os.close(readable)
    finally:
        os.close(disk)


def _run(binary: str, accelerator: str, cpu: str, disk: int, group: int | None) -> str:
    command = [
        *drop_privileges(group), binary, "-nodefaults", "-no-user-config", "-no-reboot",
        "-display", "none", "-machine", "pc", "-accel", accelerator, "-cpu", cpu, "-m", "32",
        "-add-fd", f"fd={disk},set=1",
        "-drive", "if=floppy,format=raw,readonly=on,file=/dev/fdset/1", "-boot", "a",
        "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, pass_fds=(disk,), capture_output=True, timeout=PROBE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"a test guest hung in its first steps ({PROBE_S:g} s)"
    if done.returncode == _PASSED:
        return ""
    said = done.stderr.decode(errors="replace").strip().splitlines()
    end = f"ended with {done.returncode}"
    return f"a test guest {end}" + (
        f": {said[0].rpartition('qemu-system-x86_64: ')[2]}" if said else ""
    )
