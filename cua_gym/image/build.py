"""Building: packages to a root file system to a disk, in a folder nobody sees until it is done.

`build` leaves a complete image in a folder; where that folder lies and when it becomes visible is
the store's business (`cua_gym.image.store`).
"""

from __future__ import annotations

import io
import os
import pwd
import shlex
import shutil
import tarfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cua_gym.errors import ImageError
from cua_gym.image.contain import Runner
from cua_gym.image.disk import convert, make_raw_disk, sha256_of
from cua_gym.image.manifest import Accounts, Hypervisor, Manifest
from cua_gym.image.recipe import Recipe
from cua_gym.image.sources import host_apt_options, host_codename, host_sources, sources_for
from cua_gym.image.workshop import remove_tree
from cua_gym.machine.contain import acts_as_root, tool_path

__all__ = ["HOST_PACKAGES", "build", "missing_host_tools", "steps_archive"]

# What a Debian machine needs to build any recipe, and the command that shows it is there.
HOST_PACKAGES = {
    "mmdebstrap": "mmdebstrap",
    "fakeroot": "fakeroot",
    "e2fsprogs": "mke2fs",
    "qemu-utils": "qemu-img",
    "util-linux": "unshare",
    "uidmap": "newuidmap",
    "debian-archive-keyring": "",
}
# Measured peak of debian-12: root file system, its archive and the package files together, 5 GB;
# afterwards the disk in three formats, 6 GB.
NEEDED_BYTES = 8 * 2**30

_STEPS = "tmp/cua-steps"  # inside the guest's root, gone with the rest of /tmp at the end

# What the host takes out of the finished root: for the boot sectors and for the manifest.
_PARTS = (
    "boot/grub/boot.img",
    "boot/grub/core.img",
    "etc/ssh/ssh_host_ed25519_key.pub",
    "var/lib/dpkg/status",
)


def missing_host_tools() -> dict[str, str]:
    """Packages whose command is not on this machine: {package: command}."""
    return {
        package: command
        for package, command in HOST_PACKAGES.items()
        if command and shutil.which(command, path=tool_path()) is None
    }


def build(recipe: Recipe, work: Path, log: Path, progress: Callable[[str], None]) -> Path:
    """Build ``recipe`` and return the folder, inside ``work``, that holds the finished image.

    Args:
        work: an empty private folder on the file system that will hold the image.
        log: file that receives everything the tools print.
        progress: called with one short line per step.

    Raises:
        ImageError: tools, space or packages are missing, or a step failed.
    """
    _check_host(work)
    out = work / "out"
    out.mkdir(mode=0o755)
    runner = Runner(log, progress)
    public_key = _make_control_key(out / "control_key")

    progress("installing packages")
    rootfs = _make_rootfs(recipe, work, public_key, runner, progress)

    progress("making the disk")
    raw = work / "disk.raw"
    tree = work / "tree"
    tree.mkdir()
    parts = work / "parts"
    virtual_bytes = recipe.spec.disk.virtual_gib * 2**30
    # No device nodes: a user namespace may not make them, and devtmpfs is mounted over them.
    unpack = ["tar", "-x", "-p", "--numeric-owner", "--exclude=./dev/*"]
    unpack += ["-C", str(tree), "-f", str(rootfs)]

    def with_owners(command: Sequence[str]) -> None:
        # One shell, because fakeroot's idea of who owns what ends with its process.
        runner.run(_as_root(["sh", "-ec", f"{shlex.join(unpack)}; {shlex.join(command)}"]))

    make_raw_disk(
        tree,
        raw,
        virtual_bytes,
        (parts / "boot.img").read_bytes(),
        (parts / "core.img").read_bytes(),
        with_owners,
    )
    rootfs.unlink()
    remove_tree(tree)

    progress("converting the disk")
    vmdk = out / "disk.vmdk"
    convert(raw, "raw", vmdk, "vmdk", runner)
    disk_sha256 = sha256_of(vmdk)
    qcow2 = out / f"disk-{disk_sha256[:12]}.qcow2"
    convert(raw, "raw", qcow2, "qcow2", runner)
    raw.unlink()
    for disk in (vmdk, qcow2):
        disk.chmod(0o444)

    manifest = Manifest(
        name=recipe.name,
        title=recipe.spec.title,
        recipe_hash=recipe.hash,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        disk_sha256=disk_sha256,
        qcow2_sha256=sha256_of(qcow2),
        virtual_bytes=virtual_bytes,
        minimum_free_bytes=recipe.spec.disk.minimum_free_gib * 2**30,
        packages=_packages(parts / "status"),
        guest_os=recipe.spec.guest_os,
        accounts=Accounts(
            desktop=recipe.spec.accounts.desktop.model_dump(),
            control={"name": recipe.spec.accounts.control.name, "public_key": public_key},
        ),
        ssh_host_keys=((parts / "ssh_host_ed25519_key.pub").read_text(encoding="ascii").strip(),),
        screen_modes=recipe.spec.screen.modes,
        layout=recipe.spec.layout,
        hypervisor=Hypervisor(**recipe.spec.hypervisor.model_dump()),
    )
    manifest.write(out / "manifest.json")
    return out


