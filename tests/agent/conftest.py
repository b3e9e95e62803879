"""The toy task, and a model at the other end of a wire."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cua_gym.actions import Action
from cua_gym.agent.base import TaskInfo
from cua_gym.agent.conversation import ModelAgent
from cua_gym.machine.base import Rgb
from cua_gym.spaces import ActionSpace, ToolPolicy
from cua_gym.task import Task
from tests.agent.model_server import ModelServer
from tests.agent.wires import WIRES, Wire
from tests.run.toy import make_suite, on_toy_computer

KEY = "sk-key-that-nobody-may-see-0123456789"
MODEL = "a-model-of-the-test"
Serve = Callable[..., ModelServer]


@pytest.fixture
def toy_task(tmp_path: Path) -> Task:
    """The toy task on the toy computer."""
    return on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))


@pytest.fixture(params=WIRES, ids=lambda wire: type(wire).__name__)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Each provider's way of writing."""
    chosen: Wire = request.param
    return chosen


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No key or endpoint of whoever runs the tests."""
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # reading certificates takes 40 ms a client
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_", "CUA_GYM_ANTHROPIC", "CUA_GYM_OPENAI")):
            monkeypatch.delenv(name)
    for provider in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
        monkeypatch.setenv(f"CUA_GYM_{provider}_MODEL", MODEL)
    return monkeypatch


@pytest.fixture
def serve(environment: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a model that gives these replies, for all agents."""
    with ExitStack() as servers:

        def start(*replies: Any) -> ModelServer:
            server = servers.enter_context(ModelServer(replies))
            environment.setenv("ANTHROPIC_BASE_URL", server.url)
            environment.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
            return server

        yield start


class Desk:
    """An agent without a computer: every action succeeds, unless told otherwise."""

    def __init__(
        self, agent: ModelAgent, screen: tuple[int, int] = (1280, 800), tools: ToolPolicy = "both"
    ) -> None:
        self.agent = agent
        self.screen: Rgb = np.zeros((screen[1], screen[0], 3), np.uint8)
        self.cursor = (0, 0)
        agent.start(TaskInfo("t", "Tidy up.", ActionSpace(screen, tools), 50, 600.0, 0))

    def act(self, **info: Any) -> Action:
        """The next action."""
        seen = {"screenshot": self.screen, "cursor": np.array(self.cursor)}
        return self.agent.act(seen, {"seconds_left": 600.0, "steps_left": 50, **info})
