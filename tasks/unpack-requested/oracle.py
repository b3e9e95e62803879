"""Read the request, look into the archive, unpack the files by name."""

from __future__ import annotations

import re
import shlex
from typing import Any

from cua_gym.actions import Shell
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """What is asked for follows from the request alone."""
    desk.wait_window(re.escape(params["place"]))
    folder = shlex.quote(f"/home/user/{params['folder']}")
    archive, target = shlex.quote(params["archive"]), f"/home/user/{params['target']}"
    _, info = yield Shell(f"cat {folder}/{shlex.quote(params['request'])}")
    request = info["shell"]["stdout"]
    zipped = params["archive"].endswith(".zip")
    listing = f"unzip -Z1 {archive}" if zipped else f"tar -tzf {archive}"
    _, info = yield Shell(f"cd {folder} && {listing}")
    patterns = _patterns(request)
    wanted = [
        shlex.quote(path)
        for path in info["shell"]["stdout"].split("\n")
        if any(re.search(pattern, path) for pattern in patterns)
    ]
    names = " ".join(wanted)
    where = shlex.quote(target)
    unpack = f"unzip -q {archive} {names} -d {where}"
    if not zipped:
        unpack = f"tar -xzf {archive} -C {where} {names}"
    yield Shell(f"mkdir -p {where} && cd {folder} && {unpack}")
    return None


def _patterns(request: str) -> list[str]:
    """What the three lines of a request mean, as paths in the archive."""
    lines = (
        r"the plan of the (.+), version (\d)",
        r"the letter of (\S+)",
        r"all csv files of (\d{4})",
    )
    plan, letter, year = (found for line in lines if (found := re.search(line, request)))
    return [
        rf"(^|/)plans/{plan[1].replace(' ', '-')}-v{plan[2]}\.txt$",
        rf"(^|/)letters/.*/{letter[1]}\.txt$",
        rf"(^|/)measured/{year[1]}/.*\.csv$",
    ]
