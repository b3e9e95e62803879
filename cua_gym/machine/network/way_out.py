"""A route out of a network namespace: slirp4netns, a user-mode network that needs no root."""

from __future__ import annotations

import os
import select
import subprocess

from cua_gym.errors import MachineError
from cua_gym.machine.network.namespace import Namespace

__all__ = ["WayOut"]

READY_S = 15.0
END_S = 5.0


class WayOut:
    """slirp4netns for one namespace; it ends when our end of a pipe is closed."""

    def __init__(self, place: Namespace) -> None:
        ready, told = os.pipe()
        ended, self._alive = os.pipe()
        words = [
            "slirp4netns", "--configure", "--disable-host-loopback", "--disable-dns",
            "--enable-sandbox", "--enable-seccomp", f"--exit-fd={ended}", f"--ready-fd={told}",
            "--netns-type=path",
            *([] if place.user is None else [f"--userns-path=/proc/self/fd/{place.user}"]),
            f"/proc/self/fd/{place.network}", "tap0",
        ]  # fmt: skip
        try:
            self._process = subprocess.Popen(
                words,
                pass_fds=[
                    ended,
                    told,
                    *(fd for fd in (place.network, place.user) if fd is not None),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except FileNotFoundError as error:
            os.close(self._alive)
            raise MachineError(
                "an open network needs slirp4netns; apt-get install slirp4netns"
            ) from error
        finally:
            os.close(ended)
            os.close(told)
            is_ready = os.fdopen(ready, "rb")
        with is_ready:
            came, _, _ = select.select([is_ready], [], [], READY_S)
            if not came or is_ready.read(1) != b"1":
                said = self.close()
                raise MachineError(f"slirp4netns made no network: {said[-500:]}")

    def close(self) -> str:
        """End it; what it said. Idempotent."""
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
            try:
                self._said = self._process.communicate(timeout=END_S)[1]
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._said = self._process.communicate()[1]
        return self._said.decode(errors="replace").strip()
