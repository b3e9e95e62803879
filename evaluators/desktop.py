"""The desktop: its windows and its settings."""

from __future__ import annotations

import re

from cua_gym.grading.check import Item, Verdict, check, verdict

from .text import Pattern, normal


@check
def window(item: Item, *, title: Pattern, app: str = "", shown: bool = True) -> Verdict:
    """A window is there whose whole title matches ``title``; ``app`` is its WM_CLASS exactly.

    By default a minimized window is refused.
    """
    windows = item.records()
    fits = [
        w
        for w in windows
        if re.fullmatch(title, w["title"])
        and app in ("", w["app"])
        and not (shown and w["minimized"])
    ]
    titles = [f"{w['app']}: {w['title']}" for w in windows]
    return verdict(bool(fits), "the windows", seen=titles, wanted=title)


@check
def no_window(item: Item, *, title: Pattern, app: str = "") -> Verdict:
    """No window, minimized or not, has a whole title that matches."""
    titles = [w["title"] for w in item.records() if app in ("", w["app"])]
    fits = [t for t in titles if re.fullmatch(title, t)]
    return verdict(not fits, "the windows", seen=titles, wanted=f"none like {title}")


@check
def setting(item: Item, *, expected: str | int | float) -> Verdict:
    """What a settings command printed is the value, white space around it aside.

    It refuses a setting that is not there, and text around the value.
    """
    seen = normal(item.text(), whitespace="trim")
    return verdict(seen == str(expected), item.source, seen=seen, wanted=str(expected))
