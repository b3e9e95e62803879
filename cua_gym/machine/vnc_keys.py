"""Keys as VNC servers want them: keysyms of the server's layout, and XT scan codes."""

from __future__ import annotations

from cua_gym.machine.keyboard import KEYS
from cua_gym.machine.keymap import Keymap

__all__ = ["keysym_number", "scan_code"]

_X_OFFSET = 8

# XT codes with prefix E0 carry bit 7 instead; up to evdev 88 both tables agree.
# Source: rfbproto.rst, "QEMU Extended Key Event Message"; linux/input-event-codes.h.
_EXTENDED = {
    96: 0x9C, 97: 0x9D, 98: 0xB5, 99: 0xB7, 100: 0xB8, 102: 0xC7, 103: 0xC8, 104: 0xC9, 105: 0xCB,
    106: 0xCD, 107: 0xCF, 108: 0xD0, 109: 0xD1, 110: 0xD2, 111: 0xD3, 119: 0xC6, 125: 0xDB,
    126: 0xDC, 127: 0xDD,
}  # fmt: skip

# X11/keysymdef.h, for the keysym names of keys that give no character.
_NUMBERS = {
    "Escape": 0xFF1B, "BackSpace": 0xFF08, "Tab": 0xFF09, "ISO_Left_Tab": 0xFE20, "Return": 0xFF0D,
    "Control_L": 0xFFE3, "Control_R": 0xFFE4, "Shift_L": 0xFFE1, "Shift_R": 0xFFE2,
    "Alt_L": 0xFFE9, "Alt_R": 0xFFEA, "ISO_Level3_Shift": 0xFE03, "Caps_Lock": 0xFFE5,
    "Num_Lock": 0xFF7F, "Scroll_Lock": 0xFF14, "KP_Multiply": 0xFFAA, "KP_Subtract": 0xFFAD,
    "KP_Add": 0xFFAB, "KP_Decimal": 0xFFAE, "KP_Divide": 0xFFAF, "KP_Enter": 0xFF8D,
    "Print": 0xFF61, "Pause": 0xFF13, "Home": 0xFF50, "Left": 0xFF51, "Up": 0xFF52,
    "Right": 0xFF53, "Down": 0xFF54, "Prior": 0xFF55, "Next": 0xFF56, "End": 0xFF57,
    "Insert": 0xFF63, "Delete": 0xFFFF, "Super_L": 0xFFEB, "Super_R": 0xFFEC, "Menu": 0xFF67,
    **{f"KP_{i}": 0xFFB0 + i for i in range(10)},
    **{f"F{i}": 0xFFBD + i for i in range(1, 13)},
    "dead_grave": 0xFE50, "dead_acute": 0xFE51, "dead_circumflex": 0xFE52, "dead_tilde": 0xFE53,
    "dead_diaeresis": 0xFE57, "dead_cedilla": 0xFE5B,
}  # fmt: skip


def scan_code(evdev: int) -> int:
    """The XT scan code of a key, as QEMU's extended key event counts it."""
    return _EXTENDED.get(evdev, evdev)


def keysym_number(keymap: Keymap, name: str, down: list[str]) -> int:
    """The keysym of a key under the server's layout while the keys of ``down`` are held.

    The level must agree with Shift: QEMU presses Caps Lock by itself when a capital comes without
    it, or a small letter with it.
    """
    key = KEYS[name]
    held = [keymap.keycodes.get(KEYS[k].evdev + _X_OFFSET, ("",))[0] for k in down]
    level = bool({"Shift_L", "Shift_R"} & set(held)) + 2 * ("ISO_Level3_Shift" in held)
    levels = keymap.keycodes.get(key.evdev + _X_OFFSET, ())
    for symbol in (*levels[level : level + 1], *levels[:1], key.keysym):
        if symbol.startswith("U+"):
            number = int(symbol[2:], 16)
            return number if number < 0x100 else 0x01000000 | number
        if len(symbol) == 1:
            return ord(symbol)
        if symbol in _NUMBERS:
            return _NUMBERS[symbol]
    return _NUMBERS.get(key.keysym, 0)
