"""Promises of other people's key names."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cua_gym import actions as a
from cua_gym.errors import ActionError, UnknownKey
from cua_gym.interop.actions import chords
from cua_gym.machine.keyboard import KEYS


@pytest.mark.parametrize(
    ("vocabulary", "missing"),
    [
        (chords.XDOTOOL, {"less"}),
        (chords.OPENAI, {"less"}),
        (chords.PYAUTOGUI, {"less", "kp_enter"}),
    ],
)
def test_every_key_has_a_name_that_comes_back(
    vocabulary: Mapping[str, str], missing: set[str]
) -> None:
    """All but the named few are in each vocabulary, and theirs is read as ours."""
    assert set(KEYS) - set(vocabulary) == missing
    for ours, theirs in vocabulary.items():
        assert chords.keys([theirs]) == (ours,)
        assert chords.foreign(ours, vocabulary) == [theirs]


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["Control_L", "a"], ("ctrl", "a")),
        (["ctrl", "A"], ("ctrl", "a")),
        (["ctrl", "?"], ("ctrl", "shift", "/")),
        (["shift", "?"], ("shift", "/")),
        (["exclam"], ("shift", "1")),
        (["less"], ("shift", ",")),
        (["optionleft"], ("alt",)),
        (["\n"], ("enter",)),
        (["+"], ("kp_add",)),
        (["num5"], ("kp_5",)),
    ],
)
def test_names(names: list[str], keys: tuple[str, ...]) -> None:
    """A shifted character is Shift, once, and its key on a US keyboard."""
    assert chords.keys(names) == keys


@pytest.mark.parametrize("names", [[], ["ctrl", "ctrl"], ["!", "1"], ["nope"], ["é"], ["a+b"]])
def test_bad_chords_are_refused(names: list[str]) -> None:
    """None, one twice, and unknown ones are errors, never other keys."""
    with pytest.raises(UnknownKey):
        chords.keys(names)


def test_a_shifted_character_alone_is_typed() -> None:
    """Which key carries it, another layout may say otherwise; typing is exact."""
    assert chords.press(["@"]) == a.Type("@")
    assert chords.press(["ctrl", "@"]) == a.Key("ctrl+shift+2")


def test_held_keys_go_up_in_the_other_order() -> None:
    """What goes down comes up; nothing is held where nothing is asked for."""
    wait = a.Wait(1.0)
    down, up = (a.KeyDown("ctrl"), a.KeyDown("alt")), (a.KeyUp("alt"), a.KeyUp("ctrl"))
    assert chords.held(["ctrl", "alt"], wait) == (*down, wait, *up)
    assert chords.held([], wait) == (wait,)


def test_a_key_that_the_other_side_lacks_is_named() -> None:
    """The error says which key of the chord it is."""
    with pytest.raises(ActionError, match="no name for kp_enter"):
        chords.foreign("ctrl+kp_enter", chords.PYAUTOGUI)
