"""Records an endless episode into the attempt folder given; meant to be killed.

A second argument limits the steps; it then waits. Prints each step's index once it is acknowledged.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cua_gym.record.layout import RunFolder
from cua_gym.record.recorder import Recorder
from tests.record.pictures import counted


def main() -> None:
    """Record until killed."""
    recorder = Recorder(RunFolder(Path(sys.argv[1])), (64, 48))
    recorder.start({"task": "endless"}, counted(0))
    print(0, flush=True)
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    for step in range(1, 1 + steps):
        recorder.step(step, {"type": "wait"}, counted(step), {}, False, False)
        print(step, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
