"""A chain of services that makes a report, and the one thing behind it that is wrong."""

from __future__ import annotations

import random
from typing import Any

_NAMES = ["ferry", "museum", "parking", "library", "cablecar"]
_PLACES = ["east", "harbour", "hilltop", "market", "north", "old-town", "station", "west"]
_ROLES = {
    "collect": ["collect", "fetch", "gather"],
    "merge": ["merge", "join", "sort"],
    "report": ["report", "totals", "summary"],
}
_ACCOUNTS = ["keeper", "carrier", "clerk", "porter", "runner", "warden"]
_CAUSES = [(cause, step) for cause in ("owner", "lock", "last") for step in ("collect", "merge")]
_FOLDERS = {"collect": "spool", "merge": "store"}


def vary(rng: random.Random) -> dict[str, Any]:
    """Names, places, batches; and the cause with the step that it stops."""
    roles = {role: rng.choice(names) for role, names in _ROLES.items()}
    name = rng.choice(_NAMES)
    top = rng.choice(["shops", "services", "town"])
    home = f"/srv/{top}/{name}"
    cause, step = rng.choice(_CAUSES)
    # The account of this step was given another name, whatever is wrong.
    accounts = [f"{name}-{account}" for account in rng.sample(_ACCOUNTS, 4)]
    first = rng.randint(120, 880)
    batches = [f"batch-{first + n:04}.csv" for n in range(5)]
    places = sorted(rng.sample(_PLACES, rng.randint(4, 6)))
    last = f"{first + 4 + rng.randint(3, 60):04}"
    # A process of that number does not live on a machine just started.
    dead = rng.randint(28000, 31900)
    wrong = {
        "owner": "etc/rights",
        "lock": f"run/{roles[step]}.lock",
        "last": f"run/{roles[step]}.last",
    }[cause]
    right = {"collect": accounts[0], "merge": accounts[1], "report": accounts[2]}
    return {
        "name": name,
        "top": top,
        "home": home,
        **roles,
        **{f"{role}_account": account for role, account in right.items()},
        "old_account": accounts[3],
        "step": step,
        "renamed_role": roles[step],
        "cause": cause,
        "wrong": wrong,
        "folder": _FOLDERS[step],
        "folder_account": right[step],
        "spool_account": accounts[3] if (cause, step) == ("owner", "collect") else accounts[0],
        "store_account": accounts[3] if (cause, step) == ("owner", "merge") else accounts[1],
        "mischief": {"lock": f"echo {dead} >", "last": f"echo {last} >"}.get(cause, "test -e"),
        "places": places,
        **{f"batch_{n}": batch for n, batch in enumerate(batches)},
        "done": f"{first + 2:04}",
        "renamed": f"2025-0{rng.randint(3, 9)}-{rng.randint(10, 28)}",
        "counts": [[rng.randint(11, 990) for _ in places] for _ in batches],
        "next_batch": "\\n".join(
            f"{place},{count}"
            for place, count in zip(places, [rng.randint(3000, 9000) for _ in places], strict=True)
        ),
    }


def batch(params: dict[str, Any], index: int) -> str:
    """What arrived in the inbox."""
    rows = zip(params["places"], params["counts"][index], strict=True)
    return "place,count\n" + "".join(f"{place},{count}\n" for place, count in rows)


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """Batches, the table of the first three of them, units, old logs and the handbook."""
    texts = {f"batch_{n}": batch(params, n) for n in range(5)}
    table = ["batch,place,count"]
    for n in range(3):
        number = params[f"batch_{n}"][6:10]
        table += [f"{number},{row}" for row in batch(params, n).splitlines()[1:]]
    texts["table.csv"] = "\n".join(table) + "\n"
    rights = {role: params[f"{role}_account"] for role in _ROLES}
    texts["rights"] = "# folder account group mode\n" + "".join(
        f"{folder} {params['old_account'] if wrong else rights[role]} {params['name']} 2755\n"
        for folder, role, wrong in [
            ("spool", "collect", params["cause"] == "owner" and params["step"] == "collect"),
            ("store", "merge", params["cause"] == "owner" and params["step"] == "merge"),
            ("reports", "report", False),
        ]
    )
    texts |= _units(params) | _logs(params) | {"handbook": _handbook(params)}
    return {name: text.encode() for name, text in texts.items()}


