"""A price service in three parts, and the one thing of it that is wrong."""

from __future__ import annotations

import random
from typing import Any

_NAMES = ["till", "kiosk", "depot", "canteen", "harbour"]
_ROLES = {
    "feed": ["feed", "intake", "loader"],
    "store": ["store", "ledger", "stock"],
    "front": ["front", "desk", "gate"],
}
_ITEMS = ["candle", "kettle", "ladder", "pencil", "rope", "saddle", "teapot", "whistle"]
_CAUSES = [
    ("port", "etc/{front}.conf"),
    ("port", "etc/{store}.conf"),
    ("permissions", "data"),
    ("permissions", "etc/{feed}.conf"),
    ("environment", "etc/{feed}.env"),
    ("environment", "etc/{store}.env"),
    ("lock", "run/{feed}.lock"),
    ("path", "etc/{feed}.conf"),
]


def vary(rng: random.Random) -> dict[str, Any]:
    """Names, places, ports, prices; and the cause: its kind and the path that is at fault."""
    roles = {role: rng.choice(names) for role, names in _ROLES.items()}
    name = rng.choice(_NAMES)
    top = rng.choice(["shops", "services", "town"])
    number = rng.randint(110, 890)
    newest = f"delivery-{number:04}.csv"
    cause, path = rng.choice(_CAUSES)
    wrong = path.format(**roles)
    items = rng.sample(_ITEMS, 6)
    port = rng.randint(8100, 8900)
    # What the setup does last. A process of that number does not live on a machine just started.
    dead = rng.randint(28000, 31900)
    mischief = "true"
    if cause == "permissions":
        mischief = "chmod 2755" if wrong == "data" else "chmod 600"
    elif cause == "lock":
        mischief = f"install -m 644 <(echo {dead})"
    return {
        "name": name,
        "top": top,
        "home": f"/srv/{top}/{name}",
        **roles,
        "front_port": port,
        "store_port": port + rng.randint(11, 60),
        "wrong_port": port + rng.randint(70, 99),
        "currency": rng.choice(["EUR", "SEK", "CHF", "NZD"]),
        "region": rng.choice(["north", "harbour-side", "old-town", "island"]),
        "cause": cause,
        "wrong": wrong,
        "mischief": mischief,
        "items": items,
        "item": rng.choice(items),
        "older": f"delivery-{number - rng.randint(1, 9):04}.csv",
        "newest": newest,
        "prices": [[rng.randint(110, 9900) / 100 for _ in items] for _ in range(2)],
        "next_price": rng.randint(10100, 19900) / 100,
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """Settings, of which one may be wrong, units, deliveries, old logs and the handbook."""
    texts = _settings(params) | _units(params) | _logs(params) | {"handbook": _handbook(params)}
    for name, prices in zip(("older", "newest"), params["prices"], strict=True):
        rows = zip(params["items"], prices, strict=True)
        texts[name] = "item,price\n" + "".join(f"{item},{price}\n" for item, price in rows)
    return {name: text.encode() for name, text in texts.items()}


def _right_settings(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    home, feed = params["home"], params["feed"]
    data = f"{home}/data"
    return {
        "feed.conf": {"inbox": f"{home}/inbox", "data": data, "lock": f"{home}/run/{feed}.lock"},
        "feed.env": {"CURRENCY": params["currency"], "TZ": "UTC"},
        "store.conf": {"port": params["store_port"], "data": data},
        "store.env": {"REGION": params["region"], "TZ": "UTC"},
        "front.conf": {"port": params["front_port"], "store_port": params["store_port"]},
    }


def _settings(params: dict[str, Any]) -> dict[str, str]:
    files = _right_settings(params)
    for name, pairs in files.items():
        role, kind = name.split(".")
        if params["wrong"] == f"etc/{params[role]}.{kind}":
            if params["cause"] == "port":
                pairs["store_port" if role == "front" else "port"] = params["wrong_port"]
            elif params["cause"] == "path":
                pairs["inbox"] = f"{params['home']}/incoming"
            elif params["cause"] == "environment":
                del pairs["CURRENCY" if role == "feed" else "REGION"]
    return {
        name: "".join(
            f"{key}={value}\n" if name.endswith(".env") else f"{key} = {value}\n"
            for key, value in pairs.items()
        )
        for name, pairs in files.items()
    }


def _units(params: dict[str, Any]) -> dict[str, str]:
    name, home = params["name"], params["home"]
    feed, store, front = (f"{name}-{params[role]}" for role in _ROLES)

    def service(role: str, kind: str) -> str:
        return (
            f"[Service]\nType={kind}\nUser={name}\nUMask=0002\n"
            f"EnvironmentFile=-{home}/etc/{params[role]}.env\n"
            f"ExecStart=/usr/local/lib/{name}/prices {role} {home}/etc/{params[role]}.conf\n"
            f"StandardOutput=append:/var/log/{name}/{params[role]}.log\n"
            "StandardError=inherit\n"
        )

    return {
        "feed.service": "[Unit]\nDescription=Take in the newest delivery\n"
        "StartLimitIntervalSec=0\n" + service("feed", "oneshot"),
        # Counted from the end of a run, since a failed one was never active.
        "feed.timer": "[Unit]\nDescription=Take in deliveries\n"
        "[Timer]\nOnActiveSec=1\nOnUnitInactiveSec=15\nAccuracySec=1\n",
        "store.service": f"[Unit]\nDescription=Prices of today's delivery\nWants={feed}.timer\n"
        "StartLimitIntervalSec=0\n" + service("store", "notify"),
        "front.service": f"[Unit]\nDescription=Prices for customers\nWants={store}.service\n"
        f"After={store}.service\nStartLimitIntervalSec=0\n" + service("front", "notify"),
        "restart.path": "[Unit]\nDescription=Starts the price service anew when asked to\n"
        f"[Path]\nPathChanged={home}/restart\n",
        "restart.service": "[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=oneshot\n"
        f"ExecStart=-/bin/systemctl start {feed}.service\n"
        f"ExecStart=/bin/systemctl restart {store}.service {front}.service\n",
    }


def _logs(params: dict[str, Any]) -> dict[str, str]:
    """Troubles that are long over, so that a word found in a log proves nothing."""
    lock = f"{params['home']}/run/{params['feed']}.lock"
    return {
        "feed.log": f"2025-10-30 04:10:02 {lock} is held by process 713, nothing done\n"
        f"2025-10-30 04:10:17 6 prices of {params['older']}\n",
        "store.log": "2025-10-29 22:00:41 REGION is not set\n"
        f"2025-10-29 22:04:13 answering on port {params['store_port']}\n",
        "front.log": f"2025-10-29 22:04:20 answering on port {params['front_port']}\n"
        "2025-10-30 03:58:52 the store does not answer: [Errno 111] Connection refused\n"
        f"2025-10-30 04:09:58 answering on port {params['front_port']}\n",
    }


def _handbook(params: dict[str, Any]) -> str:
    name, home = params["name"], params["home"]
    files = _right_settings(params)
    settings = "".join(
        f"  etc/{params[file.split('.')[0]]}.{file.split('.')[1]}: "
        + ", ".join(f"{key} is {value}" for key, value in pairs.items() if key != "TZ")
        + "\n"
        for file, pairs in files.items()
    )
    return f"""The price service {name}

{name}-{params["feed"]}.timer starts {name}-{params["feed"]}.service every 15 seconds. It reads the
newest delivery in {home}/inbox and writes all prices into {home}/data/prices.json.
{name}-{params["store"]}.service serves these prices to the front.
{name}-{params["front"]}.service answers customers: /price/ITEM.
All of them run as the account {name}.

Settings:
{settings}
Rights:
  data and run belong to the group {name}, which may write there (2775).
  Everybody may read etc and the deliveries.
While the {params["feed"]} runs, it holds run/{params["feed"]}.lock, which it removes at its end.

Settings are read when a service starts. To start all of them anew, touch {home}/restart.
Logs: /var/log/{name}.
"""
