"""What the report says once the chain runs as the handbook says."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """The totals of all batches, those with the next one, and the units' states."""
    batches = [inputs[f"batch_{n}"].decode().splitlines()[1:] for n in range(5)]
    now = _totals(batches)
    later = _totals([*batches, params["next_batch"].split("\\n")])
    name, place = params["name"], "/etc/systemd/system"
    units = {
        f"{name}-{params['report']}.timer": {"ActiveState": "active"},
        f"{name}-rights.service": {"User": "", "DropInPaths": ""},
    }
    for role in ("collect", "merge", "report"):
        unit = f"{name}-{params[role]}.service"
        renamed = f"{place}/{unit}.d/account.conf" if role == params["step"] else ""
        units[unit] = {"User": params[f"{role}_account"], "DropInPaths": renamed}
    for unit, wanted in units.items():
        wanted |= {"Result": "success", "FragmentPath": f"{place}/{unit}"}
    return {"now": now, "later": later, "units": units}


def _totals(batches: list[list[str]]) -> list[list[Any]]:
    totals: dict[str, int] = {}
    for place, count in (row.split(",") for rows in batches for row in rows):
        totals[place] = totals.get(place, 0) + int(count)
    return [["place", "total"], *([place, totals[place]] for place in sorted(totals))]
