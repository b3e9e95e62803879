"""Exports: the right format for a target, whole, or a refusal that names the remedy."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from cua_gym.errors import ImageError
from cua_gym.image.export import (
    FORMATS,
    choose_format,
    default_output,
    disk_info,
    export_disk,
    export_image,
)
from cua_gym.image.store import ImageStore
from cua_gym.image.stream import check_stream, write_stream
from cua_gym.image.vmdk import read_vmdk

SIZE = 96 << 20


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A sparse disk with data at both ends, in the middle, and a grain that is all zero."""
    path = tmp_path / "disk.raw"
    with path.open("wb") as file:
        file.truncate(SIZE)
        for offset in (0, 1000, 33 << 20, SIZE - 4096):
            file.seek(offset)
            file.write(os.urandom(4000))
        file.seek(50 << 20)
        file.write(bytes(1 << 20))
    return path


def _quiet(message: str) -> None:
    pass


def _same(raw: Path, other: Path, form: str) -> None:
    command = ["qemu-img", "compare", "-f", "raw", "-F", form, str(raw), str(other)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("form", list(FORMATS))
def test_each_format_holds_the_same_disk(raw: Path, tmp_path: Path, form: str) -> None:
    """qemu-img reads back every byte, and the result says what it is and where it runs."""
    output = tmp_path / f"out.{FORMATS[form].suffix}"
    made = export_disk(raw, output, form=form, progress=_quiet)
    _same(raw, output, {"stream-vmdk": "vmdk"}.get(form, form))
    assert made.virtual_bytes == SIZE
    assert made.file_bytes == output.stat().st_size
    assert made.targets
    assert not list(tmp_path.glob(".export-*"))


def test_vmdk_is_monolithic_sparse_in_one_file(raw: Path, tmp_path: Path) -> None:
    """Stated, not left to qemu-img's default."""
    output = tmp_path / "one.vmdk"
    export_disk(raw, output, form="vmdk", progress=_quiet)
    vmdk = read_vmdk(output)
    assert vmdk.subformat == "monolithicSparse"
    assert vmdk.is_one_file
    assert vmdk.virtual_bytes == SIZE


def test_esxi_gets_a_stream(raw: Path, tmp_path: Path) -> None:
    """B84: ESXi refuses monolithicSparse, so naming the target chooses streamOptimized."""
    assert choose_format(None, "esxi") == "stream-vmdk"
    assert choose_format(None, "workstation") == "vmdk"
    assert choose_format(None, None) == "qcow2"


def test_a_workstation_disk_for_esxi_is_refused_with_the_remedy() -> None:
    """B85: found here, not by "unsupported or invalid disk type 7" after an upload."""
    with pytest.raises(ImageError, match="use --format stream-vmdk"):
        choose_format("vmdk", "esxi")


def test_stream_passes_its_check_and_the_envelope_has_its_sizes(raw: Path, tmp_path: Path) -> None:
    """B87: header, footer, end marker, and OVF size and capacity."""
    output = tmp_path / "out.vmdk"
    export_disk(raw, output, form="stream-vmdk", progress=_quiet)
    check_stream(output, SIZE)
    ovf = output.with_suffix(".ovf").read_text(encoding="utf-8")
    assert re.findall(r'ovf:size="(\d+)"', ovf) == [str(output.stat().st_size)]
    assert re.findall(r'ovf:capacity="(\d+)"', ovf) == [str(SIZE)]
    assert 'ovf:href="out.vmdk"' in ovf


def test_qemus_own_stream_is_refused(raw: Path, tmp_path: Path) -> None:
    """B87: what qemu-img calls streamOptimized has no footer."""
    output = tmp_path / "qemu.vmdk"
    options = ["-O", "vmdk", "-o", "subformat=streamOptimized"]
    command = ["qemu-img", "convert", "-f", "raw", *options, str(raw), str(output)]
    subprocess.run(command, check=True)
    with pytest.raises(ImageError, match="not a valid streamOptimized"):
        check_stream(output, SIZE)


@pytest.mark.parametrize(
    ("cut", "rule"), [(512, "footer"), (100, "whole number of sectors"), (1536, "footer")]
)
def test_a_truncated_stream_is_refused(raw: Path, tmp_path: Path, cut: int, rule: str) -> None:
    """An upload that would fail at its end is found before its start."""
    output = tmp_path / "out.vmdk"
    write_stream(raw, output)
    os.truncate(output, output.stat().st_size - cut)
    with pytest.raises(ImageError, match=rule):
        check_stream(output, SIZE)


def test_a_stream_of_another_capacity_is_refused(raw: Path, tmp_path: Path) -> None:
    """The envelope and the disk must agree."""
    output = tmp_path / "out.vmdk"
    write_stream(raw, output)
    with pytest.raises(ImageError, match="capacity"):
        check_stream(output, SIZE * 2)


def test_an_empty_disk_streams(tmp_path: Path) -> None:
    """No grain, no table, still a directory, a footer and an end."""
    raw = tmp_path / "empty.raw"
    with raw.open("wb") as file:
        file.truncate(SIZE)
    write_stream(raw, tmp_path / "empty.vmdk")
    check_stream(tmp_path / "empty.vmdk", SIZE)
    _same(raw, tmp_path / "empty.vmdk", "vmdk")


def _split(raw: Path, folder: Path) -> Path:
    folder.mkdir()
    path = folder / "split.vmdk"
    options = ["-O", "vmdk", "-o", "subformat=twoGbMaxExtentSparse"]
    command = ["qemu-img", "convert", "-f", "raw", *options, str(raw), str(path)]
    subprocess.run(command, check=True)
    return path


def test_a_split_disk_is_joined(raw: Path, tmp_path: Path) -> None:
    """B88: a set of extents becomes one file."""
    split = _split(raw, tmp_path / "set")
    assert not read_vmdk(split).is_one_file
    output = tmp_path / "one.vmdk"
    export_disk(split, output, form="vmdk", progress=_quiet)
    assert read_vmdk(output).is_one_file
    _same(raw, output, "vmdk")


def test_a_missing_extent_is_named(raw: Path, tmp_path: Path) -> None:
    """B88: which part, of how many, and where it was looked for."""
    split = _split(raw, tmp_path / "set")
    (tmp_path / "set/split-s001.vmdk").unlink()
    with pytest.raises(ImageError, match=r"split-s001\.vmdk not in .*set"):
        export_disk(split, tmp_path / "one.vmdk", form="vmdk", progress=_quiet)


def test_one_part_of_a_set_is_recognised(raw: Path, tmp_path: Path) -> None:
    """B88: naming the part instead of the descriptor says so."""
    _split(raw, tmp_path / "set")
    with pytest.raises(ImageError, match="descriptor"):
        disk_info(tmp_path / "set/split-s001.vmdk")


def test_facts_while_a_machine_runs_but_no_copy(
    raw: Path, tmp_path: Path, short_folder: Path
) -> None:
    """B91: a disk open for writing can be looked at, and is not copied half-written."""
    disk = tmp_path / "live.qcow2"
    subprocess.run(
        ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(disk)], check=True
    )
    ready = tmp_path / "ready"
    daemon = subprocess.Popen(
        [
            "qemu-nbd",
            "-f",
            "qcow2",
            "-k",
            str(short_folder / "s"),
            "--pid-file",
            str(ready),
            str(disk),
        ]
    )
    try:
        while not ready.exists():
            assert daemon.poll() is None
        assert disk_info(disk)["virtual-size"] == SIZE
        with pytest.raises(ImageError, match="open for writing"):
            export_disk(disk, tmp_path / "copy.img", form="raw", progress=_quiet)
    finally:
        daemon.kill()
        daemon.wait()
    export_disk(disk, tmp_path / "copy.img", form="raw", progress=_quiet)


