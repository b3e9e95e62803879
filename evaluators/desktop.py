"""The desktop: its windows and its settings.

What is on the clipboard is text (`text.equals`). A wallpaper is a setting (``xfconf-query -c
xfce4-desktop -p /backdrop/screen0/monitorNAME/workspace0/last-image``) and a file. Windows are
what the desktop's own programs claim: where the result is a file, look at the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .bounds import within
from .data import read_ini, same_value
from .numbers_dates import DEFAULT_RELATIVE, close, parse_number
from .text import Pattern, normal

Scalar = str | int | float | bool
Form = Literal["plain", "xfconf", "gvariant"]


@check
def window(
    item: Item,
    *,
    title: Pattern,
    app: str = "",
    shown: bool = True,
    active: bool = False,
    box: list[int] | None = None,
    tolerance: int = 0,
) -> Verdict:
    """A window is there whose whole title matches ``title``; ``app`` is its WM_CLASS exactly.

    ``active``: it has the keyboard. ``box``: where its content is (x, y, width, height), each
    within ``tolerance`` pixels. By default a minimized window is refused.
    """
    if box is not None and len(box) != 4:
        raise GradingError(f"box is x, y, width, height, not {box}")

    def fits(one: dict[str, Any]) -> bool:
        place = [one["x"], one["y"], one["width"], one["height"]] if box else []
        return (
            app in ("", one["app"])
            and not (shown and one["minimized"])
            and not (active and not one["active"])
            and all(abs(a - b) <= tolerance for a, b in zip(place, box or [], strict=True))
        )

    found = _titled(item, title)
    wanted = title if box is None else f"{title} at {box}"
    return verdict(any(map(fits, found)), "the windows", seen=_told(item), wanted=wanted)


@check
def no_window(item: Item, *, title: Pattern, app: str = "") -> Verdict:
    """No window, minimized or not, has a whole title that matches.

    It refuses a desktop that did not tell its windows.
    """
    fits = [w for w in _titled(item, title) if app in ("", w["app"])]
    return verdict(not fits, "the windows", seen=_told(item), wanted=f"none like {title}")


def _titled(item: Item, title: str) -> list[dict[str, Any]]:
    with within("the windows' titles"):
        # A program can set a title that is no text.
        return [w for w in item.records() if re.fullmatch(title, str(w["title"]))]


def _told(item: Item) -> list[str]:
    places = ("x", "y", "width", "height")
    return [f"{w['app']}: {w['title']} {[w.get(p) for p in places]}" for w in item.records()]


@check
def setting(
    item: Item,
    *,
    expected: Scalar | list[Scalar] | list[list[Scalar]],
    form: Form = "plain",
    absolute: float = 0.0,
) -> Verdict:
    """What a settings command printed is the value, white space around it aside.

    ``form``: how the command writes values: ``plain``, as it is; ``xfconf``: the same, and lists;
    ``gvariant`` (gsettings, dconf): text in quotes, numbers, lists. A number is compared as one.
    It refuses a setting that is not there, text around the value, and another type.
    """
    text = normal(item.text(), whitespace="exact").strip()
    if form == "gvariant":
        with within("the setting"):
            value = parse_gvariant(text)
        return verdict(_same(value, expected, absolute), item.source, seen=value, wanted=expected)
    if isinstance(expected, list):
        if form != "xfconf":
            raise GradingError(f"a list is wanted, and {form} has none")
        items = _xfconf_list(text)
        same = len(items) == len(expected) and all(
            _written(a, b, absolute) for a, b in zip(items, expected, strict=True)
        )
        return verdict(same, item.source, seen=items, wanted=expected)
    return verdict(_written(text, expected, absolute), item.source, seen=text, wanted=expected)


def _written(text: str, wanted: Any, absolute: float) -> bool:
    """Whether a command wrote this value, in no other way than commands do."""
    if isinstance(wanted, bool):
        return text == str(wanted).lower()
    if isinstance(wanted, int | float):
        try:
            return close(parse_number(text), wanted, absolute, DEFAULT_RELATIVE)
        except Fails:
            return False
    if not isinstance(wanted, str):
        raise GradingError(f"a setting is text, a number or true, not {wanted!r}")
    return text == wanted


def _xfconf_list(text: str) -> list[str]:
    head, _, rest = text.partition("\n\n")
    match = re.fullmatch(r"Value is an array with ([0-9]{1,6}) items:", head)
    items = rest.split("\n") if rest else []
    if match is None or len(items) != int(match[1]):
        raise Fails(f"no list of xfconf-query: {head!r:.80}", seen=text)
    return items


def _same(seen: Any, wanted: Any, absolute: float) -> bool:
    return same_value(seen, wanted, absolute, DEFAULT_RELATIVE)


_TYPE = r"(?:(?:@[a-z(){}]+|boolean|byte|u?int(?:16|32|64)|handle|double|objectpath)\s+)?"
_TOKEN = re.compile(
    rf"\s*{_TYPE}(?:(?P<mark>[\[\](),])|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<word>true|false)|(?P<number>0x[0-9a-f]+|[-+]?[0-9][0-9.eE+-]*))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_gvariant(text: str) -> Any:
    """A value as GVariant's text has it: text, numbers, true and false; lists and tuples of them.

    Raises:
        Fails: it is none, or of a kind that settings do not have.

    Source: GLib's "GVariant Text Format".
    """
    tokens: list[tuple[str, str]] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Fails(f"no value of gsettings: {text[at:]!r:.40}", seen=text)
        kind = match.lastgroup or ""
        tokens.append((kind, match[kind]))
        at = match.end()
    rest = iter(tokens)
    value = _gvariant(next(rest, ("", "")), lambda: next(rest, ("", "")))
    if next(rest, None) is not None:
        raise Fails("more than one value of gsettings", seen=text)
    return value


def _gvariant(token: tuple[str, str], following: Callable[[], tuple[str, str]]) -> Any:
    kind, text = token
    if kind == "text":
        return _ESCAPE.sub(_unescaped, text[1:-1])
    if kind == "word":
        return text == "true"
    if kind == "number":
        try:
            return int(text, 0) if re.fullmatch(r"0x[0-9a-f]+|[-+]?\d+", text) else float(text)
        except ValueError as error:
            raise Fails(f"no number of gsettings: {error}", seen=text) from error
    if text not in ("[", "("):
        raise Fails(f"no value of gsettings begins with {text!r}", seen=text)
    end = {"[": "]", "(": ")"}[text]
    values: list[Any] = []
    token = following()
    while token[1] != end or token[0] != "mark":
        values.append(_gvariant(token, following))
        token = following()
        if token == ("mark", ","):
            token = following()
        elif token != ("mark", end):
            raise Fails(f"no value of gsettings: {token[1]!r} instead of {end}", seen=values)
    return values


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPED.get(code, code)
    number = int(code[1:], 16)
    return chr(number) if number < 0x110000 else "\ufffd"


@check
def default_app(item: Item, *, mime: str, expected: str) -> Verdict:
    """In a ``mimeapps.list``, the first default of a type is this desktop file (``x.desktop``).

    It refuses an application that is only among the possible ones or comes later. What the whole
    system makes of it, `setting` says of ``xdg-mime query default TYPE``.
    """
    chosen = read_ini(item.text()).get("Default Applications", {}).get(mime, "")
    first = next((name for name in chosen.split(";") if name), None)
    return verdict(first == expected, f"the default for {mime}", seen=chosen, wanted=expected)
