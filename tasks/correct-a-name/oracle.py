"""Replace the whole word everywhere, save."""

from __future__ import annotations

import shlex
from typing import Any

from cua_gym.actions import Key
from cua_gym.agent.office_moves import SAVED_S, replace_all
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """One replacement reaches text, table and header."""
    desk.focused(params["file"])
    yield from replace_all(desk, {params["wrong"]: params["right"]}, whole_words=True)
    yield Key("ctrl+s")
    path = shlex.quote(f"/home/user/{params['folder']}/{params['file']}")
    part = "word/document.xml" if params["kind"] == "docx" else "content.xml"
    desk.until(f"unzip -p {path} {part} 2>/dev/null | grep -q {params['right']}", SAVED_S)
    return None
