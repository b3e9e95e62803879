"""The standard for images, clause by clause: each says what must hold and looks whether it does.

A clause sees the image's files and one running machine, and of the machine only its shell and its
screen, so the same clause serves every kind of machine. Adding one is adding an entry. Here are
those of every image; a guest's own are in a file of its kind.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path

from cua_gym.image.clause import Clause, Subject, expect
from cua_gym.image.clauses_apps import APPS
from cua_gym.image.clauses_linux import LINUX
from cua_gym.image.store import Image
from cua_gym.image.vmdk import read_vmdk

__all__ = ["clauses_for"]

STILL_S = 10.0


def clauses_for(image: Image) -> list[Clause]:
    """The clauses that apply to an image's kind of guest, in the order of the report."""
    windows = image.manifest.guest_os.startswith("windows")
    # Applications last: they leave profiles behind.
    return [*_DISK, *(() if windows else LINUX), *_SCREEN, *(() if windows else APPS)]


def _one_file(subject: Subject) -> str:
    files = sorted(path.name for path in subject.image.folder.glob("*.vmdk"))
    vmdk = read_vmdk(subject.image.vmdk)
    return expect(files == ["disk.vmdk"] and vmdk.is_one_file, ", ".join(files))


def _subformat(subject: Subject) -> str:
    seen = read_vmdk(subject.image.vmdk).subformat
    return expect(seen == "monolithicSparse", seen)


def _virtual_size(subject: Subject) -> str:
    size = read_vmdk(subject.image.vmdk).virtual_bytes
    return expect(size == 60 * 2**30 == subject.image.manifest.virtual_bytes, f"{size} bytes")


def _same_disk(subject: Subject) -> str:
    command = ["qemu-img", "compare", "-U", "-f", "vmdk", "-F", "qcow2"]
    disks = [str(subject.image.vmdk), str(subject.image.qcow2)]
    done = subprocess.run([*command, *disks], capture_output=True, text=True, check=False)
    return expect(done.returncode == 0, (done.stdout + done.stderr).strip())


def _mbr(subject: Subject) -> str:
    with tempfile.TemporaryDirectory() as folder:
        sector = Path(folder) / "sector"
        subprocess.run(
            ["qemu-img", "dd", "-U", "-f", "vmdk", "-O", "raw", "bs=512", "count=1",
             f"if={subject.image.vmdk}", f"of={sector}"],
            check=True,
            capture_output=True,
        )  # fmt: skip
        data = sector.read_bytes()
    entries = [data[at : at + 16] for at in range(446, 510, 16)]
    used = [entry for entry in entries if any(entry)]
    seen = f"signature {data[510:].hex()}, types {[hex(entry[4]) for entry in used]}"
    good = data[510:] == b"\x55\xaa" and len(used) == 1 and used[0][0] == 0x80
    return expect(good and used[0][4] == 0x83 and any(data[:440]), seen)


def _manifest(subject: Subject) -> str:
    manifest = subject.image.manifest
    public = json.dumps([manifest.accounts.control, manifest.ssh_host_keys])
    mode = subject.image.control_key.stat().st_mode & 0o777
    expect("PRIVATE" not in public, "a private key in the manifest")
    expect(mode == 0o600, f"control_key has mode {mode:o}")
    return f"{len(manifest.packages)} packages, control_key {mode:o}"


def _still(subject: Subject) -> str:
    before = subject.machine.screen.grab()
    time.sleep(STILL_S)
    after = subject.machine.screen.grab()
    changed = int((before.rgb != after.rgb).any(axis=2).sum())
    return expect(changed == 0, f"{changed} pixels changed in {STILL_S:g} s")


def _lit(subject: Subject) -> str:
    colours = len(
        {tuple(pixel) for row in subject.machine.screen.grab().rgb[::16, ::16] for pixel in row}
    )
    return expect(colours > 3, f"{colours} colours")


_DISK = [
    Clause("one-file", "the image is one VMDK file, not split", _one_file),
    Clause("subformat", "its subformat is monolithicSparse", _subformat),
    Clause("virtual-size", "the disk has 60 GiB", _virtual_size),
    Clause("mbr", "MBR with one active Linux partition and boot code", _mbr),
    Clause("same-disk", "the disk that machines run on is the image, byte by byte", _same_disk),
    Clause("manifest", "the manifest is public, the control key is private", _manifest),
]

_SCREEN = [
    Clause("lit", "the screen shows a desktop", _lit),
    Clause("still", f"nothing moves by itself in {STILL_S:g} s", _still),
]
