"""Bookmarks of pages that look alike, under other names, in other places."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Made of the solved profile's bookmarks."""

    def profile(change: Callable[[list[Any], dict[str, Any]], object]) -> bytes:
        whole = json.loads(solved["bookmarks"].text())
        bar = whole["roots"]["bookmark_bar"]["children"]
        [new] = [child for child in bar if child.get("url") == params["url"]]
        change(bar, new)
        return json.dumps(whole).encode()

    yield keeps("before the others", bookmarks=profile(lambda bar, new: bar.insert(0, bar.pop())))
    for which in ("other_season", "other_days", "other_way"):
        other = params[which]
        yield breaks(
            which.replace("_", " "), bookmarks=profile(lambda _, new, to=other: new.update(url=to))
        )
        yield breaks(
            f"{which.replace('_', ' ')} too".replace("other", "the other"),
            bookmarks=profile(lambda bar, new, to=other: bar.append({**new, "url": to})),
        )
    yield breaks("the page's own title", bookmarks=profile(lambda _, new: new.update(name="x")))
    yield breaks("twice", bookmarks=profile(lambda bar, new: bar.append(dict(new))))
    yield breaks("in place of the others", bookmarks=profile(lambda bar, _: bar.__delitem__(0)))
    yield breaks(
        "another page too",
        bookmarks=profile(lambda bar, new: bar.append({**new, "url": "about:blank"})),
    )
