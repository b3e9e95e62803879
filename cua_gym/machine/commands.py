"""How one command runs on a POSIX guest: wrapped so that its end is seen, and killed as a tree.

Responsible for the text handed to the remote shell, for collecting both output streams while
standard input is fed, and for the script that kills what a command started. Leaves the wire (an
SSH channel, local pipes) to its callers.

A command's end is a *mark* that the wrapper writes to both streams, not the streams' end: a
background job that inherited them would hold them open for as long as it lives. Such a job goes
on after the command; it gets SIGPIPE if it still writes to the old output, so a job meant to
stay redirects its output (``server >/tmp/log 2>&1 &``; ``nohup`` adds nothing, there is no
terminal).

A command's tree is found by a token in its environment, and by descent and session from there,
so a child that made its own session or was adopted by init is found too. Only a process that
cleared its environment, left the session *and* lost its parents escapes.
"""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cua_gym.errors import ActionError, MachineError
from cua_gym.machine.base import Completed

__all__ = [
    "KEEP_BYTES",
    "LINE_LIMIT",
    "TOKEN_NAME",
    "Command",
    "Wire",
    "argv_of",
    "collect",
    "env_words",
    "kill_argv",
    "new_token",
    "script_of",
]

KEEP_BYTES = 64 << 20
"""Output kept per stream; what follows is read, counted in `Completed.dropped` and let go."""

LINE_LIMIT = 96 << 10
"""Longest `Command.line`; Linux takes 128 KiB in one argument. Longer ones go by `script_of`."""

TOKEN_NAME = "CUA_GYM_RUN"

_CODE_LENGTH = 3
_ABSENT = 999  # the wrapper's own "exit status": the guard failed, nothing was run

# Processes are found anew each round because a tree may fork while it is being killed. A zombie
# has an empty environment, so it ends the loop; the cap is for what even SIGKILL cannot move.
# A session counts when its leader is being killed or is gone; a living leader from before the
# command (its launcher, a server) is not ours.
_KILL = r"""
round=0
while [ "$round" -lt 100 ]; do
  seeds=$(grep -lsazxF -e "$1" /proc/[0-9]*/environ | tr -dc '0-9\n' | tr '\n' ' ')
  [ -n "$seeds" ] || exit 0
  tree=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v seeds="$seeds" '
    $1 ~ /^[0-9]+$/ { rest = $0; sub(/^.*\) /, "", rest); split(rest, f, " ")
                      parent[$1] = f[2]; session[$1] = f[4] }
    END {
      n = split(seeds, s, " ")
      for (i = 1; i <= n; i++) {
        hit[s[i]] = 1
        if (session[s[i]] > 0 && !(session[s[i]] in parent)) headless[session[s[i]]] = 1
      }
      do {
        grew = 0
        for (p in parent)
          if (!(p in hit) && ((parent[p] in hit) || (session[p] in hit) ||
                              (session[p] in headless))) { hit[p] = 1; grew = 1 }
      } while (grew)
      for (p in hit) print p
    }')
  kill -KILL $tree 2>/dev/null
  round=$((round + 1))
done
exit 1
"""


def argv_of(command: str | Sequence[str]) -> list[str]:
    """The argument list: a ``str`` is a bash script, a sequence stands for itself.

    Raises:
        ActionError: it is empty or holds a NUL, which no program can be given.
    """
    argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
    if not argv:
        raise ActionError("the command is an empty sequence; give at least the program's name")
    for word in argv:
        if "\0" in word:
            raise ActionError(f"a command cannot hold a NUL character: {word[:200]!r}")
    return argv


def script_of(command: str | Sequence[str]) -> bytes:
    """The same command as the text of a bash script, for one too long for a command line."""
    text = command if isinstance(command, str) else "exec " + shlex.join(command)
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Command:
    """One command, ready for a POSIX shell.

    Attributes:
        token: `new_token`; what the environment of all it starts holds as ``CUA_GYM_RUN``.
        words: program and arguments; a launcher that scrubs the environment must be told the
            token itself.
        guard: must succeed first; otherwise nothing is run and `collect` raises, so that a
            missing launcher cannot look like the command's own failure.
    """

    token: str
    words: Sequence[str]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    guard: Sequence[str] = ("true",)

    @property
    def line(self) -> bytes:
        """The text for a POSIX login shell, odd bytes restored.

        Every program it starts costs some 40 ms in an emulated guest, so it starts few.
        """
        words = ["exec", "setsid", "-w", "--", *self.words]
        if self.cwd or self.env:
            words[1:1] = env_words(self.cwd, self.env)
        # The shell's own remarks ("Killed") go to its own closed-off stderr, not the command's;
        # the subshell is for dash, which redirects in the shell itself while it waits. The
        # mark is put together by printf, so no listing of processes can print it.
        script = (
            "exec 3>&2 2>/dev/null; "
            f"if {shlex.join(self.guard)} >/dev/null </dev/null; "
            f"then (export {TOKEN_NAME}={self.token}; {shlex.join(words)} 2>&3 3>&-); c=$?; "
            f"else c={_ABSENT}; fi; "
            f"printf '%s:%s%03d' cua-gym-end {self.token} $c; "
            f"printf '%s:%s%03d' cua-gym-end {self.token} $c >&3"
        )
        return script.encode("utf-8", "surrogateescape")

    @property
    def mark(self) -> bytes:
        """What ends each stream, three digits of exit status after it."""
        return b"cua-gym-end:" + self.token.encode()


