"""The manifest: what is known about a built image, in one JSON file beside its disk."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cua_gym.errors import ImageError

__all__ = ["Accounts", "Hypervisor", "Manifest"]


@dataclass(frozen=True, slots=True)
class Accounts:
    """The public part of the guest's accounts.

    Attributes:
        desktop: ``name``, ``uid`` and ``home`` of the account that the desktop belongs to.
        control: ``name`` and ``public_key`` of the account that the host controls it by.
    """

    desktop: dict[str, Any]
    control: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """What the image expects of the machine that runs it."""

    machine: str
    memory_mb: int
    cpus: int
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Facts about one image.

    Attributes:
        recipe_hash: SHA-256 of the recipe that it was built from.
        created: ISO time, UTC.
        disk_sha256: of ``disk.vmdk``, the image itself.
        qcow2_sha256: of the copy that overlays stand on.
        virtual_bytes: size of the disk that the guest sees.
        minimum_free_bytes: room on the root file system that the image promises.
        packages: name -> version.
        ssh_host_keys: public keys, as in ``ssh_host_*_key.pub``.
        screen_modes: (width, height); the first is the default.
        layout: keyboard layout, an XKB name.
    """

    name: str
    title: str
    recipe_hash: str
    created: str
    disk_sha256: str
    qcow2_sha256: str
    virtual_bytes: int
    minimum_free_bytes: int
    packages: dict[str, str]
    guest_os: str
    accounts: Accounts
    ssh_host_keys: tuple[str, ...]
    screen_modes: tuple[tuple[int, int], ...]
    layout: str
    hypervisor: Hypervisor

    def write(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read one that `write` made.

        Raises:
            ImageError: absent, or not a manifest.
        """
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            hypervisor = dict(data.pop("hypervisor"))
            return cls(
                accounts=Accounts(**data.pop("accounts")),
                hypervisor=Hypervisor(**{**hypervisor, "devices": tuple(hypervisor["devices"])}),
                ssh_host_keys=tuple(data.pop("ssh_host_keys")),
                screen_modes=tuple((int(w), int(h)) for w, h in data.pop("screen_modes")),
                **data,
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ImageError(
                f"{path} is not a readable manifest ({error!r}); remove its folder and build again"
            ) from error
