"""Planning and typing text under many layouts, without X: the keyboard is simulated."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.errors import ActionError, MachineError, UntypableText
from cua_gym.machine.keyboard import KEYS
from cua_gym.machine.keymap import Keymap, layout_names, named_keymap
from cua_gym.machine.text import Pace, plan_text, type_text

LAYOUTS = ["us", "us(intl)", "de", "fr", "it", "dvorak"]
FAST = Pace(blind_gap_s=0)


class Keyboard:
    """What a guest with a layout makes of key events."""

    def __init__(self, keymap: Keymap) -> None:
        self.keymap = keymap
        self.down: list[str] = []
        self.text = ""
        self.fail_after = -1

    def press(self, key: str, down: bool) -> None:
        """One event."""
        assert down != (key in self.down), f"{key} twice"
        if down and self.fail_after == 0:
            raise MachineError("the wire broke")
        self.fail_after -= down
        if not down:
            self.down.remove(key)
            return
        self.down.append(key)
        code = KEYS[key].evdev + 8
        held = [self.keymap.keycodes[KEYS[k].evdev + 8][0] for k in self.down]
        level = ("Shift_L" in held) + 2 * ("ISO_Level3_Shift" in held)
        name = self.keymap.keycodes[code][level]
        if name.startswith("U+"):
            self.text += chr(int(name[2:], 16))
        elif name in ("Return", "Tab"):
            self.text += {"Return": "\n", "Tab": "\t"}[name]
        else:
            assert name in ("Shift_L", "ISO_Level3_Shift"), name


def typed(text: str, layout: str) -> str:
    """What arrives in a guest with ``layout`` when no paste is possible."""
    keymap = named_keymap(layout)
    keyboard = Keyboard(keymap)
    type_text(text, keyboard.press, keymap=keymap, pace=FAST)
    assert keyboard.down == []
    return keyboard.text


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data())
def test_typed_text_is_exact_on_every_layout(layout: str, data: st.DataObject) -> None:
    """Any text of a layout's own characters arrives as it is, nothing left down."""
    own = sorted(named_keymap(layout).strokes)
    text = data.draw(st.text(st.sampled_from([*own, "\n", "\t"])))
    assert typed(text, layout) == text


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("us", ">><< echo <<< >>>"),
        ("us", "Hello_World-42 (a>b) & {x|y} #~$ tail"),
        ("de", "test@x.org \\ ~ |"),
        ("fr", "////"),
        ("dvorak", "OpenBSD\n"),
        ("it", "OpenBSD\n"),
        ("us(intl)", "5^GgT-S%U~tG{^"),
    ],
)
def test_reported_texts(layout: str, text: str) -> None:
    """Texts that other tools got wrong."""
    assert typed(text, layout) == text


@pytest.mark.parametrize("layout", LAYOUTS)
@given(text=st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\n\t")))
def test_plan_covers_any_unicode(layout: str, text: str) -> None:
    """The three parts together are the text; the daemon's begins and ends as it must."""
    keymap = named_keymap(layout)
    shown = {stroke: c for c, stroke in keymap.strokes.items()}
    shown |= {plan_text(c, keymap, any_character=False).before[0]: c for c in "\n\t"}
    plan = plan_text(text, keymap, any_character=True)
    strokes = (*plan.before, *plan.between, *plan.after)
    assert "".join(s if isinstance(s, str) else shown[s] for s in strokes) == text
    assert not plan.between or {type(plan.between[0]), type(plan.between[-1])} == {str}


def test_the_daemon_gets_as_little_as_possible() -> None:
    """From the first to the last character without a key; nothing when every one has a key."""
    plan = plan_text("a café 你好 z\n", named_keymap("us"), any_character=True)
    assert (len(plan.before), len(plan.between), len(plan.after)) == (5, 4, 3)
    assert plan_text("café", named_keymap("fr"), any_character=True).between == ()


def test_refusal_names_the_characters_and_types_nothing() -> None:
    """What goes neither way is named, each once, before any key."""
    keyboard = Keyboard(named_keymap("us"))
    with pytest.raises(UntypableText, match=r"'é' \(U\+00E9\), '你' \(U\+4F60\).*nothing") as error:
        type_text("abc é你é", keyboard.press, keymap=keyboard.keymap)
    assert keyboard.text == ""
    assert str(error.value).count("é") == 1
    for text in ("a\rb", "a\x1bb", "\x00", "\ud800"):
        with pytest.raises(UntypableText, match=r"U\+"):
            plan_text(text, keyboard.keymap, any_character=True)


@given(st.integers(0, 30))
def test_a_broken_wire_leaves_no_key_down(events: int) -> None:
    """Whatever fails in the middle of a chord, what was pressed is let go."""
    keyboard = Keyboard(named_keymap("de"))
    keyboard.fail_after = events
    with pytest.raises(MachineError):
        type_text("Ab@{[]}~ÄÖÜ" * 3, keyboard.press, keymap=keyboard.keymap, pace=FAST)
    assert keyboard.down == []


@pytest.mark.parametrize("layout", layout_names())
def test_named_layouts_are_whole(layout: str) -> None:
    """Every layout has all letters, digits, space, Enter and Tab."""
    keymap = named_keymap(layout)
    assert set(string.ascii_letters + string.digits + " ") <= set(keymap.strokes)
    assert keymap.keycodes[36][0] == "Return"
    assert keymap.keycodes[23][0] == "Tab"


def test_unknown_layout_lists_the_known() -> None:
    """A wrong layout name says which there are."""
    with pytest.raises(ActionError, match=r"dvorak, .*us\(intl\)"):
        named_keymap("../us")


@pytest.mark.parametrize(
    "answer",
    [{}, {"keycodes": []}, {"keycodes": {"x": []}}, {"keycodes": {"9": "abc"}},
     {"keycodes": {"9": [1]}}, {"keycodes": {}, "locked": "no"}, {"keycodes": {"9": [""] * 99}}],
)  # fmt: skip
def test_broken_keymaps_are_machine_errors(answer: dict[str, object]) -> None:
    """A guest's keymap is hostile input."""
    with pytest.raises(MachineError, match="keymap"):
        Keymap.parse(answer)


@given(
    st.dictionaries(
        st.integers(0, 999).map(str),
        st.lists(
            st.sampled_from(["", "U+0041", "U+110000", "U+D800", "Shift_L", "Zz"]), max_size=4
        ),
    )
)
def test_any_wellformed_keymap_is_taken(keycodes: dict[str, list[str]]) -> None:
    """Odd keymaps give few strokes, never a crash."""
    Keymap.parse({"keycodes": keycodes, "locked": 0})