def _units(params: dict[str, Any]) -> dict[str, str]:
    name, home = params["name"], params["home"]

    def service(role: str, about: str, before: str, more: str, account: str) -> str:
        return (
            f"[Unit]\nDescription={about}\nWants={before}\nAfter={before}\n{more}"
            "StartLimitIntervalSec=0\n"
            f"[Service]\nType=oneshot\nUser={account}\nUMask=0002\n"
            f"ExecStart=/usr/local/lib/{name}/chain {role} {home} {params[role]}\n"
            f"StandardOutput=append:/var/log/{name}/{params[role]}.log\n"
            "StandardError=inherit\n"
        )

    def lock(role: str) -> str:
        return f"ConditionPathExists=!{home}/run/{params[role]}.lock\n"

    def first_account(role: str) -> str:
        old = params["step"] == role
        return str(params["old_account"] if old else params[f"{role}_account"])

    collect, merge = (f"{name}-{params[role]}.service" for role in ("collect", "merge"))
    rights = f"{name}-rights.service"
    return {
        "rights.service": "[Unit]\nDescription=Give the folders their owners\n"
        "StartLimitIntervalSec=0\n[Service]\nType=oneshot\n"
        f"ExecStart=/usr/local/lib/{name}/chain rights {home} {name}\n"
        f"StandardOutput=append:/var/log/{name}/rights.log\n"
        "StandardError=inherit\n",
        "collect.service": service(
            "collect", "Take in batches", rights, lock("collect"), first_account("collect")
        ),
        "merge.service": service(
            "merge", "Add batches to the table", collect, lock("merge"), first_account("merge")
        ),
        "report.service": service(
            "report", "Sum the table up", merge, "", params["report_account"]
        ),
        # By the clock, since a run that is skipped ends no other way.
        "report.timer": "[Unit]\nDescription=Report every 15 seconds\n"
        "[Timer]\nOnCalendar=*-*-* *:*:00/15\nAccuracySec=1\n",
        "account.conf": f"# The account {params['old_account']} is {params['folder_account']} "
        f"since {params['renamed']}.\n[Service]\nUser={params['folder_account']}\n",
    }


def _logs(params: dict[str, Any]) -> dict[str, str]:
    """Troubles that are long over, so that a word found in a log proves nothing."""
    home, done = params["home"], params["done"]
    return {
        "rights.log": f"2025-01-14 06:00:03 reports: there is no account {params['name']}-guest "
        f"or no group {params['name']}, left as it is\n",
        "collect.log": f"2025-01-14 06:02:11 Permission denied: {home}/inbox/{params['batch_0']}\n"
        f"2025-01-14 06:10:15 took batch {done} from inbox\n",
        "merge.log": f"2025-01-14 06:02:13 File exists: {home}/run/{params['merge']}.lock\n"
        f"2025-01-14 06:10:17 took batch {done} from spool\n",
        "report.log": f"2025-01-14 06:10:19 totals of all batches up to {done}\n",
    }


def _handbook(params: dict[str, Any]) -> str:
    name, home = params["name"], params["home"]
    collect, merge, report = (params[role] for role in _ROLES)
    return f"""The report of the {name}

Batches of counts arrive in {home}/inbox. Every 15 seconds {name}-{report}.timer
has these units run, one after the other; whatever becomes of one, the next one runs all the same:

  {name}-rights.service gives spool, store and reports the owners and rights of etc/rights.
  {name}-{collect}.service copies new batches from inbox to spool,
    as the account {params["collect_account"]}.
  {name}-{merge}.service adds new batches of spool to store/table.csv,
    as the account {params["merge_account"]}.
  {name}-{report}.service sums the table up in reports/totals.csv,
    as the account {params["report_account"]}.

spool, store and reports belong to the account that writes there and to the group {name};
others only read there (2755). What a unit writes is not to be written by hand.

run/{collect}.last and run/{merge}.last have the number of the last batch that was taken; a batch is
new when its number is higher. Where the file is missing, the unit looks into spool or the table
what it has already, and writes it anew.

While it runs, {collect} or {merge} holds run/{collect}.lock or run/{merge}.lock with the number of
its process, and is not started beside that. A lock whose process lives no more may be removed.

Logs: /var/log/{name}.
"""
