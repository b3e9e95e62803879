"""Where packages come from: the host's own APT configuration, turned to the recipe's suite.

No recipe names a mirror. A host that installs its own packages can build an image, whatever
mirror, snapshot or proxy it was told to use.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cua_gym.errors import ImageError

__all__ = ["Source", "host_apt_options", "host_sources", "sources_for"]

MIRROR_VARIABLE = "CUA_GYM_DEBIAN_MIRROR"
# Settings of the host that decide whether its mirror can be reached and believed.
_CARRIED = re.compile(
    r"^Acquire::(http|https|ftp)::|^Acquire::(Check-Valid-Until|Check-Date|Retries|"
    r"AllowInsecureRepositories|AllowWeakRepositories|ForceIPv4|ForceIPv6|"
    r"ForceHash|By-Hash)\b",
    re.IGNORECASE,
)
# CODENAME, CODENAME-updates and CODENAME-security; backports and the like are not Debian 12.
_POCKETS = ("", "-updates", "-security")


@dataclass(frozen=True, slots=True)
class Source:
    """One package source of the host, without its components."""

    uri: str
    suite: str
    signed_by: str | None


def host_sources(etc_apt: Path = Path("/etc/apt")) -> list[Source]:
    """All enabled binary package sources of this machine, in both of APT's formats."""
    found: list[Source] = []
    listed = sorted((etc_apt / "sources.list.d").glob("*.list"))
    for file in [etc_apt / "sources.list", *listed]:
        if file.is_file():
            found += _one_line(file.read_text(encoding="utf-8").splitlines())
    for file in sorted((etc_apt / "sources.list.d").glob("*.sources")):
        found += _deb822(file.read_text(encoding="utf-8"))
    return found


def sources_for(
    suite: str,
    components: Iterable[str],
    host: Iterable[Source],
    host_codename: str,
    environ: Mapping[str, str] = os.environ,
) -> list[str]:
    """APT lines for ``suite``, from the host's sources for its own release.

    Raises:
        ImageError: the host has no Debian sources to derive them from.
    """
    names = " ".join(components)
    mirror = environ.get(MIRROR_VARIABLE)
    if mirror:
        return [f"deb {mirror} {suite} {names}"]
    lines: list[str] = []
    for source in host:
        pocket = source.suite.removeprefix(host_codename)
        if not source.suite.startswith(host_codename) or pocket not in _POCKETS:
            continue
        option = f"[signed-by={source.signed_by}] " if source.signed_by else ""
        line = f"deb {option}{source.uri} {suite}{pocket} {names}"
        if line not in lines:
            lines.append(line)
    if not any(f" {suite} {names}" in line for line in lines):
        raise ImageError(
            f"this machine's APT sources have no {host_codename!r} archive that could serve "
            f"{suite!r}; set {MIRROR_VARIABLE} to the address of a Debian mirror"
        )
    return lines


def host_codename(os_release: Path = Path("/etc/os-release")) -> str:
    """The release this machine runs, such as ``bookworm``."""
    for line in os_release.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return "".join(shlex.split(value))
    return ""


def host_apt_options() -> list[str]:
    """The host's proxy, freshness and trust settings, as lines for APT's configuration."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
    return carried_options(dump.stdout.splitlines())


def carried_options(dump: Iterable[str]) -> list[str]:
    """Those lines of ``apt-config dump`` that a build must share; empty ones are only headings."""
    return [line for line in dump if _CARRIED.match(line) and not line.endswith('"";')]


def _one_line(lines: Iterable[str]) -> list[Source]:
    found = []
    for line in lines:
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)", line)
        if match and not match[2].startswith("cdrom:"):
            signed = re.search(r"signed-by=(\S+)", match[1] or "")
            found.append(Source(match[2], match[3], signed[1] if signed else None))
    return found


def _deb822(text: str) -> list[Source]:
    found = []
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace():
                fields[key] = f"{fields.get(key, '')}\n{line.strip()}"
            elif ":" in line:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if fields.get("enabled", "yes").lower() in {"no", "false", "0"}:
            continue
        if "deb" not in fields.get("types", "").split():
            continue
        signed = fields.get("signed-by", "")
        # A key given in full inside the stanza cannot travel in a one-line source.
        signed_by = signed if signed.startswith("/") else None
        found += [
            Source(uri, suite, signed_by)
            for uri in fields.get("uris", "").split()
            for suite in fields.get("suites", "").split()
        ]
    return found
