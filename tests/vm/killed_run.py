"""A process that runs one episode on a real machine until it is killed."""

from __future__ import annotations

import itertools
import sys

import cua_gym
from cua_gym import Move, Type


def main() -> None:
    """``killed_run.py TASK RUNS``: reset, say so, then act without end."""
    env = cua_gym.make(sys.argv[1], runs=sys.argv[2], max_steps=10_000)
    print("resetting", flush=True)
    env.reset(seed=0)
    print(env.machine.pid, env.episode.folder.path, flush=True)  # type: ignore[attr-defined]
    for i in itertools.count():
        env.step(Move(100 + i % 500, 300) if i % 4 else Type("x"))


if __name__ == "__main__":
    main()
