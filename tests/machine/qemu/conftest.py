"""A computer that is only firmware: everything but a guest can be tested on it in a second."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cua_gym.machine.qemu.accelerator import BINARY, Host, probe
from cua_gym.machine.qemu.disk import BaseDisk
from cua_gym.machine.qemu.engine import Engine
from cua_gym.machine.qemu.hardware import Hardware
from cua_gym.machine.qemu.screen import LiveScreen

MEMORY_MB = 64


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """This host's QEMU."""
    if shutil.which(BINARY) is None:
        pytest.skip(f"{BINARY} is not installed")
    return probe(tmp_path_factory.mktemp("probe"))


@pytest.fixture(scope="session")
def base(host: Host, tmp_path_factory: pytest.TempPathFactory) -> BaseDisk:
    """An empty disk."""
    path = tmp_path_factory.mktemp("base") / "base.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(path), "64M"], check=True)
    return BaseDisk.open(path, "empty")


@pytest.fixture(scope="session")
def hardware(host: Host) -> Hardware:
    """One small computer."""
    return Hardware("pc-q35-7.2", "tcg", "qemu64", 1, MEMORY_MB, (1280, 800), host.version)


@pytest.fixture
def screen() -> LiveScreen:
    """A screen that nothing feeds yet."""
    return LiveScreen((1280, 800))


@pytest.fixture
def engine(
    host: Host, hardware: Hardware, base: BaseDisk, screen: LiveScreen, tmp_path: Path
) -> Iterator[Engine]:
    """It, paused at power-on."""
    engine = Engine(host, hardware, base, screen, run_dir=tmp_path / "run")
    yield engine
    engine.close()
