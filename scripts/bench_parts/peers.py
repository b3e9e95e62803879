"""Other ways to drive the same virtual machine: OSWorld's server in the guest, and vncdotool.

All take turns on the same machines, which were restored from one state with an editor open and
OSWorld's server up. Its client reaches it through a forward of the machine's SSH connection, since
the guest has no network, and its calls are also timed inside the guest, with no tunnel.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from cua_gym.machine.base import Machine
from cua_gym.machine.settle import Settle
from cua_gym.machine.start import start_machine

from .machines import CYCLE, action, do, has_room, open_editor, performer, spec, steps
from .memory import tree_mb
from .peer_packages import PeerPackages, peer_packages
from .relay import relayed
from .report import Pace, Report, say, timed

__all__ = ["peers"]

OURS, NEXT, OSWORLD, VNCDOTOOL = "ours", "ours, to the next change", "OSWorld", "vncdotool"
PEERS = (OSWORLD, VNCDOTOOL)
FOLDER = "/opt/bench-peers"
PORT = 5000
LOG = "/tmp/osworld.log"
AT_ONCE = Settle(first_s=0.25, quiet_s=1e-4, max_s=3.0)
_HERE = Path(__file__).parent / "elsewhere"

Way = Callable[[str, float], tuple[list[float], int | None]]
"""``look`` so many times or ``step`` so many seconds: seconds of each, and how many pictures differ
from the one before, where that is counted."""


def peers(report: Report, kind: str, pace: Pace, counts: Sequence[int]) -> None:
    """Pictures, steps and memory of each, for each number of machines."""
    packages = peer_packages()
    report.host |= packages.versions
    server = hashlib.sha256((_HERE / "osworld_server.py").read_bytes()).hexdigest()
    start = partial(
        start_machine,
        spec(kind),
        key=f"bench peers {packages.key} {server}",
        prepare=lambda machine: _serve_osworld(machine, packages),
        progress=say,
    )
    with start() as machine:
        _inside(report, machine, pace)
    last: dict[str, float] = {}
    for many in counts:
        names = [name for name in (OURS, NEXT, *PEERS)
                 if has_room(report, kind, name, many, last.get(name, 0.0))]  # fmt: skip
        with ExitStack() as stack:
            machines = [stack.enter_context(start()) for _ in range(many if names else 0)]
            for machine in machines:  # the first steps of a restored machine are nobody's
                hand = performer(machine)
                for words in CYCLE:
                    do(hand, action(words))
            if names:
                last |= _together(report, machines, packages, pace, names)


def _serve_osworld(machine: Machine, packages: PeerPackages) -> None:
    """Bring the server and its packages into the guest, and start it as the desktop's account."""
    version = machine.shell.run(["python3", "-V"]).text.split()[1]
    ours = subprocess.run([packages.python, "-V"], capture_output=True, text=True, check=True)
    if version.split(".")[:2] != ours.stdout.split()[1].split(".")[:2]:
        raise SystemExit(f"the guest has Python {version}, the peers' packages are for another")
    say("bringing OSWorld's server into the guest")
    server = (_HERE / "osworld_server.py").read_bytes()
    machine.shell.write(f"{FOLDER}/osworld_server.py", server, user="root")
    machine.shell.write(f"{FOLDER}/packages/all.tgz", packages.guest.read_bytes(), user="root")
    unpack = ["tar", "-xzf", "all.tgz"]
    machine.shell.run(unpack, cwd=f"{FOLDER}/packages", user="root", timeout_s=600)
    # Its client calls it so; and pyautogui grabs from X by Pillow only where GNOME's program, which
    # it then does not call, is installed.
    machine.shell.run(
        "ln -sf /usr/bin/python3 /usr/local/bin/python; "
        "ln -sf /bin/false /usr/local/bin/gnome-screenshot",
        user="root",
    )
    open_editor(machine)
    start = (
        f"PYTHONPATH={FOLDER}/packages setsid -f python3 {FOLDER}/osworld_server.py "
        f">{LOG} 2>&1 </dev/null"
    )
    machine.shell.run(start)
    for _ in range(240):
        if machine.shell.run(f"bash -c '</dev/tcp/127.0.0.1/{PORT}'").exit == 0:
            break
        time.sleep(0.5)
    else:
        raise SystemExit(f"OSWorld's server did not start: {machine.shell.read(LOG)!r}")
    _ask(machine, 1)  # the first calls import what they need


def _ask(machine: Machine, count: int) -> Any:
    """Seconds of that many calls of each kind, made inside the guest."""
    client = (_HERE / "inside_client.py").read_bytes()
    done = machine.shell.run(["python3", "-", str(count)], stdin=client, timeout_s=600)
    if done.exit:
        raise SystemExit(f"{done.stderr.decode()}\n{machine.shell.read(LOG).decode()}")
    return json.loads(done.stdout)


