"""What each key of the running X server gives, by the XKB protocol's own tables.

The core protocol's keyboard mapping mixes groups and levels; XKB's says exactly which level a key
has under which modifiers. Source: "The X Keyboard Extension: Protocol Specification", UseExtension
(0), GetState (4), GetMap (8).
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from Xlib import XK
from Xlib.protocol import rq

SHIFT = 1
LOCK = 2
CORE_KEYBOARD = 0x100
TYPES_AND_SYMS = 3
LEVEL_THREE = 0xFE03


class _UseExtension(rq.ReplyRequest):
    _request = rq.Struct(
        rq.Card8("opcode"), rq.Opcode(0), rq.RequestLength(), rq.Card16("major"), rq.Card16("minor")
    )
    _reply = rq.Struct(
        rq.ReplyCode(), rq.Card8("supported"), rq.Card16("sequence_number"), rq.ReplyLength(),
        rq.Card16("major"), rq.Card16("minor"), rq.Pad(20),
    )  # fmt: skip


class _GetState(rq.ReplyRequest):
    _request = rq.Struct(
        rq.Card8("opcode"), rq.Opcode(4), rq.RequestLength(), rq.Card16("device"), rq.Pad(2)
    )
    _reply = rq.Struct(
        rq.ReplyCode(), rq.Card8("device"), rq.Card16("sequence_number"), rq.ReplyLength(),
        rq.Card8("mods"), rq.Card8("base"), rq.Card8("latched"), rq.Card8("locked"),
        rq.Card8("group"), rq.Card8("locked_group"), rq.Pad(18),
    )  # fmt: skip


class _GetMap(rq.ReplyRequest):
    _request = rq.Struct(
        rq.Card8("opcode"), rq.Opcode(8), rq.RequestLength(),
        rq.Card16("device"), rq.Card16("full"), rq.Pad(20),
    )  # fmt: skip
    _reply = rq.Struct(
        rq.ReplyCode(), rq.Card8("device"), rq.Card16("sequence_number"), rq.ReplyLength(),
        rq.Pad(2), rq.Card8("first"), rq.Card8("last"), rq.Card16("present"),
        rq.Card8("first_type"), rq.Card8("types"), rq.Card8("total_types"),
        rq.Card8("first_sym"), rq.Card16("total_syms"), rq.Card8("syms"), rq.Pad(19),
        rq.Binary("rest"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Type:
    """Which level a set of modifiers chooses; ``mask`` says which modifiers count at all."""

    mask: int
    levels: dict[int, int]
    preserve: dict[int, int]


@dataclass(frozen=True, slots=True)
class _Key:
    types: tuple[int, ...]
    groups: int
    outside: int
    width: int
    syms: tuple[int, ...]


def keymap(display: Any) -> dict[str, Any]:
    """The active group's keys under the locks that are on now.

    Returns:
        ``keycodes``: per X keycode what it gives plain, with Shift, with AltGr and with both:
        ``U+XXXX`` for a character, a keysym's name for anything else, "" for nothing.
        ``group`` and ``locked`` as X says them.
    """
    extension = display.query_extension("XKEYBOARD")
    if extension is None or not extension.present:
        raise ValueError("this X server has no XKEYBOARD extension")
    request = {"display": display.display, "opcode": extension.major_opcode}
    _UseExtension(**request, major=1, minor=0)
    state = _GetState(**request, device=CORE_KEYBOARD)
    reply = _GetMap(**request, device=CORE_KEYBOARD, full=TYPES_AND_SYMS)
    counts = (reply.types, reply.syms, reply.first_sym)
    table = _table(bytes(reply.rest), counts, state.group, state.locked, _level_three(display))
    return {"keycodes": table, "group": state.group, "locked": state.locked}


# Each chord asks: making the table costs 0.1 to 0.3 s under emulation, and it hardly ever changes.
@lru_cache(maxsize=8)
def _table(
    data: bytes, counts: tuple[int, int, int], group: int, locked: int, third: int
) -> dict[str, list[str]]:
    types, keys = _parse(data, *counts)
    names = _Names()
    holds = [0, SHIFT, third, SHIFT | third] if third else [0, SHIFT]
    table = {}
    for code, key in keys.items():
        found = [names.of(_symbol(key, types, group, locked | held)) for held in holds]
        if any(found):
            table[str(code)] = found
    return table


def _parse(
    data: bytes, type_count: int, key_count: int, first: int
) -> tuple[list[_Type], dict[int, _Key]]:
    at = 0
    types = []
    for _ in range(type_count):
        mask, _, _, _, entries, has_preserve = struct.unpack_from("=BBHBBB", data, at)
        at += 8
        levels, masks = {}, []
        for _ in range(entries):
            active, entry_mask, level = struct.unpack_from("=BBB", data, at)
            at += 8
            masks.append(entry_mask)
            if active:
                levels[entry_mask] = level
        preserve = {}
        if has_preserve:
            for entry_mask in masks:
                preserve[entry_mask] = data[at]
                at += 4
        types.append(_Type(mask, levels, preserve))
    keys = {}
    for code in range(first, first + key_count):
        *kinds, info, width, count = struct.unpack_from("=BBBBBBH", data, at)
        at += 8
        syms = struct.unpack_from(f"={count}I", data, at)
        at += 4 * count
        keys[code] = _Key(tuple(kinds), info & 0x0F, info & 0xF0, width, syms)
    return types, keys


def _symbol(key: _Key, types: list[_Type], group: int, mods: int) -> int:
    """The keysym of ``key`` in ``group`` with ``mods`` on (protocol, section 11)."""
    if not key.groups:
        return 0
    if group >= key.groups:
        policy = key.outside & 0xC0
        redirected = (key.outside >> 4) & 3
        if policy == 0x40:
            group = key.groups - 1
        elif policy == 0x80:
            group = redirected if redirected < key.groups else 0
        else:
            group %= key.groups
    kind = types[key.types[group]]
    used = mods & kind.mask
    level = kind.levels.get(used, 0)
    symbol = key.syms[group * key.width + level] if level < key.width else 0
    consumed = kind.mask & ~kind.preserve.get(used, 0)
    if mods & LOCK and not consumed & LOCK:
        symbol = _capital(symbol)
    return symbol


def _capital(symbol: int) -> int:
    character = _Names.direct(symbol)
    upper = character.upper()
    if len(upper) != 1 or upper == character:
        return symbol
    return ord(upper) if ord(upper) < 0x100 else 0x01000000 | ord(upper)


def _level_three(display: Any) -> int:
    """The real modifier that AltGr sets here, or 0."""
    for index, codes in enumerate(display.get_modifier_mapping()):
        for code in codes:
            if code and LEVEL_THREE in (display.keycode_to_keysym(code, i) for i in range(2)):
                return 1 << index
    return 0


class _Names:
    """Keysyms as text, by libxkbcommon where it is installed (wherever GTK 3 is)."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libxkbcommon.so.0")
        except OSError:
            self._library = None

    def of(self, symbol: int) -> str:
        """``U+XXXX``, a name, or "" for no symbol."""
        if not symbol:
            return ""
        # 0xFD00 to 0xFFFF are function, modifier, dead and keypad keys: never plain characters.
        if not 0xFD00 <= symbol <= 0xFFFF:
            character = self.direct(symbol)
            if character:
                return f"U+{ord(character):04X}"
            if self._library is not None:
                code = self._library.xkb_keysym_to_utf32(ctypes.c_uint32(symbol))
                if code:
                    return f"U+{code:04X}"
        if self._library is not None:
            buffer = ctypes.create_string_buffer(64)
            if self._library.xkb_keysym_get_name(ctypes.c_uint32(symbol), buffer, 64) > 0:
                return buffer.value.decode("ascii", "replace")
        return XK.keysym_to_string(symbol) or f"0x{symbol:x}"

    @staticmethod
    def direct(symbol: int) -> str:
        """The character of a keysym that is Latin-1 or Unicode by its number, else ""."""
        if 0x20 <= symbol <= 0x7E or 0xA0 <= symbol <= 0xFF:
            return chr(symbol)
        if 0x01000100 <= symbol <= 0x0110FFFF:
            return chr(symbol & 0x00FFFFFF)
        return ""