def _check_host(work: Path) -> None:
    missing = missing_host_tools()
    if missing:
        raise ImageError(
            f"building needs {', '.join(missing.values())}, not on this machine; "
            f"install with: apt-get install --no-install-recommends {' '.join(missing)}"
        )
    free = shutil.disk_usage(work).free
    if free < NEEDED_BYTES:
        raise ImageError(
            f"building needs {NEEDED_BYTES / 2**30:.0f} GiB at {work.parent}, "
            f"{free / 2**30:.1f} GiB are free; free some, run `cua-gym image rm` on old images, "
            "or set XDG_CACHE_HOME to a larger disk"
        )


def _as_root(command: Sequence[str]) -> list[str]:
    """``command`` as root, or as one who sees himself as root."""
    return list(command) if acts_as_root() else ["fakeroot", "--", *command]


def _make_control_key(path: Path) -> str:
    """A new key pair: the private half in ``path`` (0600), the public half returned."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(private)
    return f"{public.decode()} cua-gym-control"


def _make_rootfs(
    recipe: Recipe,
    work: Path,
    public_key: str,
    runner: Runner,
    progress: Callable[[str], None],
) -> Path:
    spec = recipe.spec
    sources = work / "sources.list"
    lines = sources_for(spec.suite, spec.components, host_sources(), host_codename())
    sources.write_text("\n".join(lines) + "\n", encoding="utf-8")
    steps = work / "steps.tar"
    steps.write_bytes(steps_archive(recipe, public_key))
    parts = work / "parts"
    parts.mkdir()
    temporary = work / "tmp"
    temporary.mkdir()
    rootfs = work / "rootfs.tar"

    command = ["mmdebstrap", "--variant=apt", "--format=tar", "--architectures=amd64"]
    command.append(f"--mode={_mmdebstrap_mode()}")
    command.append(f"--include={','.join(spec.package_names)}")
    command += [f"--dpkgopt=path-exclude={path}" for path in spec.unpack.exclude]
    command += [f"--dpkgopt=path-include={path}" for path in spec.unpack.include]
    command.append('--aptopt=APT::Install-Recommends "false"')
    command += [f"--aptopt={option.rstrip(';')}" for option in host_apt_options()]
    # The last step empties the guest's /tmp, where mmdebstrap keeps the only thing that tells its
    # cleaning apt-get whose package lists to remove: without it they would be the host's.
    kept = shlex.quote(str(work / "apt.conf"))
    hooks = [
        f"tar-in {shlex.quote(str(steps))} /",
        f'cp "$MMDEBSTRAP_APT_CONFIG" {kept}',
        f'chroot "$1" sh /{_STEPS}/run',
        f'cp {kept} "$MMDEBSTRAP_APT_CONFIG"',
        *(f"download /{path} {shlex.quote(str(parts / Path(path).name))}" for path in _PARTS),
    ]
    command += [f"--customize-hook={hook}" for hook in hooks]
    command += [spec.suite, str(rootfs), str(sources)]

    def show(line: str) -> str | None:
        if line.startswith("I: ") and line.endswith("..."):
            return line[3:-3]
        return line if line.startswith("step ") else None

    # INITRD=No: kernel packages make no initramfs of their own; the last hook makes the only one.
    runner.run(
        command,
        env={"TMPDIR": str(temporary), "INITRD": "No"},
        show=show,
    )
    return rootfs


def _mmdebstrap_mode() -> Literal["root", "fakechroot"]:
    """How this user can make a root file system.

    Raises:
        ImageError: in no way; says what would have to be allowed.
    """
    if acts_as_root():
        return "root"
    if shutil.which("fakechroot"):
        return "fakechroot"
    user = pwd.getpwuid(os.geteuid()).pw_name
    raise ImageError(
        f"{user} cannot build here: user namespaces are off, or {user} has no ids in /etc/subuid "
        f"and /etc/subgid. As root allow the first or run `usermod --add-subuids 100000-165535 "
        f"--add-subgids 100000-165535 {user}`; or install fakechroot; or build as root"
    )


def steps_archive(recipe: Recipe, public_key: str) -> bytes:
    """Overlay files and hooks as a tar, owned by root, whatever the checkout's modes are."""
    spec = recipe.spec
    settings = {
        "CUA_USER": spec.accounts.desktop.name,
        "CUA_UID": str(spec.accounts.desktop.uid),
        "CUA_HOME": spec.accounts.desktop.home,
        "CUA_CONTROL": spec.accounts.control.name,
        "CUA_CONTROL_KEY": public_key,
        "CUA_LAYOUT": spec.layout,
        "CUA_CMDLINE": spec.boot.cmdline.strip(),
    }
    script = ["set -eu", *(f"export {key}={shlex.quote(value)}" for key, value in settings.items())]
    for hook in recipe.hooks():
        script += [f"echo 'step {hook.stem}'", f"sh /{_STEPS}/{hook.name}"]
    content = {target: source.read_bytes() for target, source in recipe.overlay_files().items()}
    content |= {f"{_STEPS}/{hook.name}": hook.read_bytes() for hook in recipe.hooks()}
    content[f"{_STEPS}/run"] = ("\n".join(script) + "\n").encode()

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(content):
            entry = tarfile.TarInfo(name)
            entry.size = len(content[name])
            # By content, so that a checkout or wheel that lost its modes builds the same image.
            entry.mode = 0o755 if content[name].startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(content[name]))
    return buffer.getvalue()


def _packages(status: Path) -> dict[str, str]:
    """Installed packages and versions from dpkg's status file."""
    packages: dict[str, str] = {}
    for stanza in status.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[0] != " "
        )
        if fields.get("Status", "").endswith(" installed"):
            packages[fields["Package"]] = fields["Version"]
    return dict(sorted(packages.items()))
