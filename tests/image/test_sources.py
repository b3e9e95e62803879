"""Packages come from where the host gets its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.errors import ImageError
from cua_gym.image.sources import Source, carried_options, host_sources, sources_for

DEB822 = """\
Types: deb deb-src
# a comment
URIs: http://mirror.example/debian
Suites: trixie trixie-updates trixie-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.pgp

Types: deb
URIs: http://mirror.example/security
Suites: trixie-security
Components: main

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: trixie

Types: deb-src
URIs: http://source.example/debian
Suites: trixie
"""


def _apt(tmp_path: Path, **files: str) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    for name, text in files.items():
        (tmp_path / name.replace("__", "/").replace("_", ".")).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_newer_host_builds_the_recipes_suite(tmp_path: Path) -> None:
    """On Debian 13 the same mirror serves bookworm; backports and sources are left out."""
    host = host_sources(_apt(tmp_path, sources_list_d__debian_sources="") and tmp_path)
    assert host == []
    (tmp_path / "sources.list.d/debian.sources").write_text(DEB822, encoding="utf-8")
    lines = sources_for("bookworm", ["main"], host_sources(tmp_path), "trixie", {})
    key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.pgp] "
    assert lines == [
        f"deb {key}http://mirror.example/debian bookworm main",
        f"deb {key}http://mirror.example/debian bookworm-updates main",
        "deb http://mirror.example/security bookworm-security main",
    ]


def test_one_line_sources_are_read(tmp_path: Path) -> None:
    """The older format, with options and without, comments and discs ignored."""
    text = (
        "# deb http://no.example/ bookworm main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://a.example/debian bookworm main\n"
        "deb http://b.example/debian bookworm-updates main contrib\n"
        "deb cdrom:[Debian]/ bookworm main\n"
        "deb-src http://a.example/debian bookworm main\n"
    )
    (tmp_path / "sources.list").write_text(text, encoding="utf-8")
    assert host_sources(tmp_path) == [
        Source("http://a.example/debian", "bookworm", "/k.gpg"),
        Source("http://b.example/debian", "bookworm-updates", None),
    ]


def test_a_host_without_debian_sources_is_told_what_to_set() -> None:
    """Third-party sources alone cannot build a Debian."""
    other = [Source("http://third.example", "stable", None)]
    with pytest.raises(ImageError, match="CUA_GYM_DEBIAN_MIRROR"):
        sources_for("bookworm", ["main"], other, "noble", {})


def test_a_mirror_can_be_given(tmp_path: Path) -> None:
    """For hosts that are no Debian."""
    environ = {"CUA_GYM_DEBIAN_MIRROR": "http://m.example/debian"}
    lines = sources_for("bookworm", ["main", "contrib"], [], "noble", environ)
    assert lines == ["deb http://m.example/debian bookworm main contrib"]


def test_proxy_and_freshness_settings_are_carried_others_are_not() -> None:
    """A build must reach the mirror as the host does, and must not inherit its habits."""
    dump = [
        'Acquire::http "";',
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::Check-Valid-Until "false";',
        'Acquire::IndexTargets::deb::DEP-11::MetaKey "x";',
        'APT::Install-Recommends "true";',
        'DPkg::Post-Invoke:: "rm -f x";',
    ]
    assert carried_options(dump) == dump[1:3]
