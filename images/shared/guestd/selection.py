"""X selections as text: own them, serve them, read them (ICCCM 2, INCR included).

Who asks when is for `desk.Desk`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from Xlib import X, Xatom
from Xlib.protocol import event as xevent

CHUNK = 64 << 10
# Larger values go out in pieces: a server's largest request is 256 KiB without BIG-REQUESTS.
WHOLE = 128 << 10
# An owner that does not answer has nothing to give back.
ANSWER_S = 1.0
LARGEST = 16 << 20


class Selections:
    """This connection's side of CLIPBOARD and PRIMARY."""

    def __init__(self, display: Any, pump: Callable[[float | None], None]) -> None:
        self._display = display
        self._pump = pump
        self._window = display.screen().root.create_window(
            -1, -1, 1, 1, 0, X.CopyFromParent, event_mask=X.PropertyChangeMask
        )
        self._held: dict[int, str] = {}
        self._sending: dict[tuple[int, int], tuple[Any, int, bytes]] = {}
        self._answer: Any = None
        self._new_value = False
        atom = display.get_atom
        self._targets, self._timestamp = atom("TARGETS"), atom("TIMESTAMP")
        self._utf8, self._incr = atom("UTF8_STRING"), atom("INCR")
        self._texts = (self._utf8, atom("text/plain;charset=utf-8"))
        self._property = atom("CUA_GYM_SELECTION")

    def own(self, name: str, text: str) -> None:
        """Become the owner of a selection; others see a change even if it was ours."""
        atom = self._display.get_atom(name)
        self._held[atom] = text
        self._window.set_selection_owner(atom, X.CurrentTime)

    # ---------------------------------------------------------------- serving

    def handle(self, event: Any) -> None:
        """One X event; those of no interest are dropped."""
        if event.type == X.SelectionRequest:
            self._serve(event)
        elif event.type == X.SelectionClear:
            # It may be older than an ownership taken again since: only the server knows.
            if self._display.get_selection_owner(event.atom) != self._window:
                self._held.pop(event.atom, None)
        elif event.type == X.SelectionNotify:
            self._answer = event
        elif event.type == X.PropertyNotify:
            if event.window == self._window:
                self._new_value |= event.state == X.PropertyNewValue
            elif event.state == X.PropertyDelete:
                self._send_more(event.window.id, event.atom)

    def _serve(self, event: Any) -> None:
        text = self._held.get(event.selection)
        target, place = event.target, event.property or event.target
        if text is None or event.requestor == X.NONE:
            place = X.NONE
        elif target == self._targets:
            offered = [self._targets, self._timestamp, *self._texts]
            if _latin1(text) is not None:
                offered.append(Xatom.STRING)
            event.requestor.change_property(place, Xatom.ATOM, 32, offered)
        elif target == self._timestamp:
            event.requestor.change_property(place, Xatom.INTEGER, 32, [event.time])
        elif target in self._texts:
            self._send(event.requestor, place, target, text.encode("utf-8", "replace"))
        elif target == Xatom.STRING and (data := _latin1(text)) is not None:
            self._send(event.requestor, place, target, data)
        else:
            place = X.NONE
        if event.requestor != X.NONE:
            event.requestor.send_event(
                xevent.SelectionNotify(
                    time=event.time,
                    requestor=event.requestor,
                    selection=event.selection,
                    target=target,
                    property=place,
                )
            )
        self._display.flush()

    def _send(self, window: Any, place: int, kind: int, data: bytes) -> None:
        if len(data) <= WHOLE:
            window.change_property(place, kind, 8, data)
            return
        window.change_attributes(event_mask=X.PropertyChangeMask)
        window.change_property(place, self._incr, 32, [len(data)])
        self._sending[window.id, place] = (window, kind, data)

    def _send_more(self, number: int, place: int) -> None:
        """The requestor took the last piece: the next one, or an empty one for the end."""
        if (number, place) not in self._sending:
            return
        window, kind, data = self._sending.pop((number, place))
        window.change_property(place, kind, 8, data[:CHUNK])
        if data:
            self._sending[number, place] = (window, kind, data[CHUNK:])
        self._display.flush()

    # ---------------------------------------------------------------- reading

    def text(self, name: str) -> str | None:
        """What a selection holds as text; None without an owner, or one without text."""
        atom = self._display.get_atom(name)
        if atom in self._held:
            return self._held[atom]
        if not self._display.get_selection_owner(atom):
            return None
        self._answer, self._new_value = None, False
        self._window.convert_selection(atom, self._utf8, self._property, X.CurrentTime)
        end = time.monotonic() + ANSWER_S
        while self._answer is None or self._answer.selection != atom:
            if not self._wait(end):
                return None
        if self._answer.property == X.NONE:
            return None
        found = self._take()
        if found is None:
            return None
        kind, data = found
        if kind == self._incr:
            data = self._take_pieces()
        return data.decode("utf-8", "replace")

    def _take(self) -> tuple[int, bytes] | None:
        # Read and deleted in one request: between two the owner could write the next piece.
        found = self._window.get_property(self._property, X.AnyPropertyType, 0, LARGEST // 4, True)
        return None if found is None else (found.property_type, bytes(found.value or b""))

    def _take_pieces(self) -> bytes:
        whole = bytearray()
        while len(whole) < LARGEST:
            end = time.monotonic() + ANSWER_S
            self._new_value = False
            piece = self._take()
            while piece is None:
                if not self._wait(end):
                    raise TimeoutError("a clipboard's owner stopped in the middle of its text")
                if self._new_value:
                    self._new_value = False
                    piece = self._take()
            if not piece[1]:
                break
            whole += piece[1]
        return bytes(whole)

    def _wait(self, end: float) -> bool:
        left = end - time.monotonic()
        if left <= 0:
            return False
        self._pump(left)
        return True


def _latin1(text: str) -> bytes | None:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return None
