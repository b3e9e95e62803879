"""An agent that is a program of its own: a harness that speaks MCP.

``--agent "command: some-cli --mcp-config {mcp_config} {instruction_file}"`` starts the program with
both bridges served to it until it ends, submits, or its time is over; then it is ended with all
that it started (`supervise`). What it prints goes to ``agent.log`` in the attempt's folder. What
becomes of it:

=====================================  =====================================================
it submitted or gave up                judged
it ended with status 0, without a word  judged as it left things (``submission.kind`` is ``left``)
it ended with another status           ``unscored``, reason ``agent``
a limit of steps or time was reached   judged; the program is killed
=====================================  =====================================================

In the command these stand for files and values, and other braces for themselves:
``{mcp_config}`` and ``{mcp_config_stdio}`` (JSON with ``mcpServers``, over HTTP and for clients
that start programs), ``{instruction_file}``, ``{instruction}``. The environment has
``CUA_GYM_DESKTOP_URL``, ``CUA_GYM_DESKTOP_TOKEN``, ``CUA_GYM_SHELL_URL`` and
``CUA_GYM_SHELL_TOKEN``, as far as the task's tool policy has the bridge.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cua_gym.actions import Action
from cua_gym.agent import supervise
from cua_gym.agent.base import TaskInfo
from cua_gym.agent.load import PREFIX
from cua_gym.bridge.serve import Served, configuration, stdio_configuration
from cua_gym.errors import AgentError

if TYPE_CHECKING:
    from cua_gym.episode import Episode

__all__ = ["CommandAgent"]

GRACE_S = 10.0
"""How long a program may take to end after it has submitted."""

LOG_BYTES = 16 << 20
"""Of what it prints are kept; what follows is read and let go."""

_TICK_S = 0.2
_TAIL_BYTES = 600
_KILL_S = 15.0
_NAMES = ("mcp_config", "mcp_config_stdio", "instruction_file", "instruction")
_HOLE = re.compile(r"\{([a-z_]+)\}")


class CommandAgent:
    """Drives an episode by a program.

    Args:
        template: the command line, split as a shell would; it is not run by one.

    Raises:
        ValueError: it is empty, or names what is not there.
    """

    def __init__(self, template: str) -> None:
        self._words = shlex.split(template)
        if not self._words:
            raise ValueError(f"{PREFIX} needs a command line behind it")
        if unknown := set(_HOLE.findall(template)) - set(_NAMES):
            known, not_known = (", ".join(f"{{{n}}}" for n in sorted(s)) for s in (_NAMES, unknown))
            raise ValueError(f"{PREFIX} knows {known}, not {not_known}")

    def start(self, task: TaskInfo) -> None:
        """Nothing yet: the program is started when the episode is driven."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """Never called: see `drive`."""
        raise NotImplementedError("a command drives the episode over the bridges")

    def drive(self, episode: Episode, tell: Callable[[str], None]) -> None:
        """Run the program until it ends or the episode does.

        Raises:
            AgentError: it ended with another status than 0.
        """
        with (
            Served(episode) as served,
            tempfile.TemporaryDirectory(
                prefix="cua-gym-agent-", ignore_cleanup_errors=True
            ) as folder,
            episode.folder.agent_log.open("wb") as kept,
        ):
            tell(f"to look on, and to take over: {served.view_link}")
            words, variables = self._filled(served, Path(folder))
            program = subprocess.Popen(
                [sys.executable, "-I", supervise.__file__, folder, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=variables,
                start_new_session=True,  # our Ctrl-C is not its
            )
            log = _Log(program, kept)
            try:
                code = _run(program, served)
                over = served.wait(0)
            finally:
                _end(program)
                log.close()
                served.revoke()
        if over:  # submitted, a limit, or the machine was lost: the evaluation finds out
            return
        if code:
            raise AgentError(f"{words[0]} ended with status {code}; it said last: {log.tail}")
        episode.leave("the program ended")

    def _filled(self, served: Served, folder: Path) -> tuple[list[str], dict[str, str]]:
        """The words of the command and its environment; files are for our account alone."""
        instruction = served.session.episode.variation.instruction
        values = {"instruction": instruction}
        texts = {
            "mcp_config": json.dumps(configuration(served), indent=2),
            "mcp_config_stdio": json.dumps(stdio_configuration(served), indent=2),
            "instruction_file": instruction + "\n",
        }
        for name, text in texts.items():
            suffix = "txt" if name == "instruction_file" else "json"
            path = folder / f"{name}.{suffix}"
            path.write_text(text, encoding="utf-8")
            values[name] = str(path)
        variables = dict(os.environ)
        for bridge in served.bridges:
            variables[f"CUA_GYM_{bridge.upper()}_URL"] = served.url(bridge)
            variables[f"CUA_GYM_{bridge.upper()}_TOKEN"] = served.session.token(bridge)
        return [_HOLE.sub(lambda hole: values[hole[1]], word) for word in self._words], variables


class _Log:
    """Keeps what a program prints, within a bound, and its last words."""

    def __init__(self, program: subprocess.Popen[bytes], kept: IO[bytes]) -> None:
        assert program.stdout is not None
        self._source = program.stdout
        self._kept = kept
        self._last = b""
        self._thread = threading.Thread(target=self._read, name="cua-gym-agent-log", daemon=True)
        self._thread.start()

    @property
    def tail(self) -> str:
        """Its last words."""
        return self._last.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """All that held the other end has ended."""
        self._thread.join(_KILL_S)
        self._source.close()

    def _read(self) -> None:
        room = LOG_BYTES
        dropped = 0
        while part := os.read(self._source.fileno(), 65536):
            self._last = (self._last + part)[-_TAIL_BYTES:]
            dropped += len(part[room:])
            try:
                self._kept.write(part[:room])
                self._kept.flush()
            except OSError:  # the disk is full; the record's own lines find out and tell
                room = 0
            room = max(0, room - len(part))
        if dropped:
            self._kept.write(f"\n[{dropped} more bytes were not kept]\n".encode())


def _run(program: subprocess.Popen[bytes], served: Served) -> int | None:
    """Wait for the end of either; the program's status, None when it still runs."""
    while program.poll() is None:
        if served.wait(_TICK_S):
            try:
                program.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                return None
    return program.returncode


def _end(program: subprocess.Popen[bytes]) -> None:
    """End the program and all that it started, whatever group or session they went to."""
    program.terminate()
    try:
        program.wait(_KILL_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