def _inside(report: Report, machine: Machine, pace: Pace) -> None:
    seconds = _ask(machine, 3 * pace.rounds)
    report.add(f"{OSWORLD}, a picture, timed in the guest", seconds["look"], "s")
    report.add(f"{OSWORLD}, a pointer action, timed in the guest", seconds["act"], "s")
    resident = "awk '/VmRSS/ {print $2}' /proc/$(pgrep -f osworld_server.py | head -1)/status"
    held = int(machine.shell.run(resident).text) / 1000
    report.add(f"{OSWORLD}, its server's memory in the guest", [held], "MB")


def _together(
    report: Report,
    machines: Sequence[Machine],
    packages: PeerPackages,
    pace: Pace,
    names: Sequence[str],
) -> dict[str, float]:
    """Rows of pictures, steps and memory; the median step of each way."""
    many = len(machines)
    last: dict[str, float] = {}
    with ExitStack() as stack, ThreadPoolExecutor(max(1, many)) as pool:
        ways: dict[str, list[Way]] = {}
        for name in names:
            before = tree_mb()
            if name not in PEERS:
                ways[name] = [_ours(machine, name) for machine in machines]
            else:
                made = pool.map(lambda m, n=name: _client(n, m, packages), machines)
                ways[name] = [stack.enter_context(client) for client in made]
                held = (tree_mb() - before) / many
                report.add(f"{name}, memory of each client", [held], "MB", many)
        looks: dict[str, list[float]] = {name: [] for name in names}
        rates: dict[str, list[float]] = {name: [] for name in names}
        taken: dict[str, list[float]] = {name: [] for name in names}
        changed: dict[str, list[float]] = {name: [] for name in names if name in PEERS}
        for i in range(pace.rounds):
            for name in (*names[i % len(names) :], *names[: i % len(names)]):
                seen = pool.map(lambda way: way("look", 3), ways[name])
                looks[name] += [s for one, _ in seen for s in one]
                begun = time.perf_counter()
                done = list(pool.map(lambda way: way("step", pace.seconds), ways[name]))
                count = sum(len(one) for one, _ in done)
                rates[name].append(count / (time.perf_counter() - begun))
                taken[name] += [s for one, _ in done for s in one]
                if name in PEERS:
                    changed[name].append(100 * sum(n or 0 for _, n in done) / count)
        for title, values, unit in (("a picture", looks, "s"), ("steps", rates, "1/s"),
                                    ("a step", taken, "s")):  # fmt: skip
            for name in names:
                if (title, name) == ("a picture", NEXT):
                    continue  # it is the same as ours
                last[name] = report.add(f"{name}, {title}", values[name], unit, many)
        for name in changed:
            report.add(f"{name}, steps that show a change", changed[name], "%", many)
            theirs = {t: report.median(f"{name}, {t}", many) for t in ("a picture", "a step")}
            for title, seconds in theirs.items():
                for mine in (OURS, NEXT) if title == "a step" else (OURS,):
                    report.ratio(
                        f"{title}: {name} / {mine}", seconds,
                        report.median(f"{mine}, {title}", many), "", many,
                    )  # fmt: skip
    return last


def _ours(machine: Machine, name: str) -> Way:
    hand = performer(machine, AT_ONCE if name == NEXT else None)

    def way(what: str, bound: float) -> tuple[list[float], int | None]:
        if what == "step":
            return steps(partial(do, hand), bound), None
        return [timed(machine.screen.grab) for _ in range(int(bound))], None

    return way


@contextmanager
def _client(name: str, machine: Any, packages: PeerPackages) -> Iterator[Way]:
    """A peer's client in a process of its own, as it would be."""

    def guest_port() -> Any:
        transport = machine.shell._connection.transport()  # past the machine's own road
        return transport.open_channel("direct-tcpip", ("127.0.0.1", PORT), ("127.0.0.1", 0))

    connect = guest_port if name == OSWORLD else machine._running().vnc_client
    with relayed(connect) as port:
        client = str(_HERE / "client.py")
        words = [str(packages.python), client, name.lower(), str(port), json.dumps(CYCLE)]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            asks, answers = process.stdin, process.stdout

            def answer() -> str:
                line: str = answers.readline()
                if not line:
                    raise SystemExit(f"{name}'s client ended with {process.wait()}")
                return line

            def way(what: str, bound: float) -> tuple[list[float], int | None]:
                asks.write(json.dumps([what, bound]) + "\n")
                asks.flush()
                done = json.loads(answer())
                return done["seconds"], done["changed"]

            try:
                answer()
                yield way
            finally:
                process.kill()
