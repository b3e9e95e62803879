"""Read the rules, then clean the list with a small script."""

from __future__ import annotations

import re
from typing import Any

from cua_gym.actions import Shell
from cua_gym.agent.oracle import Desk, Solution

_SCRIPT = """
import csv, datetime, sys
forms = {forms}
rows = [row for row in csv.reader(open("{raw}", encoding="utf-8", newline="")) if any(row)]
held = {{}}
for member, name, desk, seen, fee in rows[1:]:
    member = member.strip().upper()
    day = datetime.datetime.strptime(seen, forms[desk]).date()
    if member not in held or day > held[member][0]:
        held[member] = day, name.strip(), float(fee.replace(",", "."))
with open("{clean}", "w", encoding="utf-8", newline="") as file:
    out = csv.writer(file, lineterminator="\\n")
    out.writerow(["member", "name", "seen", "fee"])
    for member in sorted(held):
        day, name, fee = held[member]
        out.writerow([member, name, day.isoformat(), f"{{fee:.2f}}"])
"""


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The formats follow from the examples in the rules."""
    desk.wait_window("README")
    folder = f"/home/user/{params['folder']}"
    _, info = yield Shell(f"cat {folder}/README.txt")
    rules = info["shell"]["stdout"]
    yield Shell(f"head -n 20 {folder}/{params['raw']}")
    forms = {
        name: example.replace("2024", "%Y").replace("31", "%d").replace("12", "%m")
        for name, example in re.findall(r"^  (\w+): .*\((\S+)\),", rules, re.MULTILINE)
    }
    script = _SCRIPT.format(forms=forms, raw=params["raw"], clean=params["clean"])
    yield Shell(f"cd {folder} && python3 - <<'END'\n{script}\nEND")
    yield Shell(f"wc -l {folder}/{params['clean']}; head -n 5 {folder}/{params['clean']}")
    return None
