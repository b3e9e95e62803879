"""Export: an image's disk in the format that a given hypervisor takes.

Each format says which targets it suits, and a target that would refuse a format is refused here,
where the remedy is one word, and not at the end of an upload.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from cua_gym.errors import ImageError
from cua_gym.image.contain import Runner
from cua_gym.image.disk import sha256_of
from cua_gym.image.store import Image
from cua_gym.image.stream import check_stream, write_stream
from cua_gym.image.vmdk import MAGIC, SECTOR, read_vmdk

__all__ = [
    "FORMATS", "TARGETS", "Exported", "default_output", "disk_info", "export_disk", "export_image"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Format:
    """A disk format, the suffix of its files and the hypervisors that take it."""

    suffix: str
    targets: tuple[str, ...]
    says: str


FORMATS = {
    "qcow2": Format("qcow2", ("qemu", "libvirt", "proxmox", "openstack"), "QEMU's own format"),
    "raw": Format("img", ("qemu", "libvirt", "gcp", "azure", "dd"), "a sparse copy of the disk"),
    "vmdk": Format(
        "vmdk", ("workstation", "fusion", "virtualbox", "qemu"), "monolithicSparse, one file"
    ),
    "stream-vmdk": Format(
        "vmdk", ("esxi", "vsphere", "virtualbox", "aws"), "streamOptimized, for OVF import"
    ),
}
_DISK_SUFFIXES = ("qcow2", "vdi", "vhdx", "vmdk")
TARGETS = sorted({target for item in FORMATS.values() for target in item.targets})


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export made."""

    path: Path
    format: str
    says: str
    targets: tuple[str, ...]
    virtual_bytes: int
    file_bytes: int
    sha256: str


def choose_format(wanted: str | None, target: str | None) -> str:
    """The format for a hypervisor, or the wanted one when the hypervisor takes it.

    Raises:
        ImageError: it does not; the message names one that it takes.
    """
    if target is None:
        return wanted or "qcow2"
    suited = [name for name, item in FORMATS.items() if target in item.targets]
    if not suited:
        raise ImageError(f"unknown target {target!r}; known are {', '.join(TARGETS)}")
    if wanted is None:
        return suited[0]
    if wanted not in suited:
        raise ImageError(
            f"{target} does not take {wanted} ({FORMATS[wanted].says}); "
            f"use --format {' or '.join(suited)}"
        )
    return wanted


def default_output(source: str, form: str) -> Path:
    """Where an export of an image's name or a disk file goes if nothing is said: here."""
    name = Path(source).name
    for suffix in (*_DISK_SUFFIXES, "raw", "img", "dd"):
        name = name.removesuffix(f".{suffix}")
    return Path(f"{name}.{FORMATS[form].suffix}")


def export_image(
    image: Image, output: Path, *, form: str, progress: Callable[[str], None]
) -> Exported:
    """Write an image's disk to ``output``.

    Raises:
        ImageError: the disk has changed since it was built or is open for writing, or the
            output exists.
    """
    progress("checking the image")
    found = sha256_of(image.vmdk)
    if found != image.manifest.disk_sha256:
        raise ImageError(
            f"{image.vmdk} has changed since it was built (SHA-256 {found[:12]}, the manifest "
            f"says {image.manifest.disk_sha256[:12]}); build the image again"
        )
    return export_disk(image.vmdk, output, form=form, progress=progress)


def export_disk(
    source: Path, output: Path, *, form: str, progress: Callable[[str], None]
) -> Exported:
    """Convert any disk, split VMDKs included, to one file in the format ``form``.

    A stream gets an ``.ovf`` beside it, of the same name.

    Raises:
        ImageError: it is no disk, a part is missing, the disk is open for writing, or the output
            exists.
    """
    envelope = output.with_name(output.name.removesuffix(".vmdk") + ".ovf")
    for path in (output, envelope) if form == "stream-vmdk" else (output,):
        if path.exists():
            raise ImageError(f"{path} exists; remove it or choose another --output")
    if not output.parent.is_dir():
        raise ImageError(f"the folder {output.parent} of --output does not exist")
    info = disk_info(source)
    _require_disk(source, info["format"])
    virtual_bytes = int(info["virtual-size"])
    _require_quiet(source, info)
    need = int(info.get("actual-size", 0)) * (2 if form == "stream-vmdk" else 1)
    free = shutil.disk_usage(output.parent).free
    if free < need:
        raise ImageError(
            f"the export needs about {need / 2**30:.1f} GiB in {output.parent}, "
            f"{free / 2**30:.1f} GiB are free"
        )
    item = FORMATS[form]
    progress(f"writing {item.says}")
    with tempfile.TemporaryDirectory(prefix=".export-", dir=output.parent) as folder:
        work = Path(folder)
        made = work / output.name
        runner = Runner(work / "log", lambda message: None)
        if form == "stream-vmdk":
            raw = work / "disk.raw"
            _convert(runner, source, info["format"], raw, "raw", [])
            write_stream(raw, made)
            progress("checking the stream")
            check_stream(made, virtual_bytes)
            envelope.write_text(
                _ovf(output.name, envelope.stem, virtual_bytes, made.stat().st_size),
                encoding="utf-8",
            )
        else:
            options = ["-o", "subformat=monolithicSparse"] if form == "vmdk" else []
            _convert(runner, source, info["format"], made, form, options)
        made.rename(output)
    return Exported(
        output, form, item.says, item.targets, virtual_bytes,
        output.stat().st_size, sha256_of(output),
    )  # fmt: skip


