"""A program in a sandbox as a `cua_gym.machine.process.Wire`; its streams are ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from io import FileIO

from cua_gym.machine.local_wire import FileWire
from cua_gym.machine.x11.sandbox import ANSWER_S, Sandbox

__all__ = ["SandboxWire"]


class SandboxWire(FileWire):
    """Starts a program as an account of the sandbox.

    Args:
        session: with the surroundings of the graphical session.
        terminal: columns and rows of its terminal; None makes three pipes.
        kill: ends the program's whole tree.

    Raises:
        MachineError: it could not be started, such as for an account that there is not.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        argv: list[str],
        user: str,
        *,
        session: bool,
        terminal: tuple[int, int] | None = None,
        kill: Callable[[], None],
    ) -> None:
        self._kill_tree = kill
        ours: list[int] = []
        theirs: list[int] = []
        if terminal is None:
            for reads in (True, False, False):
                reader, writer = os.pipe()
                theirs.append(reader if reads else writer)
                ours.append(writer if reads else reader)
        arguments: Mapping[str, object] = {
            "user": user,
            "argv": argv,
            "session": session,
            "terminal": terminal,
        }
        try:
            self._link = sandbox.request("start", theirs, **arguments)
            try:
                _, fds = self._link.answer(ANSWER_S)
            except BaseException:
                self._link.close()
                raise
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        if terminal is None:
            super().__init__(FileIO(ours[0], "w"), FileIO(ours[1]), FileIO(ours[2]))
        else:
            master = FileIO(fds[0], "r+")
            super().__init__(master, master, master)

    def status(self) -> int:
        """See `cua_gym.machine.process.Wire.status`."""
        answer, _ = self._link.answer(None)
        return int(answer["exit"])

    def kill(self) -> None:
        """See `cua_gym.machine.process.Wire.kill`."""
        self._kill_tree()

    def free(self) -> None:
        """See `cua_gym.machine.process.Wire.free`."""
        super().free()
        self._link.close()
