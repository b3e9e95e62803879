"""What the tests of foreign actions draw from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from cua_gym import actions as a
from cua_gym.errors import ActionError
from cua_gym.machine.keyboard import KEYS

# The 105th key has no name anywhere else.
names = st.sampled_from([key for key in KEYS if key != "less"])
text = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
point = st.tuples(st.integers(0, 1279), st.integers(0, 799))
seconds = st.floats(0, 60)
notches = st.integers(-100, 100)
button = st.sampled_from(["left", "middle", "right"])
modifiers = st.lists(st.sampled_from(["ctrl", "shift", "alt", "super"]), unique=True).map(tuple)


def chords(keys: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Chords of one to three different keys, written in canonical names."""
    return st.lists(keys, min_size=1, max_size=3, unique=True).map("+".join)


def scrolls(dx: st.SearchStrategy[int], dy: st.SearchStrategy[int]) -> st.SearchStrategy[a.Scroll]:
    """Scrolls somewhere on the screen."""
    return st.builds(lambda p, x, y: a.Scroll(*p, x, y), point, dx, dy)


straight_scrolls = scrolls(st.just(0), notches) | scrolls(notches, st.just(0))
moves = point.map(lambda p: a.Move(*p))
paths = st.lists(point, min_size=2, max_size=5).map(tuple)

pyautogui_names = names.filter(lambda name: name != "kp_enter")
printable = st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("\n\t"))
osworld = st.one_of(
    moves,
    st.builds(lambda p, b, n: a.Click(*p, b, n), point, button, st.integers(1, 3)),
    button.map(a.MouseDown),
    button.map(a.MouseUp),
    printable.map(a.Type),
    chords(pyautogui_names).map(a.Key),
    pyautogui_names.map(a.KeyDown),
    pyautogui_names.map(a.KeyUp),
    st.sampled_from([a.Wait(2.0), a.Submit(), a.GiveUp()]),
)
"""What pyautogui can say, and then says back, wherever the pointer is."""
started = st.builds(lambda p, q: a.Drag((p, q)), point, point) | straight_scrolls
"""What it says from a start, to which the pointer is moved before."""

_FIELDS = """
action type coordinate start_coordinate text duration scroll_direction scroll_amount region repeat
x y button keys path scroll_x scroll_y action_type parameters num_clicks dx dy key actions
"""
_WORDS = """
key hold_key type mouse_move left_click double_click left_click_drag scroll wait zoom screenshot
click drag keypress move computer_call up right wheel back ctrl ctrl+a + A ! MOVE_TO CLICK
MOUSE_DOWN DRAG_TO SCROLL TYPING PRESS HOTKEY KEY_UP WAIT DONE
"""
_field = st.sampled_from(_FIELDS.split())
_word = st.sampled_from(_WORDS.split())
_scalar = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.integers(0, 100) | st.builds(pow, st.just(10), st.just(5000))
)  # fmt: skip
junk = st.recursive(
    _scalar | _word,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_field | st.text(max_size=3), inner, max_size=5)
        | st.dictionaries(_field, _word | point.map(list) | inner, max_size=6)
    ),
    max_leaves=12,
)
"""JSON values, many of them nearly actions, and some that no JSON has."""


def actions_or_refusal(read: Callable[[Any], tuple[a.Action, ...]], given: Any) -> None:
    """Assert that reading gives valid actions or an `ActionError`, and nothing else."""
    try:
        done = read(given)
    except ActionError as error:
        assert str(error)  # noqa: PT017 the message is the point
    else:
        assert [a.validate(action) for action in done] == list(done)
