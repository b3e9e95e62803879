"""Disks as open files: unlinked overlays over read-only bases.

Responsible for making overlays, for the identity of a base, and for the ``-blockdev`` chain.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cua_gym.errors import ImageError, MachineError, OutOfSpace

__all__ = ["BaseDisk", "chain", "new_overlay"]

MINIMUM_FREE_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class BaseDisk:
    """An image's qcow2 disk and what tells it from another one.

    Attributes:
        digest: the image's own disk hash, from its manifest.
        size, mtime_ns: of the file; a base that changed under its states is caught by them.
    """

    path: Path
    virtual_bytes: int
    digest: str
    size: int
    mtime_ns: int

    @classmethod
    def open(cls, path: Path, digest: str) -> BaseDisk:
        """Look at the file.

        Raises:
            ImageError: absent, or no qcow2.
        """
        try:
            status = path.stat()
            with path.open("rb") as file:
                header = file.read(32)
        except OSError as error:
            raise ImageError(f"the image's disk {path} cannot be read: {error.strerror}") from error
        if header[:4] != b"QFI\xfb":
            raise ImageError(f"the image's disk {path} is no qcow2 file; build the image again")
        # docs/interop/qcow2.txt: bytes 24 to 31 are the virtual size.
        virtual = int.from_bytes(header[24:32], "big")
        return cls(path, virtual, digest, status.st_size, status.st_mtime_ns)

    def identity(self) -> dict[str, Any]:
        """What a state remembers of its base."""
        return {"digest": self.digest, "size": self.size, "mtime_ns": self.mtime_ns}

    def differences(self, saved: dict[str, Any]) -> list[str]:
        """How this base differs from the one a state was made on."""
        return [
            f"the image disk's {name} was {saved.get(name)!r} and is {value!r}"
            for name, value in self.identity().items()
            if saved.get(name) != value
        ]


def new_overlay(folder: Path, virtual_bytes: int) -> int:
    """Descriptor of a fresh, empty, unlinked qcow2 file; the kernel frees it with its last user.

    Raises:
        OutOfSpace: the folder's disk is full.
        MachineError: the folder cannot be made, or ``qemu-img`` failed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise MachineError(
            f"the folder of the disk overlays, {folder}, cannot be made ({error.strerror}); "
            "choose another one with CUA_GYM_RUN_DIR"
        ) from error
    free = shutil.disk_usage(folder).free
    if free < MINIMUM_FREE_BYTES:
        raise OutOfSpace(
            f"{folder} has {free >> 20} MiB free; a machine's disk overlay needs at least "
            f"{MINIMUM_FREE_BYTES >> 20} MiB. Free some, or move it with CUA_GYM_RUN_DIR"
        )
    with tempfile.TemporaryFile(dir=folder) as file:  # O_TMPFILE where the file system has it
        file.write(_empty_qcow2(virtual_bytes))
        file.flush()
        return os.dup(file.fileno())


@functools.cache
def _empty_qcow2(virtual_bytes: int) -> bytes:
    """An empty qcow2 of that size, 200 kB, made by ``qemu-img`` in a nameless file."""
    memory = os.memfd_create("cua-gym-template", os.MFD_CLOEXEC)
    command = ["qemu-img", "create", "-q", "-f", "qcow2", f"/proc/self/fd/{memory}"]
    try:
        subprocess.run(
            [*command, str(virtual_bytes)],
            pass_fds=(memory,),
            check=True,
            capture_output=True,
            timeout=60,
        )
        return os.pread(memory, os.fstat(memory).st_size, 0)
    except FileNotFoundError as error:
        raise MachineError("qemu-img is not installed; apt install qemu-utils") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise MachineError(f"qemu-img create failed: {said}") from error
    finally:
        os.close(memory)


def chain(overlay: int, deltas: Sequence[int], base: int) -> list[str]:
    """``-blockdev`` options of node ``disk``: overlay over deltas (newest last) over base.

    Args:
        overlay, deltas, base: numbers of QEMU fd sets (``-add-fd``), not descriptors.
    """
    options: list[str] = []

    def node(name: str, fdset: int, backing: str | None, writable: bool) -> None:
        file: dict[str, Any] = {
            "driver": "file",
            "filename": f"/dev/fdset/{fdset}",
            "node-name": f"{name}-file",
            "read-only": not writable,
            # Every descriptor is ours alone or read-only; names to lock there are none.
            "locking": "off",
        }
        layer: dict[str, Any] = {
            "driver": "qcow2",
            "node-name": name,
            "file": f"{name}-file",
            "backing": backing,
            "read-only": not writable,
        }
        if writable:
            # The overlay dies with the process: the guest's flushes need not reach the platter.
            file["cache"] = layer["cache"] = {"no-flush": True}
            file["discard"] = layer["discard"] = "unmap"
        options.extend(["-blockdev", json.dumps(file), "-blockdev", json.dumps(layer)])

    node("base", base, None, False)
    below = "base"
    for index, fdset in enumerate(deltas):
        node(f"delta{index}", fdset, below, False)
        below = f"delta{index}"
    node("disk", overlay, below, True)
    return options
