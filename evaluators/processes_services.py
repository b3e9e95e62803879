"""Services, listening ports and processes, as commands that root runs in the guest print them.

- units: ``systemctl show -p Id,LoadState,ActiveState,SubState,UnitFileState NAME...``, and what
  else is asked for;
- ports: ``ss -Hltunp``;
- processes: ``ps -ewwo pid=,user:32=,stat=,exe=``, or ``args=`` at the end. ``exe`` is what the
  kernel runs; arguments are what a process says of itself, which it can change.

At that time the desktop account's processes are stopped, but there. Output that is not of its
command, to the letter, is refused, since somebody who is root in the guest can replace the command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .bounds import within
from .text import Pattern

Protocol = Literal["tcp", "udp"]


@check
def unit(item: Item, *, name: str, expected: dict[str, str]) -> Verdict:
    """The unit of this name (``Id``: ``nginx.service``) has these properties with these values.

    It must be ``LoadState=loaded`` unless ``expected`` says otherwise, so that a unit that was
    deleted is not a stopped one. It refuses a unit or property that is not there or there twice.
    """
    wanted = {"LoadState": "loaded", **expected}
    seen = _properties(read_units(item.text()), name, wanted)
    return verdict(seen == wanted, name, seen=seen, wanted=wanted)


@check
def units(item: Item, *, expected: dict[str, dict[str, str]]) -> Verdict:
    """As `unit`, of several units by their names; all of them must be as they are wanted."""
    if not expected:
        raise GradingError("expected is empty; name at least one unit")
    blocks = read_units(item.text())
    wanted = {name: {"LoadState": "loaded", **pairs} for name, pairs in expected.items()}
    seen = {name: _properties(blocks, name, pairs) for name, pairs in wanted.items()}
    wrong = [name for name in wanted if seen[name] != wanted[name]]
    return verdict(not wrong, f"not as wanted: {wrong}", seen=seen, wanted=wanted)


def _properties(
    blocks: list[dict[str, list[str]]], name: str, wanted: dict[str, str]
) -> dict[str, str | list[str]]:
    """What is said of these properties of one unit."""
    fits = [block for block in blocks if block.get("Id") == [name]]
    if len(fits) != 1:
        raise Fails(f"{len(fits)} units {name} instead of one", seen=repr(blocks), wanted=wanted)
    found = {key: fits[0].get(key, []) for key in wanted}
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def read_units(text: str) -> list[dict[str, list[str]]]:
    """What ``systemctl show`` said of each unit: property to its values.

    Raises:
        Fails: it is not its output.
    """
    blocks: list[dict[str, list[str]]] = []
    for part in text.strip("\n").split("\n\n"):
        block: dict[str, list[str]] = {}
        for line in part.split("\n"):
            match = re.fullmatch(r"([A-Z][A-Za-z0-9]*)=(.*)", line)
            if match is None:
                raise Fails(f"no line of systemctl show: {line!r:.80}", seen=text)
            block.setdefault(match[1], []).append(match[2])
        blocks.append(block)
    return blocks


@dataclass(frozen=True, slots=True)
class Socket:
    """One that listens; ``address`` without brackets, ``processes`` by their short names."""

    protocol: str
    address: str
    port: int
    processes: tuple[str, ...]


_SOCKET = re.compile(
    r"(tcp|udp) +(?:LISTEN|UNCONN) +\d+ +\d+ +(\S+):(\d{1,5}) +\S+:(?:\*|\d+)"
    r"(?: +users:\((.+)\))? *"
)
_HOLDER = re.compile(r'\("([^"]*)",pid=\d+,fd=\d+\)')


def read_sockets(text: str) -> list[Socket]:
    """What ``ss -Hltunp`` lists.

    Raises:
        Fails: it is not its output.
    """
    sockets = []
    for line in text.removesuffix("\n").split("\n") if text else []:
        match = _SOCKET.fullmatch(line)
        holders = list(_HOLDER.finditer(match[4] or "")) if match else []
        # A process chooses its name, which may look like the rest of the line.
        if match is None or ",".join(h[0] for h in holders) != (match[4] or ""):
            raise Fails(f"no line of ss -Hltunp: {line!r:.120}", seen=text)
        names = tuple(holder[1] for holder in holders)
        sockets.append(Socket(match[1], match[2].strip("[]"), int(match[3]), names))
    return sockets


@check
def listening(
    item: Item,
    *,
    port: int,
    protocol: Protocol = "tcp",
    addresses: Sequence[str] = (),
    process: str = "",
) -> Verdict:
    """Something listens on the port; ``addresses`` are all on which it may and must.

    An address is as ``ss`` has it, without brackets (``127.0.0.1``, ``::``, ``*`` for both kinds).
    ``process`` is the short name of a process that holds each of these sockets. It refuses a port
    that only begins with this one, another protocol, and an address more or less.
    """
    sockets = read_sockets(item.text())
    fits = [s for s in sockets if (s.protocol, s.port) == (protocol, port)]
    seen = [f"{s.protocol} {s.address} {s.port} {','.join(s.processes)}" for s in sockets]
    right = bool(fits) and all(process in ("", *s.processes) for s in fits)
    if addresses:
        right = right and {s.address for s in fits} == set(addresses)
    wanted = f"{protocol} {' '.join(addresses)} {port} {process}"
    return verdict(right, f"{protocol} port {port}", seen=seen, wanted=wanted)


@check
def not_listening(item: Item, *, port: int, protocol: Protocol = "tcp") -> Verdict:
    """Nothing listens on the port, on any address. It refuses a list that was not taken."""
    fits = [s for s in read_sockets(item.text()) if (s.protocol, s.port) == (protocol, port)]
    return verdict(not fits, f"{protocol} port {port}", seen=repr(fits), wanted="nothing")


@dataclass(frozen=True, slots=True)
class Process:
    """One process; ``what`` is its ``exe`` or ``args``, as the command asked."""

    pid: int
    user: str
    state: str
    what: str


def read_processes(text: str) -> list[Process]:
    """What ``ps`` lists; the last column is all that is left of a line.

    Raises:
        Fails: it is not its output.
    """
    processes = []
    for line in text.removesuffix("\n").split("\n"):
        match = re.fullmatch(r" *(\d+) (\S+) +([A-Z]\S*) +(.*)", line)
        if match is None:
            raise Fails(f"no line of ps -ewwo: {line!r:.120}", seen=text)
        processes.append(Process(int(match[1]), match[2], match[3], match[4].rstrip(" ")))
    return processes


@check
def running(item: Item, *, command: Pattern, user: str = "", count: int | None = None) -> Verdict:
    """A process, or exactly ``count``, whose whole last column matches is there; ``user`` owns it.

    One that has ended and waits for its parent (a zombie) is none. It refuses a match of a part.
    """
    if count is not None and count < 1:
        raise GradingError(f"count is 1 or more, not {count}; for none there is not_running")
    fits = _running(item, command, user)
    right = bool(fits) if count is None else len(fits) == count
    wanted = f"{count or 'some'} {command} {user}".strip()
    return verdict(right, f"{len(fits)} processes", seen=repr(fits[:20]), wanted=wanted)


@check
def not_running(item: Item, *, command: Pattern, user: str = "") -> Verdict:
    """No process has a whole last column that matches. It refuses a list that was not taken."""
    fits = _running(item, command, user)
    wanted = f"no {command} {user}".strip()
    return verdict(not fits, f"{len(fits)} processes", seen=repr(fits[:20]), wanted=wanted)


def _running(item: Item, command: str, user: str) -> list[Process]:
    with within("the processes"):
        return [
            p
            for p in read_processes(item.text())
            if user in ("", p.user)
            and not p.state.startswith("Z")
            and re.fullmatch(command, p.what)
        ]
