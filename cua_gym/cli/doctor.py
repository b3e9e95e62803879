"""`cua-gym doctor`: what this machine can do, and what to do about what it cannot.

Every answer comes from trying (a guest is started with KVM, a sandbox is entered), not from
looking whether a file exists.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from cua_gym.cli.progress import printable

__all__ = ["Finding", "doctor", "findings"]

IMAGE_GIB = 8
RUN_GIB = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One question and its answer.

    Attributes:
        needed: the main job (a task on the default image) does not work without it.
        remedy: what to do about a "no"; empty for a "yes".
    """

    name: str
    ok: bool
    needed: bool
    detail: str
    remedy: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Say what this machine can do, and what to do about what it cannot.

    Exit codes: 0 what the main job needs is here, 1 it is not.
    """
    found = []
    for finding in findings():
        found.append(finding)
        if not as_json:
            click.echo(printable(_line(finding)))
    well = all(finding.ok for finding in found if finding.needed)
    if as_json:
        click.echo(json.dumps({"ok": well, "findings": [asdict(f) for f in found]}))
    else:
        click.echo("ready" if well else "not ready: see the lines marked NO")
    ctx.exit(0 if well else 1)


def findings() -> Iterator[Finding]:
    """Every answer, in the order in which a person would repair things."""
    yield from _qemu()
    yield from _image_tools()
    yield _sandbox()
    yield _network()
    yield _light_desktops()
    yield _video()
    yield _ffmpeg()
    yield _libvirt()
    yield _memory()
    yield from _cache()


def _line(finding: Finding) -> str:
    answer = "yes" if finding.ok else "NO" if finding.needed else "no"
    remedy = f"\n      -> {finding.remedy}" if finding.remedy else ""
    return f"{answer:>4}  {finding.name}: {finding.detail}{remedy}"


def _qemu() -> Iterator[Finding]:
    from cua_gym.cache import cache_root
    from cua_gym.errors import MachineError
    from cua_gym.machine.qemu.accelerator import probe

    try:
        host = probe(cache_root())
    except MachineError as error:
        yield Finding("QEMU", False, True, str(error), "run scripts/setup")
        return
    new = host.number >= (7, 2)
    remedy = "" if new else "install QEMU 7.2 or newer"
    yield Finding("QEMU", new, True, host.version, remedy)
    yield Finding(
        "screen over D-Bus",
        host.dbus_display,
        False,
        "frames are pushed" if host.dbus_display else "frames are fetched one by one, 20 ms each",
        "" if host.dbus_display else "apt-get install qemu-system-modules-opengl (Debian 13)",
    )
    yield Finding(
        "KVM",
        not host.no_kvm,
        False,
        host.no_kvm or "a guest ran with it",
        "works without, by emulation; for speed use a host whose /dev/kvm works for you"
        if host.no_kvm
        else "",
    )


def _image_tools() -> Iterator[Finding]:
    from cua_gym.image.build import HOST_PACKAGES, missing_host_tools

    missing = missing_host_tools()
    yield Finding(
        "image tools",
        not missing,
        True,
        f"missing: {', '.join(missing.values())}" if missing else ", ".join(HOST_PACKAGES),
        f"apt-get install {' '.join(missing)}" if missing else "",
    )


def _sandbox() -> Finding:
    why = _tried("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true")
    remedy = "apt-get install bubblewrap, and allow user namespaces to this account"
    return Finding("bwrap", not why, False, why or "graders get no network", remedy if why else "")


def _network() -> Finding:
    from cua_gym.errors import MachineError
    from cua_gym.machine.network.gateway import Gateway

    try:
        Gateway(("example.org",)).close()
    except MachineError as error:
        return Finding("networks", False, False, str(error), "only tasks with a network need it")
    open_too = shutil.which("slirp4netns") is not None
    remedy = "" if open_too else "for open networks: apt-get install slirp4netns"
    said = "named hosts, open" if open_too else "named hosts"
    return Finding("networks", open_too, False, said, remedy)


def _light_desktops() -> Finding:
    from cua_gym.machine.x11.sandbox import unusable

    why = unusable()
    remedy = "run scripts/setup; only for tasks that allow the backend x11"
    return Finding(
        "light desktops", not why, False, why or "bwrap, Xvfb, overlays", remedy if why else ""
    )


def _video() -> Finding:
    try:
        import av

        av.Codec("libx264", "w")
    except (ImportError, ValueError) as error:
        return Finding("PyAV", False, True, f"{error}", "scripts/setup installs it into .venv")
    return Finding("PyAV", True, True, f"{av.__version__} with libx264")


def _ffmpeg() -> Finding:
    path = shutil.which("ffmpeg")
    remedy = "only for looking into recordings by hand: apt-get install ffmpeg"
    return Finding("ffmpeg", path is not None, False, path or "not here", "" if path else remedy)


def _libvirt() -> Finding:
    path = shutil.which("virsh")
    remedy = "not used by the default machine: apt-get install libvirt-clients"
    return Finding("libvirt", path is not None, False, path or "not here", "" if path else remedy)


def _memory() -> Finding:
    from cua_gym.machine.admission import HOST_MB, VARIABLE, available_mb
    from cua_gym.machine.base import MachineSpec
    from cua_gym.machine.qemu.process import booting_mb

    free_mb = available_mb()
    wanted_mb = booting_mb(MachineSpec().memory_mb) + HOST_MB
    enough = free_mb >= wanted_mb
    return Finding(
        "memory",
        enough,
        True,
        f"{free_mb} MB free; the first machine of an image takes {wanted_mb}",
        "" if enough else f"end something large, use a larger machine, or set {VARIABLE}",
    )


def _cache() -> Iterator[Finding]:
    from cua_gym.cache import cache_root
    from cua_gym.image.store import ImageStore

    root, store = cache_root(), ImageStore()
    images = [
        image.folder.name + ("" if store.is_current(image) else " (of an older recipe)")
        for image in store.list()
    ]
    above = next(path for path in (root, *root.parents) if path.exists())
    free_gib = shutil.disk_usage(above).free / 2**30
    wanted = RUN_GIB if images else IMAGE_GIB
    enough = free_gib >= wanted
    yield Finding(
        "disk",
        enough,
        True,
        f"{free_gib:.1f} GiB free at {root}, {wanted} wanted",
        "" if enough else "make room, run cua-gym clean, or set XDG_CACHE_HOME to a larger disk",
    )
    yield Finding("cache", True, False, f"{_size(root) / 2**30:.1f} GiB in {root}")
    yield Finding(
        "images",
        bool(images),
        True,
        ", ".join(images) or "none is built",
        "" if images else "make image",
    )


def _tried(*command: str) -> str:
    """Why the command does not work here; empty when it does."""
    if shutil.which(command[0]) is None:
        return "not installed"
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()[:200] or f"exit {done.returncode}"


def _size(root: Path) -> int:
    """Bytes on disk below ``root``; files with several names count once."""
    seen: dict[tuple[int, int], int] = {}
    for path in root.rglob("*"):
        try:
            status = path.lstat()
        except OSError:
            continue  # another process removed it just now
        seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(seen.values())
