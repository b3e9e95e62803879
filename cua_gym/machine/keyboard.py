"""Key names: the canonical ones, their aliases, and what each is on a PC keyboard.

A canonical name is what `Key`, `KeyDown` and `Input.key` speak. Printable ASCII characters name
the key that carries them on a US keyboard (``"a"``, ``"/"``), never a shifted level: chords say
``"shift+1"``. Which key carries a character on the guest's layout is `cua_gym.machine.keymap`'s.
Codes are Linux evdev codes (``include/uapi/linux/input-event-codes.h``); an X keycode is the evdev
code plus 8. QEMU names are its ``QKeyCode`` (``qapi/ui.json``).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from cua_gym.errors import UnknownKey

__all__ = ["KEYS", "PhysicalKey", "by_evdev", "canonical", "parse_combo"]


@dataclass(frozen=True, slots=True)
class PhysicalKey:
    """One key: canonical name, QEMU's QKeyCode, evdev code and X keysym name."""

    name: str
    qcode: str
    evdev: int
    keysym: str


_ROWS = """
esc esc 1 Escape|1 1 2 1|2 2 3 2|3 3 4 3|4 4 5 4|5 5 6 5|6 6 7 6|7 7 8 7|8 8 9 8|9 9 10 9
0 0 11 0|- minus 12 minus|= equal 13 equal|backspace backspace 14 BackSpace|tab tab 15 Tab
q q 16 q|w w 17 w|e e 18 e|r r 19 r|t t 20 t|y y 21 y|u u 22 u|i i 23 i|o o 24 o|p p 25 p
[ bracket_left 26 bracketleft|] bracket_right 27 bracketright|enter ret 28 Return
ctrl ctrl 29 Control_L|a a 30 a|s s 31 s|d d 32 d|f f 33 f|g g 34 g|h h 35 h|j j 36 j|k k 37 k
l l 38 l|; semicolon 39 semicolon|' apostrophe 40 apostrophe|` grave_accent 41 grave
shift shift 42 Shift_L|\\ backslash 43 backslash|z z 44 z|x x 45 x|c c 46 c|v v 47 v|b b 48 b
n n 49 n|m m 50 m|, comma 51 comma|. dot 52 period|/ slash 53 slash|shift_r shift_r 54 Shift_R
kp_multiply kp_multiply 55 KP_Multiply|alt alt 56 Alt_L|space spc 57 space
caps_lock caps_lock 58 Caps_Lock|f1 f1 59 F1|f2 f2 60 F2|f3 f3 61 F3|f4 f4 62 F4|f5 f5 63 F5
f6 f6 64 F6|f7 f7 65 F7|f8 f8 66 F8|f9 f9 67 F9|f10 f10 68 F10|num_lock num_lock 69 Num_Lock
scroll_lock scroll_lock 70 Scroll_Lock|kp_7 kp_7 71 KP_7|kp_8 kp_8 72 KP_8|kp_9 kp_9 73 KP_9
kp_subtract kp_subtract 74 KP_Subtract|kp_4 kp_4 75 KP_4|kp_5 kp_5 76 KP_5|kp_6 kp_6 77 KP_6
kp_add kp_add 78 KP_Add|kp_1 kp_1 79 KP_1|kp_2 kp_2 80 KP_2|kp_3 kp_3 81 KP_3|kp_0 kp_0 82 KP_0
kp_decimal kp_decimal 83 KP_Decimal|less less 86 less|f11 f11 87 F11|f12 f12 88 F12
kp_enter kp_enter 96 KP_Enter|ctrl_r ctrl_r 97 Control_R|kp_divide kp_divide 98 KP_Divide
print print 99 Print|alt_r alt_r 100 ISO_Level3_Shift|home home 102 Home|up up 103 Up
page_up pgup 104 Prior|left left 105 Left|right right 106 Right|end end 107 End
down down 108 Down|page_down pgdn 109 Next|insert insert 110 Insert|delete delete 111 Delete
pause pause 119 Pause|super meta_l 125 Super_L|super_r meta_r 126 Super_R|menu compose 127 Menu
"""

KEYS: dict[str, PhysicalKey] = {}
for _row in _ROWS.replace("\n", "|").split("|"):
    if _row.strip():
        _name, _qcode, _evdev, _keysym = _row.split()
        KEYS[_name] = PhysicalKey(_name, _qcode, int(_evdev), _keysym)

_ALIASES = {
    "escape": "esc", "return": "enter", "ret": "enter", "del": "delete", "ins": "insert",
    "pgup": "page_up", "pageup": "page_up", "prior": "page_up",
    "pgdn": "page_down", "pagedown": "page_down", "pgdown": "page_down", "next": "page_down",
    "control": "ctrl", "control_l": "ctrl", "ctrl_l": "ctrl", "control_r": "ctrl_r",
    "shift_l": "shift", "alt_l": "alt", "option": "alt", "altgr": "alt_r", "alt_gr": "alt_r",
    "iso_level3_shift": "alt_r", "win": "super", "windows": "super", "cmd": "super",
    "command": "super", "meta": "super", "super_l": "super", "meta_l": "super",
    "win_l": "super", "win_r": "super_r", "meta_r": "super_r", "back_space": "backspace",
    "bksp": "backspace", "capslock": "caps_lock", "caps": "caps_lock", "numlock": "num_lock",
    "scrolllock": "scroll_lock", "printscreen": "print", "print_screen": "print",
    "prtsc": "print", "sysrq": "print", "apps": "menu", "spacebar": "space", " ": "space",
    "minus": "-", "equal": "=", "plus": "kp_add", "comma": ",", "period": ".", "dot": ".",
    "slash": "/", "backslash": "\\", "semicolon": ";", "apostrophe": "'", "quote": "'",
    "grave": "`", "backtick": "`", "bracketleft": "[", "bracketright": "]",
    "arrowup": "up", "arrowdown": "down", "arrowleft": "left", "arrowright": "right",
    "up_arrow": "up", "down_arrow": "down", "left_arrow": "left", "right_arrow": "right",
    "break": "pause", "tabulator": "tab",
}  # fmt: skip

_BY_EVDEV = {key.evdev: key for key in KEYS.values()}


def by_evdev(code: int) -> PhysicalKey | None:
    """The key with this evdev code, if a PC keyboard has it."""
    return _BY_EVDEV.get(code)


def canonical(name: str) -> str:
    """The canonical name of a key.

    Raises:
        UnknownKey: lists near names.
    """
    folded = name if name == " " else name.strip().lower().replace("-", "_")
    if name.strip() == "-":
        folded = "-"
    folded = _ALIASES.get(folded, folded)
    if folded in KEYS:
        return folded
    near = difflib.get_close_matches(folded, [*KEYS, *_ALIASES], n=4, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "for text use Type"
    raise UnknownKey(f"no key is called {name!r}; {hint}")


def parse_combo(combo: str) -> tuple[str, ...]:
    """Canonical names of a chord in press order: ``"Ctrl+PgDn"`` -> ``("ctrl", "page_down")``.

    ``+`` joins names; a final ``+`` is the keypad's plus, the only plus without Shift.

    Raises:
        UnknownKey: an unknown or repeated name, or an empty chord.
    """
    if combo != " " and not combo.strip():
        raise UnknownKey("an empty key chord; name at least one key, such as 'enter'")
    text = combo if combo == " " else combo.strip()
    names = text.split("+")
    if text.endswith("+"):
        names = [*(n for n in names if n), "kp_add"]
    keys = tuple(canonical(n) for n in names)
    if len(set(keys)) != len(keys):
        raise UnknownKey(f"the chord {combo!r} names one key twice")
    return keys
