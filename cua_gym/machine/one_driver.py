"""One caller drives a machine at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cua_gym.errors import MachineBusy

__all__ = ["OneDriver"]


class OneDriver:
    """Lets one thread in at a time; a second one gets an error instead of waiting."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @contextmanager
    def hold(self, what: str) -> Iterator[None]:
        """Drive the machine for the length of a ``with`` block.

        Raises:
            MachineBusy: another thread drives it.
        """
        if not self._lock.acquire(blocking=False):
            raise MachineBusy(
                f"{what} came while another thread drives this machine; their events would have "
                "been mixed. Give each agent a machine of its own, or take turns"
            )
        try:
            yield
        finally:
            self._lock.release()