def disk_info(path: Path) -> dict[str, Any]:
    """What qemu-img says of a disk, also while a machine runs on it.

    Raises:
        ImageError: not a disk, or a part of it is missing.
    """
    if not path.is_file():
        raise ImageError(f"there is no disk {path}")
    with path.open("rb") as file:
        start = file.read(512)
    if start[:4] == MAGIC or b"Disk DescriptorFile" in start:
        read_vmdk(path).require_extents()
    # -U: a running machine holds a lock that would hide even harmless facts.
    result = subprocess.run(
        ["qemu-img", "info", "-U", "--output=json", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise ImageError(f"qemu-img cannot read {path}: {result.stderr.strip()}")
    info: dict[str, Any] = json.loads(result.stdout)
    return info


def _require_disk(source: Path, form: str) -> None:
    """Refuse what qemu-img calls raw, as it does with any file, and is no raw disk."""
    suffix = source.suffix.lower().removeprefix(".")
    if suffix in _DISK_SUFFIXES and form != suffix:
        raise ImageError(
            f"{source} is called a {suffix} and is none (qemu-img finds {form}); it is damaged, "
            "or one part of a disk whose descriptor must be named instead"
        )
    if form != "raw":
        return
    size = source.stat().st_size
    with source.open("rb") as file:
        bootable = file.read(SECTOR)[-2:] == b"\x55\xaa"
    if not size or size % SECTOR or not (bootable or suffix in ("raw", "img", "dd")):
        raise ImageError(
            f"{source} is no disk: {size} bytes in no known format, and no raw disk of whole "
            "sectors with a boot sector or a name that ends in .raw, .img or .dd"
        )


def _require_quiet(source: Path, info: dict[str, Any]) -> None:
    """Refuse a disk that some process may write while it is copied."""
    result = subprocess.run(
        ["qemu-img", "info", "-f", info["format"], str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "lock" in result.stderr:
        raise ImageError(
            f"{source} is open for writing by a running machine, so a copy would be torn; "
            "shut that machine down first, or export the image that it was started from"
        )


def _convert(
    runner: Runner, source: Path, source_format: str, target: Path, form: str, options: list[str]
) -> None:
    runner.run(
        ["qemu-img", "convert", "-f", source_format, "-O", form, *options,
         str(source), str(target)]
    )  # fmt: skip


_QUOTE = {'"': "&quot;"}

_OVF = """<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1"
          xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
          xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
          xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData">
  <References>
    <File ovf:id="file1" ovf:href="{href}" ovf:size="{file_bytes}"/>
  </References>
  <DiskSection>
    <Info>Disks</Info>
    <Disk ovf:diskId="disk1" ovf:fileRef="file1" ovf:capacity="{virtual_bytes}"
          ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/>
  </DiskSection>
  <VirtualSystem ovf:id="{name}">
    <Info>A computer</Info>
    <OperatingSystemSection ovf:id="96">
      <Info>Debian GNU/Linux, 64 bits</Info>
    </OperatingSystemSection>
    <VirtualHardwareSection>
      <Info>Hardware</Info>
      <System>
        <vssd:ElementName>Hardware</vssd:ElementName>
        <vssd:InstanceID>0</vssd:InstanceID>
        <vssd:VirtualSystemType>vmx-14</vssd:VirtualSystemType>
      </System>
      <Item>
        <rasd:ElementName>2 CPUs</rasd:ElementName>
        <rasd:InstanceID>1</rasd:InstanceID>
        <rasd:ResourceType>3</rasd:ResourceType>
        <rasd:VirtualQuantity>2</rasd:VirtualQuantity>
      </Item>
      <Item>
        <rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits>
        <rasd:ElementName>2048 MB</rasd:ElementName>
        <rasd:InstanceID>2</rasd:InstanceID>
        <rasd:ResourceType>4</rasd:ResourceType>
        <rasd:VirtualQuantity>2048</rasd:VirtualQuantity>
      </Item>
      <Item>
        <rasd:ElementName>SATA controller</rasd:ElementName>
        <rasd:InstanceID>3</rasd:InstanceID>
        <rasd:ResourceSubType>vmware.sata.ahci</rasd:ResourceSubType>
        <rasd:ResourceType>20</rasd:ResourceType>
      </Item>
      <Item>
        <rasd:AddressOnParent>0</rasd:AddressOnParent>
        <rasd:ElementName>Disk</rasd:ElementName>
        <rasd:HostResource>ovf:/disk/disk1</rasd:HostResource>
        <rasd:InstanceID>4</rasd:InstanceID>
        <rasd:Parent>3</rasd:Parent>
        <rasd:ResourceType>17</rasd:ResourceType>
      </Item>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
"""


def _ovf(href: str, name: str, virtual_bytes: int, file_bytes: int) -> str:
    """The envelope that an importer wants with a stream; its sizes are those of the file."""
    return _OVF.format(
        href=escape(href, _QUOTE),
        name=escape(name, _QUOTE),
        virtual_bytes=virtual_bytes,
        file_bytes=file_bytes,
    )
