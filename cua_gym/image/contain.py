"""Commands of a build that die with it, their mounts and processes included.

A build mounts /proc and /dev into a half-made system and starts programs in it. When the builder
is killed, all that must vanish by itself. Each command therefore runs in its own PID, mount and
IPC namespace, whose first process is killed by the kernel when the builder dies.
"""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from cua_gym.errors import ImageError

__all__ = ["Runner", "acts_as_root", "contained", "tool_path"]

_LAST_LINES = 15

_DIE = ("setpriv", "--pdeathsig", "KILL", "--")
_SPACES = ("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child")
# A normal user is root in a namespace with ids of its own. `setpriv` comes after it: the kernel
# forgets the death signal of a process that enters a new user namespace.
_MAPPED = ("unshare", "--user", "--map-root-user", "--map-auto", "--")


@cache
def _prefix(root: bool) -> tuple[str, ...]:
    """The strongest containment that this machine allows."""
    # setpriv ties `unshare` to this process, --kill-child ties everything inside to `unshare`.
    inner = (*_DIE, *_SPACES)
    choices: tuple[tuple[str, ...], ...] = ((*inner, "--mount-proc"), inner)
    if not root:
        # Asked first without ids of its own: where the kernel refuses, the process that `unshare`
        # starts to map them waits for ever.
        if not _works(["unshare", "--user", "--map-root-user"]):
            return _DIE
        choices = ((*_MAPPED, *choices[0]), (*_MAPPED, *choices[1]))
    return next((choice for choice in choices if _works(choice)), _DIE)


def _works(prefix: Sequence[str]) -> bool:
    command = [*prefix, "true"]
    null = subprocess.DEVNULL
    return subprocess.run(command, stdout=null, stderr=null, check=False).returncode == 0


def contained(command: Sequence[str]) -> list[str]:
    """``command`` so wrapped that it, its children and its mounts end with this process."""
    return [*_prefix(os.geteuid() == 0), *command]


def acts_as_root() -> bool:
    """Whether contained commands are root, really or among ids of their own."""
    return os.geteuid() == 0 or _prefix(False)[: len(_MAPPED)] == _MAPPED


def tool_path() -> str:
    """Where a build's tools are looked for: Debian leaves ``sbin`` out of a normal user's PATH."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


class Runner:
    """Runs contained commands, logs all they print and reports what is worth showing."""

    def __init__(self, log: Path, progress: Callable[[str], None]) -> None:
        self._log = log
        self._progress = progress

    def __call__(self, command: Sequence[str]) -> None:
        """Run one command; see `run`."""
        self.run(command)

    def run(
        self,
        command: Sequence[str],
        *,
        env: dict[str, str] | None = None,
        show: Callable[[str], str | None] = lambda line: None,
    ) -> None:
        """Run to the end.

        Args:
            env: added to the environment.
            show: turns an output line into a progress message, or None.

        Raises:
            ImageError: it failed; the message ends with its last lines.
        """
        tail: deque[str] = deque(maxlen=_LAST_LINES)
        argv = contained(command)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    env={**os.environ, "PATH": tool_path(), "LC_ALL": "C.UTF-8", **(env or {})},
                )
            except FileNotFoundError as error:
                raise ImageError(
                    f"{error.filename} is not installed; see `cua-gym doctor`"
                ) from error
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    log.write(line)
                    tail.append(line.rstrip())
                    message = show(line.rstrip())
                    if message:
                        self._progress(message)
                code = process.wait()
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
                process.stdout.close()  # type: ignore[union-attr]  # made by PIPE above
        if code != 0:
            raise ImageError(
                f"{command[0]} ended with status {code}; its last lines (all in {self._log}):\n"
                + "\n".join(f"  {line}" for line in tail)
            )
