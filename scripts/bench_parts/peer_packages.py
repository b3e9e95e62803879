"""The peers' published packages, installed once into folders of the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cua_gym.image.store import cache_root

from .report import say

__all__ = ["PeerPackages", "peer_packages"]

# OSWorld's package asks for torch and more; its client needs `requests` alone.
ALONE = ("desktop-env==1.0.2",)
HOST = ("requests>=2.32,<3", "vncdotool>=1.4,<2", "pillow>=11")
GUEST = ("pyautogui==0.9.54", "flask>=3,<4", "pillow>=11")
# It replaces an older fork of itself that pyautogui asks for and that has no XFixes.
GUEST_ABOVE = ("python-xlib==0.33",)


@dataclass(frozen=True, slots=True)
class PeerPackages:
    """Where they are.

    Attributes:
        python: of the environment with the clients.
        guest: archive of packages for a guest with this program's version of Python.
        key: says what was installed.
        versions: of what is compared.
    """

    python: Path
    guest: Path
    key: str
    versions: dict[str, str]


def peer_packages(root: Path | None = None) -> PeerPackages:
    """Install what is missing.

    Raises:
        subprocess.CalledProcessError: a package cannot be had.
    """
    key = repr((ALONE, HOST, GUEST, GUEST_ABOVE, sys.version_info[:2]))
    folder = (root or cache_root()) / "peers" / hashlib.sha256(key.encode()).hexdigest()[:16]
    python, guest = folder / "venv/bin/python", folder / "guest"
    if not (folder / "complete").exists():
        say("installing the peers' packages")
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder / "venv")])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-warn-conflicts",
               "--disable-pip-version-check"]  # fmt: skip
        _run([*pip, *HOST])
        _run([*pip, "--no-deps", *ALONE])
        _run([*pip, "--target", str(guest), *GUEST])
        _run([*pip, "--target", str(guest), "--upgrade", "--no-deps", *GUEST_ABOVE])
        # Without Tk it ends the importing program instead of failing to be imported.
        shutil.rmtree(guest / "mouseinfo", ignore_errors=True)
        # Times of files are the guest's affair, which must not compile at each import.
        _run([str(python), "-m", "compileall", "-q", "-f", "--invalidation-mode",
              "unchecked-hash", str(guest)], check=False)  # fmt: skip
        _run(["tar", "-czf", str(folder / "guest.tgz"), "-C", str(guest), "."])
        (folder / "complete").touch()
    versions = _versions(python) | _versions(python, guest)
    return PeerPackages(python, folder / "guest.tgz", folder.name, versions)


def _versions(python: Path, folder: Path | None = None) -> dict[str, str]:
    where = [] if folder is None else ["--path", str(folder)]
    said = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=freeze", *where],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    wanted = {"desktop_env", "desktop-env", "vncdotool", "pyautogui", "flask"}
    pairs = (line.split("==") for line in said.splitlines() if "==" in line)
    return {name.lower(): version for name, version in pairs if name.lower() in wanted}


def _run(words: Sequence[str], *, check: bool = True) -> None:
    subprocess.run(words, check=check, stdout=sys.stderr)
