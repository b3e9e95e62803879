"""What tests with real X servers and SSH servers share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cua_gym.machine.ssh import SshShell
from tests.machine.sshd import Sshd, running, shell_of


@pytest.fixture(scope="session", autouse=True)
def separate_x_servers() -> Iterator[None]:
    """Let python-xlib talk to servers that number their extensions differently.

    It keeps one table of event classes for the whole process; the second server's events were
    parsed, or refused, by the first one's numbers.
    """
    display = pytest.importorskip("Xlib.protocol.display").Display
    plain = display.event_classes.copy()
    start = display.__init__

    def start_apart(self: Any, *args: Any, **options: Any) -> None:
        self.event_classes = {
            code: value.copy() if isinstance(value, dict) else value
            for code, value in plain.items()
        }
        start(self, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(display, "__init__", start_apart)
        yield


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sshd, Path, str]]:
    with running(tmp_path_factory.mktemp("sshd")) as parts:
        yield parts


@pytest.fixture(scope="module")
def kept(server: tuple[Sshd, Path, str]) -> Iterator[SshShell]:
    shell = shell_of(server)
    yield shell
    shell.close()


@pytest.fixture
def shell(kept: SshShell) -> SshShell:
    return kept
