"""`cua-gym view`: a link is tried, then opened or told."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cua_gym.bridge.serve import Served
from cua_gym.cli import main
from tests.bridge.clients import toy_served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The toy episode, served."""
    with toy_served(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was opened with; there is no display unless a test sets one."""
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CUA_GYM_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return opened


def call(link: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    done = CliRunner(env=environment).invoke(main, ["view", "--episode", link])
    return done.exit_code, done.stdout, done.stderr


def test_opens_the_browser(served: Served, opened: list[str]) -> None:
    """With a display the browser gets the whole link, and the token is not printed."""
    code, out, err = call(served.view_link, DISPLAY=":0")
    assert (code, out) == (0, f"opened {served.url('view')}\n")
    assert opened == [served.view_link]
    assert served.session.token("view") not in out + err


def test_tells_how_without_a_display(served: Served, opened: list[str]) -> None:
    """Without one the link is printed, and how to reach it from elsewhere."""
    token = served.session.token("view")
    code, out, err = call(served.origin, CUA_GYM_TOKEN=token)
    assert (code, out) == (0, f"{served.view_link}\n")
    port = served.origin.rpartition(":")[2]
    assert f"ssh -N -L {port}:127.0.0.1:{port}" in err
    assert opened == []


def test_wrong_links(served: Served, opened: list[str], tmp_path: Path) -> None:
    """No link, no token or a foreign one are usage errors; nobody there is not."""
    with toy_served(tmp_path) as gone:
        link = gone.view_link
    for wrong, code in (
        ("nonsense", 2),
        ("http://127.0.0.1:port/view#token", 2),
        (served.origin, 2),
        (f"{served.url('view')}#{served.session.token('desktop')}", 2),
        (link, 3),
    ):
        seen, out, err = call(wrong, DISPLAY=":0")
        assert (seen, out) == (code, ""), err
        assert "Error: " in err
        assert "Traceback" not in err
    assert opened == []
