r"""Text to key events, whatever the guest's layout: exact, or refused before anything is typed.

Characters that the active layout carries are struck as keys, Shift and AltGr pressed explicitly;
for the rest the guest's daemon, where there is one, has keys of its own. ``\n`` and ``\t`` are
always the Enter and Tab keys, so no layout can turn them into something else. Pasting was tried and
given up: LibreOffice fetches the clipboard when it likes, so keys overtook the text.

How a key reaches the machine is the caller's ``press``; every wire types through this module.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from cua_gym.clock import Clock, SystemClock
from cua_gym.errors import MachineTimeout, UntypableText
from cua_gym.machine.guest_ops import Ops
from cua_gym.machine.keyboard import KEYS
from cua_gym.machine.keymap import Keymap, Stroke

__all__ = ["Pace", "Plan", "Press", "plan_text", "type_text"]

Press = Callable[[str, bool], None]
"""Press (True) or release (False) a key by its canonical name."""

_KEYS_FOR = {"\n": Stroke("enter"), "\t": Stroke("tab")}
_X_OFFSET = 8
_STRIKE_S = 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast keys may follow each other.

    An emulated keyboard queues 16 events and drops the rest without a word. With the guest's
    daemon the pace adapts to the guest: after ``burst`` events the next waits until X has seen
    the last. Without it, ``blind_gap_s`` separates events.

    Attributes:
        burst: events in flight before a confirmation, at most 12.
        gap_s: between events that are confirmed.
        blind_gap_s: between events that nobody confirms.
        confirm_s: a guest that has not taken a burst by then is at fault.
    """

    burst: int = 12
    gap_s: float = 0.0
    blind_gap_s: float = 0.01
    confirm_s: float = 20.0

    def __post_init__(self) -> None:
        if not 1 <= self.burst <= 12 or min(self.gap_s, self.blind_gap_s) < 0:
            raise ValueError(f"{self}: burst is 1 to 12, times are not negative")


@dataclass(frozen=True, slots=True)
class Plan:
    """How a text is typed: ``before`` and ``after`` by the machine's keyboard, in between by the
    guest's daemon, which strikes characters that no key gives on keys of its own.
    """

    before: tuple[Stroke, ...]
    between: tuple[Stroke | str, ...] = ()
    after: tuple[Stroke, ...] = ()


def plan_text(text: str, keymap: Keymap, *, any_character: bool) -> Plan:
    r"""Strokes for every character; from the first to the last without a key is the daemon's part.

    Args:
        any_character: the guest's daemon is there to strike what no key gives.

    Raises:
        UntypableText: names the characters that go neither way.
    """
    typable = {**keymap.strokes, **_KEYS_FOR}
    lacking = [i for i, c in enumerate(text) if c not in typable]
    refused = [
        c for c in dict.fromkeys(text[i] for i in lacking) if not (any_character and _sane(c))
    ]
    if refused:
        names = ", ".join(_describe(c) for c in refused[:20])
        more = f" and {len(refused) - 20} more" if len(refused) > 20 else ""
        raise UntypableText(f"no key here gives {names}{more}; nothing was typed")
    start, end = (lacking[0], lacking[-1] + 1) if lacking else (len(text), len(text))
    return Plan(
        tuple(typable[c] for c in text[:start]),
        tuple(typable.get(c, c) for c in text[start:end]),
        tuple(typable[c] for c in text[end:]),
    )


