"""A long file of settings: the same names in every section, and longer ones that begin alike."""

from __future__ import annotations

import random
from typing import Any

_SERVERS = {
    "relay": "mail relay",
    "tiles": "map server",
    "vault": "document store",
    "gate": "door control",
    "meter": "meter collector",
    "press": "print server",
}
_FOLDERS = ["Server", "Documents/settings", "work/etc", "Config"]
_SECTIONS = ["listen", "admin", "queue", "backup", "mirror", "monitor", "upload", "public"]
_KEYS = ["address", "port", "timeout", "max_clients", "retries", "log_file"]
_ENDINGS = ["limit", "idle", "local", "old", "test"]
_COMMENTS = [
    "Ask operations before you change this section.",
    "The handbook has a chapter about these.",
    "Times are in seconds.",
    "0 means that there is no limit.",
    "Taken over from the former machine.",
    "The values of the test network stand in the wiki.",
]


def vary(rng: random.Random) -> dict[str, Any]:
    """The file, three settings to change, and for each the section that could be taken for it."""
    name = rng.choice(sorted(_SERVERS))
    folder = rng.choice(_FOLDERS)
    sections = rng.sample(_SECTIONS, 6)
    keys = rng.sample(_KEYS, 3)
    blocks = [f"# Settings of the {_SERVERS[name]}."]
    blocks += [_block(rng, section, keys) for section in sections]
    before = "\n\n".join(blocks) + "\n"
    params = {
        "what": _SERVERS[name],
        "file": f"{name}.conf",
        "folder": folder,
        "before": before,
    }
    mixed = rng.sample(sections, 6)
    for number, key in enumerate(keys, 1):
        value = _value(rng, key)
        while value in before:
            value = _value(rng, key)
        params |= {
            f"section_{number}": mixed[2 * number - 2],
            f"other_{number}": mixed[2 * number - 1],
            f"key_{number}": key,
            f"value_{number}": value,
        }
    return params


def _block(rng: random.Random, section: str, keys: list[str]) -> str:
    """A section: every name, some with a longer twin, some switched off by a #."""
    lines = [f"[{section}]", f"# {rng.choice(_COMMENTS)}"]
    for key in rng.sample(_KEYS, len(_KEYS)):
        twins = [f"{key} = {_value(rng, key)}"]
        if key in keys or rng.random() < 0.2:
            twins.append(f"{key}_{rng.choice(_ENDINGS)} = {_value(rng, key)}")
        if rng.random() < 0.3:
            twins.append(f"# {key} = {_value(rng, key)}")
        lines += rng.sample(twins, len(twins))
    return "\n".join(lines)


def _value(rng: random.Random, key: str) -> str:
    """Something that such a setting may be."""
    match key:
        case "address":
            return f"10.{rng.randint(0, 99)}.{rng.randint(0, 99)}.{rng.randint(2, 250)}"
        case "port":
            return str(rng.randint(1100, 9899))
        case "log_file":
            return f"/var/log/{rng.choice(['all', 'own', 'new'])}-{rng.randint(100, 999)}.log"
    return str(rng.randint(11, 989))
