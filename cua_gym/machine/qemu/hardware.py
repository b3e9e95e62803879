"""The computer as its guest sees it: everything that must be equal for a state to load.

Responsible for the pinned machine type, the device list and their digest. What stands behind the
devices on the host (descriptors, files) is `process.py`'s.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["AGENT_PORT", "CONTROL_PORT", "Hardware"]

AGENT_PORT = "org.qemu.guest_agent.0"
CONTROL_PORT = "org.cua_gym.control"


@dataclass(frozen=True, slots=True)
class Hardware:
    """One guest-visible computer.

    Attributes:
        machine: versioned machine type, such as ``pc-q35-7.2``.
        accelerator: ``tcg`` or ``kvm``; a state of one does not load under the other.
        cpu: QEMU CPU model with its flags.
        host_cpu: the host's CPU model where the guest sees it (KVM), else empty.
        screen: (width, height) that the graphics card offers first.
        qemu: QEMU's full version; device state formats are only promised within one.
    """

    machine: str
    accelerator: str
    cpu: str
    cpus: int
    memory_mb: int
    screen: tuple[int, int]
    qemu: str
    host_cpu: str = ""

    def devices(self) -> list[list[str]]:
        """The device list, as QEMU options; the nodes and chardevs they name are `process.py`'s.

        Slots are fixed by number, so that an added device never moves another one.
        """
        width, height = self.screen
        values = [
            f"VGA,id=video0,addr=0x2,xres={width},yres={height},edid=on",
            # A full host disk stops the guest at once instead of failing its writes.
            "virtio-blk-pci,id=disk0,addr=0x3,drive=disk,werror=stop,rerror=stop,bootindex=1",
            "virtio-net-pci,id=net0,addr=0x4,netdev=net,romfile=",
            "virtio-serial-pci,id=serial0,addr=0x5,max_ports=4",
            f"virtserialport,bus=serial0.0,nr=1,chardev=agent,name={AGENT_PORT}",
            f"virtserialport,bus=serial0.0,nr=2,chardev=control,name={CONTROL_PORT}",
            "virtio-rng-pci,id=rng0,addr=0x6,rng=entropy",
            "virtio-tablet-pci,id=tablet0,addr=0x7",
            "virtio-keyboard-pci,id=keyboard0,addr=0x8",
            # A restored guest learns that it is a copy and reseeds its random pool.
            "vmgenid,id=genid0,guid=auto",
        ]
        return [["-device", value] for value in values]

    def arguments(self) -> list[str]:
        """Command line of machine, processor, clock and devices; the memory is ``ram0``."""
        return [
            "-machine", f"{self.machine},memory-backend=ram0,usb=off,vmport=off,mem-merge=off,"
            "dump-guest-core=off",
            "-cpu", self.cpu,
            "-smp", f"cpus={self.cpus}",
            "-m", f"{self.memory_mb}M",
            "-rtc", "base=utc,clock=host",
            "-boot", "menu=off,strict=on",
            *(word for device in self.devices() for word in device),
        ]  # fmt: skip

    @property
    def digest(self) -> str:
        """Hash of the whole guest-visible command line and of QEMU's version."""
        text = json.dumps([self.arguments(), self.qemu, self.accelerator, self.host_cpu])
        return hashlib.sha256(text.encode()).hexdigest()

    def differences(self, saved: dict[str, Any]) -> list[str]:
        """Where this computer differs from a saved `as_dict`, in words; empty if a state fits."""
        mine = self.as_dict()
        return [
            f"{name} was {saved.get(name)!r} and is {value!r}"
            for name, value in mine.items()
            if saved.get(name) != value
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, with the digest."""
        return {**asdict(self), "screen": list(self.screen), "digest": self.digest}
