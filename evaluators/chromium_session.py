"""Chromium's session files: which windows, tabs and pages were open when it last wrote.

They are its own format, a log of commands; what it means is taken from its sources.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from cua_gym.grading.check import Fails

from .bounds import within


@dataclass(slots=True)
class Tab:
    """One tab: its pages by index, and which of them it shows."""

    place: int = 0
    current: int = -1
    pages: dict[int, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The page that it shows; "" before the first."""
        return self.pages.get(self.current, "")


@dataclass(slots=True)
class Window:
    """One window's tabs in their order, and the one in front."""

    tabs: list[Tab]
    shown: Tab | None


# Commands of a session file, `components/sessions/core/session_service_commands.cc`.
_TAB_WINDOW, _TAB_PLACE, _PAGE, _CURRENT, _SHOWN = 0, 2, 6, 7, 8
_TAB_CLOSED, _WINDOW_CLOSED, _PRUNED = 16, 17, 24


def read_session(data: bytes) -> list[Window]:
    """The windows that a Chromium session file ends with.

    Raises:
        Fails: it is none, or of a version that is not known here.

    Source: Chromium's ``components/sessions/core/command_storage_backend.cc``: ``SNSS``, version
    1 or 3, then records of a 16-bit size, a command and its arguments, little-endian.
    """
    if data[:4] != b"SNSS" or data[4:8] not in (b"\1\0\0\0", b"\3\0\0\0"):
        raise Fails("no session of Chromium that is known", seen=data[:8])
    all_tabs: dict[int, Tab] = {}
    homes: dict[int, int] = {}
    shown: dict[int, int] = {}
    try:
        with within("the session"):
            for command, payload in _records(data):
                _follow(command, payload, all_tabs, homes, shown)
    except (struct.error, UnicodeDecodeError) as error:
        raise Fails(f"no whole session of Chromium: {error}", seen=data[:8]) from error
    windows = []
    for window in sorted(set(homes.values())):
        inside = [all_tabs[t] for t, home in homes.items() if home == window and t in all_tabs]
        inside.sort(key=lambda tab: tab.place)
        front = next((t for t in inside if t.place == shown.get(window)), None)
        if inside:
            windows.append(Window(inside, front))
    return windows


def _records(data: bytes) -> list[tuple[int, bytes]]:
    records = []
    at = 8
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "little")
        record = data[at + 2 : at + 2 + size]
        if not size or len(record) < size:
            break  # cut in the middle of a write; Chromium stops here too
        records.append((record[0], record[1:]))
        at += 2 + size
    return records


def _follow(
    command: int,
    payload: bytes,
    all_tabs: dict[int, Tab],
    homes: dict[int, int],
    shown: dict[int, int],
) -> None:
    if command in (_TAB_WINDOW, _TAB_PLACE, _CURRENT, _SHOWN):
        one, two = struct.unpack_from("<ii", payload)
        if command == _TAB_WINDOW:
            homes[two] = one
        elif command == _TAB_PLACE:
            all_tabs.setdefault(one, Tab()).place = two
        elif command == _CURRENT:
            all_tabs.setdefault(one, Tab()).current = two
        else:
            shown[one] = two
    elif command == _PAGE:
        # A pickle of Chromium's: its size, then tab, index, and the URL by its length.
        number, index, length = struct.unpack_from("<iii", payload, 4)
        if not 0 <= length <= len(payload) - 16:
            raise struct.error(f"a URL of {length} bytes")
        all_tabs.setdefault(number, Tab()).pages[index] = payload[16 : 16 + length].decode()
    elif command == _PRUNED:
        number, first, count = struct.unpack_from("<iii", payload)
        tab = all_tabs.setdefault(number, Tab())
        end = first + count
        if tab.current >= end:
            tab.current -= count
        elif tab.current >= first:
            tab.current = max(first - 1, 0)
        tab.pages = {
            i if i < first else i - count: url
            for i, url in tab.pages.items()
            if not first <= i < end
        }
    elif command == _TAB_CLOSED:
        all_tabs.pop(struct.unpack_from("<i", payload)[0], None)
    elif command == _WINDOW_CLOSED:
        (window,) = struct.unpack_from("<i", payload)
        for number in [t for t, home in homes.items() if home == window]:
            all_tabs.pop(number, None)
