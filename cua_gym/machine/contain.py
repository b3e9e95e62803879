"""Commands that die with this process, their mounts and processes included.

A build mounts /proc and /dev into a half-made system and starts programs in it; a light desktop is
nothing but mounts and processes. When their owner is killed, all that must vanish by itself. Each
command therefore runs in its own PID, mount and IPC namespace, whose first process is killed by the
kernel when the owner dies.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache

__all__ = ["acts_as_root", "contained", "tool_path"]

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
