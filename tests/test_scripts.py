"""The scripts and the lists that set a machine up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cua_gym.image.build import HOST_PACKAGES

ROOT = Path(__file__).parents[1]
SCRIPTS = ["scripts/setup", "scripts/demo", ".ci/run"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_programs(script: str) -> None:
    """Each script may be executed, stops at the first failure, and bash can read it."""
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert "set -euo pipefail" in path.read_text()
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_the_image_builders_packages_are_installed() -> None:
    """What building an image needs is on the list of packages."""
    lines = (ROOT / "scripts/apt-packages.txt").read_text().splitlines()
    listed = {name for line in lines if not line.startswith("#") for name in line.split(" | ")}
    assert set(HOST_PACKAGES) <= listed


@pytest.mark.parametrize("target", ["demo", "test", "check", "image", "bench", "clean"])
def test_make_knows_its_targets(target: str) -> None:
    """Every target that the documentation names exists."""
    done = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_index_is_named() -> None:
    """Set-up works behind whatever package index a machine is configured for."""
    for path in [ROOT / "pyproject.toml", *(ROOT / name for name in [*SCRIPTS, "Makefile"])]:
        assert "://" not in path.read_text()
