"""The tools of the desktop bridge: see the screen, use its mouse and keyboard.

Every tool that acts answers with the settled frame. Coordinates are pixels of the native screen,
origin top left, whatever the scale of the pictures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from cua_gym import actions as a
from cua_gym.bridge.marks import mark
from cua_gym.bridge.pictures import check, encode
from cua_gym.bridge.session import Call
from cua_gym.bridge.tools import Reply, budget, fault, fitting
from cua_gym.machine import desktop
from cua_gym.machine.base import Machine
from cua_gym.steps import Step

__all__ = ["TOOLS"]

PICTURE_BYTES = 700_000
"""In base64 and with the rest of an answer it stays below 1 MiB, the most that the Python SDK's
client takes in one event."""

TYPED = 5000
"""Characters at once: half a minute, which is as long as clients wait."""

REST_S = 0.5
"""A screen that stands still for so long has settled, for who waits for it."""

Frame = Annotated[
    int | None,
    Field(description="Act only if the screen still shows this frame (its serial number)."),
]
X = Annotated[int, Field(description="Pixels from the left edge of the native screen.")]
Y = Annotated[int, Field(description="Pixels from the top edge of the native screen.")]
ButtonName = Literal["left", "middle", "right"]
MARKED_BYTES = 480_000
"""Of a picture beside a list of marks."""
MARK_NAME = 200
"""Most characters of a mark's name."""
TREE_BYTES = 400_000
"""Of a tree's nodes in JSON; an answer has them twice."""
CLIPBOARD_TEXT = 40_000
"""Most characters of a clipboard that are told."""
_LOOK: Mapping[str, Any] = {}


def screenshot(
    call: Call,
    region: Annotated[
        tuple[int, int, int, int] | None,
        Field(description="[x, y, width, height] in native pixels; the whole screen if absent."),
    ] = None,
    scale: Annotated[float, Field(description="Above 0, at most 1; smaller is cheaper.")] = 1.0,
) -> Reply:
    """Look at the screen, or at a part of it, as it is now."""

    def look(machine: Machine) -> Mapping[str, Any]:
        check(region, scale, machine.screen.size)
        return _LOOK

    step = call.use(look, acts=False)
    if fault(step):
        return _shown(step)
    return _shown(step, region=region, scale=scale)


def move(call: Call, x: X, y: Y, frame: Frame = None) -> Reply:
    """Move the pointer to a pixel."""
    return _shown(call.act(a.Move(x, y), frame))


def click(
    call: Call,
    x: X,
    y: Y,
    button: ButtonName = "left",
    count: Annotated[int, Field(description="2 is a double click, 3 a triple click.")] = 1,
    modifiers: Annotated[
        list[str], Field(description='Keys held meanwhile, such as ["ctrl"].')
    ] = [],  # noqa: B006 - only read; the schema shows it
    frame: Frame = None,
) -> Reply:
    """Click at a pixel."""
    return _shown(call.act(a.Click(x, y, button, count, tuple(modifiers)), frame))


def mouse_down(call: Call, button: ButtonName = "left", frame: Frame = None) -> Reply:
    """Press a button where the pointer is; it stays down until mouse_up."""
    return _shown(call.act(a.MouseDown(button), frame))


def mouse_up(call: Call, button: ButtonName = "left", frame: Frame = None) -> Reply:
    """Release a button where the pointer is."""
    return _shown(call.act(a.MouseUp(button), frame))


def drag(
    call: Call,
    path: Annotated[
        list[tuple[int, int]],
        Field(description="Points [x, y] to pass: press at the first, release at the last."),
    ],
    button: ButtonName = "left",
    frame: Frame = None,
) -> Reply:
    """Drag along a path and drop at its end."""
    return _shown(call.act(a.Drag(tuple(path), button), frame))


def scroll(
    call: Call,
    x: X,
    y: Y,
    dx: Annotated[int, Field(description="Wheel notches to the right; negative is left.")] = 0,
    dy: Annotated[int, Field(description="Wheel notches down; negative is up.")] = 0,
    frame: Frame = None,
) -> Reply:
    """Turn the mouse wheel with the pointer at a pixel."""
    return _shown(call.act(a.Scroll(x, y, dx, dy), frame))


