"""Other people's key names and ours (`cua_gym.machine.keyboard`), one table a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cua_gym import actions as a
from cua_gym.errors import ActionError
from cua_gym.machine.keyboard import KEYS, canonical, parse_combo

__all__ = ["OPENAI", "PYAUTOGUI", "XDOTOOL", "foreign", "held", "keys", "press"]

# Characters of a US keyboard that need Shift, and the names that X gives them (keysymdef.h).
# Plus is not among them: it is the keypad's, which needs none.
_SHIFTED = dict(zip('~!@#$%^&*()_{}|:"<>?', "`1234567890-[]\\;',./", strict=True))
_KEYSYMS = """
asciitilde exclam at numbersign dollar percent asciicircum ampersand asterisk parenleft parenright
underscore braceleft braceright bar colon quotedbl less greater question
"""
_BY_KEYSYM = dict(zip(_KEYSYMS.split(), _SHIFTED.values(), strict=True))

# Our names to theirs. Nobody names the 105th key, our "less": theirs is the character. Back to ours
# go `canonical`, which knows the first two vocabularies, and `_OURS`.
_NAMED = [key for key in KEYS.values() if key.name != "less"]
XDOTOOL: Mapping[str, str] = {
    **{key.name: key.keysym for key in _NAMED},
    **{name: name for name in ("ctrl", "shift", "alt", "super")},
    "page_up": "Page_Up",
    "page_down": "Page_Down",
}
OPENAI: Mapping[str, str] = {
    **{key.name: key.name.upper() for key in _NAMED},
    **{name: f"ARROW{name.upper()}" for name in ("up", "down", "left", "right")},
    "page_up": "PAGEUP",
    "page_down": "PAGEDOWN",
    "caps_lock": "CAPSLOCK",
}
# pyautogui has no Enter of the keypad.
PYAUTOGUI: Mapping[str, str] = {
    **{key.name: key.name for key in _NAMED if key.name != "kp_enter"},
    **{f"kp_{digit}": f"num{digit}" for digit in range(10)},
    **{f"kp_{sign}": sign for sign in ("add", "subtract", "multiply", "divide", "decimal")},
    **{name: name.replace("_", "") for name in KEYS if name.endswith(("_lock", "_up", "_down"))},
    **{f"{name}_r": f"{name}right" for name in ("ctrl", "shift", "alt")},
    "super": "win",
    "super_r": "winright",
    "print": "printscreen",
    "menu": "apps",
}
_OURS = {
    **{theirs: ours for ours, theirs in PYAUTOGUI.items()},
    **{f"{name}left": name for name in ("ctrl", "shift", "alt")},
    "winleft": "super", "optionleft": "alt", "optionright": "alt_r",
    "prtscr": "print", "prntscrn": "print",
    "\n": "enter", "\r": "enter", "\t": "tab", "+": "kp_add",
}  # fmt: skip


def keys(names: Iterable[str]) -> tuple[str, ...]:
    """Canonical names of a chord in press order, a shifted character being Shift and its key.

    Which character needs Shift is a US keyboard's saying; names are taken in either case.

    Raises:
        UnknownKey: an unknown or repeated name (near ones are listed), or none at all.
    """
    found: list[str] = []
    for name in names:
        folded = name.lower()
        base = _SHIFTED.get(name) or _BY_KEYSYM.get(folded)
        if base and "shift" not in found:
            found.append("shift")
        found.append(base or _OURS.get(folded) or canonical(name))
    return parse_combo("+".join(found))


def press(names: Sequence[str]) -> a.Action:
    """One chord; a shifted character alone is typed, which is exact under any layout.

    Raises:
        UnknownKey: as `keys`.
    """
    if len(names) == 1 and names[0] in _SHIFTED:
        return a.Type(names[0])
    return a.Key("+".join(keys(names)))


def held(names: Sequence[str], *during: a.Action) -> tuple[a.Action, ...]:
    """Some actions while keys are down, which go up in the other order."""
    down = keys(names) if names else ()
    ups = (a.KeyUp(key) for key in reversed(down))
    return (*map(a.KeyDown, down), *during, *ups)


def foreign(combo: str, vocabulary: Mapping[str, str]) -> list[str]:
    """Their names for a chord of ours.

    Raises:
        UnknownKey: no such key here.
        ActionError: no such key there.
    """
    ours = parse_combo(combo)
    if missing := [key for key in ours if key not in vocabulary]:
        raise ActionError(f"the other side has no name for {', '.join(missing)}")
    return [vocabulary[key] for key in ours]
