"""Go back through the chain to the first unit that did not run, failed, or found nothing."""

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
    yield from _said(f"cat {home}/README")
    units = [f"{name}-{params[role]}.service" for role in ("collect", "merge")]
    yield from _said(f"tail -n 3 /var/log/{name}/*.log; ls -ln {home} {home}/*")
    # While a unit starts, it has no result yet.
    shown = yield from _said(
        "show() { systemctl show -p Id,ActiveState,ConditionResult,Result,User "
        f"{' '.join(units)}; }}\n"
        'while said=$(show); grep -q =activating <<< "$said"; do sleep 0.3; done; echo "$said"'
    )
    blocks = [dict(re.findall(r"(\w+)=(.*)", part)) for part in shown.strip().split("\n\n")]
    held = [b for b in blocks if b["ConditionResult"] == "no"]
    failed = [b for b in blocks if b["Result"] != "success"]
    if held:
        lock = f"{home}/run/{_role(held[0], name)}.lock"
        yield Shell(f"test ! -e /proc/$(cat {lock}) && rm {lock}")
    elif failed:
        said = yield from _said(f"tail -n 1 /var/log/{name}/rights.log")
        [(folder, gone)] = re.findall(r"(\w+): there is no account (\S+)", said)
        yield Shell(
            f"sed -i 's/^{folder} {gone} /{folder} {failed[0]['User']} /' {home}/etc/rights"
        )
    else:
        newest = yield from _said(f"ls {home}/inbox | tail -n 1; head -v -n 1 {home}/run/*.last")
        top = int(re.findall(r"batch-(\d+)", newest)[0])
        [role] = [r for r, n in re.findall(r"(\w+)\.last <==\n(\d+)", newest) if int(n) > top]
        yield Shell(f"rm {home}/run/{role}.last")
    desk.until(
        f"tail -n 1 /var/log/{name}/{params['report']}.log | grep -q {params['batch_4'][6:10]}"
    )
    yield Shell(f"cat {home}/reports/totals.csv")
    return None


def _role(block: dict[str, str], name: str) -> str:
    return block["Id"].removesuffix(".service").removeprefix(f"{name}-")
