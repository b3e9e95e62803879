"""Boot sectors written by hand: every byte where a BIOS and GRUB look for it."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from cua_gym.errors import ImageError
from cua_gym.image.build import missing_host_tools
from cua_gym.image.contain import Runner
from cua_gym.image.disk import convert, make_raw_disk, mke2fs_command, write_mbr
from cua_gym.machine.contain import tool_path

BOOT = bytes([0xEB]) + b"\x63" * 509 + b"\x55\xaa"
CORE = bytes(range(256)) * 200


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "disk.raw"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    return path


def test_mbr(raw: Path) -> None:
    """One active Linux partition from sector 2048 to the end, GRUB before it."""
    write_mbr(raw, BOOT, CORE, 0x12345678)
    with raw.open("rb") as file:
        sector = file.read(512)
        assert file.read(len(CORE)) == CORE
    assert sector[:0x5C] == BOOT[:0x5C]
    assert struct.unpack_from("<Q", sector, 0x5C) == (1,), "GRUB's second stage is at sector 1"
    assert sector[0x66:0x68] == b"\x90\x90", "the check for a floppy drive is off"
    assert struct.unpack_from("<I", sector, 440) == (0x12345678,)
    status, kind, start, count = struct.unpack_from("<B3xB3xII", sector, 446)
    assert (status, kind, start) == (0x80, 0x83, 2048)
    assert start + count == (64 << 20) // 512
    assert sector[462:510] == bytes(48), "no other partition"
    assert sector[510:] == b"\x55\xaa"


def test_a_wrong_boot_sector_is_refused(raw: Path) -> None:
    """Better no disk than one that hangs at a black screen."""
    with pytest.raises(ImageError, match="boot sector"):
        write_mbr(raw, BOOT[:-2] + b"xx", CORE, 1)


def test_a_core_image_that_reaches_the_partition_is_refused(raw: Path) -> None:
    """It would overwrite the file system."""
    with pytest.raises(ImageError, match="at most"):
        write_mbr(raw, BOOT, b"x" * (2048 * 512), 1)


def test_mke2fs_is_told_units_and_features() -> None:
    """Without the unit the size is misread; without the features old GRUBs cannot read it."""
    command = mke2fs_command(Path("/tree"), Path("/raw"), 60 << 30)
    assert command[-1] == f"{(60 << 20) - 1024}k"
    assert any("offset=1048576" in word for word in command)
    assert "^metadata_csum_seed,^orphan_file" in command


@pytest.mark.skipif("e2fsprogs" in missing_host_tools(), reason="needs e2fsprogs")
def test_the_file_system_holds_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk made by a normal user, whose PATH has no sbin, passes e2fsck and holds the files."""
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    tree = tmp_path / "tree"
    (tree / "etc").mkdir(parents=True)
    (tree / "etc/hello").write_text("world\n", encoding="ascii")
    raw = tmp_path / "disk.raw"
    runner = Runner(tmp_path / "log", lambda message: None)
    make_raw_disk(tree, raw, 512 << 20, BOOT, CORE, runner)
    part = f"{raw}?offset={1 << 20}"
    monkeypatch.setenv("PATH", tool_path())
    subprocess.run(["e2fsck", "-fn", part], check=True, capture_output=True)
    shown = subprocess.run(
        ["debugfs", "-R", "cat /etc/hello", part], check=True, capture_output=True
    )
    assert shown.stdout == b"world\n"
    assert raw.stat().st_blocks * 512 < 32 << 20, "the raw disk is sparse"

    vmdk = tmp_path / "disk.vmdk"
    convert(raw, "raw", vmdk, "vmdk", runner)
    compared = ["qemu-img", "compare", "-f", "raw", "-F", "vmdk", str(raw), str(vmdk)]
    subprocess.run(compared, check=True, capture_output=True)
