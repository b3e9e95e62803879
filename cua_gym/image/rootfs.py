"""The root file system of an image as a folder, for desktops that are no virtual machines.

It is unpacked once from the image's own disk, so both kinds have the same programs and settings,
and lies in the image's folder: it comes and goes with it. Files belong to the ids that stand for
the guest's accounts on this host (`cua_gym.machine.x11.sandbox.first_id`); what would be
privileged by its mode is not. Nobody writes to it: each desktop has a layer of its own above.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from cua_gym.errors import ImageError
from cua_gym.image.contain import Runner
from cua_gym.image.disk import PARTITION_START, SECTOR, convert
from cua_gym.image.store import Image
from cua_gym.image.workshop import locked, workshop
from cua_gym.machine.contain import tool_path
from cua_gym.machine.x11.sandbox import first_id

__all__ = ["root_filesystem"]

# The disk as a raw file and its files, of debian-12; the first goes away again.
NEEDED_BYTES = 5 << 30

_UNPACK = """
cd "$1"
mkdir out
mkdir out/root
debugfs -R 'rdump / out/root' "disk.raw?offset=$2" 2> said
if grep -v '^debugfs ' said; then
    exit 1
fi
exec "$3" -IS "$4" out/root "$5"
"""


def root_filesystem(image: Image, progress: Callable[[str], None] = lambda _: None) -> Path:
    """The folder of an image's root file system, made first if need be.

    Two processes may ask at once: one unpacks, the other waits for it.

    Raises:
        ImageError: there is no room, or a tool is missing or failed; with its last lines.
        MachineError: this account cannot have accounts of its own for it.
    """
    first = first_id()
    folder = image.folder / f"root-{image.manifest.disk_sha256[:12]}-{first}"
    if folder.is_dir():
        return folder / "root"
    images = image.folder.parent
    with locked(
        images / f".lock-root-{image.folder.name}",
        lambda: progress(f"another process is unpacking {image.name}; waiting for it"),
    ):
        if not folder.is_dir():
            with workshop(images, f"root-{image.name}") as work:
                _unpack(image, work, first, progress)
                (work / "out").rename(folder)
    return folder / "root"


def _unpack(image: Image, work: Path, first: int, progress: Callable[[str], None]) -> None:
    if shutil.which("debugfs", path=tool_path()) is None:
        raise ImageError("debugfs is not installed; apt-get install e2fsprogs")
    free = shutil.disk_usage(work).free
    if free < NEEDED_BYTES:
        raise ImageError(
            f"unpacking {image.name} needs {NEEDED_BYTES / 2**30:.0f} GiB at {work.parent}, "
            f"{free / 2**30:.1f} GiB are free"
        )
    progress(f"first light desktop of {image.name}: unpacking its files from its disk, once")
    run = Runner(work.parent / f"root-{image.folder.name}.log", progress)
    raw = work / "disk.raw"
    convert(image.qcow2, "qcow2", raw, "raw", run)
    progress("the disk is read; writing its files")
    owners = Path(__file__).with_name("root_owners.py")
    offset = PARTITION_START * SECTOR
    run(
        ["sh", "-ec", _UNPACK, "sh", str(work), str(offset), sys.executable, str(owners),
         str(first)]
    )  # fmt: skip
    raw.unlink()
    if not (work / "out/root/etc/passwd").is_file():
        raise ImageError(f"the disk {image.qcow2} holds no Linux system")