def type(  # noqa: A001 - what the tool is called everywhere
    call: Call,
    text: Annotated[
        str,
        Field(max_length=TYPED, description="Any Unicode; \\n presses Enter, \\t presses Tab."),
    ],
    frame: Frame = None,
) -> Reply:
    """Type text into whatever has the keyboard."""
    return _shown(call.act(a.Type(text), frame))


def key(
    call: Call,
    combo: Annotated[str, Field(description='Such as "enter", "ctrl+shift+s", "alt+f4".')],
    frame: Frame = None,
) -> Reply:
    """Press and release a key or a chord."""
    return _shown(call.act(a.Key(combo), frame))


def key_down(call: Call, key: str, frame: Frame = None) -> Reply:
    """Press one key; it stays down until key_up."""
    return _shown(call.act(a.KeyDown(key), frame))


def key_up(call: Call, key: str, frame: Frame = None) -> Reply:
    """Release a key that key_down pressed."""
    return _shown(call.act(a.KeyUp(key), frame))


def wait(
    call: Call,
    seconds: Annotated[float, Field(description="0 to 60.")] = 1.0,
    until_settled: Annotated[
        bool, Field(description="Return as soon as the screen has stood still for half a second.")
    ] = False,
) -> Reply:
    """Let time pass, then look."""
    action = a.Wait(seconds)
    if not until_settled:
        return _shown(call.act(action))
    a.validate(action)
    end = time.monotonic() + min(seconds, call.episode.seconds_left)

    def rest(machine: Machine) -> Mapping[str, Any]:
        screen = machine.screen
        moves = True
        while moves and time.monotonic() < end and not call.stop.asked:
            moves = screen.wait_change(screen.serial, REST_S)
        return (
            {"settled": not moves, "stopped": True} if call.stop.asked else {"settled": not moves}
        )

    return _shown(call.use(rest, acts=True, action=action))


def cursor_position(call: Call) -> Reply:
    """Where the pointer is, in native pixels."""
    step = call.use(lambda machine: _LOOK, acts=False)
    x, y = step.frame.cursor
    return _told(step, f"({x}, {y})", x=x, y=y)


def screen_size(call: Call) -> Reply:
    """Width and height of the screen in pixels."""
    step = call.use(lambda machine: _LOOK, acts=False)
    height, width = step.frame.rgb.shape[:2]
    return _told(step, f"{width}x{height}", width=width, height=height)


def accessibility_tree(
    call: Call,
    role: Annotated[str | None, Field(description='Exact role, such as "push button".')] = None,
    name: Annotated[str | None, Field(description="Part of the name, in any case.")] = None,
    app: Annotated[
        str | None, Field(description="Part of the program's name; much quicker than all.")
    ] = None,
) -> Reply:
    """What the programs say is on the screen: roles, names, states and boxes in native pixels."""
    nodes: list[dict[str, Any]] = []

    def look(machine: Machine) -> Mapping[str, Any]:
        nodes.extend(desktop.accessibility_tree(machine.shell, app, call.stop))
        return {"nodes": len(nodes)}

    step = call.use(look, acts=False)
    screen = call.episode.actions.screen
    found = desktop.filter_tree(nodes, role=role, name=name, app=app, screen=screen)
    shown = fitting(found.nodes, TREE_BYTES)
    left_out = found.left_out + len(found.nodes) - len(shown)
    return _told(step, "", nodes=shown, left_out=left_out)


def windows(call: Call) -> Reply:
    """The windows, bottom to top: titles, programs, boxes in native pixels, which is active."""
    found: list[desktop.Window] = []

    def look(machine: Machine) -> Mapping[str, Any]:
        found.extend(desktop.windows(machine.shell, call.stop))
        return {"windows": len(found)}

    step = call.use(look, acts=False)
    listed = [
        {
            "title": w.title,
            "app": w.app,
            "type": w.type,
            "box": [w.x, w.y, w.width, w.height],
            "active": w.active,
            "minimized": w.minimized,
        }
        for w in found
    ]
    return _told(step, "", windows=listed)


