"""Promises of key names and chords."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.errors import UnknownKey
from cua_gym.machine.keyboard import KEYS, by_evdev, canonical, parse_combo


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Return", "enter"),
        ("ESC", "esc"),
        ("PgDn", "page_down"),
        ("Page_Down", "page_down"),
        ("page-down", "page_down"),
        ("cmd", "super"),
        ("win", "super"),
        ("AltGr", "alt_r"),
        ("A", "a"),
        ("-", "-"),
        (" ", "space"),
        ("shift_r", "shift_r"),
        ("F12", "f12"),
    ],
)
def test_usual_aliases(name: str, key: str) -> None:
    """The names that other tools use mean what people expect."""
    assert canonical(name) == key


@pytest.mark.parametrize(
    ("combo", "keys"),
    [
        ("ctrl+shift+s", ("ctrl", "shift", "s")),
        ("Ctrl+PgDn", ("ctrl", "page_down")),
        ("+", ("kp_add",)),
        ("ctrl++", ("ctrl", "kp_add")),
        ("ctrl+", ("ctrl", "kp_add")),
        ("ctrl+-", ("ctrl", "-")),
        (" ", ("space",)),
        ("alt+f4", ("alt", "f4")),
    ],
)
def test_chords(combo: str, keys: tuple[str, ...]) -> None:
    """Chords keep their press order; plus and minus can be named."""
    assert parse_combo(combo) == keys


@pytest.mark.parametrize("combo", ["", "  ", "ctrl+ctrl", "a+A", "hello", "ctrl+é"])
def test_bad_chords_are_refused(combo: str) -> None:
    """Empty, repeated and unknown names are errors, never other keys."""
    with pytest.raises(UnknownKey):
        parse_combo(combo)


def test_unknown_key_lists_near_names() -> None:
    """A typo is answered with what was probably meant."""
    with pytest.raises(UnknownKey, match="enter"):
        canonical("entr")


def test_codes_are_unique() -> None:
    """No two keys share an evdev code or a QEMU name."""
    assert len({k.evdev for k in KEYS.values()}) == len(KEYS)
    assert len({k.qcode for k in KEYS.values()}) == len(KEYS)
    assert all(by_evdev(k.evdev) is k for k in KEYS.values())


@given(st.text(max_size=12))
def test_any_text_is_a_chord_or_a_typed_error(text: str) -> None:
    """Parsing never fails in another way."""
    try:
        assert all(k in KEYS for k in parse_combo(text))
    except UnknownKey:
        pass
