"""The screen where QEMU's D-Bus display is missing: polled by screendump.

Responsible for fetching whole pictures into `screen.py`'s buffer, without a file name: QEMU writes
to a descriptor of a memory file. Slower (4 to 8 ms a frame) and blind between polls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import numpy as np

from cua_gym.errors import MachineError
from cua_gym.machine.qemu.qmp import Qmp
from cua_gym.machine.qemu.screen import LiveScreen

__all__ = ["PolledDisplay"]

POLL_EVERY_S = 0.1


class PolledDisplay:
    """Feeds a screen by polling; ends with `close` or with the process."""

    def __init__(self, qmp: Qmp, screen: LiveScreen, lost: Callable[[str], MachineError]) -> None:
        """Begin to poll.

        Args:
            lost: makes the error that users of the screen get when the pixels end.
        """
        del lost  # whoever polls by QMP gets QMP's own error
        self._qmp = qmp
        self._screen = screen
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._memory = os.memfd_create("cua-gym-screen", os.MFD_CLOEXEC)
        # QEMU asks its fd sets for a descriptor with exactly the access that it wants.
        self._target = os.open(f"/proc/self/fd/{self._memory}", os.O_WRONLY | os.O_CLOEXEC)
        self._fds = [self._target, self._memory]
        self._fdset: int = qmp.execute("add-fd", fds=[self._target])["fdset-id"]
        screen.start(self.fetch)
        self._thread = threading.Thread(target=self._serve, name="cua-gym-display", daemon=True)
        self._thread.start()

    def fetch(self) -> None:
        """Take one picture now."""
        with self._lock:
            if self._stop.is_set():
                return
            os.lseek(self._target, 0, os.SEEK_SET)
            self._qmp.execute("screendump", {"filename": f"/dev/fdset/{self._fdset}"})
            self._show(os.pread(self._memory, os.fstat(self._memory).st_size, 0))

    def stop(self) -> None:
        """From now on the end of QEMU is no failure."""
        self._stop.set()

    def close(self) -> None:
        """Stop the thread and free the memory; idempotent."""
        self.stop()
        self._thread.join()
        fds, self._fds = self._fds, []
        for fd in fds:
            os.close(fd)

    def _serve(self) -> None:
        while not self._stop.wait(POLL_EVERY_S):
            try:
                self.fetch()
            except MachineError as error:
                if not self._stop.is_set():
                    self._screen.fail(error)
                return

    def _show(self, ppm: bytes) -> None:
        """Binary PPM, as QEMU writes it: ``P6\\nWIDTH HEIGHT\\n255\\n`` and RGB rows."""
        magic, size, depth, rest = ppm.split(b"\n", 3)
        if magic != b"P6" or depth != b"255":
            raise MachineError(f"QEMU's screendump is no PPM picture: {ppm[:20]!r}")
        width, height = (int(number) for number in size.split())
        rgb = np.frombuffer(rest, np.uint8, width * height * 3).reshape(height, width, 3)
        bgrx = np.zeros((height, width, 4), np.uint8)
        bgrx[..., :3] = rgb[..., ::-1]
        self._screen.whole(width, height, width * 4, bgrx.tobytes())
