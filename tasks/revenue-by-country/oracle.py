"""Look at the tables, then one query, its result straight into the file."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Shell
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """Repeated lines are alike in all but their id, so DISTINCT leaves one of each."""
    database, placed, amount = f"~/Data/{params['database']}", params["placed"], params["amount"]
    yield Shell(f"sqlite3 {database} .schema 'SELECT * FROM {params['orders']} LIMIT 20'")
    day = (
        f"CASE WHEN {placed} LIKE '__.__.____' THEN substr({placed}, 7) || '-' ||"
        f" substr({placed}, 4, 2) || '-' || substr({placed}, 1, 2)"
        f" ELSE substr({placed}, 1, 10) END"
    )
    query = (
        "SELECT coalesce(b.country, 'unknown') AS country, count(*) AS orders,"
        " printf('%.2f', total(o.amount)) AS revenue"
        f" FROM (SELECT DISTINCT number, buyer, {day} AS day, {amount} AS amount, status"
        f"   FROM {params['orders']}) AS o LEFT JOIN {params['buyers']} AS b ON b.id = o.buyer"
        f" WHERE o.day BETWEEN '{params['first']}' AND '{params['last']}'"
        f" AND o.status IS NOT '{params['void']}' GROUP BY 1"
    )
    report = f"~/Reports/{params['report']}"
    yield Shell(f'sqlite3 -readonly -csv -header {database} "{query}" > {report} && cat {report}')
    return None
