"""`cua-gym bridge`: a wrong link, and nothing behind it."""

from __future__ import annotations

import socket

import pytest
from click.testing import CliRunner

from cua_gym.bridge.stdio import TOKEN_VARIABLE, split_link
from cua_gym.cli import main


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["desktop"], "--episode"),
        (["screen", "--episode", "http://127.0.0.1:1#x"], "screen"),
        (["desktop", "--episode", "127.0.0.1:1"], "no link"),
        (["desktop", "--episode", "ftp://127.0.0.1:1#x"], "no link"),
        (["desktop", "--episode", "http://127.0.0.1:1"], TOKEN_VARIABLE),
    ],
)
def test_a_wrong_link(monkeypatch: pytest.MonkeyPatch, words: list[str], why: str) -> None:
    """Code 2, and a sentence that says what one looks like."""
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    result = CliRunner().invoke(main, ["bridge", *words])
    assert result.exit_code == 2
    assert why in result.stderr
    assert not result.stdout


def test_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code 3."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        monkeypatch.setenv(TOKEN_VARIABLE, "x")
        result = CliRunner().invoke(
            main, ["bridge", "desktop", "--episode", f"http://127.0.0.1:{port}"]
        )
    assert result.exit_code == 3
    assert "no episode answers" in result.stderr
    assert not result.stdout


def test_the_token_stands_in_the_environment_or_behind_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The link's own comes first; a path is of no meaning."""
    monkeypatch.setenv(TOKEN_VARIABLE, "kept")
    assert split_link("http://127.0.0.1:8000/view#own") == ("http://127.0.0.1:8000", "own")
    assert split_link("http://127.0.0.1:8000") == ("http://127.0.0.1:8000", "kept")
