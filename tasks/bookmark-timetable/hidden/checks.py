"""The bookmarks beside the one that was asked for."""

from __future__ import annotations

import json

from cua_gym.grading.check import Fails, Item, Verdict, check, verdict


@check
def others(item: Item, *, expected: list[str], url: str) -> Verdict:
    """Without bookmarks of ``url``, all bookmarks have exactly these names, in this order.

    It refuses one more in whatever folder, and one less.
    """
    try:
        roots = json.loads(item.text())["roots"]
        seen = [
            str(child.get("name"))
            for name in ("bookmark_bar", "other", "synced")
            for child in roots[name]["children"]
            if child.get("url") != url
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Fails(f"no bookmarks of Chromium: {error}") from error
    return verdict(seen == expected, "the other bookmarks", seen=seen, wanted=str(expected))
