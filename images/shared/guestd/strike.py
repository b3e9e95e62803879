"""Characters that no key gives, struck as keys: on keycodes that no real key of the machine has.

A spare keycode is given a character and keeps it: a program translates a key when it gets round to
the event, perhaps seconds later, so a keycode may change its character only once the focused window
has handled all that came before. It says so by answering a ping (EWMH ``_NET_WM_PING``), which
stands behind the keys in its queue. Source of keysym numbers: X11 protocol, appendix A.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from Xlib import XK, X
from Xlib.ext import xtest
from Xlib.protocol import event as xevent

# Keycodes of a PC keyboard, as far as the host presses them: never spare.
REAL = {8, *range(9, 92), 94, 95, 96, *range(104, 109), *range(110, 120), 127, 133, 134, 135}
# Other keys count as spare when they give nothing, or a symbol that no desktop grabs for itself:
# brackets and plusminus of rare keyboards, Linefeed, KP_Equal, KP_Decimal, Undo to Help. Multimedia
# keys are grabbed: two letters put on such keys never arrived in an Xfce session.
HARMLESS = {0, 0x28, 0x29, 0xB1, 0xFF0A, *range(0xFF65, 0xFF6B), 0xFFAE, 0xFFBD}
# How long a window that answers no pings gets to take in what it was sent.
BLIND_S = 0.5
PING_S = 40.0  # on a starved host a living program takes long; one that hangs is not waited for
LOCK = 2


class Striker:
    """Owns the spare keycodes of one X connection's server."""

    def __init__(self, display: Any, pump: Callable[[float | None], None]) -> None:
        self._display = display
        self._pump = pump
        self._codes: dict[str, int] = {}  # by last use, oldest first
        self._stamp = int(time.monotonic() * 1000) & 0xFFFFFF
        self._answered = 0

    def strike(self, items: list[str | list[int]], window: Any) -> None:
        """Strike items in order: a character by a spare key, a list of keycodes as a chord."""
        caps = self._caps_code()
        if caps:
            self._chord([caps])
        try:
            while items:
                items = self._batch(items, window)
        finally:
            if caps:
                self._chord([caps])
            self._display.sync()

    def _chord(self, codes: list[int]) -> None:
        for code in codes:
            xtest.fake_input(self._display, X.KeyPress, code)
        for code in reversed(codes):
            xtest.fake_input(self._display, X.KeyRelease, code)

    def _caps_code(self) -> int:
        """The Caps Lock key if it is on, since it would make capitals of letters; else 0."""
        if not self._display.screen().root.query_pointer().mask & LOCK:
            return 0
        return int(self._display.keysym_to_keycode(XK.XK_Caps_Lock))

    def _batch(self, items: list[str | list[int]], window: Any) -> list[str | list[int]]:
        """Strike as many items as the spare keycodes can give; returns the rest."""
        now, spare = self._spare_codes()
        needed: dict[str, None] = {}
        count = 0
        for item in items:
            if isinstance(item, str) and item not in needed:
                if len(needed) == len(spare):
                    break
                needed[item] = None
            count += 1
        if not count:
            raise ValueError("this X server has no spare keycode")
        self._assign(needed, now, spare, window)
        for item in items[:count]:
            self._chord([self._codes[item]] if isinstance(item, str) else item)
        self._display.sync()
        return items[count:]

    def _spare_codes(self) -> tuple[dict[int, int], list[int]]:
        """What every keycode gives plain, and those that are ours to use."""
        first, last = (getattr(self._display.display.info, f"{m}_keycode") for m in ("min", "max"))
        rows = self._display.get_keyboard_mapping(first, last - first + 1)
        now = {first + i: int(row[0]) for i, row in enumerate(rows)}
        modifiers = {code for row in self._display.get_modifier_mapping() for code in row}
        ours = {code for c, code in self._codes.items() if now.get(code) == keysym(c)}
        free = (c for c in now if c not in REAL and c not in modifiers)
        return now, [c for c in free if c in ours or now[c] in HARMLESS]

    def _assign(
        self, needed: dict[str, None], now: dict[int, int], spare: list[int], window: Any
    ) -> None:
        """Give every needed character a keycode."""
        # Someone may have loaded a keymap since: only what is there counts.
        kept = {c: k for c, k in self._codes.items() if k in spare and now[k] == keysym(c)}
        free = [k for k in spare if k not in kept.values()]
        changed = {}
        reused = False
        for character in needed:
            if character in kept:
                kept[character] = kept.pop(character)  # the newest now
                continue
            if not free:
                free.append(kept.pop(next(c for c in kept if c not in needed)))
                reused = True
            kept[character] = free.pop(0)
            changed[kept[character]] = keysym(character)
        if reused:
            self.in_step(window)
        self._codes = kept
        if changed:
            self._map(changed)
            # Without it xterm took one in ten first keys by the keymap of before.
            self.in_step(window)

    def _map(self, changed: dict[int, int]) -> None:
        """One request for each run of neighbours: every request makes every client read anew."""
        codes = sorted(changed)
        while codes:
            run = [codes.pop(0)]
            while codes and codes[0] == run[-1] + 1:
                run.append(codes.pop(0))
            self._display.change_keyboard_mapping(run[0], [[changed[k]] * 2 for k in run])
        self._display.sync()

    def in_step(self, window: Any) -> None:
        """Return once ``window`` has handled every event so far, or cannot say."""
        atom = self._display.get_atom
        protocols, ping = atom("WM_PROTOCOLS"), atom("_NET_WM_PING")
        top = window
        for _ in range(8):
            found = top.get_full_property(protocols, X.AnyPropertyType) if top else None
            if found is not None and ping in found.value:
                break
            top = top.query_tree().parent if top else None
        else:
            top = None  # not one in eight
        if not top:
            time.sleep(BLIND_S)
            return
        self._stamp += 1
        root = self._display.screen().root
        root.change_attributes(event_mask=X.SubstructureNotifyMask)
        top.send_event(
            xevent.ClientMessage(
                window=top,
                client_type=protocols,
                data=(32, [ping, self._stamp, top.id, 0, 0]),
            )
        )
        end = time.monotonic() + PING_S
        while self._answered != self._stamp and time.monotonic() < end:
            self._pump(max(0.0, end - time.monotonic()))
        root.change_attributes(event_mask=X.NoEventMask)

    def handle(self, event: Any) -> None:
        """A client's message at the root window: the answer to a ping?"""
        if event.type == X.ClientMessage and event.client_type == self._display.get_atom(
            "WM_PROTOCOLS"
        ):
            self._answered = event.data[1][1]


def keysym(character: str) -> int:
    """The keysym of a character: Latin-1 by its own number, others by Unicode's."""
    number = ord(character)
    return number if number < 0x100 else 0x01000000 | number