def marks(call: Call) -> Reply:
    """The screen with a numbered box on everything that can be clicked, and the list of them."""
    nodes: list[dict[str, Any]] = []
    windows: list[desktop.Window] = []

    def look(machine: Machine) -> Mapping[str, Any]:
        nodes.extend(desktop.accessibility_tree(machine.shell, stop=call.stop))
        windows.extend(desktop.windows(machine.shell, call.stop))
        return {"nodes": len(nodes)}

    step = call.use(look, acts=False)
    rgb, found = mark(step.frame.rgb, nodes, windows)
    listed: list[dict[str, Any]] = [
        {"number": m.number, "role": m.role, "name": m.name[:MARK_NAME], "box": list(m.box)}
        for m in found
    ]
    text = "\n".join(
        f"{m['number']}: {m['role']} {m['name']!r} at {x + width // 2}, {y + height // 2}"
        for m in listed
        for x, y, width, height in [m["box"]]
    )
    return _shown(step, rgb=rgb, text=text or "nothing to mark", marks=listed)


def clipboard_get(call: Call) -> Reply:
    """The text in the clipboard."""
    held: dict[str, Any] = {"clipboard": None, "left_out": 0}

    def get(machine: Machine) -> Mapping[str, Any]:
        if (text := desktop.clipboard(machine.shell, call.stop)) is not None:
            # Whoever owns the clipboard may give bytes that are no text, and as many as he likes.
            told = (
                text[:CLIPBOARD_TEXT].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            )
            held.update(clipboard=told, left_out=max(0, len(text) - CLIPBOARD_TEXT))
        return held

    step = call.use(get, acts=False)
    return _told(step, held["clipboard"] or "the clipboard holds no text", **held)


def clipboard_set(call: Call, text: str) -> Reply:
    """Put text into the clipboard."""

    def put(machine: Machine) -> Mapping[str, Any]:
        desktop.set_clipboard(machine.shell, text, call.stop)
        return _LOOK

    step = call.use(put, acts=True)
    return _told(step, "done")


TOOLS: Sequence[Callable[..., Reply]] = (
    screenshot, move, click, mouse_down, mouse_up, drag, scroll, type, key, key_down, key_up, wait,
    cursor_position, screen_size, windows, accessibility_tree, marks, clipboard_get, clipboard_set,
)  # fmt: skip


def _told(step: Step, text: str, **facts: Any) -> Reply:
    wrong = fault(step)
    if wrong is not None:
        return Reply(wrong, budget(step), error=True)
    return Reply(text, {**facts, **budget(step)})


def _shown(
    step: Step,
    *,
    rgb: Any = None,
    region: tuple[int, int, int, int] | None = None,
    scale: float = 1.0,
    text: str | None = None,
    **facts: Any,
) -> Reply:
    """The frame after a step, with what one must know of it; faults with the frame of now."""
    picture = encode(
        step.frame.rgb if rgb is None else rgb,
        region=region,
        scale=scale,
        limit_bytes=PICTURE_BYTES if rgb is None else MARKED_BYTES,
    )
    info = step.info
    facts |= {
        "frame": step.frame.serial,
        "age_s": round(info["frame_age_s"], 3),
        "cursor": list(step.frame.cursor),
        "settled": info.get("settled", False),
        "scale": picture.scale,
        "region": list(picture.region),
        **budget(step),
    }
    wrong = fault(step)
    if wrong is not None:
        return Reply(wrong, facts, picture, error=True)
    said = f"frame {facts['frame']}" + ("" if facts["settled"] else ", still changing")
    if info.get("stopped"):
        said += ", stopped early"
    if "limit" in info:
        said += f"; the limit of {info['limit']} is reached, the episode is over"
    return Reply(f"{text}\n{said}" if text else said, facts, picture)
