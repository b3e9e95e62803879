"""A network namespace with sockets of ours in it, made by a program that ends right away.

A socket stays in the namespace in which it was made, whoever holds it. So a child process makes
the namespace and the sockets, hands both over, and ends: nothing runs that could be left behind,
and when the last descriptor is closed, by `kill -9` too, the kernel removes it all.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cua_gym.errors import MachineError

__all__ = ["Namespace"]

TIMEOUT_S = 30.0
_MOST = 250
"""Descriptors in one message; the kernel takes 253 (SCM_MAX_FD)."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network namespace of its own: loopback, and what we listen to.

    Attributes:
        network: its descriptor.
        user: descriptor of the user namespace that owns it; None when root made it.
        datagrams: UDP sockets, as asked for.
        listeners: TCP sockets, as asked for.
    """

    network: int
    user: int | None
    datagrams: tuple[socket.socket, ...]
    listeners: tuple[socket.socket, ...]

    @classmethod
    def make(
        cls,
        addresses: Sequence[str],
        datagrams: Sequence[tuple[str, int]],
        ports: Sequence[int],
    ) -> Namespace:
        """A new one.

        Args:
            addresses: its loopback's besides 127.0.0.1, as ``198.18.0.1/15``; every address of such
                a net is its own.
            datagrams: (address, port) of UDP sockets.
            ports: TCP ports to listen at, on all of its addresses.

        Raises:
            MachineError: this account may not make one, or a tool is missing.
        """
        if len(ports) + len(datagrams) > _MOST - 2:
            raise MachineError(f"a network of more than {_MOST - 2} ports is not made; name fewer")
        for tool, package in (("unshare", "util-linux"), ("ip", "iproute2")):
            if shutil.which(tool, path=_PATH) is None:
                raise MachineError(f"{tool} is not installed; apt-get install {package}")
        as_root = os.geteuid() == 0
        words = ["unshare", "--net", *([] if as_root else ["--map-root-user"]), "--"]
        inside = Path(__file__).with_name("inside.py")
        wanted = {"addresses": addresses, "datagrams": datagrams, "ports": ports}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                child = subprocess.Popen(
                    [*words, sys.executable, "-I", "-S", str(inside), str(theirs.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                    env={"PATH": _PATH},
                )
            try:
                _, said = child.communicate(json.dumps(wanted).encode(), TIMEOUT_S)
            except subprocess.TimeoutExpired as error:
                child.kill()
                child.communicate()
                raise MachineError(f"a network was not made within {TIMEOUT_S:g} s") from error
            if child.returncode:
                why = said.decode(errors="replace").strip() or f"exit {child.returncode}"
                raise MachineError(
                    f"no network can be made for the machine: {why[-500:]}; this account must be "
                    "allowed user namespaces"
                )
            _, fds, _, _ = socket.recv_fds(ours, 1, _MOST, socket.MSG_CMSG_CLOEXEC)
        network, user, *rest = fds
        sockets = [socket.socket(fileno=fd) for fd in rest]
        if as_root:
            os.close(user)
        return cls(
            network,
            None if as_root else user,
            tuple(sockets[: len(datagrams)]),
            tuple(sockets[len(datagrams) :]),
        )

    def enter(self, keep: Callable[[int], int]) -> list[str]:
        """Command prefix that puts a program into it.

        Args:
            keep: told each descriptor, a copy of its own, that the program must inherit by its
                number; returns it.
        """
        words = ["nsenter", f"--net=/proc/self/fd/{keep(os.dup(self.network))}"]
        if self.user is not None:
            words += [f"--user=/proc/self/fd/{keep(os.dup(self.user))}", "--preserve-credentials"]
        return [*words, "--"]

    def close(self) -> None:
        """Let go of it; who stands in it keeps it."""
        for end in (*self.datagrams, *self.listeners):
            end.close()
        for fd in (self.network, self.user):
            if fd is not None:
                os.close(fd)


_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
