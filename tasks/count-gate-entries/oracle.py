"""Read the head of a log, then the last line of each request between two times."""

from __future__ import annotations

import re
from typing import Any

from cua_gym.actions import Shell
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The day begins and ends at another hour of the log's clock."""
    _, info = yield Shell("cd ~/gate-logs && ls && head -n 8 gates.log")
    head = info["shell"]["stdout"]
    sign, hours, minutes = re.search(r"# clock: UTC([+-])(\d\d):(\d\d)", head).groups()
    # What `TZ` calls east is minus.
    zone = f"UTC{'-' if sign == '+' else '+'}{hours}:{minutes}"
    order = re.search(r"# line: (.+)", head)[1].split(", ")
    # A time is two fields: its date and its clock.
    fields = [part for name in order for part in (["date", "clock"] if name == "time" else [name])]
    date, clock, request, gate, result = (
        f"${1 + fields.index(name)}" for name in ("date", "clock", "request", "gate", "result")
    )
    if re.search(r"\d\d\.\d\d\.\d{4} \d\d:", head):
        date = f'substr({date}, 7) "-" substr({date}, 4, 2) "-" substr({date}, 1, 2)'
    report = f"~/Reports/{params['report']}"
    _, info = yield Shell(
        f"begin=$(TZ={zone} date -d '{params['day']} 00:00:00 UTC' '+%F %T')\n"
        f"end=$(TZ={zone} date -d '{params['day']} 23:59:59 UTC' '+%F %T')\n"
        f"cd ~/gate-logs && zcat -f * | grep -v '^#' |\n"
        f"awk '{{print {date}, {clock}, {request}, {gate}, {result}}}' | sort |\n"
        'awk -v begin="$begin" -v end="$end" \'\n'
        '  {time[$3] = $1 " " $2; gate[$3] = $4; result[$3] = $5}\n'
        '  END {print "gate,entries"\n'
        "    for (r in time) if (time[r] >= begin && time[r] <= end &&\n"
        f'      result[r] == "{params["admitted"]}") n[gate[r]]++\n'
        '    for (g in n) print g "," n[g]}\' '
        f"> {report}\ncat {report}"
    )
    rows = info["shell"]["stdout"].split()[1:]
    return str(sum(int(row.split(",")[1]) for row in rows))
