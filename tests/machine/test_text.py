"""Planning and typing text under many layouts, without X: the keyboard is simulated."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.errors import ActionError, MachineError, UntypableText
from cua_gym.machine.keyboard import KEYS
from cua_gym.machine.keymap import Keymap, layout_names, named_keymap
from cua_gym.machine.text import Pace, Paste, Strokes, plan_text, type_text

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
    intl_dead = {"^", "~"} - set(named_keymap(layout).strokes)
    if intl_dead & set(text):
        steps = plan_text(text, named_keymap(layout), can_paste=True)
        assert any(isinstance(step, Paste) for step in steps)
    else:
        assert typed(text, layout) == text


@pytest.mark.parametrize("layout", LAYOUTS)
@given(text=st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\n\t")))
def test_plan_covers_any_unicode(layout: str, text: str) -> None:
    """Keys and pastes together are the text; no paste holds a newline or tab."""
    keymap = named_keymap(layout)
    shown = {stroke: c for c, stroke in keymap.strokes.items()}
    enter, tab = (plan_text(c, keymap, can_paste=False)[0] for c in "\n\t")
    assert isinstance(enter, Strokes)
    assert isinstance(tab, Strokes)
    shown |= {enter.strokes[0]: "\n", tab.strokes[0]: "\t"}
    whole = ""
    for step in plan_text(text, keymap, can_paste=True):
        if isinstance(step, Paste):
            assert step.text
            assert not set(step.text) & {"\n", "\t"}
            whole += step.text
        else:
            whole += "".join(shown[s] for s in step.strokes)
    assert whole == text


def test_pastes_are_few_and_short() -> None:
    """One paste from the first to the last character without a key; whole if it begins so."""
    plan = plan_text("a café 你好 z\télan vital\nok", named_keymap("us"), can_paste=True)
    assert [s.text if isinstance(s, Paste) else len(s.strokes) for s in plan] == [
        5, "é 你好", 3, "élan vital", 3,
    ]  # fmt: skip


def test_refusal_names_the_characters_and_types_nothing() -> None:
    """What goes neither way is named, each once, before any key."""
    keyboard = Keyboard(named_keymap("us"))
    with pytest.raises(UntypableText, match=r"'é' \(U\+00E9\), '你' \(U\+4F60\).*nothing") as error:
        type_text("abc é你é", keyboard.press, keymap=keyboard.keymap)
    assert keyboard.text == ""
    assert str(error.value).count("é") == 1
    for text in ("a\rb", "a\x1bb", "\x00", "\ud800"):
        with pytest.raises(UntypableText, match=r"U\+"):
            plan_text(text, keyboard.keymap, can_paste=True)


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
