"""What each key gives under a keyboard layout, and which stroke gives a character.

A keymap comes from the guest's X server (operation ``keymap``) or, for machines that answer no
questions, from a named layout beside this file. Typing itself is `cua_gym.machine.text`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from cua_gym.errors import ActionError, MachineError
from cua_gym.machine.guest_ops import Ops
from cua_gym.machine.keyboard import by_evdev

__all__ = ["Keymap", "Stroke", "layout_names", "named_keymap"]

_X_OFFSET = 8  # X keycode = evdev code + 8
_CHARACTER = re.compile(r"U\+([0-9A-F]{4,6})")
_LESS = 86  # the extra key of a 105-key board; over VNC many servers do not know it


@dataclass(frozen=True, slots=True)
class Stroke:
    """One character's keys: ``holds`` go down in order, then ``key`` down and up, holds up."""

    key: str
    holds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Keymap:
    """Keys of one layout group, under the locks that were on when it was read.

    Attributes:
        keycodes: per X keycode what the key gives plain, with Shift, with AltGr and with both:
            ``U+XXXX`` for a character, an X keysym's name for anything else, "" for nothing.
        locked: X's locked-modifier mask (2 is Caps Lock).
        strokes: for each character the stroke that needs the fewest modifiers.
    """

    keycodes: Mapping[int, tuple[str, ...]]
    locked: int = 0
    strokes: Mapping[str, Stroke] = field(init=False)

    def __post_init__(self) -> None:
        best: dict[str, tuple[tuple[bool, int, int], Stroke]] = {}
        for character, stroke, rank in self._candidates():
            if character not in best or rank < best[character][0]:
                best[character] = (rank, stroke)
        object.__setattr__(self, "strokes", {c: stroke for c, (_, stroke) in best.items()})

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> Keymap:
        """Validate the answer of the guest's operation ``keymap``.

        Raises:
            MachineError: it is not a keymap.
        """
        keycodes, locked = answer.get("keycodes"), answer.get("locked", 0)
        if not isinstance(keycodes, dict) or not isinstance(locked, int) or len(keycodes) > 256:
            raise MachineError(f"the guest's keymap is broken: {answer!r:.120}")
        table = {}
        for code, levels in keycodes.items():
            good = isinstance(levels, list) and all(isinstance(v, str) for v in levels)
            if not good or not re.fullmatch("[0-9]{1,3}", str(code)) or len(levels) > 4:
                raise MachineError(f"the guest's keymap is broken at {code!r}: {levels!r:.120}")
            table[int(code)] = tuple(levels)
        return cls(table, locked)

    @classmethod
    def of_guest(cls, ops: Ops) -> Keymap:
        """What the guest's keys give now, as its daemon says.

        Raises:
            MachineError: no answer, or none that makes sense.
        """
        return cls.parse(ops.call("keymap", timeout_s=20.0))

    def chord_stroke(self, name: str) -> Stroke:
        """The keys that a chord means by a canonical key name.

        A character is the key that carries it now: a letter its own key alone, anything else with
        the Shift or AltGr that it needs. Where no key carries it (Latin letters of a Cyrillic
        layout, for which programs go by place), and for names, it is the place on a US keyboard.
        """
        if len(name) == 1 and name.isalpha():
            # Under Caps Lock the key gives the capital.
            found = (self.strokes.get(c) for c in (name, name.upper()))
            return next((s for s in found if s and not s.holds), Stroke(name))
        return self.strokes.get(name, Stroke(name))

    def keycode_of(self, keysym: str) -> int | None:
        """The X keycode of a PC key that gives ``keysym`` without modifiers."""
        codes = (c for c, levels in self.keycodes.items() if levels and levels[0] == keysym)
        return next((c for c in codes if by_evdev(c - _X_OFFSET)), None)

    def _candidates(self) -> Iterator[tuple[str, Stroke, tuple[bool, int, int]]]:
        shift, third = (self._name_of(k) for k in ("Shift_L", "ISO_Level3_Shift"))
        holds = [(), (shift,), (third,), (shift, third)]
        for code, levels in self.keycodes.items():
            key = by_evdev(code - _X_OFFSET)
            for name, held in zip(levels, holds, strict=False):
                match = _CHARACTER.fullmatch(name)
                keys = tuple(h for h in held if h)
                if key is None or match is None or len(keys) < len(held):
                    continue
                number = int(match[1], 16)
                if number <= 0x10FFFF:
                    rank = (key.evdev == _LESS, len(keys), key.evdev)
                    yield chr(number), Stroke(key.name, keys), rank

    def _name_of(self, keysym: str) -> str | None:
        code = self.keycode_of(keysym)
        key = by_evdev(code - _X_OFFSET) if code is not None else None
        return key.name if key else None


def layout_names() -> list[str]:
    """Layouts that `named_keymap` knows, as ``layout`` or ``layout(variant)``."""
    folder = resources.files("cua_gym.machine").joinpath("layouts")
    return sorted(f.name.removesuffix(".json") for f in folder.iterdir())


def named_keymap(layout: str) -> Keymap:
    """The keymap of a named layout, no lock on.

    Raises:
        ActionError: unknown; the known ones are listed.
    """
    names = layout_names()
    if layout not in names:
        raise ActionError(f"no keyboard layout {layout!r} here; known: {', '.join(names)}")
    file = resources.files("cua_gym.machine").joinpath("layouts", f"{layout}.json")
    return Keymap.parse(json.loads(file.read_text("utf-8")))