def new_token() -> str:
    """A token that nothing in the guest can have printed before."""
    return secrets.token_hex(16)


def env_words(cwd: str | None, env: Mapping[str, str]) -> list[str]:
    """``env`` and its arguments; a program must follow whose name holds no ``=``.

    Raises:
        ActionError: a name that no shell could use, or a NUL.
    """
    for name, value in env.items():
        if not (name.isascii() and name.isidentifier()) or "\0" in value:
            raise ActionError(f"not a possible environment entry: {name!r}={value[:200]!r}")
    return ["env", *(("-C", cwd) if cwd else ()), *(f"{k}={v}" for k, v in env.items())]


def kill_argv(token: str, name: str = TOKEN_NAME) -> list[str]:
    """The command that kills every process tree whose environment holds ``name=token``."""
    return ["sh", "-c", _KILL, "cua-gym-kill", f"{name}={token}"]


class _Stream:
    """One output stream: everything before the mark, up to a bound."""

    def __init__(self, mark: bytes) -> None:
        self.data = bytearray()
        self.dropped = 0
        self.code: int | None = None
        self._mark = mark
        self._held = b""

    def feed(self, chunk: bytes) -> None:
        # A mark may be cut anywhere, so as many bytes as it has are held back.
        whole = len(self._mark) + _CODE_LENGTH
        held = self._held + chunk
        at = held.find(self._mark)
        if at >= 0 and len(held) >= at + whole:
            self.code = int(held[at + len(self._mark) : at + whole])
            self._keep(held[:at])
            self._held = b""
        else:
            self._keep(held[: -whole + 1])
            self._held = held[-whole + 1 :]

    def finish(self) -> None:
        self._keep(self._held)
        self._held = b""

    def _keep(self, part: bytes) -> None:
        room = KEEP_BYTES - len(self.data)
        self.data += part[:room]
        self.dropped += max(0, len(part) - room)


@dataclass(frozen=True, slots=True)
class Wire:
    """The running command's three streams, and how to end it.

    Attributes:
        stdout, stderr: block for the next bytes; ``b""`` when the stream or the wire ended.
        stdin: takes all of the bytes, then closes standard input; OSError when it cannot.
        status: exit status when both streams ended without a mark, or raises MachineError.
        kill: ends the command's tree.
    """

    stdout: Callable[[], bytes]
    stderr: Callable[[], bytes]
    stdin: Callable[[bytes], None]
    status: Callable[[], int]
    kill: Callable[[], None]


def collect(command: Command, wire: Wire, *, stdin: bytes, timeout_s: float) -> Completed:
    """Feed standard input and drain both outputs at once until the command's end.

    When the time runs out the tree is killed and what it printed until then is returned.

    Raises:
        MachineError: the wire broke, or the guard failed and nothing was run.
    """
    deadline = time.monotonic() + timeout_s
    out, err = _Stream(command.mark), _Stream(command.mark)

    def drain(read: Callable[[], bytes], stream: _Stream) -> None:
        while stream.code is None and (chunk := read()):
            stream.feed(chunk)

    def feed() -> None:
        try:
            wire.stdin(stdin)
        except OSError:
            pass  # a command need not read its input; a broken wire shows in the outputs

    pumps = [
        threading.Thread(target=drain, args=(wire.stdout, out), daemon=True),
        threading.Thread(target=drain, args=(wire.stderr, err), daemon=True),
    ]
    for thread in (*pumps, threading.Thread(target=feed, daemon=True)):
        thread.start()
    for thread in pumps:
        thread.join(max(0.0, deadline - time.monotonic()))
    timed_out = any(thread.is_alive() for thread in pumps)
    for _ in range(3):  # again, for one that was still being launched when it was looked for
        if any(thread.is_alive() for thread in pumps):
            wire.kill()
            for thread in pumps:  # the wrapper outlives the tree and writes its mark
                thread.join(2.0)
    out.finish()
    err.finish()
    code = out.code if out.code is not None else err.code
    if code == _ABSENT:
        raise MachineError(
            f"nothing was run: {command.guard!r} failed in the guest; "
            "the image lacks that program or account"
        )
    if code is None:
        code = 137 if timed_out else wire.status()
    return Completed(code, bytes(out.data), bytes(err.data), timed_out, out.dropped + err.dropped)
