#!/usr/bin/python3 -I
"""The steps of a small chain: ``chain rights|collect|merge|report HOME ROLE``.

Each step takes on from the one before what is new there: collect copies batches from the inbox to
the spool, merge adds them to one table in the store, report sums that table up.
"""

import csv
import grp
import os
import pwd
import re
import sys
import time
from pathlib import Path


def say(text):
    print(time.strftime("%Y-%m-%d %H:%M:%S"), text, flush=True)


def rights(home, role):
    """Gives the three folders the owners and rights that etc/rights says."""
    for line in (home / "etc/rights").read_text().splitlines():
        found = re.fullmatch(r"(spool|store|reports) ([a-z-]+) ([a-z-]+) (2[0-7]{3})", line.strip())
        if line.strip() and not line.startswith("#") and not found:
            say(f"not understood, left out: {line}")
        if not found:
            continue
        folder, account, group, mode = found.groups()
        try:
            owner, team = pwd.getpwnam(account), grp.getgrnam(group)
        except KeyError:
            say(f"{folder}: there is no account {account} or no group {group}, left as it is")
            continue
        if team.gr_name != role or owner.pw_gid != team.gr_gid:
            say(f"{folder}: not one of this chain's accounts: {account} {group}")
            continue
        folder = os.open(home / folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        os.fchown(folder, owner.pw_uid, team.gr_gid)
        os.fchmod(folder, int(mode, 8))


def number(path):
    return int(re.search(r"(\d+)\.csv$", path.name)[1])


def whole(path, text):
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def taking(home, role, source, taken, take):
    """Takes all batches of a folder that are newer than the last one; the lock keeps others off."""
    lock, last = home / f"run/{role}.lock", home / f"run/{role}.last"
    with lock.open("x") as file:
        file.write(f"{os.getpid()}\n")
    try:
        done = int(last.read_text()) if last.exists() else taken()
        new = sorted(path for path in (home / source).glob("batch-*.csv") if number(path) > done)
        if not new:
            say(f"nothing in {source} after batch {done:04}")
        for path in new:
            take(path)
            done = number(path)
            whole(last, f"{done:04}\n")
            say(f"took batch {done:04} from {source}")
    finally:
        lock.unlink()


def collect(home, role):
    spool = home / "spool"
    taking(
        home,
        role,
        "inbox",
        lambda: max((number(path) for path in spool.glob("batch-*.csv")), default=0),
        lambda path: whole(spool / path.name, path.read_text()),
    )


def merge(home, role):
    table = home / "store/table.csv"

    def rows():
        return list(csv.reader(table.open()))[1:] if table.exists() else []

    def add(path):
        new = [[f"{number(path):04}", *row] for row in list(csv.reader(path.open()))[1:]]
        lines = [["batch", "place", "count"], *rows(), *new]
        whole(table, "".join(",".join(line) + "\n" for line in lines))

    taking(home, role, "spool", lambda: max((int(row[0]) for row in rows()), default=0), add)


def report(home, role):
    rows = list(csv.reader((home / "store/table.csv").open()))[1:]
    totals = {}
    for _, place, count in rows:
        totals[place] = totals.get(place, 0) + int(count)
    text = "place,total\n" + "".join(f"{place},{totals[place]}\n" for place in sorted(totals))
    whole(home / "reports/totals.csv", text)
    say(f"totals of all batches up to {rows[-1][0]}")


if __name__ == "__main__":
    steps = {"rights": rights, "collect": collect, "merge": merge, "report": report}
    try:
        steps[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
    except OSError as error:
        say(f"{error.strerror}: {error.filename}")
        sys.exit(1)
