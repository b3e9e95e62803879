"""Which hosts a machine may reach, as data."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

__all__ = ["PORTS", "Network", "Policy", "reachable"]

Network = Literal["none", "open"] | tuple[str, ...]
"""``"none"``; ``"open"``; or hosts: ``"example.org"``, ``"*.example.org"``, ``"example.org:8080"``.
"""

PORTS = (80, 443)
"""TCP ports of a host that names none."""

_HOST = re.compile(
    r"(?P<any>\*\.)?(?P<name>(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*"
    r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)(?::(?P<port>\d{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is allowed.

    Attributes:
        ports: by host name in lower case, such as ``example.org``, or ``*.example.org`` for all
            names below it; None is every host.
    """

    ports: dict[str, tuple[int, ...]] | None

    @classmethod
    def of(cls, network: Network) -> Self:
        """The policy of a machine that has a network at all.

        Raises:
            ValueError: an entry is no host name.
        """
        if network == "open":
            return cls(None)
        ports: dict[str, tuple[int, ...]] = {}
        for entry in network:
            host, port = _parsed(entry)
            ports[host] = (*ports.get(host, ()), *([port] if port else PORTS))
        return cls(ports)

    @property
    def names(self) -> Sequence[str]:
        """The hosts that are named in full."""
        return sorted(host for host in self.ports or () if not host.startswith("*."))

    @property
    def listened(self) -> Sequence[int]:
        """Every port that some host has."""
        return sorted({port for ports in (self.ports or {}).values() for port in ports})

    def allows(self, name: str, port: int | None = None) -> bool:
        """Whether a host may be reached (at a port), or be asked for by name."""
        if self.ports is None:
            return True
        name = name.lower().rstrip(".")
        parents = name.split(".")[1:]
        above = [f"*.{'.'.join(parents[n:])}" for n in range(len(parents))]
        found = [self.ports[host] for host in (name, *above) if host in self.ports]
        return bool(found) and (port is None or any(port in ports for ports in found))


def reachable(address: str) -> bool:
    """Whether an address may lie behind a name: not this host's loopback, no link-local service.

    Source of the kinds: the registries of RFC 6890. An address that carries an IPv4 one inside is
    judged by that.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip.sixtofour or ip
    return not (
        ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast or ip.is_reserved
    )


def _parsed(entry: str) -> tuple[str, int | None]:
    try:
        plain = entry.encode("idna").decode().lower() if not entry.isascii() else entry.lower()
    except UnicodeError:
        plain = ""
    match = _HOST.fullmatch(plain)
    if match is None or (match["any"] and "." not in match["name"]):
        raise ValueError(
            f"{entry!r} is no host; write a name as 'example.org', '*.example.org' or "
            "'example.org:8080'"
        )
    port = match["port"]
    if port is not None and not 0 < int(port) < 65536:
        raise ValueError(f"{entry!r} has no port from 1 to 65535")
    return (match["any"] or "") + match["name"], int(port) if port else None
