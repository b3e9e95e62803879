r"""Text to key events, whatever the guest's layout: exact, or refused before anything is typed.

Characters that the active layout carries are struck as keys, Shift and AltGr pressed explicitly;
the rest is pasted by the guest's daemon where there is one. ``\n`` and ``\t`` are always the Enter
and Tab keys, so no layout can turn them into something else and no paste can contain them.

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

__all__ = ["Pace", "Paste", "Press", "Strokes", "plan_text", "type_text"]

Press = Callable[[str, bool], None]
"""Press (True) or release (False) a key by its canonical name."""

_KEYS_FOR = {"\n": Stroke("enter"), "\t": Stroke("tab")}
_X_OFFSET = 8


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast keys may follow each other.

    An emulated keyboard queues 16 events and drops the rest without a word. With the guest's
    daemon the pace adapts to the guest: after ``burst`` events the next waits until X has seen
    the last. Without it, ``blind_gap_s`` separates events.

    Attributes:
        burst: events in flight before a confirmation, at most 8.
        gap_s: between events that are confirmed.
        blind_gap_s: between events that nobody confirms.
        confirm_s: a guest that has not taken a burst by then is at fault.
        paste_s: a focused window that has not fetched the text by then does not take pastes.
    """

    burst: int = 8
    gap_s: float = 0.0
    blind_gap_s: float = 0.01
    confirm_s: float = 20.0
    paste_s: float = 8.0

    def __post_init__(self) -> None:
        if not 1 <= self.burst <= 8 or min(self.gap_s, self.blind_gap_s) < 0:
            raise ValueError(f"{self}: burst is 1 to 8, times are not negative")


@dataclass(frozen=True, slots=True)
class Strokes:
    """A run of characters to strike."""

    strokes: tuple[Stroke, ...]


@dataclass(frozen=True, slots=True)
class Paste:
    """A run of characters that only the clipboard can carry."""

    text: str


def plan_text(text: str, keymap: Keymap, *, can_paste: bool) -> list[Strokes | Paste]:
    r"""Split ``text`` into keys and pastes; between two Enters or Tabs at most one paste.

    A paste reaches from the first to the last character of such a piece that no key carries. A
    piece that begins with one is pasted whole: a spreadsheet cell takes a first paste as its
    content, and keys after it would begin anew.

    Raises:
        UntypableText: names the characters that go neither way.
    """
    typable = {**keymap.strokes, **_KEYS_FOR}
    refused = [c for c in dict.fromkeys(text) if c not in typable and not (can_paste and _sane(c))]
    if refused:
        names = ", ".join(_describe(c) for c in refused[:20])
        more = f" and {len(refused) - 20} more" if len(refused) > 20 else ""
        way = "" if can_paste else ", and this wire has no clipboard to paste from"
        raise UntypableText(f"no key here gives {names}{more}{way}; nothing was typed")
    steps: list[Strokes | Paste] = []
    for piece in _pieces(text):
        lacking = [i for i, c in enumerate(piece) if c not in typable]
        start, end = (lacking[0], lacking[-1] + 1) if lacking else (len(piece), len(piece))
        if start == 0:
            end = len(piece)
        _strike(steps, (typable[c] for c in piece[:start]))
        if lacking:
            steps.append(Paste(piece[start:end]))
        _strike(steps, (typable[c] for c in piece[end:]))
    return steps


def type_text(
    text: str,
    press: Press,
    *,
    ops: Ops | None = None,
    keymap: Keymap | None = None,
    pace: Pace | None = None,
    clock: Clock | None = None,
) -> None:
    """Type ``text`` exactly; returns when the guest has taken all of it.

    Args:
        text: any Unicode without control characters other than newline and tab.
        press: presses or releases one key. No key may be down when this is called.
        ops: the guest's daemon. Its keymap is read afresh for each text, since anything in the
            guest may change the layout.
        keymap: the guest's layout where there is no ``ops``.

    Raises:
        UntypableText: names the characters, and nothing was typed; or the focused window took no
            paste, and the message says how much was typed before.
        MachineError: the guest did not take the keys, or its daemon failed.
    """
    if not text:
        return
    if ops is not None:
        keymap = Keymap.parse(ops.call("keymap", timeout_s=20.0))
    elif keymap is None:
        raise ValueError("either the guest's daemon or a keymap must say what the keys give")
    steps = plan_text(text, keymap, can_paste=ops is not None)
    typist = _Typist(press, ops, pace or Pace(), clock or SystemClock())
    done = 0
    for step in steps:
        if isinstance(step, Strokes):
            typist.strike(step.strokes)
            done += len(step.strokes)
        else:
            typist.paste(step.text, done)
            done += len(step.text)


class _Typist:
    """Sends strokes in bursts that the guest confirms, each chord let go whatever happens."""

    def __init__(self, press: Press, ops: Ops | None, pace: Pace, clock: Clock) -> None:
        self._press = press
        self._ops = ops
        self._pace = pace
        self._clock = clock
        self._gap_s = pace.blind_gap_s if ops is None else pace.gap_s

    def strike(self, strokes: tuple[Stroke, ...]) -> None:
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

    def paste(self, text: str, done: int) -> None:
        assert self._ops is not None
        wait_s = self._pace.paste_s
        answer = self._ops.call("paste", timeout_s=wait_s + 10, text=text, wait_s=wait_s)
        if answer.get("fetched") is not True:
            why = str(answer.get("detail"))[:200]
            raise UntypableText(
                f"{text[:60]!r} can only be pasted here, and {why}; "
                f"{done} characters were typed before it"
            )

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


def _pieces(text: str) -> Iterator[str]:
    """Runs without newline or tab, and each newline or tab by itself."""
    start = 0
    for i, character in enumerate(text):
        if character in _KEYS_FOR:
            if start < i:
                yield text[start:i]
            yield character
            start = i + 1
    if start < len(text):
        yield text[start:]


def _strike(steps: list[Strokes | Paste], strokes: Iterable[Stroke]) -> None:
    run = tuple(strokes)
    if run and steps and isinstance(steps[-1], Strokes):
        steps[-1] = Strokes(steps[-1].strokes + run)
    elif run:
        steps.append(Strokes(run))


def _sane(character: str) -> bool:
    """Not a control character and not half of a surrogate pair."""
    return unicodedata.category(character) not in ("Cc", "Cs")


def _describe(character: str) -> str:
    number = f"U+{ord(character):04X}"
    if character == "\r":
        return f"{number} (carriage return; Enter is '\\n')"
    return f"{character!r} ({number})" if character.isprintable() else number
