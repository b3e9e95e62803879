"""The command that makes a root file system: from the recipe and the host, harmless to the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from cua_gym.errors import ImageError
from cua_gym.image import build as building
from cua_gym.image.contain import Runner
from cua_gym.image.recipe import load_recipe

MIRROR = "http://mirror.example/debian"


class _Told:
    """A runner that only remembers."""

    def __init__(self) -> None:
        self.command: Sequence[str] = ()
        self.env: dict[str, str] = {}

    def run(self, command: Sequence[str], *, env: dict[str, str], **_: Any) -> None:
        self.command, self.env = command, env


@pytest.fixture
def told(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Told:
    """What mmdebstrap would be told for the ``tiny`` recipe, by root."""
    monkeypatch.setenv("CUA_GYM_DEBIAN_MIRROR", MIRROR)
    monkeypatch.setattr(building, "acts_as_root", lambda: True)
    work = tmp_path / "work"
    work.mkdir()
    make = cast(Callable[..., Path], building._make_rootfs)
    runner = _Told()
    make(load_recipe(images / "tiny"), work, "key", cast(Runner, runner), lambda message: None)
    return runner


def test_the_recipe_reaches_mmdebstrap(told: _Told) -> None:
    """Suite, packages and sources; no Recommends, and no initramfs before the last hook."""
    assert "--include=systemd-sysv" in told.command
    assert '--aptopt=APT::Install-Recommends "false"' in told.command
    assert told.command[-3] == "bookworm"
    assert Path(told.command[-1]).read_text() == f"deb {MIRROR} bookworm main\n"
    assert told.env["INITRD"] == "No"


def test_cleaning_never_reaches_the_hosts_package_lists(told: _Told) -> None:
    """Hooks may empty /tmp; mmdebstrap's configuration lies there, and it cleans by it.

    Without it the `apt-get` of its last step works on this machine's own /var/lib/apt/lists.
    """
    hooks = [word for word in told.command if word.startswith("--customize-hook=")]
    run = next(number for number, hook in enumerate(hooks) if "chroot" in hook)
    assert 'cp "$MMDEBSTRAP_APT_CONFIG" ' in hooks[run - 1]
    assert hooks[run + 1].endswith(' "$MMDEBSTRAP_APT_CONFIG"')


def test_a_user_without_ids_is_told_what_to_allow(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that gives ids, and the other two ways."""
    monkeypatch.setenv("CUA_GYM_DEBIAN_MIRROR", MIRROR)
    monkeypatch.setattr(building, "acts_as_root", lambda: False)
    monkeypatch.setattr("shutil.which", lambda name, **_: None)
    make = cast(Callable[..., Path], building._make_rootfs)
    with pytest.raises(ImageError, match=r"usermod --add-subuids .* or install fakechroot"):
        make(load_recipe(images / "tiny"), tmp_path, "key", _Told(), lambda message: None)