def type_text(
    text: str,
    press: Press,
    *,
    ops: Ops | None = None,
    keymap: Keymap | None = None,
    pace: Pace | None = None,
    clock: Clock | None = None,
) -> None:
    """Type ``text`` exactly; returns when X has taken all of it.

    Args:
        text: any Unicode without control characters other than newline and tab.
        press: presses or releases one key. No key may be down when this is called.
        ops: the guest's daemon. Its keymap is read afresh for each text, since anything in the
            guest may change the layout.
        keymap: the guest's layout where there is no ``ops``.

    Raises:
        UntypableText: names the characters; nothing was typed.
        MachineError: the guest did not take the keys, or its daemon failed.
    """
    if not text:
        return
    if ops is not None:
        keymap = Keymap.of_guest(ops)
    elif keymap is None:
        raise ValueError("either the guest's daemon or a keymap must say what the keys give")
    plan = plan_text(text, keymap, any_character=ops is not None)
    typist = _Typist(press, ops, pace or Pace(), clock or SystemClock())
    typist.strike(plan.before)
    if ops is not None and plan.between:
        keys = [k if isinstance(k, str) else _keycodes(k) for k in plan.between]
        ops.call("strike", timeout_s=_STRIKE_S, keys=keys)
    typist.strike(plan.after)


class _Typist:
    """Sends strokes in bursts that the guest confirms, each chord let go whatever happens."""

    def __init__(self, press: Press, ops: Ops | None, pace: Pace, clock: Clock) -> None:
        self._press = press
        self._ops = ops
        self._pace = pace
        self._clock = clock
        self._gap_s = pace.blind_gap_s if ops is None else pace.gap_s

    def strike(self, strokes: tuple[Stroke, ...]) -> None:
        """All strokes; on return X has seen them and every key is up."""
        if not strokes:
            return
        confirmed = ""  # its release may not have arrived yet
        for burst in _bursts(strokes, self._pace.burst):
            last = burst[-1].key
            if last == confirmed:
                self._wait(None)
            for stroke in burst[:-1]:
                self._chord(stroke, confirm=False)
            self._chord(burst[-1], confirm=True)
            confirmed = last
        self._wait(None)

    def _chord(self, stroke: Stroke, *, confirm: bool) -> None:
        down: list[str] = []
        try:
            for key in (*stroke.holds, stroke.key):
                self._event(key, True)
                down.append(key)
            if confirm:
                self._wait(stroke.key)
        finally:
            for key in reversed(down):
                self._event(key, False)

    def _event(self, key: str, down: bool) -> None:
        self._press(key, down)
        if self._gap_s:
            self._clock.sleep(self._gap_s)

    def _wait(self, key: str | None) -> None:
        """Until X has seen ``key`` go down, or every key up; it saw all that came before too."""
        if self._ops is None:
            return
        code = None if key is None else KEYS[key].evdev + _X_OFFSET
        limit_s = self._pace.confirm_s
        answer = self._ops.call("keys", timeout_s=limit_s + 5, down=code, wait_s=limit_s)
        if answer.get("met") is not True:
            what = "let go of every key" if key is None else f"seen the key {key!r} go down"
            raise MachineTimeout(
                f"the guest has not {what} after {limit_s:g} s; X has {answer.get('down')!r:.80}"
            )


def _bursts(strokes: Iterable[Stroke], limit: int) -> Iterator[list[Stroke]]:
    """Runs of strokes with distinct keys and about ``limit`` events.

    Distinct, because the confirmation looks at the last one's key: a press of the same key earlier
    in the run would be taken for it.
    """
    burst: list[Stroke] = []
    events = 0
    for stroke in strokes:
        size = 2 + 2 * len(stroke.holds)
        if burst and (events + size > limit or any(stroke.key == s.key for s in burst)):
            yield burst
            burst, events = [], 0
        burst.append(stroke)
        events += size
    if burst:
        yield burst


def _keycodes(stroke: Stroke) -> list[int]:
    return [KEYS[key].evdev + _X_OFFSET for key in (*stroke.holds, stroke.key)]


def _sane(character: str) -> bool:
    """Not a control character and not half of a surrogate pair."""
    return unicodedata.category(character) not in ("Cc", "Cs")


def _describe(character: str) -> str:
    number = f"U+{ord(character):04X}"
    if character == "\r":
        return f"{number} (carriage return; Enter is '\\n')"
    return f"{character!r} ({number})" if character.isprintable() else number
