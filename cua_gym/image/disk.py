"""From a root file system to a bootable disk, without root and without loop devices.

The disk has one ext4 partition behind an MBR. `mke2fs -d` fills the partition in place at an
offset of the raw file; boot code and partition table are written by hand, because every tool
that would do it wants a block device.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from cua_gym.errors import ImageError

__all__ = [
    "FILESYSTEM_LABEL",
    "convert",
    "make_raw_disk",
    "mke2fs_command",
    "sha256_of",
    "write_mbr",
]

Run = Callable[[Sequence[str]], None]

SECTOR = 512
PARTITION_START = 2048  # sectors; the 1 MiB before it holds GRUB's core image
FILESYSTEM_LABEL = "cua-root"

_BOOT_CODE_BYTES = 440  # after them come the disk signature and the partition table
_KERNEL_SECTOR_AT = 0x5C
_DRIVE_CHECK_AT = 0x66
_NOP_NOP = b"\x90\x90"


def mke2fs_command(rootfs: Path, raw: Path, virtual_bytes: int) -> list[str]:
    """The command that makes and fills the partition.

    Features are spelled out, since hosts' defaults differ and the guest's GRUB and e2fsck are
    older than a newer host's: ``metadata_csum_seed`` and ``orphan_file`` are what they refuse.
    ``assume_storage_prezeroed`` keeps the guest from zeroing inode tables into every overlay.
    """
    kib = (virtual_bytes - PARTITION_START * SECTOR) // 1024
    return [
        "mke2fs", "-q", "-F", "-t", "ext4", "-L", FILESYSTEM_LABEL, "-d", str(rootfs),
        "-O", "^metadata_csum_seed,^orphan_file", "-i", "65536", "-m", "0", "-J", "size=64",
        "-E", f"offset={PARTITION_START * SECTOR},assume_storage_prezeroed=1",
        # Without the unit the size is taken in blocks of a size that depends on the host.
        str(raw), f"{kib}k",
    ]  # fmt: skip


def write_mbr(raw: Path, boot_img: bytes, core_img: bytes, disk_signature: int) -> None:
    """Put GRUB and one active Linux partition before the file system.

    Args:
        raw: the disk, already of its full size.
        boot_img: GRUB's 512-byte first stage.
        core_img: GRUB's second stage, as `grub-mkimage -O i386-pc` writes it.
        disk_signature: 32 bits that tell this disk from others.

    Source: GRUB's util/setup.c, which does the same to a device.

    Raises:
        ImageError: the parts are not what they should be.
    """
    if len(boot_img) != SECTOR or boot_img[510:] != b"\x55\xaa":
        raise ImageError(f"GRUB's boot.img is not a boot sector ({len(boot_img)} bytes)")
    room = (PARTITION_START - 1) * SECTOR
    if not SECTOR < len(core_img) <= room:
        raise ImageError(f"GRUB's core.img has {len(core_img)} bytes; at most {room} fit")
    sectors = raw.stat().st_size // SECTOR - PARTITION_START
    if not 0 < sectors < 2**32:
        raise ImageError(f"{raw} has {raw.stat().st_size} bytes; an MBR cannot describe that")
    sector = bytearray(SECTOR)
    sector[:_BOOT_CODE_BYTES] = boot_img[:_BOOT_CODE_BYTES]
    struct.pack_into("<Q", sector, _KERNEL_SECTOR_AT, 1)
    # The jump here is for floppies: with it GRUB distrusts the drive number that the BIOS gave.
    sector[_DRIVE_CHECK_AT : _DRIVE_CHECK_AT + 2] = _NOP_NOP
    struct.pack_into("<I", sector, _BOOT_CODE_BYTES, disk_signature)
    no_chs = b"\xfe\xff\xff"
    struct.pack_into("<B3sB3sII", sector, 446, 0x80, no_chs, 0x83, no_chs, PARTITION_START, sectors)
    sector[510:] = b"\x55\xaa"
    with raw.open("r+b") as disk:
        disk.write(sector)
        disk.write(core_img)


def make_raw_disk(
    rootfs: Path, raw: Path, virtual_bytes: int, boot_img: bytes, core_img: bytes, run: Run
) -> None:
    """Make the sparse raw disk ``raw`` from the folder ``rootfs``.

    Args:
        run: runs a command in which the folder's files have their guest owners.
    """
    with raw.open("xb") as disk:
        disk.truncate(virtual_bytes)
    run(mke2fs_command(rootfs, raw, virtual_bytes))
    signature = int.from_bytes(hashlib.sha256(core_img + boot_img).digest()[:4], "little")
    write_mbr(raw, boot_img, core_img, signature)


def convert(source: Path, source_format: str, target: Path, target_format: str, run: Run) -> None:
    """Convert a disk with qemu-img; VMDK is always monolithicSparse, one file."""
    options = {"vmdk": ["-o", "subformat=monolithicSparse"]}.get(target_format, [])
    run(
        ["qemu-img", "convert", "-f", source_format, "-O", target_format, *options,
         str(source), str(target)]
    )  # fmt: skip


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's contents, as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
