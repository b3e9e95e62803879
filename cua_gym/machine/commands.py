"""How one command runs on a POSIX guest: wrapped so that its end is seen, and killed as a tree.

Responsible for the text handed to the remote shell and for the script that kills what a command
started. Leaves its streams to `process`, and the wire to the shells.

A command's end is a *mark* that the wrapper writes to both streams, not the streams' end: a
background job that inherited them would hold them open for as long as it lives. Such a job goes
on after the command; it gets SIGPIPE if it still writes to the old output, so a job meant to
stay redirects its output (``server >/tmp/log 2>&1 &``; ``nohup`` adds nothing where there is no
terminal).

A command's tree is found by a token in its environment, and by descent and session from there,
so a child that made its own session or was adopted by init is found too. Only a process that
cleared its environment, left the session *and* lost its parents escapes.

A command is the leader of a session of its own, without a terminal. One that gets a terminal is
in the session that was made for it with the terminal, whose leader is the wrapper.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cua_gym.errors import ActionError

__all__ = [
    "ABSENT",
    "LINE_LIMIT",
    "TERM",
    "TOKEN_NAME",
    "Command",
    "argv_of",
    "env_words",
    "kill_argv",
    "launcher",
    "new_token",
    "script_of",
]

ABSENT = 999
"""The wrapper's own "exit status": the guard failed, nothing was run."""

LINE_LIMIT = 96 << 10
"""Longest `Command.line`; Linux takes 128 KiB in one argument. Longer ones go by `script_of`."""

TERM = "xterm-256color"
"""The kind of terminal that commands are told they have."""

TOKEN_NAME = "CUA_GYM_RUN"

# What is found is stopped first, and looked for again until nothing new is found: a tree may fork
# meanwhile, and a shell whose child alone was killed would run its next line. The cap is for what
# forks faster than it can be looked at. A session counts when its leader is in the tree or gone, or
# when it has a terminal, which was made for the command; another living leader from before (its
# launcher, a server) is not ours.
_KILL = r"""
tree=
round=0
while [ "$round" -lt 100 ]; do
  seeds=$(grep -lsazxF -e "$1" /proc/[0-9]*/environ | tr -dc '0-9\n' | tr '\n' ' ')
  [ -n "$seeds$tree" ] || exit 0
  fresh=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v seeds="$seeds" -v tree="$tree" '
    $1 ~ /^[0-9]+$/ { rest = $0; sub(/^.*\) /, "", rest); split(rest, f, " ")
                      parent[$1] = f[2]; session[$1] = f[4]; terminal[$1] = f[5] }
    END {
      n = split(seeds, s, " ")
      for (i = 1; i <= n; i++) {
        hit[s[i]] = 1
        if (session[s[i]] > 0 && (terminal[s[i]] || !(session[s[i]] in parent)))
          ours[session[s[i]]] = 1
      }
      known = split(tree, t, " ")
      for (i = 1; i <= known; i++) hit[t[i]] = 1
      do {
        grew = 0
        for (p in parent)
          if (!(p in hit) && ((parent[p] in hit) || (session[p] in hit) ||
                              (session[p] in ours))) { hit[p] = 1; grew = 1 }
      } while (grew)
      for (i = 1; i <= known; i++) delete hit[t[i]]
      for (p in hit) printf "%s ", p
    }')
  [ -n "$fresh" ] || break
  kill -STOP $fresh 2>/dev/null
  tree="$tree$fresh"
  round=$((round + 1))
done
kill -KILL $tree 2>/dev/null
[ "$round" -lt 100 ]
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
        guard: must succeed first; otherwise nothing is run and the status is `ABSENT`, so that a
            missing launcher cannot look like the command's own failure.
        terminal: whether its streams are a terminal that is the wrapper's own.
        script: a file that is removed at its end.
    """

    token: str
    words: Sequence[str]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    guard: Sequence[str] = ("true",)
    terminal: bool = False
    script: str | None = None

    @property
    def line(self) -> bytes:
        """The text for a POSIX login shell, odd bytes restored.

        Every program it starts costs some 40 ms in an emulated guest, so it starts few.
        """
        words = ["exec", *launcher(self.terminal), *self.words]
        if self.cwd or self.env:
            words[1:1] = env_words(self.cwd, self.env)
        # The shell's own remarks ("Killed") go to its own closed-off stderr, not the command's;
        # the subshell is for dash, which redirects in the shell itself while it waits. The
        # mark is put together by printf, so no listing of processes can print it. Ctrl-C and
        # Ctrl-\ reach all of a terminal's foreground, the wrapper too, which is to outlive them.
        script = (
            "exec 3>&2 2>/dev/null; trap : INT QUIT; "
            f"if {shlex.join(self.guard)} >/dev/null </dev/null; "
            f"then (export {TOKEN_NAME}={self.token}; {shlex.join(words)} 2>&3 3>&-); c=$?; "
            f"else c={ABSENT}; fi; "
            + (f"rm -f -- {shlex.quote(self.script)}; " if self.script else "")
            + f"printf '%s:%s%03d' cua-gym-end {self.token} $c; "
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


def launcher(terminal: bool) -> list[str]:
    """What starts a program, whatever its name, in its session (see this module's head)."""
    return ["nice", "-n", "0", "--"] if terminal else ["setsid", "-w", "--"]


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
