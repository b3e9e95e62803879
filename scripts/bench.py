"""Measures what cua_gym promises, beside other ways to do the same, all in one run.

Prints a table and writes ``bench.json``; a whole run also writes the page ``docs/bench.md`` and its
plot ``docs/bench.svg``. Machines are shared and noisy: compare rows of one run, not numbers of two.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench_parts.machines import kinds
from bench_parts.page import markdown
from bench_parts.plot import svg
from bench_parts.report import Pace, Report

from cua_gym.image.store import ImageStore
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.qemu.accelerator import probe

ROOT = Path(__file__).parents[1]
COUNTS = (1, 2, 4, 8, 16)
FULL = Pace(samples=60, rounds=3, seconds=4.0)
QUICK = Pace(samples=12, rounds=1, seconds=1.5)


@dataclass(frozen=True, slots=True)
class Part:
    """One part: where its function is, on which kinds it runs, and what its numbers contain.

    Attributes:
        counted: it measures several numbers of machines at once.
        long: left out by ``--quick`` unless asked for.
    """

    function: str
    text: str
    only: tuple[str, ...] = ()
    counted: bool = False
    long: bool = False

    def load(self) -> Callable[..., None]:
        """The function; what another part imports stays out of memory."""
        module, _, name = self.function.partition(".")
        loaded: Callable[..., None] = getattr(import_module(f"bench_parts.{module}"), name)
        return loaded


PARTS = {
    "resets": Part(
        "resets.resets",
        "A new machine from its image's ready state, until its first frame is there and is the "
        "right one; until root's first command has ended; and its end.",
    ),
    "savevm": Part(
        "resets.savevm",
        "QEMU's own snapshots, `savevm` and `loadvm`, in the same machine, until the first frame "
        "is right again.",
        only=("qemu",),
    ),
    "steps": Part(
        "steps.of_a_step",
        "One machine, bare: what a step is made of. A step is an action, the wait until the "
        "screen is at rest, and a frame.",
    ),
    "bridges": Part(
        "bridges.bridges",
        "A call over HTTP beside the same thing done directly, in turns.",
        only=("qemu",),
    ),
    "peers": Part(
        "peers.peers",
        """
The same steps in an open editor (clicks, keys, pointer moves) on the same machines, in turns, each
machine with a client or thread of its own. "Ours" waits until the screen is at rest and takes a
frame; "ours, to the next change" takes the first frame that differs. The peers take a picture as
soon as the action is done, whatever it shows.

- **OSWorld**: the controller of the published `desktop-env` on the host, with its two calls for a
  step: `/execute` starts a Python in the guest that imports pyautogui, `/screenshot` grabs by
  Pillow, pastes the pointer in and encodes a PNG. The package has no server, so the two routes were
  written after what the client sends. The guest has no network: the client goes through a forward
  of the machine's SSH connection, and both calls are also timed inside the guest, without it.
  OSWorld's own `step` sleeps 2 s more between the two, by default; that is not counted.
- **vncdotool**: its synchronous API on QEMU's VNC server. A picture is a whole refresh into memory,
  its default. It holds no key or button, and we do for 20 ms, since a guest can miss what is
  shorter.
- Memory of a client is that of its process; OSWorld's server takes some in each guest, too.
""",
        only=("qemu",),
        counted=True,
    ),
    "vectors": Part(
        "vectors.vectors",
        """
Environments over the same machines, in turns: bare machines in a thread each (no record, no
spaces), at their own pace and in step with each other; our vector; Gymnasium's SyncVectorEnv. Its
AsyncVectorEnv comes after them with machines of its own, over shared memory, with workers from a
fork server that has imported us (a plain fork of a process with threads would hang). All reuse one
batch (`copy=False`), record lines alone (`film_every=0`), and reset nothing by themselves; "filmed"
has pictures and video of every step, and machines made ready meanwhile. A step is that of all
environments together; steps are those of all in a second. Resets are of a task's cached start
state. Memory is that of all processes, shared pages counted once, less what was there before, for
each environment.
""",
        counted=True,
    ),
    "forks": Part(
        "forks.forks",
        "Four branches of an episode under way, from the call until each has its first frame, the "
        "same as the parent's. The pause is how long the parent's processors stand still.",
        only=("qemu",),
    ),
    "crowd": Part("resets.crowd", "Twenty machines restored at once.", only=("qemu",)),
    "cold": Part(
        "resets.cold", "A boot from power-on, in an empty cache.", only=("qemu",), long=True
    ),
}  # fmt: skip


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--machine", action="append", choices=kinds(), help="default: each")
    parser.add_argument("--many", type=int, nargs="+", default=COUNTS, help="numbers at once")
    parser.add_argument("--quick", action="store_true", help="fewer samples, no cold boot")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--docs", type=Path, help="folder for page and plot; else, of a whole run")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}")
    pace = QUICK if args.quick else FULL
    report = Report(host=_host())
    print(", ".join(f"{name} {value}" for name, value in report.host.items()))
    failed = False
    for kind in args.machine or kinds():
        for name, part in PARTS.items():
            if part.only and kind not in part.only:
                continue
            if name in args.parts or not (args.parts or (part.long and args.quick)):
                report.begin(kind, name)
                more: dict[str, Any] = {"counts": args.many} if part.counted else {}
                try:
                    part.load()(report, kind, pace, **more)
                except (Exception, SystemExit) as error:  # the other parts go on
                    traceback.print_exc()
                    report.leave_out("the rest", f"{type(error).__name__}: {error}")
                    failed = True
                args.out.write_text(json.dumps(report.as_json(), indent=1) + "\n")
    print(f"\nwritten to {args.out}")
    whole = not (args.parts or args.quick or args.machine)
    if docs := args.docs or (ROOT / "docs" if whole else None):
        texts = {name: part.text for name, part in PARTS.items()}
        (docs / "bench.md").write_text(markdown(report, texts))
        (docs / "bench.svg").write_text(svg(report))
        print(f"page and plot written to {docs}")
    sys.exit(failed)


def _host() -> dict[str, Any]:
    image = ImageStore().get(MachineSpec().image)
    host = probe(ImageStore().root.parent)
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "cpu": host.cpu_model,
        "accelerator": host.accelerator(),
        "qemu": host.version,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "gymnasium": version("gymnasium"),
        "image": image.folder.name,
        "load": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    main()
