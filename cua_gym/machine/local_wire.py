"""The streams of one process as descriptors of ours: pipes, or a pseudo terminal.

Responsible for waits on them that end when somebody says so (a job left behind may hold a pipe open
for ever), and for starting a host process. Leaves what the bytes mean to `process`.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import termios
from io import FileIO
from typing import cast

from cua_gym.machine.base import Stream
from cua_gym.machine.commands import TOKEN_NAME, Command, kill_argv

__all__ = ["FileWire", "LocalWire", "kill_local"]

_READ = 64 << 10


class FileWire:
    """The half of a `cua_gym.machine.process.Wire` that reads and writes.

    Args:
        feed, output, errors: ours from here on; a terminal's are one and the same.
    """

    def __init__(self, feed: FileIO, output: FileIO, errors: FileIO) -> None:
        self._input, self._output, self._errors = feed, output, errors
        os.set_blocking(feed.fileno(), False)
        self._stopped, self._stop = socket.socketpair()

    def read(self, stream: Stream) -> bytes:
        """See `cua_gym.machine.process.Wire.read`."""
        file = self._output if stream == "stdout" else self._errors
        while self._ready(file, select.POLLIN):
            try:
                return os.read(file.fileno(), _READ)
            except BlockingIOError:
                continue
            except OSError:
                break  # EIO: nobody has the terminal open any more
        return b""

    def write(self, data: bytes) -> None:
        """See `cua_gym.machine.process.Wire.write`."""
        left = memoryview(data)
        while left:
            if not self._ready(self._input, select.POLLOUT):
                raise BrokenPipeError("the process has ended")
            left = left[self._input.write(left) or 0 :]

    def end_input(self) -> None:
        """See `cua_gym.machine.process.Wire.end_input`."""
        self._input.close()

    def resize(self, columns: int, rows: int) -> None:
        """See `cua_gym.machine.process.Wire.resize`."""
        termios.tcsetwinsize(self._input.fileno(), (rows, columns))

    def stop(self) -> None:
        """See `cua_gym.machine.process.Wire.stop`."""
        self._stop.close()

    def free(self) -> None:
        """See `cua_gym.machine.process.Wire.free`."""
        for file in (self._input, self._output, self._errors, self._stopped):
            file.close()

    def _ready(self, file: FileIO, event: int) -> bool:
        """Wait until a file is ready; False once stopped."""
        poll = select.poll()
        poll.register(file, event)
        poll.register(self._stopped, select.POLLIN)
        return self._stopped.fileno() not in dict(poll.poll())


class LocalWire(FileWire):
    """A `cua_gym.machine.process.Wire` to a new host process.

    Args:
        command: what the process does.
        terminal: columns and rows of its terminal; None makes three pipes.

    Raises:
        OSError: it could not be started.
    """

    def __init__(self, command: Command, terminal: tuple[int, int] | None) -> None:
        self._token = command.token
        argv: list[str | bytes] = ["sh", "-c", command.line]
        if terminal is None:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
            pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
            files = cast("tuple[FileIO, FileIO, FileIO]", pipes)
        else:
            ours, theirs = os.openpty()
            files = (FileIO(ours, "r+"),) * 3
            try:
                termios.tcsetwinsize(ours, (terminal[1], terminal[0]))
                self._process = subprocess.Popen(
                    # setsid makes it the leader of a new session, whose terminal this is; Ctrl-C
                    # is heard there even if whoever started us made us deaf to it
                    ["env", "--default-signal=INT,QUIT", "setsid", "-c", *argv],
                    stdin=theirs,
                    stdout=theirs,
                    stderr=theirs,
                )
            except OSError:
                files[0].close()
                raise
            finally:
                os.close(theirs)
        super().__init__(*files)

    def status(self) -> int:
        """See `cua_gym.machine.process.Wire.status`."""
        code = self._process.wait()
        return 128 - code if code < 0 else code

    def kill(self) -> None:
        """See `cua_gym.machine.process.Wire.kill`."""
        kill_local(self._token)

    def free(self) -> None:
        """See `cua_gym.machine.process.Wire.free`."""
        super().free()
        self._process.kill()  # the wrapper, which has nothing left to do
        self._process.wait()


def kill_local(token: str, name: str = TOKEN_NAME) -> None:
    """Kill every host process tree whose environment holds ``name=token``."""
    subprocess.run(kill_argv(token, name), check=False, stdin=subprocess.DEVNULL)
