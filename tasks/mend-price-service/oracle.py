"""Hold the settings against the handbook; where they agree, ask the log of the first unit."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from cua_gym.actions import Action, Shell
from cua_gym.agent.oracle import Desk, Solution


def _said(command: str) -> Generator[Action, Any, str]:
    _, info = yield Shell(command)
    return str(info["shell"]["stdout"])


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """It reads what an agent would read, and knows no more of the cause."""
    home, name = params["home"], params["name"]
    handbook = yield from _said(f"cat {home}/README")
    settings = yield from _said(f"cd {home} && grep -H . etc/*")
    seen = re.findall(r"^(\S+?):(\w+) ?= ?(.*)$", settings, re.MULTILINE)
    wrong = []
    for file, pairs in re.findall(r"^  (etc/\S+): (.+)$", handbook, re.MULTILINE):
        for key, value in re.findall(r"(\w+) is ([^,]+)", pairs):
            if (file, key, value) not in seen:
                wrong.append((file, key, value))
    if wrong:
        [(file, key, value)] = wrong
        cause = "environment" if file.endswith(".env") else "port" if "port" in key else "path"
        place = f"{home}/{file}"
        if cause == "environment":
            yield Shell(f"echo {key}={value} >> {place}")
        else:
            yield Shell(f"sed -i 's|^{key} = .*|{key} = {value}|' {place}")
    else:
        [unit] = re.findall(r"timer starts (\S+)\.service", handbook)
        log = f"/var/log/{name}/{unit.removeprefix(f'{name}-')}.log"
        said = (yield from _said(f"tail -n 1 {log}")).split(" ", 2)[2].strip()
        if held := re.fullmatch(r"(\S+) is held by process (\d+), nothing done", said):
            cause, place = "lock", held[1]
            yield Shell(f"test ! -e /proc/{held[2]} && rm {place}")
        else:
            [denied] = re.findall(r"Permission denied: (\S+)", said)
            cause = "permissions"
            if denied.startswith(f"{home}/data/"):
                place = f"{home}/data"
                yield Shell(f"chmod 2775 {place}")
            else:
                place = denied
                yield Shell(f"chmod 644 {place}")
    yield Shell(f"touch {home}/restart")
    address = f"http://127.0.0.1:{params['front_port']}/price/{params['item']}"
    desk.until(f"python3 -c 'import urllib.request as r; r.urlopen(\"{address}\")' 2>/dev/null")
    return f"{cause} {place}"