def test_a_changed_image_is_not_exported(store: ImageStore, tmp_path: Path) -> None:
    """The hash is taken of every byte, whatever the times of the file say."""
    built = store.ensure("tiny")
    export_image(built, tmp_path / "good.qcow2", form="qcow2", progress=_quiet)
    built.vmdk.chmod(0o644)
    with built.vmdk.open("r+b") as file:
        file.seek(-10, os.SEEK_END)
        file.write(b"changed")
    with pytest.raises(ImageError, match="has changed"):
        export_image(built, tmp_path / "bad.qcow2", form="qcow2", progress=_quiet)
    assert not (tmp_path / "bad.qcow2").exists()


def test_an_existing_file_is_not_overwritten(raw: Path, tmp_path: Path) -> None:
    """The output might be somebody's only copy."""
    (tmp_path / "out.img").write_text("mine", encoding="ascii")
    with pytest.raises(ImageError, match="exists"):
        export_disk(raw, tmp_path / "out.img", form="raw", progress=_quiet)
    assert (tmp_path / "out.img").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("passwd", b"root:x:0:0\n", "no disk"),
        ("notes", b"x" * 1024, "no disk"),
        ("empty.vmdk", b"", "is none"),
        ("empty.img", b"", "no disk"),
        ("cut.img", bytes(1000), "no disk"),
        ("zeros.qcow2", bytes(4096), "is none"),
    ],
)
def test_what_is_no_disk_is_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    """qemu-img takes any file for a raw disk; an export does not, and makes nothing."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ImageError, match=says):
        export_disk(tmp_path / name, tmp_path / "out.img", form="raw", progress=_quiet)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_boot_sector_makes_a_disk(raw: Path, tmp_path: Path) -> None:
    """A raw disk of whatever name is one if it could boot."""
    with raw.open("r+b") as file:
        file.seek(510)
        file.write(b"\x55\xaa")
    disk = raw.rename(tmp_path / "disk")
    export_disk(disk, tmp_path / "out.qcow2", form="qcow2", progress=_quiet)
    _same(disk, tmp_path / "out.qcow2", "qcow2")


def test_names_with_several_dots_keep_their_stem(raw: Path, tmp_path: Path) -> None:
    """Only a disk's own suffix is one; the envelope is named as the stream."""
    assert default_output("debian-12.1", "raw") == Path("debian-12.1.img")
    assert default_output("/x/a.b.vmdk", "qcow2") == Path("a.b.qcow2")
    export_disk(raw, tmp_path / "v1.2", form="stream-vmdk", progress=_quiet)
    ovf = (tmp_path / "v1.2.ovf").read_text(encoding="utf-8")
    assert 'ovf:href="v1.2"' in ovf
    assert '<VirtualSystem ovf:id="v1.2">' in ovf
    with pytest.raises(ImageError, match=r"v1\.2\.ovf exists"):
        export_disk(raw, tmp_path / "v1.2.vmdk", form="stream-vmdk", progress=_quiet)
