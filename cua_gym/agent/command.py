"""An agent that is a program of its own: a harness that speaks MCP.

``--agent "command: some-cli --mcp-config {mcp_config} {instruction_file}"`` starts the program with
both bridges served to it, in a process group of its own, until it ends, submits, or its time is
over. What it prints goes to ``agent.log`` in the attempt's folder. What becomes of it:

=====================================  =====================================================
it submitted or gave up                judged
it ended with status 0, without a word  judged as it left things (``submission.kind`` is ``left``)
it ended with another status           ``unscored``, reason ``agent``
a limit of steps or time was reached   judged; the program is killed
=====================================  =====================================================

In the command these stand for files and values: ``{mcp_config}`` and ``{mcp_config_stdio}`` (JSON
with ``mcpServers``, over HTTP and for clients that start programs), ``{instruction_file}``,
``{instruction}``. The environment has ``CUA_GYM_DESKTOP_URL``, ``CUA_GYM_DESKTOP_TOKEN``,
``CUA_GYM_SHELL_URL`` and ``CUA_GYM_SHELL_TOKEN``, as far as the task's tool policy has the bridge.
"""

from __future__ import annotations

import json
import os
import shlex
import string
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cua_gym.actions import Action
from cua_gym.agent.base import TaskInfo
from cua_gym.agent.load import PREFIX
from cua_gym.bridge.serve import Served, configuration, stdio_configuration
from cua_gym.errors import AgentError
from cua_gym.machine.commands import kill_argv, new_token

if TYPE_CHECKING:
    from cua_gym.episode import Episode

__all__ = ["CommandAgent"]

GRACE_S = 10.0
"""How long a program may take to end after it has submitted."""
_TICK_S = 0.2
_TAIL_BYTES = 600
_KILL_S = 15.0
_MARK = "CUA_GYM_HARNESS"
_NAMES = frozenset({"mcp_config", "mcp_config_stdio", "instruction_file", "instruction"})


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
        names = {
            n for w in self._words for _, n, _, _ in string.Formatter().parse(w) if n is not None
        }
        if unknown := names - _NAMES:
            known, not_known = (", ".join(f"{{{n}}}" for n in sorted(s)) for s in (_NAMES, unknown))
            raise ValueError(
                f"{PREFIX} knows {known}, not {not_known}; write {{{{ and }}}} for braces"
            )

    def start(self, task: TaskInfo) -> None:
        """Nothing yet: the program is started when the episode is driven."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """Never called: see `drive`."""
        raise NotImplementedError("a command drives the episode over the bridges")

    def drive(self, episode: Episode, tell: Callable[[str], None]) -> None:
        """Run the program until it ends or the episode does.

        Raises:
            AgentError: it could not be started, or ended with another status than 0.
        """
        log = episode.folder.agent_log
        with (
            Served(episode) as served,
            tempfile.TemporaryDirectory(prefix="cua-gym-agent-") as folder,
            log.open("wb") as output,
        ):
            tell(f"to look on, and to take over: {served.view_link}")
            mark = new_token()
            words, variables = self._filled(served, Path(folder), mark)
            try:
                program = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", "--", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=variables,
                    start_new_session=True,
                )
            except OSError as error:
                raise AgentError(f"{words[0]} could not be started: {error}") from error
            try:
                code = _run(program, served)
                over = served.wait(0)
            finally:
                _kill(program, mark)
                served.revoke()
        if over:  # submitted, a limit, or the machine was lost: the evaluation finds out
            return
        if code:
            tail = log.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").strip()
            raise AgentError(f"{words[0]} ended with status {code}; it said last: {tail}")
        episode.leave("the program ended")

    def _filled(self, served: Served, folder: Path, mark: str) -> tuple[list[str], dict[str, str]]:
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
        variables = {**os.environ, _MARK: mark}
        for bridge in served.bridges:
            variables[f"CUA_GYM_{bridge.upper()}_URL"] = served.url(bridge)
            variables[f"CUA_GYM_{bridge.upper()}_TOKEN"] = served.session.token(bridge)
        return [word.format(**values) for word in self._words], variables


def _run(program: subprocess.Popen[bytes], served: Served) -> int | None:
    """Wait for the end of either; the program's status, None when it still runs."""
    while program.poll() is None:
        if served.wait(_TICK_S):
            try:
                program.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                return None
    return program.returncode


def _kill(program: subprocess.Popen[bytes], mark: str) -> None:
    """End the program and all that it started, whatever group or session they went to."""
    subprocess.run(kill_argv(mark, _MARK), timeout=_KILL_S, check=False)
    if program.poll() is None:
        program.kill()
    program.wait(_KILL_S)
