"""A small recipe, and a builder that needs a second instead of minutes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cua_gym.image.disk import sha256_of
from cua_gym.image.manifest import Accounts, Hypervisor, Manifest
from cua_gym.image.recipe import Recipe
from cua_gym.image.store import ImageStore

RECIPE = """
name = "tiny"
title = "A test"
guest_os = "debian-12"
builder = "mmdebstrap"
suite = "bookworm"
layers = ["base"]

[disk]
virtual_gib = 4
minimum_free_gib = 1

[screen]
modes = [[1280, 800]]

[accounts.desktop]
name = "user"
uid = 1000
home = "/home/user"

[accounts.control]
name = "root"

[hypervisor]
machine = "pc-q35-7.2"
memory_mb = 512
cpus = 1
devices = ["VGA"]

[[packages]]
reason = "a test"
names = ["systemd-sysv"]
"""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of recipes with one in it, ``tiny``, on one layer."""
    root = tmp_path / "images"
    files = {
        "tiny/recipe.toml": RECIPE,
        "tiny/overlay/etc/tiny": "tiny\n",
        "tiny/hooks/50-tiny.sh": "#!/bin/sh\ntrue\n",
        "shared/base/overlay/usr/lib/tiny/run": "#!/bin/sh\ntrue\n",
        "shared/base/hooks/10-base.sh": "#!/bin/sh\ntrue\n",
        "shared/guestd/daemon.py": "pass\n",
        "shared/guestd/cua-guestd.service": "[Service]\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def make_image(recipe: Recipe, work: Path, log: Path, progress: Callable[[str], None]) -> Path:
    """A builder whose disk is small and holds nothing."""
    progress("making a toy")
    out = work / "out"
    out.mkdir()
    (out / "control_key").write_text("not a key", encoding="ascii")
    vmdk = out / "disk.vmdk"
    options = ["-q", "-f", "vmdk", "-o", "subformat=monolithicSparse"]
    subprocess.run(["qemu-img", "create", *options, str(vmdk), "64M"], check=True)
    digest = sha256_of(vmdk)
    qcow2 = out / f"disk-{digest[:12]}.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(qcow2), "64M"], check=True)
    manifest = Manifest(
        name=recipe.name,
        title=recipe.spec.title,
        recipe_hash=recipe.hash,
        created="2026-01-02T03:04:05+00:00",
        disk_sha256=digest,
        qcow2_sha256=sha256_of(qcow2),
        virtual_bytes=64 << 20,
        minimum_free_bytes=1 << 30,
        packages={"systemd-sysv": "252"},
        guest_os="debian-12",
        accounts=Accounts({"name": "user", "uid": 1000, "home": "/home/user"}, {"name": "root"}),
        ssh_host_keys=("ssh-ed25519 AAAA",),
        screen_modes=((1280, 800),),
        layout="us",
        hypervisor=Hypervisor("pc-q35-7.2", 512, 1, ("VGA",)),
    )
    manifest.write(out / "manifest.json")
    assert replace(manifest) == Manifest.read(out / "manifest.json")
    return out


@pytest.fixture
def store(tmp_path: Path, images: Path) -> ImageStore:
    """An empty store for the ``tiny`` recipe."""
    return ImageStore(tmp_path / "cache", search=[images], builder=make_image)
