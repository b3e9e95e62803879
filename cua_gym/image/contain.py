"""Runs the commands of a build, contained, and keeps what they print."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from cua_gym.errors import ImageError
from cua_gym.machine.contain import contained, tool_path

__all__ = ["Runner"]

_LAST_LINES = 15


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
